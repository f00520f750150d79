"""Clocks that were put right: times with a width, spans, and tables for all that takes no clock."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.hunt.clock_lines import Clocks
from bench.hunt.questions import corrected as drawn
from coincide import (
    ConditionError,
    DataError,
    JoinReport,
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
from coincide.engine.events.invalid_rows import SideCounts

CASES = int(os.environ.get("COINCIDE_CASES", "40"))

pytestmark = pytest.mark.filterwarnings(
    "ignore::coincide.UnmatchableRowsWarning", "ignore::coincide.NoPairsWarning"
)


@pytest.mark.parametrize("seed", range(CASES))
def test_a_width_makes_the_intervals_that_the_lines_say(seed: int) -> None:
    """The join is that of a table whose ends are computed by hand, in whole numbers."""
    assert drawn.wrong(np.random.default_rng(seed)) is None


def test_drawn_cases_have_pairs() -> None:
    """The inputs of the test above: joins have pairs, and some times are between two segments."""
    between, pairs = 0, 0

    def counted(*given: Any, **asked: Any) -> pa.Table:
        nonlocal pairs
        found = correlate_tables(*given, **asked)
        pairs += found.num_rows - found["right_id"].null_count
        return found

    for seed in range(20):
        clocks = Clocks.drawn(rng := np.random.default_rng(seed))
        ends = [clocks.ends("a", stamp) for stamp in drawn.drawn_stamps(rng, 60)]
        between += sum(low is not None and low != high for low, high in ends)
        assert drawn.wrong(np.random.default_rng(seed), counted) is None
        assert drawn.wrong_spans(np.random.default_rng(seed), counted) is None
    assert between > 50
    assert pairs > 2000


@pytest.mark.parametrize("form", drawn.FORMS)
@pytest.mark.parametrize("seed", range(CASES // 4))
def test_spans_of_corrected_clocks_are_those_that_the_lines_say(seed: int, form: str) -> None:
    assert drawn.wrong_spans(np.random.default_rng([1, seed]), form=form) is None


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


@pytest.mark.parametrize("kinds", [("UTC", None), (None, "UTC")])
def test_errors_of_local_times_are_not_those_of_instants(
    kinds: tuple[str | None, str | None],
) -> None:
    own, lines = (
        {
            name: pa.array([each], pa.int64()).cast(pa.timestamp("us", zone))
            for name, each in columns.items()
        }
        for zone, columns in zip(kinds, ({"t": 20}, {"start": 0, "end": 50}), strict=True)
    )
    table = pa.table({"id": [1], **own})
    line = pa.table({"status": ["found"], **lines, "offset": ["5us"], "drift": [0.0]})
    for time in (corrected_clock("t", line), corrected_clock("t", line, around="5us")):
        with pytest.raises(
            SchemaError, match=r"errors.start and left.t must both have a time zone, or"
        ):
            correlate_tables(
                table, table, within="9us", confidence=0.5, left_time=time, right_time="t"
            )  # fmt: skip


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
    said = r"left, 3 rows: 2 without time or key \(2 at times that no segment of their clock covers\)\."
    for is_open, matched in ((False, [1]), (True, [1])):
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


OTHERS = {"id": [9], "s": [0], "e": [10_000]}


def counts_of(own: dict[str, Any], time: Any, by: str | None = None) -> tuple[SideCounts, str]:
    """What the rows of spans were, in numbers and in words."""
    report = JoinReport()
    others = OTHERS if by is None else {**OTHERS, by: ["k"]}
    correlate_tables(
        own, others, condition=overlapping(), left_time=time, right_time=spans("s", "e"),
        by=[] if by is None else [by], report=report,
    )  # fmt: skip
    counts = report.summary().left
    assert counts is not None
    return counts, str(report).splitlines()[0]


def test_what_rows_lack_is_told_apart() -> None:
    """A stamp beyond the segments, an end that has not come, a missing start and a missing key."""
    own = {
        "id": range(6),
        "k": ["k"] * 5 + [None],
        "s": [1, 10, 20, None, 9000, 40],
        "e": [5, 7000, None, 9, 9, None],
    }
    clocks = [corrected_clock(name, LINE) for name in "se"]
    counts, words = counts_of(own, spans(*clocks), "k")
    assert (counts.unmatchable, counts.lacking) == (5, {"no_segment": 2, "no_end": 1})
    assert words.split(maxsplit=1)[1] == (
        "6 rows; 5 without time or key (2 at times that no segment of their clock covers; 1 without an end,"
        " which go on with open_ends=True)"
    )
    counts, words = counts_of(own, spans(*clocks, open_ends=True), "k")
    assert (counts.unmatchable, counts.lacking) == (4, {"no_segment": 2})
    counts, _ = counts_of({**own, "e": [5, 7000, None, 9, 9999, None]}, spans("s", "e"), "k")
    assert (counts.unmatchable, counts.lacking) == (3, {"no_end": 1})
    counts, _ = counts_of({"id": [1, 2], "s": [1, 2], "d": [5, None]}, spans("s", duration="d"))
    assert (counts.unmatchable, counts.lacking) == (1, {"no_end": 1})
    report = JoinReport()
    correlate_tables(
        {"id": [1, 2, 3], "t": [5, 6000, None]}, {"id": [1], "t": [50]}, within=(-9, 9), confidence=0.5,
        left_time=corrected_clock("t", LINE), right_time="t", report=report,
    )  # fmt: skip
    assert report.summary().left == SideCounts(3, 2, lacking={"no_segment": 1})


@pytest.mark.parametrize(
    ("spreads", "said"),
    [
        ([10.0, 4.25], r"Give around=18, the largest that is fitted, or another"),
        (pa.array([10, 4], pa.duration("ms")), "Give around='18ms', the largest that is fitted"),
        (["4ms", "9.9us"], "Give around='6929us', the largest that is fitted"),
    ],
)
def test_a_fitted_width_of_spans_is_named(spreads: Any, said: str) -> None:
    lines = {
        "status": ["found"] * 2,
        "start": [0, 50],
        "end": [40, 90],
        "offset": [1.0, 2.0],
        "drift": [0.0] * 2,
    }
    fitted = corrected_clock("t", {**lines, "spread": spreads}, around="fitted")
    with pytest.raises(ConditionError, match=said):
        spans("s", fitted)


def test_impossible_stamps_of_spans_are_refused_whatever_the_clock() -> None:
    own = {"id": [1], "s": [10], "e": [2**61]}
    end = corrected_clock("e", LINE)
    with pytest.raises(DataError, match=r"left: .* s and e in 1 row"):
        correlate_tables(
            own, {"id": [9], "s": [0], "e": [10]}, condition=overlapping(), right_time=spans("s", "e"),
            left_time=spans("s", end),
        )  # fmt: skip
