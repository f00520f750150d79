"""States of left events, told by tasks that see some matches each: together they are the aggregates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import INTERVALS
from coincide.engine.join.aggregate_states import Together
from coincide.engine.join.chosen_pairs import emission_of
from coincide.engine.join.spec import AnySpec, output_schema
from coincide.engine.join.timing import JoinSpec
from coincide.model.aggregates import aggregates_of
from coincide.model.condition import Window
from coincide.model.errors import DataError
from tests.helpers.aggregates import CASES, KINDS, OF_A_PAIR, array, values_of

VALUES = "delta", "probability"
WINDOW = Window(-30, 40, 0.3)


def side(rng: np.random.Generator, count: int, payload: list[pa.Array]) -> Side:
    """Few times and lengths, so that many are equal."""
    low, lengths = rng.integers(0, 6, count) * 20, rng.choice([0, 10, 30], count)
    return Side(low + lengths, lengths, INTERVALS, None, [], payload)


def joined(spec: AnySpec, left: Side, right: Side) -> tuple[pa.Table, int]:
    """The rows of a join, and how many pairs it has."""
    fields = [
        [pa.field(f"{name}{i}", column.type) for i, column in enumerate(columns)]
        for name, columns in (("left", left.payload), ("right", right.payload))
    ]
    emission = emission_of(left, right, spec, output_schema(spec, [], *fields))
    table = pa.Table.from_batches(list(emission), emission.schema)
    return table, emission.counters.pairs


def together(spec: AnySpec, kinds: list[pa.DataType], parts: list[pa.Table]) -> pa.Table:
    """The aggregates of rows of states in any order, by left row."""
    states = pa.concat_tables(parts).sort_by("left0")
    rows = states["left0"].to_numpy()
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    merging = Together(spec, kinds)
    columns = merging.of(np.append(begins, rows.size), states.drop_columns("left0"))
    fields = [pa.field("left0", pa.int64()), *merging.fields]
    return pa.Table.from_arrays([pa.array(rows[begins]), *columns], schema=pa.schema(fields))


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    """Rows whose floats show their bits, but for NaN."""
    columns = [[*map(repr, column.to_pylist())] for column in table.columns]
    return list(zip(*columns, strict=True))


def spec_of(asked: dict[str, Any], **more: Any) -> JoinSpec:
    aggregates = aggregates_of(asked, VALUES, more.pop("weights", None))
    return JoinSpec(WINDOW, emit="aggregates", aggregates=aggregates, **more)


def check(spec: JoinSpec, left: Side, right: Side, of_part: np.ndarray) -> None:
    """Right events that are dealt out in parts, one of them empty, give the answer of all."""
    kinds = [column.type for column in right.payload]
    partial = spec.but(are_states=True)
    parts, pairs = [], 0
    for part in range(int(of_part.max(initial=0)) + 2):
        table, counted = joined(partial, left, right.rows(np.flatnonzero(of_part == part)))
        parts.append(table)
        pairs += counted
    try:
        wanted, counted = joined(spec, left, right)
    except DataError as error:
        with pytest.raises(DataError, match=re.escape(str(error))):
            together(spec, kinds, parts)
        return
    found = together(spec, kinds, parts)
    found.validate(full=True)
    assert found.schema.types == wanted.schema.types
    assert rows_of(found) == rows_of(wanted.sort_by("left0"))
    assert pairs == counted


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0]])
def test_zeros_of_equal_events_are_told_apart_by_their_sign(
    values: list[float], order: list[int]
) -> None:
    """Else the first and last would depend on which task is heard first."""
    now, none = np.array([10, 10]), np.zeros(2, np.int64)
    right = Side(now, none, INTERVALS, None, [], [pa.array(values)])
    left = Side(now[:1], none[:1], INTERVALS, None, [], [pa.array([0])])
    spec = spec_of({each: ("value", each) for each in ("first", "last")})
    check(spec, left, right, np.array(order))
    found, _ = joined(spec, left, right)
    assert [str(found[name][0].as_py()) for name in ("first", "last")] == ["-0.0", "0.0"]


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=max(1, CASES // 10))
@given(data=st.data())
def test_parts_are_the_whole(name: str, data: st.DataObject) -> None:
    kind, seed = KINDS[name], data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    count = data.draw(st.integers(0, 25))
    values = array(data.draw(values_of(kind, count)), kind.type)
    if pa.types.is_dictionary(values.type):  # comes plain to a task
        values = values.dictionary_decode()
    ids = pa.array(rng.integers(0, 3, count))
    right = side(rng, count, [values, ids])
    left = side(rng, 6, [pa.array(range(6))])
    functions = data.draw(st.lists(st.sampled_from(kind.functions), min_size=1, unique=True))
    asked: dict[str, Any] = {f: ("value", f) for f in functions}
    asked |= {"n": "count", "ids": ("id", data.draw(st.sampled_from(["sum", "first", "count"])))}
    for each in data.draw(st.lists(st.sampled_from(OF_A_PAIR), max_size=3)):
        column = data.draw(st.sampled_from(VALUES))
        asked[f"{each} {column}"] = (column, each)
    spec = spec_of(asked, threads=data.draw(st.sampled_from([1, 2])))
    if data.draw(st.booleans()):
        spec = spec.but(batch_pairs=3)
    check(spec, left, right, rng.integers(0, data.draw(st.integers(1, 5)), count))


@pytest.mark.parametrize("name", ["int64", "float64", "largest", "decimal, 2", "uint64", "bool"])
@settings(max_examples=max(1, CASES // 10))
@given(data=st.data())
def test_expected_numbers(name: str, data: st.DataObject) -> None:
    kind, rng = KINDS[name], np.random.default_rng(data.draw(st.integers(0, 10**6)))
    values = array(data.draw(values_of(kind, 20)), kind.type)
    right, left = side(rng, 20, [values]), side(rng, 6, [pa.array(range(6))])
    asked = {
        "n": "count", "values": ("value", "count"), "sum": ("value", "sum"), "mean": ("value", "mean"),
        "apart": ("delta", "sum"), "likely": ("probability", "mean"),
    }  # fmt: skip
    names = data.draw(st.lists(st.sampled_from(list(asked)), min_size=1, unique=True))
    spec = spec_of({name: asked[name] for name in names}, weights="probability")
    if not {"values", "sum", "mean"} & {*names}:
        right.payload.clear()
    check(spec, left, right, rng.integers(0, 4, 20))
