"""Aggregates of the matches of each left event: the reference's values, whatever the types and batches."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    CausalityCondition,
    CoincideError,
    ConditionError,
    CorrelateOptions,
    DataError,
    JoinReport,
    SchemaError,
    Temporal,
    TimingCondition,
    around,
    causality_tables,
    correlate_tables,
    overlapping,
    spans,
    within,
)
from coincide.engine.join.text_options import aggregated as worded
from cpu_fallback.reference.aggregates import (
    Aggregate,
    Expected,
    aggregated,
    expected_numbers,
    is_same,
    reduced,
)
from cpu_fallback.reference.join import Asked, Row, others
from cpu_fallback.reference.spans import Span, is_overlapping, overlap
from tests.helpers.comparison import condition_of as condition_of_case
from tests.helpers.comparison import ticks_of
from tests.helpers.histogram_tables import by_device, events, histograms_of, random_templates
from tests.helpers.joins import local_files_join
from tests.helpers.match_cases import condition_of, match_cases, tables_of
from tests.helpers.strategies import random_cases

CASES = int(os.environ.get("COINCIDE_CASES", "150"))
ORDERED = ("count", "min", "max", "first", "last")
NUMBERS = (*ORDERED, "sum", "mean", "std")
OF_A_PAIR = ("count", "min", "max", "sum", "mean", "std")
NAN, INF = math.nan, math.inf
LARGEST, LEAST = 1.7976931348623157e308, 5e-324


class Kind(NamedTuple):
    """A type of a column, values of it that are easily got wrong, and the functions that take it."""

    type: pa.DataType
    values: tuple[Any, ...]
    functions: tuple[str, ...] = ORDERED
    more: st.SearchStrategy[Any] = st.nothing()


def integers(kind: pa.DataType) -> Kind:
    bits, is_unsigned = kind.bit_width, str(kind).startswith("u")
    low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return Kind(kind, (1, 0, high, low, high - 1, 7), NUMBERS, st.integers(low, high))


def decimals(kind: Any) -> Kind:
    one, most = Decimal((0, (1,), -kind.scale)), 10**kind.precision - 1
    unscaled = (7, 0, most, -most, -1, 10 ** (kind.precision // 2))
    values = tuple(
        Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -kind.scale)) for n in unscaled
    )
    return Kind(kind, (one, *values), NUMBERS)


def floats(kind: pa.DataType, *values: float) -> Kind:
    usual = (0.5, -0.0, 0.0, -0.1, 1.0, NAN, INF, -INF)
    more = st.floats(width=kind.bit_width)
    return Kind(kind, (*usual, *values, *(-value for value in values)), NUMBERS, more)


def times(kind: pa.DataType, *values: int) -> Kind:
    return Kind(kind, (5, -5, 0, *values), ORDERED)


TEXTS = (
    "b",
    "ab",
    "",
    "é",
    "z",
    "\N{GRINNING FACE}",
    "\N{FULLWIDTH LATIN SMALL LETTER A}",
    "a\x00",
)
BYTES = (b"b", b"ab", b"", b"\xff", b"\x00", b"a\x00", b"a")
FAR = 2**63 - 1
KINDS = {
    **{
        str(kind): integers(kind)
        for kind in (
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        )
    },
    "bool": Kind(pa.bool_(), (False, True), (*NUMBERS, "any")),
    "decimal, 0": decimals(pa.decimal128(38, 0)),
    "decimal, 2": decimals(pa.decimal128(10, 2)),
    "decimal, 9": decimals(pa.decimal128(18, 9)),
    "decimal, 18": decimals(pa.decimal128(38, 18)),
    "decimal, 30": decimals(pa.decimal128(38, 30)),
    "long decimal": decimals(pa.decimal256(76, 20)),
    "float16": floats(pa.float16(), 65504.0, 6e-8, 2048.0),
    "float32": floats(pa.float32(), 3.4028234663852886e38, 1e-45, 16777216.0, 1e-30),
    "float64": floats(pa.float64(), 1e300, 1e-300, LARGEST, LEAST, 2.0**53, 1e16),
    # Halves of the last place: a sum that is rounded twice comes out otherwise.
    "ties": Kind(
        pa.float64(), (1.0, 2.0**-53, -(2.0**-53), 2.0**-105, -(2.0**-105), 2.0**-52), NUMBERS
    ),
    "largest": Kind(pa.float64(), (LARGEST, -LARGEST, 2.0**970, -(2.0**969), 1.0), NUMBERS),
    "string": Kind(pa.string(), TEXTS),
    "large_string": Kind(pa.large_string(), TEXTS),
    "binary": Kind(pa.binary(), BYTES),
    "large_binary": Kind(pa.large_binary(), BYTES),
    "fixed binary": Kind(pa.binary(2), (b"ab", b"aa", b"\xff\x00", b"\x00\xff")),
    "dictionary": Kind(pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "dictionary of numbers": Kind(pa.dictionary(pa.int32(), pa.int64()), (5, -5, 0), NUMBERS),
    "date32": times(pa.date32(), 19_000, -40_000),
    "date64": Kind(pa.date64(), (86_400_000, -86_400_000, 0, 20_000 * 86_400_000)),
    "time32": Kind(pa.time32("ms"), (5, 0, 86_399_999)),
    "time64": Kind(pa.time64("ns"), (5, 0, 86_400 * 10**9 - 1)),
    **{
        f"timestamp {unit}": times(pa.timestamp(unit, zone), 1_700_000_000)
        for unit, zone in (("s", None), ("ms", "UTC"), ("us", "Europe/Rome"))
    },
    "timestamp ns": times(pa.timestamp("ns"), FAR, -FAR),
    "duration s": Kind(pa.duration("s"), (5, -5, 0, 10**9), (*ORDERED, "sum")),
    "duration ns": Kind(pa.duration("ns"), (5, -5, 0, FAR, -FAR), (*ORDERED, "sum")),
}  # fmt: skip


def is_counted(kind: pa.DataType) -> bool:
    """Whether the values of a type count as integers here."""
    return bool(pa.types.is_temporal(kind))


def array(values: Any, kind: pa.DataType) -> pa.Array:
    values = list(values)
    if is_counted(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind)


def plain(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values as the reference has them."""
    kind, chunks = column.type, getattr(column, "chunks", [column])
    if is_counted(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        chunks = [chunk.view(whole) for chunk in chunks]
    return [value for chunk in chunks for value in chunk.to_pylist()]


def output_type(kind: pa.DataType, function: str) -> pa.DataType:
    """The type of an aggregate of a column."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if function == "count":
        return pa.int64()
    if function in ("mean", "std"):
        return pa.float64()
    if function != "sum" or pa.types.is_duration(kind):
        return kind
    if pa.types.is_decimal256(kind):
        return pa.decimal256(76, kind.scale)
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.uint64() if pa.types.is_unsigned_integer(kind) else pa.int64()


def fits(total: Any, kind: pa.DataType) -> bool:
    """Whether the type of a sum has it."""
    if not isinstance(total, Fraction):
        return True
    if pa.types.is_decimal(kind):
        return abs(total * 10**kind.scale) < 10**kind.precision
    return 0 <= total < 2**64 if kind == pa.uint64() else -(2**63) <= total < 2**63


NOTHING = {"count": 0}
"""What an event without a match has, null apart."""


def function_of(asking: Aggregate) -> str:
    return asking if isinstance(asking, str) else asking[1]


def check(
    found: pa.Table,
    expected: list[dict[str, Any] | None],
    aggregates: dict[str, Aggregate],
    how: str,
    row: str = "left_row",
    nothing: dict[str, Any] = NOTHING,
) -> None:
    """Each value is that of the reference; `row` is the column of the number of the left row."""
    found.validate(full=True)
    assert found.column_names[-len(aggregates) :] == list(aggregates)
    rows = [i for i, own in enumerate(expected) if own is not None or how == "left"]
    numbers = found[row].to_pylist()
    assert (numbers if how == "left" else sorted(numbers)) == rows
    for name, asking in aggregates.items():
        function = function_of(asking)
        for i, value in zip(numbers, plain(found[name]), strict=True):
            own = expected[i]
            want = nothing.get(function) if own is None else own[name]
            assert is_same(value, want, function), (name, asking, i, value, want)


def numbered(rows: Any) -> list[Row]:
    return [{**row, "id": number} for number, row in enumerate(rows)]


def _alike(left: Row, right: Row) -> bool:
    return left["name"] is not None and left["name"] == right["name"]


WHERES: list[tuple[str | None, Callable[[Row, Row], bool]]] = [
    (None, lambda left, right: True), (None, lambda left, right: True),
    ("left_id < right_id", lambda left, right: left["id"] < right["id"]),
    ("left_name = right_name", _alike),
]  # fmt: skip
OF_PAIRS: dict[str, Aggregate] = {
    "n": "count", "soonest": ("delta", "min"), "apart": ("delta", "sum"),
    "spread": ("delta", "std"), "usual": ("delta", "mean"), "surest": ("probability", "max"),
    "doubtful": ("probability", "min"), "likely": ("probability", "sum"),
}  # fmt: skip
CLOSED = st.sampled_from(["both", "left", "right", "neither"])
OPTIONS = st.builds(
    CorrelateOptions, threads=st.sampled_from([1, 2]), batch_pairs=st.sampled_from([None, 1, 7]),
    classes=st.sampled_from([None, None, 1, 3]),
)  # fmt: skip


@st.composite
def values_of(draw: Any, kind: Kind, count: int) -> list[Any]:
    """Values of a column: any, few different ones, those that are small, or none."""
    held = plain(array(kind.values, kind.type))
    chosen = draw(st.sampled_from([held, held[:2], held[:3], held[3:], []]))
    each = st.none() | st.sampled_from(chosen) | kind.more if chosen else st.none()
    return [draw(each) for _ in range(count)]


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=max(1, CASES // 15))
@given(data=st.data())
def test_values_are_the_references(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    drawn = data.draw(match_cases(10))
    is_one, how = data.draw(st.booleans()), data.draw(st.sampled_from(["inner", "left"]))
    where, admits = data.draw(st.sampled_from(WHERES))
    left, right = (numbered(side) for side in drawn[:2])
    right = left if is_one else right
    values = data.draw(values_of(kind, len(right)))
    right = [{**row, "value": value} for row, value in zip(right, values, strict=True)]
    left = right if is_one else left
    asked = drawn._replace(left=left, right=right, admits=others(admits) if is_one else admits)
    pairs = data.draw(st.lists(st.sampled_from(list(OF_PAIRS)), unique=True, max_size=4))
    of_value: dict[str, Aggregate] = {f: ("value", f) for f in kind.functions}
    named = of_value | {each: OF_PAIRS[each] for each in pairs}
    aggregates = {each: named[each] for each in data.draw(st.permutations(list(named)))}
    tables = list(tables_of(asked))
    tables[1] = tables[1].append_column("value", array(values, kind.type))
    sides = (tables[1], None) if is_one else tuple(tables)
    asking: dict[str, Any] = {
        "by": asked.by, "where": where, "how": how, "left_columns": "row", "emit": "aggregates",
        "options": data.draw(OPTIONS),
    }  # fmt: skip
    expected = aggregated(asked, aggregates)
    if not all(
        fits(own["sum"], output_type(kind.type, "sum")) for own in expected if own and "sum" in own
    ):
        with pytest.raises(DataError):
            correlate_tables(*sides, condition_of(asked), aggregates=aggregates, **asking)
        del aggregates["sum"]
    found = correlate_tables(*sides, condition_of(asked), aggregates=aggregates, **asking)
    check(found, expected, aggregates, how)
    assert found.column_names == [*asked.by, "left_row", *aggregates]
    for function in aggregates.keys() & set(kind.functions):
        assert found.schema.field(function).type == output_type(kind.type, function)


def is_near(found: float | None, expected: Expected) -> bool:
    """Whether a sum of rounded products, rounded once or divided, is the exact one but for rounding."""
    value, size = expected
    if found is None or not isinstance(value, Fraction):
        return is_same(found, value)
    if abs(value) > Fraction(LARGEST):
        return math.isinf(found)
    return abs(Fraction(found) - value) <= size / 2**48 + Fraction(5, 10**322)


@pytest.mark.parametrize("name", ["int64", "float64", "largest", "decimal, 2", "uint64", "bool"])
@settings(max_examples=max(1, CASES // 8))
@given(data=st.data())
def test_expected_numbers_are_the_references(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    drawn = data.draw(match_cases(10))
    is_one, how = data.draw(st.booleans()), data.draw(st.sampled_from(["inner", "left"]))
    has_confidence = data.draw(st.booleans())
    where, admits = data.draw(st.sampled_from(WHERES))
    left, right = (numbered(side) for side in drawn[:2])
    right = left if is_one else right
    values = data.draw(values_of(kind, len(right)))
    right = [{**row, "value": value} for row, value in zip(right, values, strict=True)]
    left = right if is_one else left
    asked = drawn._replace(left=left, right=right, admits=others(admits) if is_one else admits)
    asked = asked._replace(confidence=min(asked.confidence, 0.5) if has_confidence else 2.0**-48)
    aggregates: dict[str, Aggregate] = {
        "n": "count", "values": ("value", "count"), "sum": ("value", "sum"), "mean": ("value", "mean"),
        "apart": ("delta", "sum"), "usual": ("delta", "mean"), "likely": ("probability", "mean"),
    }  # fmt: skip
    aggregates = {each: aggregates[each] for each in data.draw(st.permutations(list(aggregates)))}
    tables = list(tables_of(asked))
    tables[1] = tables[1].append_column("value", array(values, kind.type))
    sides = (tables[1], None) if is_one else tuple(tables)
    given: dict[str, Any] = {"condition": condition_of(asked)}
    found = correlate_tables(
        *sides, **given if has_confidence else {"within": (asked.lo, asked.hi)}, by=asked.by,
        where=where, how=how, left_columns="row", emit="aggregates", aggregates=aggregates,
        weights="probability", options=data.draw(OPTIONS),
    )  # fmt: skip
    expected = expected_numbers(asked, aggregates)
    rows = [i for i, own in enumerate(expected) if own is not None or how == "left"]
    assert sorted(found["left_row"].to_pylist()) == rows
    for row in found.to_pylist():
        own = expected[row["left_row"]]
        for each, asking in aggregates.items():
            nothing = Expected(Fraction(0) if function_of(asking) == "count" else None, Fraction(0))
            assert is_near(row[each], nothing if own is None else own[each]), (row, each)
    assert set(found.schema.types[-len(aggregates) :]) == {pa.float64()}


@pytest.mark.parametrize(
    ("seed", "cases", "is_huge"),
    [(31, 80, False), (32, 40, True), pytest.param(33, 800, False, marks=pytest.mark.slow)],
)
def test_times_and_keys_of_any_size(seed: int, cases: int, is_huge: bool) -> None:
    """Epochs in nanoseconds, times near the limits, keys of texts and numbers, duplicates."""
    aggregates: dict[str, Aggregate] = {
        "n": "count", "first": ("id", "first"), "last": ("id", "last"), "ids": ("id", "sum"),
        "latest": ("max_time", "max"), "soonest": ("delta", "min"), "farthest": ("delta", "max"),
        "usual": ("delta", "mean"), "spread": ("delta", "std"),
    }  # fmt: skip
    matched = 0
    for number, case in enumerate(random_cases(seed, cases, max_size=14, huge=is_huge)):
        how = ("inner", "left")[number % 2]
        sides = numbered(case.left), case.right
        tables = [ticks_of(side, case.by) for side in sides]
        expected = aggregated(Asked(*sides, *case[2:]), aggregates)
        found = correlate_tables(
            *tables, condition_of_case(case), by=case.by, how=how, emit="aggregates",
            aggregates=aggregates,
            options=CorrelateOptions(threads=1 + number % 2, batch_pairs=1 + number % 7),
        )  # fmt: skip
        check(found, expected, aggregates, how, "left_id")
        matched += sum(own["n"] for own in expected if own)
    assert matched > cases


@settings(max_examples=max(1, CASES // 3))
@given(data=st.data())
def test_the_event_before_the_window_is_the_references(data: st.DataObject) -> None:
    asked = data.draw(match_cases(12))
    left, right = (
        [{**row, "min_time": row["max_time"]} for row in numbered(side)] for side in asked[:2]
    )
    closed, how = data.draw(CLOSED), data.draw(st.sampled_from(["inner", "left"]))
    lo, hi = asked.lo - (closed in ("right", "neither")), asked.hi + (closed in ("left", "neither"))
    asked = asked._replace(left=left, right=right, confidence=1.0)
    aggregates: dict[str, Aggregate] = {
        "n": "count", "first": ("id", "first"), "last": ("id", "last"), "least": ("seq", "min"),
        "soonest": ("delta", "min"), "sum": ("loud", "sum"),
    }  # fmt: skip
    if data.draw(st.booleans()):  # what needs pairs
        aggregates |= {"usual": ("delta", "mean"), "farthest": ("delta", "max")}
    found = correlate_tables(
        *tables_of(asked), within(lo, hi, closed=closed), left_time="max_time", right_time="max_time",
        by=asked.by, how=how, left_columns="row", emit="aggregates", aggregates=aggregates,
        including="previous", options=data.draw(OPTIONS),
    )  # fmt: skip
    expected = aggregated(asked, aggregates, has_previous=True, opens_later=lo < asked.lo)
    check(found, expected, aggregates, how)


def test_the_event_before_a_window_that_opens_later() -> None:
    """An event a tick inside is not there as the window begins, so that the last one before it counts."""
    left, right = pa.table({"t": [100]}), pa.table({"t": [80, 91, 95]})
    asked = EXACT | {"aggregates": {"n": "count", "least": ("t", "min")}, "including": "previous"}
    for closed in ("both", "left", "right", "neither"):
        found = correlate_tables(
            left, right, **asked | {"condition": within(-10, 0, closed=closed)}
        )
        assert found.to_pylist() == [{"left_id": 0, "n": 3, "least": 80}]
    found = correlate_tables(left, right, **asked | {"condition": within(-9, 0, closed="left")})
    assert found.to_pylist() == [{"left_id": 0, "n": 2, "least": 91}]


def test_many_events_of_one_time_before_the_window() -> None:
    """One of them counts, the last row, and no pair is made of the others."""
    left, right = pa.table({"t": np.full(100_000, 50)}), pa.table({"t": np.full(100_000, 7)})
    asked = EXACT | {"aggregates": {"n": "count", "row": ("id", "last")}, "including": "previous"}
    right = right.append_column("id", pa.array(np.arange(100_000)))
    found = correlate_tables(left, right, **asked)
    assert found["n"].unique().to_pylist() == [1]
    assert found["row"].unique().to_pylist() == [99_999]


def test_rows_of_files_decide_in_every_slice(tmp_path: Path) -> None:
    """The later of two rows of one time is the last, also where a slice has it from its neighbour."""
    times = [5, 15, 25, 35, 35, 45, 55, 65]
    tables = (
        pa.table({"id": range(8), "t": range(0, 80, 10)}),
        pa.table({"t": times, "v": range(8)}),
    )
    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    for table, path in zip(tables, paths, strict=True):
        pq.write_table(table, path, row_group_size=1)
    asked: dict[str, Any] = {
        "left_time": "t", "right_time": "t", "how": "left", "emit": "aggregates",
        "aggregates": {"first": ("v", "first"), "last": ("v", "last")},
    }  # fmt: skip
    for lo, hi, including in ((-10, 10, None), (-2, -1, "previous")):
        condition = TimingCondition(within(lo, hi), 1.0)
        given = asked | {"including": including}
        wanted = correlate_tables(*tables, condition, **given)
        for slices in (1, 2, 4, 8):
            options = CorrelateOptions(way="files", slices=slices)
            job = local_files_join(*paths, condition, options=options, **given)
            found = pa.Table.from_batches(job.batches(), job.schema)
            assert found.sort_by("left_id").equals(wanted), (slices, lo)


def test_the_event_before_the_window_is_told_in_the_report() -> None:
    """The only match, which no pair in the window is: there is no warning of an empty answer."""
    left, right = pa.table({"id": [1], "t": [100]}), pa.table({"t": [3, 7], "bid": [1.5, 2.5]})
    report = JoinReport()
    found = correlate_tables(
        left, right, within=(-10, 0), left_time="t", right_time="t", emit="aggregates",
        aggregates={"bid": ("bid", "last"), "n": "count"}, including="previous", report=report,
    )  # fmt: skip
    assert found.to_pylist() == [{"left_id": 1, "bid": 2.5, "n": 1}]
    assert report.summary().counters.pairs == 1


@pytest.mark.parametrize("where", [None, "delta >= 2"])
def test_of_right_events(where: str | None) -> None:
    """What the join with its sides swapped finds, delta still from left to right."""
    aggregates: dict[str, Aggregate] = {
        "n": "count", "first": ("id", "first"), "ids": ("id", "sum"), "soonest": ("delta", "min"),
        "farthest": ("delta", "max"), "usual": ("delta", "mean"), "all": ("delta", "sum"),
        "spread": ("delta", "std"),
    }  # fmt: skip
    matched = alone = 0
    for number, case in enumerate(random_cases(34, 20, max_size=14)):
        left, right = ticks_of(case.left, case.by), ticks_of(case.right, case.by)
        asked: dict[str, Any] = {
            "by": case.by, "emit": "aggregates", "aggregates": aggregates,
            "options": CorrelateOptions(threads=1 + number % 2, batch_pairs=1 + number % 7),
        }  # fmt: skip
        condition = condition_of_case(case)
        found = correlate_tables(left, right, condition, how="right", where=where, **asked)
        turned = where and "delta <= -2"
        wanted = correlate_tables(
            right, left, condition.mirrored(), how="left", where=turned, **asked
        ).to_pylist()
        assert found.column_names == [*case.by, "right_id", *aggregates]
        for row, other in zip(found.to_pylist(), wanted, strict=True):
            other["right_id"] = other.pop("left_id")
            other["soonest"], other["farthest"] = other["farthest"], other["soonest"]
            for name in ("soonest", "farthest", "usual", "all"):
                other[name] = None if other[name] is None else 0 - other[name]
            assert row == other
            matched, alone = matched + row["n"], alone + (row["n"] == 0)
    assert matched > 20
    assert alone > 5


def test_of_right_events_left_needs_no_column_but_those_aggregated() -> None:
    left, right = {"t": [0, 10, 20], "x": [1.5, 2.5, None]}, [{"t": 12, "y": 1}, {"t": 99, "y": 2}]
    asked: dict[str, Any] = {
        "within": (-15, 15), "left_time": "t", "right_time": "t", "how": "right",
        "emit": "aggregates", "aggregates": {"x": ("x", "sum")},
    }  # fmt: skip
    found = correlate_tables(left, right, **asked)
    assert found.to_pylist() == [{"right_id": 0, "x": 4.0}, {"right_id": 1, "x": None}]
    found = correlate_tables(left, right, right_columns="*", **asked)
    assert found.column_names == ["right_t", "right_y", "x"]


def test_nothing_waits_for_the_collector_of_garbage() -> None:
    """Values of the batches of pairs would, and memory would grow with the number of pairs."""
    table = pa.table({"id": range(400), "value": np.arange(400) / 3, "text": ["a", "b"] * 200})
    aggregates: dict[str, Aggregate] = {f"{f} delta": ("delta", f) for f in OF_A_PAIR}
    aggregates |= {f"{f} value": ("value", f) for f in NUMBERS}
    aggregates |= {f"{f} text": ("text", f) for f in ORDERED}
    asked: dict[str, Any] = {"left_time": "id", "right_time": "id", "within": (-9, 9)}
    options = CorrelateOptions(threads=1, batch_pairs=500)

    def joined() -> int:
        return correlate_tables(
            table, table, emit="aggregates", aggregates=aggregates, options=options, **asked
        ).num_rows  # fmt: skip

    joined()
    gc.collect()
    gc.disable()
    try:
        joined()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        held = [each for each in gc.garbage if type(each).__module__.startswith("coincide")]
        assert not held
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_sums_of_far_times_that_are_too_large() -> None:
    far = 2**60 - 8
    left = pa.table({"id": [0], "min_time": [-far], "max_time": [-far]})
    condition = TimingCondition(within(0, 2**61 - 1), 1.0)
    asked: dict[str, Any] = {"emit": "aggregates", "aggregates": {"apart": ("delta", "sum")}}
    right = pa.table({"min_time": [far] * 5, "max_time": [far] * 5})
    found = correlate_tables(left, right[:4], condition, **asked)
    assert found.to_pydict() == {"left_id": [0], "apart": [8 * far]}
    with pytest.raises(DataError, match=r"apart|delta"):
        correlate_tables(left, right, condition, **asked)


WIDE = {
    "amp": KINDS["float64"]._replace(
        values=(1e300, 1e-300, -1e300, -1e-300, 1.0, LEAST, -0.1, 2.0**-53, 1e16, 3.5)
    ),
    "small": KINDS["int16"], "large": KINDS["int64"]._replace(values=(2**54, -(2**54), 5, -3, 2**53)),
    "seq": KINDS["uint64"]._replace(values=(2**53 + 1, 0, 7, 2**40)),
    "cost": KINDS["decimal, 18"]._replace(
        values=tuple(map(Decimal, ("12345678.000000000000000001", "-0.5", "0.25", "-12345678")))
    ),
    "single": KINDS["float32"]._replace(values=(0.1, -0.1, 3e38, -3e38, 1e-45)),
    "flag": KINDS["bool"], "name": KINDS["string"], "at": KINDS["timestamp us"],
    "lasted": KINDS["duration s"],
}  # fmt: skip
"""Columns of the wide windows, whose sums fit."""
WIDE_AGGREGATES: dict[str, Aggregate] = OF_PAIRS | {
    f"{function} {name}": (name, function)
    for name, kind in (*WIDE.items(), ("odd", KINDS["float64"]))
    for function in kind.functions
}


def crowd(seed: int, count: int, longest: int, span: int = 3000) -> list[Row]:
    """Events of a few lengths, in no order, with nulls in all columns."""
    rng = np.random.default_rng([7, seed])
    low = rng.integers(0, span, count)
    lengths = rng.choice([0, min(1, longest), longest // 4, longest], count)
    columns = {
        name: [None if k < 0 else held[k] for k in rng.integers(-1, len(held), count)]
        for name, kind in WIDE.items()
        for held in [plain(array(kind.values, kind.type))]
    }
    # A few of these make a part of the sums infinite, and some NaN.
    odd = [
        [INF, -INF, NAN, -0.0, 2.5][k]
        for k in rng.choice(5, count, p=[0.002, 0.002, 0.002, 0.5, 0.494])
    ]
    keys = rng.choice(["a", "b"], count).tolist()
    return [
        {
            "min_time": int(low[i]), "max_time": int(low[i] + lengths[i]), "id": i, "key": keys[i],
            **{name: column[i] for name, column in columns.items()}, "odd": odd[i],
        }
        for i in range(count)
    ]  # fmt: skip


def _is_smaller(left: Row, right: Row) -> bool:
    own, other = left["small"], right["small"]
    return None not in (own, other) and own < other


def table_of(rows: list[Row]) -> pa.Table:
    columns = {name: array([row[name] for row in rows], kind.type) for name, kind in WIDE.items()}
    for name in ("min_time", "max_time", "id", "key", "odd"):
        columns[name] = pa.array([row[name] for row in rows])
    return pa.table(columns)


@pytest.mark.parametrize("what", ["plain", "keys", "where", "instants", "one stream", "sure"])
def test_wide_windows(what: str) -> None:
    """Hundreds of matches of each event: most are sure by their bounds, others are probed."""
    is_one, longest = what == "one stream", 0 if what == "instants" else 64
    right = crowd(1, 65, longest, 400) if is_one else crowd(1, 2000, longest)
    left = right if is_one else crowd(2, 8, longest)
    admits = WHERES[0][1]
    if what == "where":
        admits = _is_smaller
    asked = Asked(
        left, right, -240, 260, 1.0 if what == "sure" else 0.6, ("key",) if what == "keys" else (),
        others(admits) if is_one else admits,
    )  # fmt: skip
    expected = aggregated(asked, WIDE_AGGREGATES)
    counts = [own["n"] if own else 0 for own in expected]
    assert max(counts) > (250 if what in ("plain", "instants", "sure") else 60)
    sides = (table_of(right), None) if is_one else (table_of(left), table_of(right))
    given: dict[str, Any] = {} if longest else {"left_time": "min_time"}
    if not longest:
        given["right_time"] = "min_time"
    for options in (
        CorrelateOptions(threads=2),
        CorrelateOptions(threads=1, classes=1, batch_pairs=100),
    ):
        found = correlate_tables(
            *sides, condition_of(asked), emit="aggregates", aggregates=WIDE_AGGREGATES, how="left",
            by=asked.by, where="left_small < right_small" if what == "where" else None,
            options=options, **given,
        )  # fmt: skip
        check(found, expected, WIDE_AGGREGATES, "left", "left_id")


def test_probabilities_are_those_of_pairs() -> None:
    """To the last bit, where a probability is rounded, too."""
    left, right = (table_of(crowd(seed, n, 61)) for seed, n in ((3, 60), (4, 900)))
    condition = TimingCondition(within(-100, 133), 0.3)
    lists = correlate_tables(left, right, condition, emit="lists", probability=True)
    own = {row["left_id"]: row["probability"] for row in lists.to_pylist()}
    aggregates: dict[str, Aggregate] = {
        function: ("probability", function) for function in ("sum", "mean", "std", "min", "max", "count")
    }  # fmt: skip
    for batch in (None, 7):
        found = correlate_tables(
            left, right, condition, emit="aggregates", aggregates=aggregates,
            options=CorrelateOptions(batch_pairs=batch),
        ).to_pylist()  # fmt: skip
        assert {row["left_id"] for row in found} == own.keys()
        for row in found:
            for function in aggregates:
                assert is_same(row[function], reduced(function, own[row["left_id"]]), function)
    assert any(0.3 < p < 0.99 for each in own.values() for p in each)


EXACT: dict[str, Any] = {
    "condition": TimingCondition(within(0, 9), 1.0), "left_time": "t", "right_time": "t",
    "emit": "aggregates",
}  # fmt: skip
LEFT = pa.table({"id": [1, 2], "t": [0, 100]})


def right_of(values: pa.Array) -> pa.Table:
    return pa.table({"t": pa.array([3] * len(values), pa.int64()), "amp": values})


def joined(values: Any, aggregates: Any, left: pa.Table = LEFT, **more: Any) -> pa.Table:
    """The answer where the first left event matches all values, and the second none."""
    return correlate_tables(left, right_of(values), aggregates=aggregates, **(EXACT | more))


UP, DOWN, FULL = 2**63 - 1, -(2**63), 2**64 - 1
NINES, LONG_NINES = Decimal("9" * 38), Decimal("9" * 76)
LESS = NINES.copy_negate()


@pytest.mark.parametrize(
    ("kind", "values", "total"),
    [
        (pa.int64(), [UP, 1], None), (pa.int64(), [UP, 1, -1], UP), (pa.int64(), [DOWN, -1], None),
        (pa.int64(), [DOWN, -1, 1], DOWN), (pa.int64(), [UP, UP, DOWN, DOWN, 2], 0),
        # What modular sums take for 0, and for 5.
        (pa.int64(), [UP, UP, 2], None), (pa.int64(), [DOWN, DOWN, 5], None),
        (pa.int64(), [UP, UP, UP, UP, 4], None), (pa.int64(), [UP] * 9 + [-UP] * 8, UP),
        (pa.uint64(), [FULL, 1], None), (pa.uint64(), [FULL, 0], FULL), (pa.uint64(), [2**63] * 2, None),
        (pa.uint64(), [2**63, 2**63 - 1], FULL), (pa.uint64(), [FULL, FULL, FULL, 3], None),
        (pa.decimal128(38, 0), [NINES, 1], None), (pa.decimal128(38, 0), [NINES, 1, -1], NINES),
        (pa.decimal128(38, 0), [LESS, -1], None),
        (pa.decimal128(38, 0), [NINES] * 3 + [LESS] * 2, NINES),
        (pa.decimal128(38, 0), [NINES] * 5, None), (pa.decimal128(38, 30), [Decimal("99999999")] * 2, None),
        (pa.decimal128(38, 0), [NINES] * 1000, None), (pa.decimal128(38, 0), [NINES, LESS] * 500, 0),
        (pa.decimal256(76, 0), [LONG_NINES, 1], None),
        (pa.decimal256(76, 0), [LONG_NINES, 1, -1], LONG_NINES),
        (pa.decimal256(76, 0), [LONG_NINES] * 4 + [LONG_NINES.copy_negate()] * 3, LONG_NINES),
        (pa.decimal256(76, 0), [LONG_NINES] * 6, None),
        (pa.duration("ns"), [UP, 1], None), (pa.duration("ns"), [UP, 1, -1], UP),
    ],
)  # fmt: skip
def test_sums_that_do_not_fit(kind: pa.DataType, values: list[Any], total: Any) -> None:
    given = array(values, kind)
    if total is None:
        with pytest.raises(DataError, match=r"(energy|amp).*\. [A-Z].*\.$") as raised:
            joined(given, {"energy": ("amp", "sum")})
        assert "\n" not in str(raised.value)
    else:
        found = joined(given, {"energy": ("amp", "sum")})
        assert is_same(plain(found["energy"])[0], Fraction(total))
    # No other function minds.
    means = {"least": ("amp", "min"), "n": ("amp", "count")}
    if not pa.types.is_duration(kind):
        means["mean"] = ("amp", "mean")
        means["std"] = ("amp", "std")
    for name, (_, function) in means.items():
        value = plain(joined(given, {name: means[name]})[name])[0]
        assert is_same(value, reduced(function, plain(given)), function)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 0)], ids=str)
def test_an_event_whose_sum_does_not_fit_is_one_of_many(kind: pa.DataType) -> None:
    """The sum of all right events does not fit, but that of the matches of each left event does."""
    value = 2**62 if kind != pa.decimal128(38, 0) else Decimal(4 * 10**37)
    count = 60
    right = pa.table({"t": [10 * i for i in range(count)], "amp": array([value] * count, kind)})
    left = pa.table({"id": list(range(count)), "t": [10 * i for i in range(count)]})
    asked = EXACT | {"aggregates": {"energy": ("amp", "sum")}}
    found = correlate_tables(left, right, **asked)
    assert {Fraction(total) for total in found["energy"].to_pylist()} == {Fraction(value)}
    crowded = right.set_column(
        0, "t", pa.array([10 * i - 90 * (39 < i < 46) for i in range(count)])
    )
    asked |= {"condition": TimingCondition(within(0, 29), 1.0)}
    with pytest.raises(DataError):
        correlate_tables(left, crowded, **asked)


@pytest.mark.parametrize(
    ("values", "total", "mean", "std"),
    [
        ([1e308, 1e308], INF, 1e308, 0.0), ([LARGEST, 2.0**969], LARGEST, None, None),
        ([LARGEST, 2.0**970], INF, None, None), ([LARGEST, LARGEST, -LARGEST], LARGEST, None, INF),
        ([-1e308, -1e308], -INF, -1e308, 0.0), ([3e300, -1e300, 1e300], 3e300, 1e300, 2e300),
        ([-0.0], 0.0, 0.0, None),
        ([-0.0, -0.0], 0.0, 0.0, 0.0), ([1.0, 2.0**-53], 1.0, None, None),
        ([1.0, 2.0**-53, LEAST], 1.0 + 2.0**-52, None, None), ([1e16, 1.0, -1e16], 1.0, None, None),
        ([1.0, -(2.0**-54), -LEAST], 1.0 - 2.0**-53, None, None), ([LEAST, LEAST], 2 * LEAST, LEAST, 0.0),
        ([LEAST], LEAST, LEAST, None), ([INF, 1.0], INF, INF, NAN), ([-INF, -INF], -INF, -INF, NAN),
        ([INF, -INF], NAN, NAN, NAN), ([NAN, 1.0], NAN, NAN, NAN), ([INF, NAN], NAN, NAN, NAN),
        ([NAN], NAN, NAN, None), ([INF], INF, INF, None), ([None, 0.1], 0.1, 0.1, None),
        ([0.1] * 10, 1.0, 0.1, 0.0),
        ([1e-200, 2e-200, 3e-200], 6e-200, 2e-200, None), ([1.0, 2.0, 4.0], 7.0, 7 / 3, 1.5275252316519468),
    ],
)  # fmt: skip
def test_floats_are_rounded_once(
    values: list[Any], total: float, mean: float | None, std: float | None
) -> None:
    """By hand; None where only the reference says it."""
    asked: dict[str, Aggregate] = {f: ("amp", f) for f in ("sum", "mean", "std")}
    found = joined(pa.array(values, pa.float64()), asked).to_pylist()[0]
    assert is_same(found["sum"], total)
    for name, value in (("mean", mean), ("std", std)):
        assert is_same(found[name], reduced(name, values), name)
        if value is not None:
            assert is_same(found[name], value, name)


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        ([NAN, 1.0], 1.0, NAN), ([NAN], NAN, NAN), ([INF, NAN, -INF], -INF, NAN), ([-0.0], 0.0, 0.0),
        ([0.0, -0.0], 0.0, 0.0), ([None, -0.0, -1.0], -1.0, 0.0), ([None], None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_least_and_greatest_floats(
    kind: pa.DataType, values: list[Any], least: Any, greatest: Any
) -> None:
    found = joined(pa.array(values, kind), {"min": ("amp", "min"), "max": ("amp", "max")})
    row = found.to_pylist()[0]
    assert is_same(row["min"], least)
    assert is_same(row["max"], greatest)
    assert found.schema.field("min").type == kind


def test_first_and_last_skip_nulls_and_go_by_time() -> None:
    """By the midpoint, then by the later end, then by the row."""
    left = pa.table({"id": [1], "min_time": [0], "max_time": [0]})
    right = pa.table({
        "min_time": [4, 2, 3, 0, 3, 1, 9, 9], "max_time": [4, 6, 5, 2, 5, 1, 9, 9],
        "amp": [1, 2, 3, None, 5, 6, 7, 8],
    })  # fmt: skip
    asked: dict[str, Any] = {
        "condition": TimingCondition(within(-99, 99), 1.0), "emit": "aggregates",
        "aggregates": {"first": ("amp", "first"), "last": ("amp", "last")},
    }  # fmt: skip
    for rows, first, last in (
        (range(8), 6, 8), ([3], None, None), ([3, 0, 1, 2, 4], 1, 2), ([2, 4, 3], 3, 5), ([4, 2], 5, 3),
        ([1, 0, 3], 1, 2), ([7, 6], 8, 7),
    ):  # fmt: skip
        found = correlate_tables(left, right.take(list(rows)), **asked).to_pylist()
        assert found == [{"left_id": 1, "first": first, "last": last}], rows


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("name", KINDS)
def test_types_where_nothing_matches(name: str, how: str) -> None:
    """No left event, no right one, or none of them near: the same columns, and no row or nulls."""
    kind = KINDS[name]
    aggregates = {"n": "count", **{f: ("value", f) for f in kind.functions}}
    right = pa.table({"t": [7, 8], "value": array(kind.values[:2], kind.type)})
    left = pa.table({"id": [1, 2], "t": [500, None], "key": ["a", "b"]})
    for sides in ((left, right), (left, right[:0]), (left[:0], right), (left[:0], right[:0])):
        found = correlate_tables(
            *sides, aggregates=aggregates, how=how, left_columns=["key", "id"], **EXACT
        )
        assert found.column_names == ["left_key", "left_id", *aggregates]
        assert found.schema.field("n").type == pa.int64()
        for function in kind.functions:
            assert found.schema.field(function).type == output_type(kind.type, function), function
        nulls = dict.fromkeys(kind.functions) | {"count": 0}
        rows = [{"left_key": k, "left_id": i, "n": 0, **nulls} for i, k in ((1, "a"), (2, "b"))]
        assert found.to_pylist() == (rows[: sides[0].num_rows] if how == "left" else [])


def test_any_of_a_column_of_the_null_type() -> None:
    found = joined(pa.nulls(3), {"any": ("amp", "any"), "n": ("amp", "count")})
    assert found.to_pylist() == [{"left_id": 1, "any": None, "n": 0}]


def test_a_column_of_the_null_type() -> None:
    """It has no value to count, and none to be the least."""
    found = joined(pa.nulls(3), {"n": ("amp", "count"), "all": "count"})
    assert found.to_pylist() == [{"left_id": 1, "n": 0, "all": 3}]
    for function in ("min", "max", "first", "last"):
        assert joined(pa.nulls(3), {"it": ("amp", function)})["it"].to_pylist() == [None]


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([None, [1, None], [], None], pa.list_(pa.int64())),
        pa.array([None, {"a": 1, "b": "x"}, {"a": None, "b": ""}, None]),
    ],
    ids=["list", "struct"],
)
def test_the_first_of_a_column_of_any_type(values: pa.Array, how: str) -> None:
    found = joined(
        values, {"n": ("amp", "count"), "a": ("amp", "first"), "b": ("amp", "last")}, how=how
    )
    held = values.to_pylist()
    rows = [{"left_id": 1, "n": 2, "a": held[1], "b": held[2]}]
    rows += [{"left_id": 2, "n": 0, "a": None, "b": None}] * (how == "left")
    assert found.to_pylist() == rows
    assert found.schema.field("a").type == values.type


@pytest.mark.parametrize("seed", range(3))
def test_right_tables_in_chunks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    right, left = table_of(crowd(8, 300, 64)), table_of(crowd(9, 20, 64))
    asked: dict[str, Any] = {
        "condition": TimingCondition(within(-90, 90), 0.6), "emit": "aggregates",
        "aggregates": WIDE_AGGREGATES, "how": "left",
    }  # fmt: skip
    whole = correlate_tables(left, right, **asked)
    cuts = np.sort(rng.integers(0, 300, 4)).tolist()
    edges = [0, *cuts, 300]
    pieces = [right.slice(a, b - a) for a, b in pairwise(edges)]
    parts = correlate_tables(left, pa.concat_tables(pieces), **asked)
    assert list(map(repr, parts.to_pylist())) == list(map(repr, whole.to_pylist()))
    offset = pa.concat_tables([right[:7], right]).slice(7)
    assert list(map(repr, correlate_tables(left, offset, **asked).to_pylist())) == list(
        map(repr, whole.to_pylist())
    )


def test_right_columns_decide_nothing() -> None:
    """A column need not come out, a key or a time may be one, and two names may ask for the same."""
    values = pa.array([1, 2, None])
    asked = {"a": ("amp", "sum"), "b": ("amp", "sum"), "at": ("t", "max")}
    found = joined(values, asked, right_columns=[])
    assert found.to_pylist() == [{"left_id": 1, "a": 3, "b": 3, "at": 3}]
    assert joined(values, asked, right_columns="*").equals(found)
    keyed = joined(
        values, {"key": ("t", "count")}, LEFT.append_column("amp", pa.array([2, 1])), by="amp"
    )
    assert keyed.to_pylist() == [{"amp": 2, "left_id": 1, "key": 1}]


def test_a_column_named_delta_that_is_not_asked_for() -> None:
    right = right_of(pa.array([4, 5])).rename_columns(["t", "delta"])
    found = correlate_tables(LEFT, right, aggregates={"n": "count"}, **EXACT)
    assert found.to_pylist() == [{"left_id": 1, "n": 2}]


def test_deltas_are_between_stamps() -> None:
    """As `pair_columns` has them, in the unit of the tick."""
    rng = np.random.default_rng(5)
    table = pa.table(
        {"id": range(80), "t": pa.array(rng.integers(0, 9000, 80), pa.timestamp("ms"))}
    )
    asked: dict[str, Any] = {
        "within": "1s", "confidence": 0.9, "left_time": around("t", "10ms"), "right_time": "t",
    }  # fmt: skip
    aggregates = {f: ("delta", f) for f in OF_A_PAIR}
    for options, name in (
        (CorrelateOptions(), "delta_us"),
        (CorrelateOptions(unit="ns"), "delta_ns"),
    ):
        asked["options"] = options
        lists = correlate_tables(
            table, table, emit="lists", pair_columns="delta", **asked
        ).to_pylist()
        own = {row["left_id"]: row[name] for row in lists}
        rows = correlate_tables(table, table, emit="aggregates", aggregates=aggregates, **asked)
        assert rows.schema.field("sum").type == rows.schema.field("min").type == pa.int64()
        found = rows.to_pylist()
        assert {row["left_id"] for row in found} == own.keys()
        for row in found:
            for function in OF_A_PAIR:
                want = reduced(function, own[row["left_id"]])
                assert is_same(row[function], want, function), (row, function)


@pytest.mark.parametrize("by", [(), "place"])
@pytest.mark.parametrize("is_one", [False, True])
def test_histograms(is_one: bool, by: Any) -> None:
    """The values, deltas and probabilities of the lists, in the order of their midpoints."""
    rng = np.random.default_rng(3)
    templates = random_templates(2)
    amounts = [
        None if k < 0 else [0.1, -1e300, 1e-300, 7.0, 1e300][k] for k in rng.integers(-1, 5, 400)
    ]
    right = events(2, 400).append_column("amp", pa.array(amounts, pa.float64()))
    left = right if is_one else events(1, 60)
    ends = [
        (max(b for _, b, _ in each), min(a for a, _, _ in each))
        for each in histograms_of(right, templates)
    ]
    asked: dict[str, Any] = {
        "condition": TimingCondition(within(-60, 150), 0.5), "left_time": by_device(templates), "by": by,
    }  # fmt: skip
    sides = (left, None) if is_one else (left, right)
    if not is_one:
        asked["right_time"] = by_device(templates)
    aggregates: dict[str, Aggregate] = {"n": "count"}
    for column in ("amp", "probability", "delta"):
        functions = NUMBERS if column == "amp" else OF_A_PAIR
        aggregates |= {f"{f} {column}": (column, f) for f in functions}
    lists = correlate_tables(*sides, emit="lists", probability=True, pair_columns="delta", **asked)
    found = correlate_tables(*sides, emit="aggregates", aggregates=aggregates, how="left", **asked)
    assert found["left_id"].to_pylist() == list(range(left.num_rows))
    own = {row["left_id"]: row for row in lists.to_pylist()}
    assert max(len(row["right_id"]) for row in own.values()) > 8
    for row in found.to_pylist():
        if (of := own.get(row["left_id"])) is None:
            assert row["n"] == row["count amp"] == row["count delta"] == 0
            assert row["sum amp"] is row["first amp"] is row["max probability"] is None
            continue
        order = sorted(
            zip(of["right_id"], of["probability"], of["delta"], strict=True),
            key=lambda each: (sum(ends[each[0]]), *ends[each[0]], each[0]),
        )
        ids, probabilities, deltas = zip(*order, strict=True)
        values = {"amp": [amounts[j] for j in ids], "probability": probabilities, "delta": deltas}
        assert row["n"] == len(ids)
        for column, known in values.items():
            for function in NUMBERS if column == "amp" else OF_A_PAIR:
                got, want = row[f"{function} {column}"], reduced(function, list(known))
                assert is_same(got, want, function), (row["left_id"], function, column, got, want)


@pytest.mark.parametrize("is_one", [False, True])
def test_spans(is_one: bool) -> None:
    """What they have in common, and the values of the earliest to the latest start."""
    rng = np.random.default_rng(6)
    sides = []
    for count in (12, 55):
        starts = rng.permutation(320)[:count]
        sides.append(
            [
                Span(int(a), int(a) + int(n))
                for a, n in zip(starts, rng.integers(0, 90, count), strict=True)
            ]
        )
    sides[0] = sides[1] if is_one else sides[0]
    left, right = sides
    amounts = [None if k < 0 else [3, -2, 11, 2**40][k] for k in rng.integers(-1, 4, len(right))]
    tables: list[pa.Table | None] = [
        pa.table({
            "id": range(len(side)), "start": [span.start for span in side],
            "end": [span.end for span in side],
        })
        for side in sides
    ]  # fmt: skip
    assert tables[1] is not None
    tables[1] = tables[1].append_column("amp", pa.array(amounts, pa.int64()))
    if is_one:
        tables = [tables[1], None]
    aggregates: dict[str, Aggregate] = {"n": "count"}
    for column, functions in (("amp", NUMBERS), ("overlap", OF_A_PAIR)):
        aggregates |= {f"{f} {column}": (column, f) for f in functions}
    given: dict[str, Any] = {} if is_one else {"right_time": spans("start", "end")}
    for options in (CorrelateOptions(), CorrelateOptions(threads=2, batch_pairs=7)):
        found = correlate_tables(
            *tables, overlapping(), left_time=spans("start", "end"), emit="aggregates", how="left",
            aggregates=aggregates, options=options, **given,
        )  # fmt: skip
        expected: list[dict[str, Any] | None] = []
        for i, span in enumerate(left):
            ids = [
                j
                for j, other in enumerate(right)
                if is_overlapping(span, other) and not (is_one and i == j)
            ]
            ids.sort(key=lambda j: right[j].start)
            values = {
                "amp": [amounts[j] for j in ids],
                "overlap": [overlap(span, right[j]) for j in ids],
            }
            row = {"n": len(ids)}
            for column, own in values.items():
                row |= {f"{f} {column}": reduced(f, own) for f in NUMBERS}
            expected.append(row if ids else None)
        check(found, expected, aggregates, "left", "left_id")
    assert max(row["n"] for row in expected if row) > 15


TABLE = pa.table({
    "id": [1], "t": [0], "amp": [1.5], "name": ["a"], "at": pa.array([1], pa.timestamp("us")),
    "day": pa.array([1], pa.date32()), "lasted": pa.array([1], pa.duration("s")), "flag": [True],
    "many": [[1]], "pair": [{"a": 1}], "noon": pa.array([1], pa.time32("s")), "raw": [b"a"],
    "delta": [1], "probability": [0.5], "overlap": [2], "n_id": [3],
})  # fmt: skip
COUNT = {"aggregates": {"n": "count"}}
ANY_OF = (ConditionError, SchemaError)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({}, ConditionError, r"aggregates"),
        ({"aggregates": {}}, ConditionError, r"aggregates"),
        ({"aggregates": None}, ConditionError, r"aggregates"),
        ({"aggregates": "count"}, ANY_OF, r"aggregates"),
        ({"aggregates": ["count"]}, ANY_OF, r"aggregates"),
        ({"aggregates": {"n": "sum"}}, ANY_OF, r"sum"),
        ({"aggregates": {"n": ("amp",)}}, ANY_OF, r"amp"),
        ({"aggregates": {"n": ("amp", "sum", "max")}}, ANY_OF, r"amp"),
        ({"aggregates": {"n": 3}}, ANY_OF, r"3"),
        ({"aggregates": {3: "count"}}, ANY_OF, r"3"),
        ({"aggregates": {"": "count"}}, ANY_OF, r"name"),
        ({"aggregates": {"n": ("amp", "median")}}, ANY_OF, r"median"),
        ({"aggregates": {"n": ("amp", "SUM")}}, ANY_OF, r"SUM"),
        ({"aggregates": {"n": (3, "sum")}}, ANY_OF, r"3"),
        ({"aggregates": {"n": ("amplitude", "sum")}}, SchemaError, r"amplitude"),
        ({"aggregates": {"n": ("right_amp", "sum")}}, SchemaError, r"right_amp"),
        *(({"aggregates": {"n": (column, function)}}, CoincideError, rf"{function}.*{column}")
          for column in ("delta", "probability") for function in ("first", "last", "any")),
        ({"aggregates": {"left_id": "count"}}, ANY_OF, r"left_id.*(Rename|[Nn]ame)"),
        ({"aggregates": {"name": "count"}, "by": "name"}, ANY_OF, r"name.*(Rename|[Nn]ame)"),
        *(({**COUNT, "emit": emit}, ConditionError, r"aggregates")
          for emit in ("pairs", "lists", "counts", "best")),
        *(({**COUNT, "how": how}, ConditionError, rf"how.*{how}.*(inner|left|[Rr]emove|[Ss]wap)")
          for how in ("full", "semi", "anti")),
        *(({**COUNT, "including": "previous", **more}, ConditionError, rf"='previous' adds.*{word}")
          for more, word in (
              ({"how": "right"}, "right"), ({"right_time": around("t", 2)}, "uncertain"),
              ({"where": "left_id = right_id"}, "Filter"), ({"emit": "counts", "aggregates": None}, "emit"),
          )),
        ({**COUNT, "including": "next"}, ConditionError, r"including.*previous.*'next'"),
        ({**COUNT, "weights": "p"}, ConditionError, r"weights.*probability.*'p'"),
        ({"weights": "probability", "emit": "counts"}, ConditionError, r"weights.*emit='aggregates'"),
        *(({"aggregates": {"n": ("amp", each)}, "weights": "probability"}, ConditionError,
           rf"takes count, sum, mean.*{each}") for each in ("min", "max", "std", "first", "last")),
        ({"aggregates": {"n": ("lasted", "sum")}, "weights": "probability"}, SchemaError,
         r"'sum' takes numbers and truth values \(found 'lasted'"),
        *(({**COUNT, "matching": each}, ConditionError, r"matching|emit")
          for each in ("mutual", "optimal", "unambiguous")),
        ({**COUNT, "prefer": "nearest"}, ConditionError, r"prefer|emit='best'"),
        ({**COUNT, "k": 2}, ConditionError, r"k=2|emit='best'"),
        ({**COUNT, "ties": "all"}, ConditionError, r"ties|emit='best'"),
        ({**COUNT, "probability": True}, ConditionError, r"probability"),
        ({**COUNT, "pair_columns": "delta"}, ConditionError, r"delta|pair_columns"),
        *(({"aggregates": {"n": (column, function)}}, SchemaError, rf"{column}")
          for column, functions in {
              "name": ("sum", "mean", "std", "any"), "raw": ("sum", "mean", "std", "any"),
              "at": ("sum", "mean", "std", "any"), "day": ("sum", "mean", "std", "any"),
              "noon": ("sum", "mean", "std", "any"), "lasted": ("mean", "std", "any"),
              "amp": ("any",), "many": ("sum", "min", "any"),
              "pair": ("max", "mean"),
          }.items() for function in functions),
        *(({"aggregates": {"n": (column, "min")}}, CoincideError, rf"{column}.*Rename|Rename.*{column}")
          for column in ("delta", "probability")),
    ],
    ids=str,
)  # fmt: skip
def test_refused(changes: dict[str, Any], error: Any, words: str) -> None:
    """One line that says what is wrong, and what to do about it."""
    with pytest.raises(error, match=words) as raised:
        correlate_tables(TABLE, TABLE, **(EXACT | changes))
    assert "\n" not in str(raised.value)
    assert str(raised.value)[-1] in ".?"


@pytest.mark.parametrize("column", ["delta", "overlap", "probability"])
def test_columns_of_pairs_that_there_are_not(column: str) -> None:
    """Only spans have an overlap."""
    bare = TABLE.drop_columns(["delta", "probability", "overlap"])
    asked: dict[str, Any] = {"aggregates": {"n": (column, "max")}}
    if column == "overlap":
        with pytest.raises(CoincideError, match="overlap"):
            correlate_tables(bare, bare, **EXACT, **asked)
    else:
        assert correlate_tables(bare, bare, **EXACT, **asked).num_rows == 1


def test_a_column_of_spans_that_has_the_name_of_a_pair_column() -> None:
    time = spans("t", "id")
    with pytest.raises(CoincideError, match=r"overlap.*Rename|Rename.*overlap"):
        correlate_tables(
            TABLE, TABLE, overlapping(), left_time=time, right_time=time, emit="aggregates",
            aggregates={"n": ("overlap", "max")},
        )  # fmt: skip


def test_what_has_no_weights() -> None:
    """Spans whose ends are known, and a causality that takes certain pairs alone."""
    asked: dict[str, Any] = {"emit": "aggregates", "aggregates": {"n": "count"}}
    time = spans("t", "id")
    with pytest.raises(ConditionError, match=r"holds or not. Remove weights"):
        correlate_tables(
            TABLE, TABLE, overlapping(), left_time=time, right_time=time, weights="probability", **asked
        )  # fmt: skip
    condition = CausalityCondition([Temporal(0, 5)])
    with pytest.raises(ConditionError, match=r"confidence of 1.*0\.001"):
        causality_tables(TABLE, TABLE, condition, cause_time="t", weights="probability", **asked)


@pytest.mark.parametrize("emits", ["spans", "causality", "histograms"])
def test_expected_numbers_of_any_times(emits: str) -> None:
    """The probabilities of the pairs that are there at a confidence as good as none, added up."""
    rng = np.random.default_rng(8)
    sides = [
        pa.table(
            {"id": range(60), "t": start, "end": start + rng.integers(20, 50, 60), "x": start % 7}
        )
        for start in (rng.integers(0, 400, 60), rng.integers(0, 400, 60))
    ]
    asked: dict[str, Any] = {"emit": "aggregates", "aggregates": {"n": "count", "x": ("x", "sum")}}
    pairs: dict[str, Any] = {"probability": True}
    if emits == "causality":
        condition = CausalityCondition([Temporal(0, 50)], confidence=1e-9)
        times = {"cause_time": around("t", 9), "effect_time": "t"}
        found = causality_tables(*sides, condition, weights="probability", **times, **asked)
        rows = causality_tables(*sides, condition, effect_columns="x", **times, **pairs)
        names = "cause_id", "effect_x"
    elif emits == "spans":
        time = spans("t", "end", around=6)
        times = {"condition": overlapping(), "left_time": time, "right_time": time}
        found = correlate_tables(*sides, weights="probability", **times, **asked)
        rows = correlate_tables(*sides, confidence=1e-14, right_columns="x", **times, **pairs)
        names = "left_id", "right_x"
    else:
        templates = random_templates(2)
        sides = [events(1, 40), events(2, 60).append_column("x", pa.array(np.arange(60) % 5))]
        times = {"left_time": by_device(templates), "right_time": by_device(templates)}
        found = correlate_tables(*sides, within=(-60, 90), weights="probability", **times, **asked)
        rows = correlate_tables(
            *sides, within=(-60, 90), confidence=1e-14, right_columns="x", **times, **pairs
        )
        names = "left_id", "right_x"
    sums: dict[int, list[float]] = {}
    for row in rows.to_pylist():
        own = sums.setdefault(row[names[0]], [0.0, 0.0])
        own[0] += row["probability"]
        own[1] += row["probability"] * row[names[1]]
    assert len(found) == len(sums) > 20
    for row in found.to_pylist():
        assert [row["n"], row["x"]] == pytest.approx(sums[row[names[0]]], rel=1e-12)
    assert any(n % 1 for n, _ in sums.values())


def test_names_of_columns_and_their_order() -> None:
    """Names as they are given, after the keys and the left columns."""
    asked = {"z": "count", "a": ("amp", "max"), "left_amp2": ("amp", "min"), "amp": ("amp", "mean")}
    found = correlate_tables(
        TABLE, TABLE, aggregates=asked, by="name", left_columns=["t", "id", "amp"], **EXACT
    )
    assert found.column_names == ["name", "left_t", "left_id", "left_amp", *asked]
    assert found.to_pylist()[0]["amp"] == 1.5


def test_more_numbers_than_are_held_at_a_time() -> None:
    """Several walks of ranges, one column that is too wide for them, and values of pairs: one table."""
    random = np.random.default_rng(3)
    n = 300
    times = {"min_time": random.integers(0, 2_000, n)}
    times["max_time"] = times["min_time"] + random.integers(0, 20, n)
    columns = {f"c{i}": random.normal(size=n) * 10.0 ** random.uniform(-9, 9, n) for i in range(14)}
    columns["wide"] = random.normal(size=n) * 10.0 ** random.uniform(-300, 150, n)
    left, right = pa.table({"id": range(n), **times}), pa.table({**times, **columns})
    asked = {f"sum of {name}": (name, "sum") for name in columns}
    asked |= {"std": ("wide", "std"), "sure": ("probability", "sum"), "soon": ("delta", "min")}
    condition = TimingCondition(within(-60, 60), 0.4)
    given = {"emit": "aggregates", "how": "left"}
    together = correlate_tables(left, right, condition, **given, aggregates=asked)
    assert together.column_names == ["left_id", *asked]
    for name, each in asked.items():
        alone = correlate_tables(left, right, condition, **given, aggregates={name: each})
        assert alone.column(name).equals(together.column(name)), name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("n=count", {"n": "count"}),
        ("n=count(*)", {"n": "count"}),
        ("n=count(amp), e = SUM( amp )", {"n": ("amp", "count"), "e": ("amp", "sum")}),
        ('"x, y"=max("a=b"),z=max(a (m/s))', {"x, y": ("a=b", "max"), "z": ("a (m/s)", "max")}),
    ],
)
def test_aggregates_as_words(text: str, found: dict[str, Any]) -> None:
    assert worded({"aggregates": [text]}) == {"aggregates": found, "emit": "aggregates"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("n", r"takes NAME=FUNCTION.COLUMN., or NAME=count .found 'n'.\. Write it as"),
        ("z=sum(amp))", r"takes NAME=FUNCTION.COLUMN.*found 'z=sum.amp..'"),
        ("z=keV(SUM)", r"function first .found 'z=keV.SUM.'.\. Write z=sum.keV."),
        ("z=max( )", r"needs a column for max .*Write z=max.COLUMN."),
        ("z=max(a),z=min(a)", r"twice .found z=max.a., z=min.a..\. Give each another name"),
    ],
)
def test_words_that_are_no_aggregates(text: str, problem: str) -> None:
    with pytest.raises(ConditionError, match=problem):
        worded({"aggregates": [text]})


@pytest.mark.parametrize("function", ["first", "min", "max"])
def test_one_long_text_makes_no_batches_of_few_rows(function: str) -> None:
    """Batches are bounded by the texts that are in them, and not by the longest of all."""
    n = 2_000
    times = {"min_time": range(n), "max_time": range(n)}
    texts = [f"t{i}" for i in range(n)]
    texts[7] = "t7" * 2_000_000
    left, right = pa.table({"id": range(n), **times}), pa.table({**times, "text": texts})
    found = correlate_tables(
        left, right, TimingCondition(within(0, 0), 1.0), emit="aggregates",
        aggregates={"text": ("text", function)}, options=CorrelateOptions(threads=1),
    )  # fmt: skip
    assert found.column("text").to_pylist() == texts
    assert found.column("text").num_chunks == 1
