"""Counters of picoseconds: whole numbers, floats and decimals, in every word that has a unit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    DroppedRowsWarning,
    around,
    correlate_tables,
    explore_tables,
    stream_tables,
)
from tests.helpers.rows import pair_ids

TIMES = [0, 1_000, 1_250, 5_000_000_000_000]
AT: Any = {"left_time": "t", "right_time": "t", "how": "inner"}
NEAR = [(0, 1), (1, 2)]


def table(values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"id": range(len(values)), "t": pa.array(values, kind)})


def pairs(left: pa.Table, right: pa.Table, window: Any = ("1ps", "1ns"), **options: Any) -> Any:
    found = correlate_tables(left, right, within=window, **AT, options=CorrelateOptions(**options))
    return pair_ids(found)


@pytest.mark.parametrize("unit", ["ps", "picoseconds"])
@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.uint64(), pa.float64(), pa.decimal128(20, 0)], ids=str
)
def test_numbers_of_picoseconds(kind: pa.DataType, unit: str) -> None:
    events = table(TIMES, kind)
    assert pairs(events, events, unit=unit) == NEAR
    assert pairs(events, events, (1, 1000), unit=unit) == NEAR


@pytest.mark.parametrize("unit", ["ns", "s", "h"])
def test_coarser_numbers_in_ticks_of_picoseconds(unit: str) -> None:
    size = {"ns": 10**3, "s": 10**12, "h": 3600 * 10**12}[unit]
    decimals = table([Decimal(n) / size for n in (0, 3600, 7200)], pa.decimal128(30, 20))
    own = table([0, 3600, 7200], pa.int64())
    options = {"left_unit": unit, "right_unit": "ps", "tick": "ps"}
    assert pairs(decimals, own, ("0s", "3600ps"), **options) == [
        (0, 0),
        (0, 1),
        (1, 1),
        (1, 2),
        (2, 2),
    ]
    assert pairs(decimals, own, ("3599ps", "3599ps"), **options) == []


def test_floats_of_picoseconds_keep_whole_ones() -> None:
    """Without a tick floats count nanoseconds, unless their unit is finer."""
    events = table([0.0, 1.0, 2.4], pa.float64())
    assert pairs(events, events, ("1ps", "1ps"), unit="ps") == [(0, 1), (1, 2)]


def test_words_and_other_operators() -> None:
    events = table(TIMES, pa.int64())
    options = CorrelateOptions(unit="ps")
    given: Any = {**AT, "left_time": around("t", "125ps"), "confidence": 0.5, "options": options}
    found = correlate_tables(
        events, events, within=("0ps", "1.125ns"), pair_columns="delta", **given
    )
    assert found["delta_ps"].to_pylist()[:2] == [0, 1000]
    seen = explore_tables(
        events, events, within=("0ps", "1.125ns"), left_time=given["left_time"], right_time="t",
        options=options,
    )  # fmt: skip
    assert seen.pairs_at(0.5) == found.num_rows
    live = stream_tables(
        within="1ns",
        left_delay="1ps",
        right_delay="1ps",
        left_time="t",
        right_time="t",
        options=options,
    )
    live.push("left", events)
    live.push("right", events)
    assert live.summary().counters.pairs > 0


def test_ranges_and_durations() -> None:
    far = table([3_000_000, 1], pa.int64())
    with pytest.warns(DroppedRowsWarning, match="a tick is 1 ps, which reaches 26 days"):
        pairs(far, far, ("0s", "1s"), unit="s", tick="ps", invalid="drop")
    spans = table([1, 2], pa.duration("ns"))
    with pytest.raises(ConditionError, match=r"counted in ns at the finest .*left\.t"):
        pairs(spans, spans, ("0s", "1s"), tick="ps")
    stamps = table([1, 2], pa.timestamp("ns"))
    with pytest.raises(ConditionError, match="timestamp columns are counted in us, or in ns"):
        pairs(stamps, stamps, ("0s", "1s"), unit="ps")
