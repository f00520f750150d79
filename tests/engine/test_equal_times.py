"""Rows of equal time: the order of the rows decides, whatever the columns, wherever rows come from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Temporal,
    TimingCondition,
    causality_tables,
    correlate_tables,
    overlapping,
    relation,
    stream_tables,
    within,
)
from coincide.command_line import run
from tests.helpers.joins import local_files_join
from tests.helpers.rows import pair_ids

CASES = int(os.environ.get("COINCIDE_CASES", "60"))
INSTANTS: dict[str, Any] = {"left_time": "t", "right_time": "t"}
BEST: dict[str, Any] = {"by": "key", "emit": "best", **INSTANTS}
LO, HI = -4, 3
CONDITION = TimingCondition(within(LO, HI), 1.0)
EVENTS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1)), max_size=12)
"""Times and keys."""
ORDERS: dict[str, Any] = {
    "probability": lambda delta, j: (abs(2 * delta - LO - HI), delta, j),
    "nearest": lambda delta, j: (abs(delta), abs(2 * delta - LO - HI), delta, j),
    "first": lambda delta, j: (delta, j),
    "last": lambda delta, j: (-delta, -j),
}
"""What is least of the best one of right events, by delta and row."""


def table(events: list[tuple[int, int]], seed: int) -> pa.Table:
    """With a column that is in no order, which the output begins with."""
    t, key = zip(*events, strict=True) if events else ((), ())
    other = np.random.default_rng(seed).permutation(len(events))
    columns = {"t": t, "key": key, "other": other, "id": range(len(events))}
    return pa.table({name: pa.array(each, pa.int64()) for name, each in columns.items()})


def best_rows(left: Any, right: Any, prefer: str) -> list[tuple[int, int]]:
    found = []
    for i, (t, key) in enumerate(left):
        deltas = [(u - t, j) for j, (u, other) in enumerate(right) if other == key]
        near = [each for each in deltas if LO <= each[0] <= HI]
        if near:
            found.append((i, min(near, key=lambda each: ORDERS[prefer](*each))[1]))
    return found


QUOTES = pa.table({"t": [1, 1], "px": [98, 100], "x": [2, 1]})
TRADE = pa.table({"id": [0], "t": [1]})


@pytest.mark.parametrize("columns", [["px"], ["x", "px"]])
@pytest.mark.parametrize(
    ("prefer", "px"), [("last", 100), ("first", 98), ("nearest", 98), ("probability", 98)]
)
def test_the_later_of_two_quotes_is_the_last(columns: list[str], prefer: str, px: int) -> None:
    given = {"within": (-5, 5), "emit": "best", "prefer": prefer, "right_columns": columns}
    assert correlate_tables(TRADE, QUOTES, **INSTANTS, **given)["right_px"].to_pylist() == [px]


@pytest.mark.parametrize(("prefer", "px"), [("last", 100), ("first", 98)])
def test_one_to_one_it_is_the_same_quote(prefer: str, px: int) -> None:
    given = {
        "within": (-5, 5),
        "matching": "mutual",
        "prefer": prefer,
        "right_columns": ["x", "px"],
    }
    assert correlate_tables(TRADE, QUOTES, **INSTANTS, **given)["right_px"].to_pylist() == [px]


@pytest.mark.parametrize(("prefer", "own"), [("last", 0), ("first", 1)])
def test_a_right_event_prefers_left_rows_in_mirrored_time(prefer: str, own: int) -> None:
    left = pa.table({"id": [0, 1], "other": [1, 0], "t": [1, 1]})
    right = pa.table({"id": [0], "t": [1]})
    given = {"within": (-5, 5), "matching": "mutual", "prefer": prefer}
    found = correlate_tables(left, right, left_columns=["other", "id"], **INSTANTS, **given)
    assert found["left_id"].to_pylist() == [own]


@pytest.mark.parametrize(("name", "px"), [("after", 100), ("before", 98)])
def test_the_last_one_before_is_the_last_row(name: Any, px: int) -> None:
    trade = pa.table({"id": [0], "t": [5 if name == "after" else -5]})
    given = {"emit": "best", "prefer": "nearest", "right_columns": ["x", "px"]}
    found = correlate_tables(trade, QUOTES, relation(name), **INSTANTS, **given)
    assert found["right_px"].to_pylist() == [px]


@pytest.mark.parametrize(("prefer", "px"), [("last", 100), ("first", 98), ("distance", 98)])
def test_effects_of_equal_time(prefer: str, px: int) -> None:
    given = {"cause_time": "t", "effect_time": "t", "emit": "best", "prefer": prefer}
    given |= {"cause_place": [0.0], "effect_place": [0.0]} if prefer == "distance" else {}
    condition = CausalityCondition(Temporal(-5, 5))
    found = causality_tables(TRADE, QUOTES, condition, effect_columns=["x", "px"], **given)
    assert found["effect_px"].to_pylist() == [px]


@pytest.mark.parametrize(("second", "px"), [("px", 98), ("-px", 100), ("x", 100), ("-name", 98)])
@pytest.mark.parametrize("first", ["last", "first", "nearest", "probability", "distance"])
def test_a_second_column_comes_before_rows(first: str, second: str, px: int) -> None:
    quotes = QUOTES.append_column("name", pa.array(["b", "a"]))
    given: dict[str, Any] = {"emit": "best", "prefer": [first, second]}
    places = {"cause_place": [0.0], "effect_place": [0.0]} if first == "distance" else {}
    found = causality_tables(
        TRADE, quotes, CausalityCondition(Temporal(-5, 5)), cause_time="t", effect_time="t",
        effect_columns="px", **given, **places,
    )  # fmt: skip
    assert found["effect_px"].to_pylist() == [px]
    if first == "distance":
        return
    asked = {"within": (-5, 5), "confidence": 1.0, "right_columns": "px", **given}
    assert correlate_tables(TRADE, quotes, **INSTANTS, **asked)["right_px"].to_pylist() == [px]
    stream = stream_tables(
        left_delay=9, right_delay=9, left_schema=TRADE.schema, right_schema=quotes.schema, **INSTANTS,
        **asked,
    )  # fmt: skip
    for row in (1, 0):
        stream.push("right", quotes.slice(row, 1))
    stream.push("left", TRADE)
    assert stream.flush()["right_px"].to_pylist() == [px]


@pytest.mark.parametrize(("second", "px"), [("px", 98), ("-px", 100)])
def test_a_second_column_of_spans(second: str, px: int) -> None:
    """Events that have as much time in common, or none and one gap, or come next of all."""
    trade = pa.table({"id": [0], "t": [10]})
    spans_ = pa.table({"t": [8, 8, 5], "px": [98, 100, 99]})
    given: dict[str, Any] = {"emit": "best", "right_columns": "px", **INSTANTS}
    for condition, first in (
        (overlapping(gap=9), "probability"), (overlapping(gap=9), "nearest"),
        (relation("after"), "nearest"),
    ):  # fmt: skip
        found = correlate_tables(trade, spans_, condition, prefer=[first, second], **given)
        assert found["right_px"].to_pylist() == [px]
    both = correlate_tables(
        trade, spans_, overlapping(gap=9), prefer=["probability", second], ties="all", **given
    )
    assert both["right_px"].to_pylist() == [px]


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize(("prefer", "best"), [("last", 29), ("first", 0)])
def test_commands_read_rows_in_the_order_of_files(
    tmp_path: Path, kind: str, threads: str, prefer: str, best: int
) -> None:
    """Three files of ten rows, all of one time, in row groups of three."""
    quotes = pa.table({"t": [1] * 30, "x": [*range(15, 0, -1)] * 2, "px": range(30)})
    trades = pa.table({"id": [0, 1], "t": [1, 1]})
    folders = tmp_path / "trades", tmp_path / "quotes"
    for folder, table_, step in zip(folders, (trades, quotes), (1, 10), strict=True):
        folder.mkdir()
        for number in range(table_.num_rows // step):
            part, path = table_.slice(number * step, step), folder / f"{number}.{kind}"
            if kind == "csv":
                csv.write_csv(part, path)
            elif kind == "arrow":
                feather.write_feather(part, path, compression="uncompressed")
            else:
                pq.write_table(part, path, row_group_size=3)
    out = tmp_path / "out.parquet"
    words = [
        "join", *map(str, folders), "-o", str(out), "--within", "-5", "5", "--left-time", "t",
        "--right-time", "t", "--emit", "best", "--prefer", prefer, "--right-columns", "x,px",
        "--engine", "local", "--threads", threads, "--confidence", "1",
    ]  # fmt: skip
    assert run(words) == 0
    assert pq.read_table(out)["right_px"].to_pylist() == [best, best]


@settings(max_examples=CASES)
@given(
    left=EVENTS, right=EVENTS, prefer=st.sampled_from(list(ORDERS)), seed=st.integers(0, 99),
    batch=st.integers(1, 9), threads=st.integers(1, 2),
)  # fmt: skip
def test_tables(left: Any, right: Any, prefer: str, seed: int, batch: int, threads: int) -> None:
    found = correlate_tables(
        table(left, seed), table(right, seed), within=(LO, HI), prefer=prefer,
        right_columns=["other", "id"], options=CorrelateOptions(batch_pairs=batch, threads=threads),
        **BEST,
    )  # fmt: skip
    assert pair_ids(found) == best_rows(left, right, prefer)


@pytest.mark.usefixtures("any_order")
def test_files_in_slices(tmp_path: Path) -> None:
    """Row groups of one slice that other slices account for come between its own."""
    rng = np.random.default_rng(3)
    differ = 0
    for number in range(CASES):
        sides = [
            [tuple(row) for row in rng.integers([-3, 0], [4, 2], (rng.integers(30), 2)).tolist()]
            for _ in range(2)
        ]
        paths = [tmp_path / f"{number}{side}.parquet" for side in "lr"]
        for side, path in zip(sides, paths, strict=True):
            pq.write_table(table(side, number), path, row_group_size=int(rng.integers(1, 5)))
        prefer = list(ORDERS)[number % len(ORDERS)]
        options = CorrelateOptions(slices=int(rng.integers(1, 5)), batch_pairs=5)
        given = {"prefer": prefer, "right_columns": ["other", "id"], "options": options, **BEST}
        job = local_files_join(*paths, CONDITION, **given)
        found = pa.Table.from_batches(job.batches(), job.schema)
        assert pair_ids(found) == best_rows(*sides, prefer)
        differ += len(job.plan.slices) > 1
    assert differ > CASES // 3


def test_streams_take_rows_in_order_of_arrival() -> None:
    rng = np.random.default_rng(4)
    for number in range(CASES):
        sides = [
            [tuple(row) for row in rng.integers([-3, 0], [4, 2], (rng.integers(30), 2)).tolist()]
            for _ in range(2)
        ]
        prefer = list(ORDERS)[number % len(ORDERS)]
        given = {"prefer": prefer, "right_columns": ["other", "id"], **BEST}
        tables = [table(side, number) for side in sides]
        given |= {"left_schema": tables[0].schema, "right_schema": tables[1].schema}
        stream = stream_tables(CONDITION, left_delay=9, right_delay=9, **given)
        found, at = [], [0, 0]
        while at != [len(each) for each in sides]:
            side = int(rng.integers(2))
            step = int(rng.integers(4))
            part = tables[side].slice(at[side], step)
            at[side] += part.num_rows
            found.append(stream.push(("left", "right")[side], part))
        found.append(stream.flush())
        some = [each for each in found if each.num_rows]
        rows = pair_ids(pa.concat_tables(some)) if some else []
        assert rows == best_rows(*sides, prefer)
