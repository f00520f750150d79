"""Clocks that were put right: times with a width, spans, and tables for all that takes no clock."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    SchemaError,
    UnmatchableRowsWarning,
    border_crossing_tables,
    corrected,
    corrected_clock,
    correlate_tables,
    coverage,
    covered,
    gaps,
    inside,
    merged,
    overlapping,
    spans,
    transition_tables,
)
from tests.helpers.clock_tables import Clocks

CASES = int(os.environ.get("COINCIDE_CASES", "40"))
BY = [("unit", "device")]
KINDS = [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")]

pytestmark = pytest.mark.filterwarnings(
    "ignore::coincide.UnmatchableRowsWarning", "ignore::coincide.NoPairsWarning"
)


def in_kind(values: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).view(kind)


def errors_in(clocks: Clocks, kind: pa.DataType) -> pa.Table:
    """The errors of numbers or of timestamps; of the latter lengths are texts, as CSV has them."""
    table = clocks.table
    if kind == pa.int64():
        return table
    for name in ("start", "end"):
        table = table.set_column(
            table.column_names.index(name), name, in_kind(table[name].to_pylist(), kind)
        )
    for name in ("offset", "spread"):
        texts = [f"{each * 1000:.0f}ns" for each in table[name].to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(texts))
    return table


def drawn_stamps(rng: np.random.Generator, size: int) -> list[int | None]:
    return [None if x < 0 else int(x) for x in rng.integers(-100, 4100, size)]


@pytest.mark.parametrize("seed", range(CASES))
def test_a_width_makes_the_intervals_that_the_lines_say(seed: int) -> None:
    """The join is that of a table whose ends are computed by hand, in whole numbers."""
    rng = np.random.default_rng(seed)
    clocks, kind = Clocks.drawn(rng), KINDS[seed % 3]
    around: Any = ["fitted", 0, 7, None, "fitted", 40][seed % 6]
    units, stamps = rng.choice(list("abcx"), 60).tolist(), drawn_stamps(rng, 60)
    ends = [clocks.ends(*each, around) for each in zip(units, stamps, strict=True)]
    own = pa.table({
        "id": range(60), "unit": units, "t": in_kind(stamps, kind),
        "low": in_kind([low for low, _ in ends], kind), "high": in_kind([high for _, high in ends], kind),
    })  # fmt: skip
    others = pa.table({"id": range(80), "s": in_kind(drawn_stamps(rng, 80), kind)})
    is_number = kind == pa.int64()
    said = around if is_number or not isinstance(around, int) else f"{around}us"
    clock = corrected_clock("t", errors_in(clocks, kind), by=BY, around=said)
    given: dict[str, Any] = {
        "within": (-30, 45) if is_number else ("-30us", "45us"), "confidence": 0.2,
        "probability": True, "how": ["full", "left", "inner"][seed // 3 % 3],
    }  # fmt: skip
    found, wanted = (
        correlate_tables(own, others, left_time=time, right_time="s", **given)
        for time in (clock, ("low", "high"))
    )
    assert found.equals(wanted)
    found, wanted = (
        correlate_tables(others, own, right_time=time, left_time="s", **given)
        for time in (clock, ("low", "high"))
    )
    assert found.equals(wanted)
    pairs = found.filter(pc.is_valid(found["probability"]))
    assert pairs.num_rows or around == 0 or around is None or seed % 6 == 2


def test_drawn_cases_have_pairs() -> None:
    """Of the test above: most cases have pairs, and some of them are between two segments."""
    between = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        clocks = Clocks.drawn(rng)
        stamps = drawn_stamps(rng, 60)
        ends = [clocks.ends("a", stamp) for stamp in stamps]
        between += sum(low is not None and low != high for low, high in ends)
    assert between > 50


@pytest.mark.parametrize("seed", range(CASES))
def test_spans_of_corrected_clocks_are_those_that_the_lines_say(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    clocks, kind = Clocks.drawn(rng), KINDS[seed % 3]
    is_open, size = seed % 4 == 1, 60
    units = rng.choice(list("abcx"), size).tolist()
    starts = drawn_stamps(rng, size)
    lengths = [None if x < 0 else int(x) for x in rng.integers(-20, 500, size)]
    stamps_of = list(zip(starts, lengths, strict=True))
    raw_ends = [None if t is None or d is None else t + d for t, d in stamps_of]
    own_start = [clocks.instant(*each) for each in zip(units, starts, strict=True)]
    own_end = [clocks.instant(*each) for each in zip(units, raw_ends, strict=True)]
    by_length = [
        None if t is None or d is None else t + d for t, d in zip(own_start, lengths, strict=True)
    ]
    # An end that is unknown goes on only where the stamp itself is missing.
    is_lost = [raw is not None and end is None for raw, end in zip(raw_ends, own_end, strict=True)]
    kept = [None if lost else start for start, lost in zip(own_start, is_lost, strict=True)]
    own = pa.table({
        "id": range(size), "unit": units, "start": in_kind(starts, kind), "end": in_kind(raw_ends, kind),
        "lasts": pa.array(lengths, pa.int64()), "low": in_kind(own_start, kind),
        "kept": in_kind(kept, kind),
        "high": in_kind(own_end, kind), "later": in_kind(by_length, kind),
    })  # fmt: skip
    begin = np.array([x or 0 for x in drawn_stamps(rng, 70)])
    others = pa.table({
        "id": range(70), "s": in_kind(begin.tolist(), kind),
        "e": in_kind((begin + rng.integers(0, 300, 70)).tolist(), kind),
    })  # fmt: skip
    errors = errors_in(clocks, kind)
    start, end = (corrected_clock(name, errors, by=BY) for name in ("start", "end"))
    closed: Any = ["both", "left", "neither"][seed % 3]
    shared: dict[str, Any] = {"closed": closed, "open_ends": is_open}
    unit = {} if kind == pa.int64() else {"unit": "us"}
    forms = [
        (spans(start, end, **shared), spans("kept" if is_open else "low", "high", **shared)),
        (spans(start, duration="lasts", **unit, **shared), spans("low", "later", **shared)),
        (spans(start, "end", closed=closed), spans("low", "end", closed=closed)),
        (spans("start", end, closed=closed), spans("start", "high", closed=closed)),
    ]
    if is_open:
        forms = forms[:1]
    for time, by_hand in forms:
        found, wanted = (
            correlate_tables(
                own, others, condition=overlapping(), left_time=each, right_time=spans("s", "e"),
                options=CorrelateOptions(invalid="drop"), emit="lists", how="left",
            )
            for each in (time, by_hand)
        )  # fmt: skip
        assert found.equals(wanted)
    width = 9 if kind == pa.int64() else "9us"
    wide = [corrected_clock(name, errors, by=BY, around=width) for name in ("start", "end")]
    found, wanted = (
        correlate_tables(
            others, own, condition=overlapping(), left_time=spans("s", "e"), right_time=each,
            options=CorrelateOptions(invalid="drop"), confidence=0.4, probability=True,
        )
        for each in (spans(*wide), spans("low", "high", around=width))
    )  # fmt: skip
    assert found.equals(wanted)


LINE = {"status": ["found"], "start": [0], "end": [5000], "offset": [50.25], "drift": [1953.125]}


def moved(stamp: int) -> int:
    """By the line above, exactly: a drift of 1953.125 ppm is one of 512."""
    return stamp + round(Fraction(201, 4) + Fraction(stamp, 512))


@pytest.mark.parametrize("seed", range(8))
def test_operators_of_corrected_tables_are_those_of_tables_moved_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.choice(4000, 40, replace=False)).tolist()
    stays = {"id": range(20), "start": times[::2], "end": times[1::2]}
    by_hand = {**stays, **{name: [*map(moved, stays[name])] for name in ("start", "end")}}  # type: ignore[arg-type]
    put_right = corrected(stays, ("start", "end"), LINE)
    time, bounds = spans("start", "end"), (0, 5000)
    for operator, given in (
        (merged, {"gap": 60}), (gaps, {"bounds": bounds}), (coverage, {"bounds": bounds}),
    ):  # fmt: skip
        found, wanted = (operator(each, time=time, **given) for each in (put_right, by_hand))  # type: ignore[operator]
        assert found.num_rows
        assert found.equals(wanted)
    found, wanted = (
        covered(each, put_right, left_time=time, right_time=time) for each in (put_right, by_hand)
    )
    assert found.equals(wanted)
    values = (rng.random(40) * 100).tolist()
    readings = {"stream_id": ["o"] * 40, "time": times, "value": values}
    queries = {"query_id": ["hot"], "lower": [50.0], "upper": [90.0]}
    crossings = []
    for each in (corrected(readings, "time", LINE), {**readings, "time": [*map(moved, times)]}):
        crossings.append(border_crossing_tables(each, queries))
    assert crossings[0].num_rows
    assert crossings[0].equals(crossings[1])
    raw = border_crossing_tables(readings, queries)
    moments = corrected(raw, ("min_time", "max_time"), LINE)
    given = {"within": 300, "confidence": 0.5}
    found, wanted = (transition_tables(each, **given) for each in (moments, crossings[1]))
    assert found.num_rows
    assert found.equals(wanted)


def test_what_widths_may_not_be() -> None:
    for around, said in (
        ("-1ms", "around must not be negative"), ("soon", "a duration, such as '10ms', or 'fitted'"),
        (1.5, "around must be a duration"), (True, "around must be a duration"),
    ):  # fmt: skip
        with pytest.raises(ConditionError, match=said):
            corrected_clock("t", LINE, around=around)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="errors has no column 'spread'"):
        corrected_clock("t", LINE, around="fitted")
    own = pa.table({"id": [1], "t": [2]})
    given: dict[str, Any] = {"within": (0, 100), "confidence": 0.5, "right_time": "t"}
    for spread, said in (
        (None, "errors.spread is null where an error is found"),
        (-1.0, r"errors.spread must be a length.*found -1 ticks"),
        (float("nan"), "errors.spread must be a length"),
    ):
        clock = corrected_clock("t", {**LINE, "spread": [spread]}, around="fitted")
        with pytest.raises(DataError, match=said):
            correlate_tables(own, own, left_time=clock, **given)
    for width, said in ((2**58, "must be below 2.58 ticks"), ("1ms", "around: ")):
        clock = corrected_clock("t", LINE, around=width)
        with pytest.raises(ConditionError, match=said):
            correlate_tables(own, own, left_time=clock, **given)


def test_what_spans_of_clocks_may_not_be() -> None:
    wide = corrected_clock("t", LINE, around=5)
    fitted = corrected_clock("t", {**LINE, "spread": [1.0]}, around="fitted")
    with pytest.raises(ConditionError, match=r"all off by the same width .found around='fitted'"):
        spans("s", fitted)
    with pytest.raises(ConditionError, match="around is given to spans and to corrected_clock"):
        spans(wide, "e", around=3)
    assert spans(wide, duration="d").around == (5, 5)
    assert spans("s", wide).around == (0, 5)
    assert repr(spans(wide, "e")).startswith("spans(corrected_clock('t', errors, around=5), 'e', a")
    with pytest.raises(ConditionError, match=r"time takes no corrected_clock .*coincide.corrected"):
        merged({"t": [1], "e": [2]}, time=spans(corrected_clock("t", LINE), "e"))
    with pytest.raises(ConditionError, match="so a pair needs a confidence"):
        correlate_tables(
            {"id": [1], "t": [1], "e": [2]}, {"id": [1], "t": [1], "e": [2]}, condition=inside(),
            left_time=spans(wide, "e"), right_time=spans("t", "e"),
        )  # fmt: skip
    with pytest.raises(SchemaError, match=r"left\.unit has a type that cannot be compared"):
        correlate_tables(
            {"id": [1], "t": [1], "e": [2], "unit": [0.5]}, {"id": [1], "t": [1], "e": [2]},
            condition=overlapping(), right_time=spans("t", "e"),
            left_time=spans(corrected_clock("t", {**LINE, "unit": ["a"]}, by="unit"), "e"),
        )  # fmt: skip


def test_unknown_clocks_of_spans_are_counted() -> None:
    own = {"id": [1, 2, 3], "s": [10, 20, 9000], "e": [15, 7000, None]}
    others = {"id": [9], "s": [0], "e": [10_000]}
    start, end = (corrected_clock(name, LINE) for name in "se")
    for is_open, matched, said in ((False, [1], "2 without"), (True, [1], "2 without")):
        with pytest.warns(UnmatchableRowsWarning, match=said):
            found = correlate_tables(
                own, others, condition=overlapping(), right_time=spans("s", "e"),
                left_time=spans(start, end, open_ends=is_open),
            )  # fmt: skip
        assert found["left_id"].to_pylist() == matched
    goes_on = {"id": [1], "s": [10], "e": pa.array([None], pa.int64())}
    found = correlate_tables(
        goes_on, others, condition=overlapping(), right_time=spans("s", "e"),
        left_time=spans(start, end, open_ends=True),
    )  # fmt: skip
    assert found["left_id"].to_pylist() == [1]


def test_impossible_stamps_of_spans_are_refused_whatever_the_clock() -> None:
    own = {"id": [1], "s": [10], "e": [2**61]}
    end = corrected_clock("e", LINE)
    with pytest.raises(DataError, match=r"left: .* s and e in 1 row"):
        correlate_tables(
            own, {"id": [9], "s": [0], "e": [10]}, condition=overlapping(), right_time=spans("s", "e"),
            left_time=spans("s", end),
        )  # fmt: skip
