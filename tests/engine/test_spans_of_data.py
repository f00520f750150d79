"""Spans as data have them: without an end while they go on, or with a column of how long they last."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

import coincide
from bench.hunt.questions import lasting
from bench.hunt.questions.lasting import LAST
from bench.hunt.relations import named, shared, wanted
from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    SchemaError,
    containing,
    correlate_tables,
    following,
    inside,
    overlapping,
    relation,
    spans,
)
from coincide.model.relations import Allen
from cpu_fallback.reference.spans import Span
from tests.helpers.rows import pair_ids, tuples


@pytest.mark.parametrize("number", range(120))
def test_drawn_events_that_may_go_on(number: int) -> None:
    assert lasting.wrong(np.random.default_rng([13, number])) is None


@pytest.mark.parametrize("name", get_args(Allen))
def test_two_events_that_go_on_end_together(name: Any) -> None:
    asked, test = named(name)
    left = [Span(0, LAST), Span(3, LAST), Span(3, 5)]
    sides = pa.table({"id": [0, 1, 2], "start": [0, 3, 3], "end": [None, None, 5]})
    time = spans("start", "end", open_ends=True)
    found = correlate_tables(sides, sides, asked, left_time=time, right_time=time)
    assert pair_ids(found) == wanted((left, [0] * 3), (left, [0] * 3), test)


HOUR = 3600
STARTS = pa.array([0, 86_400, None], pa.timestamp("s"))
DURATIONS: dict[str, tuple[pa.Array, pa.Array, dict[str, Any], CorrelateOptions]] = {
    "durations": (STARTS, pa.array([HOUR, None, 5], pa.duration("s")), {}, CorrelateOptions()),
    "fine durations": (
        STARTS, pa.array([HOUR * 10**9, None, 5000], pa.duration("ns")), {}, CorrelateOptions(),
    ),
    "whole hours": (STARTS, pa.array([1, None, 5], pa.int8()), {"unit": "h"}, CorrelateOptions()),
    "floats": (STARTS, pa.array([0.001, None, 5.0]), {"unit": "h"}, CorrelateOptions()),
    "decimals": (
        STARTS, pa.array([Decimal("0.5"), None, None], pa.decimal128(5, 1)), {"unit": "min"},
        CorrelateOptions(),
    ),
    "float starts": (
        pa.array([0.1, 0.3, None]), pa.array([0.2, None, 1.0]), {}, CorrelateOptions(unit="s"),
    ),
    "of a unit of their own": (
        pa.array([0, 3, None]), pa.array([1500, None, 1]), {"unit": "ms"},
        CorrelateOptions(unit="s", tick="ms"),
    ),
}  # fmt: skip
LENGTHS = {
    "durations": HOUR * 10**6, "fine durations": HOUR * 10**6, "whole hours": HOUR * 10**6,
    "floats": 3_600_000, "decimals": 30 * 10**6, "float starts": 200_000_000,
    "of a unit of their own": 1500,
}  # fmt: skip


@pytest.mark.parametrize("name", DURATIONS)
def test_how_long_events_last(name: str) -> None:
    """Each event has all its length in common with itself, and with none that goes on."""
    start, lasted, asked, options = DURATIONS[name]
    side = pa.table({"id": [0, 1, 2], "start": start, "lasted": lasted})
    time = spans("start", duration="lasted", **asked)
    found = correlate_tables(
        side, side, overlapping(), left_time=time, right_time=time, options=options,
        pair_columns="overlap",
    )  # fmt: skip
    assert tuples(found) == [(0, 0, LENGTHS[name])]
    open_time = spans("start", duration="lasted", open_ends=True, **asked)
    found = correlate_tables(
        side, side, inside(), left_time=time, right_time=open_time, options=options
    )
    assert pair_ids(found) == [(0, 0)]
    found = correlate_tables(
        side, side, relation("finishes"), left_time=open_time, right_time=open_time, options=options
    )
    assert pair_ids(found) == []
    found = correlate_tables(
        side, side, relation("equals"), left_time=open_time, right_time=open_time, options=options
    )
    assert pair_ids(found) == [(0, 0), (1, 1)]


def test_events_that_all_go_on() -> None:
    """A column of nothing has no type in lists of dicts, and in pandas."""
    left = [{"id": 0, "start": 5, "end": None}]
    right = [{"id": 0, "start": 0, "end": 5}, {"id": 1, "start": 0, "end": 4}]
    found = correlate_tables(
        left, right, overlapping(),
        left_time=spans("start", "end", open_ends=True), right_time=spans("start", "end"),
    )  # fmt: skip
    assert pair_ids(found) == [(0, 0)]
    found = correlate_tables(
        [{"id": 0, "start": 5, "len": None}], right, overlapping(),
        left_time=spans("start", duration="len", open_ends=True), right_time=spans("start", "end"),
    )  # fmt: skip
    assert pair_ids(found) == [(0, 0)]


def test_uncertain_starts_of_events_that_go_on() -> None:
    """An open end is after all others for certain; a start within 2 of 10 is before 11 by 3 in 4."""
    left = pa.table({"id": [0], "start": [10], "end": pa.array([None], pa.int64())})
    right = pa.table({"id": [0, 1], "start": [0, 5], "end": [11, None]})
    found = correlate_tables(
        left, right, overlapping(), confidence=0.1, probability=True,
        left_time=spans("start", "end", open_ends=True, around=(2, 0)),
        right_time=spans("start", "end", open_ends=True),
    )  # fmt: skip
    assert tuples(found) == [(0, 0, 0.75), (0, 1, 1.0)]
    given: dict[str, Any] = {
        "confidence": 0.5,
        "left_time": spans("start", "end", open_ends=True, around=2),
    }
    with pytest.raises(ConditionError, match="Give the widths of starts alone"):
        correlate_tables(
            left, right, containing(), right_time=spans("start", "end", open_ends=True), **given
        )
    correlate_tables(
        left, right, following(5), right_time=spans("start", "end", open_ends=True), **given
    )


def test_bad_lengths_are_refused_or_counted() -> None:
    side = pa.table({"id": [0, 1, 2], "start": [0, 5, 2**61 - 2], "len": [9, -1, 4]})
    time = spans("start", duration="len")
    with pytest.raises(DataError) as refused:
        correlate_tables(side, side, overlapping(), left_time=time, right_time=time)
    for words in (
        "starts that are or may be after their ends in start and len in 1 row (found start=5, len=-1",
        "times that reach 2^61 ticks in start and len in 1 row",
    ):
        assert words in str(refused.value)
    report = coincide.JoinReport()
    found = correlate_tables(
        side, condition=overlapping(), left_time=time, how="anti", report=report,
        options=CorrelateOptions(invalid="drop"),
    )  # fmt: skip
    assert found["left_id"].to_pylist() == [0]
    assert report.summary().left.dropped == 2


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a number without a unit": ({"duration": "n"}, {}, "left.n holds numbers, and left.t holds timestamps"),
    "a duration with a unit": ({"duration": "d", "unit": "s"}, {}, r"which have a unit \(found unit='s'"),
    "a column of ends": ({"duration": "t"}, {}, r"Name a column of ends in spans"),
    "durations beside bare numbers": ({"start": "n", "duration": "d"}, {}, "unit of left.n is unknown"),
    "units beside bare numbers": ({"start": "n", "duration": "n", "unit": "s"}, {}, "left.n counts s"),
    "coarse ticks": ({"start": "n", "duration": "n", "unit": "ms"}, {"unit": "s"}, r"tick='ms'\) or a"),
    "fine durations": ({"duration": "fine"}, {}, "left.fine has durations finer than 1 us in 1 row"),
    "a share": (
        {"duration": "d", "open_ends": True}, {"condition": overlapping(share=0.5)}, "a span that goes on",
    ),
    "a longest": (
        {"duration": "d", "open_ends": True}, {"left_longest": "1h"},
        "lets events go on. Remove left_longest",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    said, given, message = WRONG[name]
    side = pa.table({
        "id": [0], "t": pa.array([0], pa.timestamp("us")), "n": [1], "d": pa.array([1], pa.duration("s")),
        "fine": pa.array([1], pa.duration("ns")),
    })  # fmt: skip
    time = spans(**{"start": "t", **said})
    asked = {"condition": overlapping(), **given}
    options = {name: asked.pop(name) for name in ("unit", "left_longest") if name in asked}
    with pytest.raises((ConditionError, SchemaError, DataError), match=message):
        correlate_tables(
            side,
            side,
            left_time=time,
            right_time=time,
            options=CorrelateOptions(**options),
            **asked,
        )


def test_spans_say_one_end() -> None:
    for given, message in (
        ({}, r"spans\('t'\) needs the column end, or duration, .* \(found neither\)"),
        ({"end": "a", "duration": "b"}, r"\(found both\)"),
        ({"end": "a", "unit": "s"}, "unit says what numbers in duration count"),
        ({"duration": 3}, "duration must be the name of a column"),
        ({"end": "a", "open_ends": 1}, "open_ends must be True or False"),
    ):
        with pytest.raises(ConditionError, match=message):
            spans("t", **given)  # type: ignore[arg-type]
    assert shared("0.3", "0")  # the share of a side that ends is one
    side = pa.table({"id": [0], "start": [0], "end": [9]})
    going = pa.table({"id": [0], "start": [6], "end": pa.array([None], pa.int64())})
    found = correlate_tables(
        side, going, overlapping(share=(0.3, 0)),
        left_time=spans("start", "end"), right_time=spans("start", "end", open_ends=True),
    )  # fmt: skip
    assert pair_ids(found) == [(0, 0)]


@pytest.mark.parametrize("closed", ["left", "right", "neither"])
def test_spans_without_a_moment_are_the_reason(closed: Any) -> None:
    """A log of instants with a start and an end that are one: half-open, no such span holds a moment."""
    instants = pa.table({"id": [0, 1], "start": [3, 5], "end": [3, 5]})
    lasting = pa.table({"id": [0, 1], "start": [0, 7], "end": [9, 7]})
    given: dict[str, Any] = {
        "left_time": spans("start", "end", closed=closed), "right_time": spans("start", "end"),
    }  # fmt: skip
    report = coincide.JoinReport()
    with pytest.warns(
        coincide.NoPairsWarning,
        match=f"all 2 spans of left end where they begin, and with closed='{closed}'",
    ):
        correlate_tables(instants, lasting, overlapping(), report=report, **given)
    assert "holds no moment" in report.summary().no_pairs.reasons[0]  # type: ignore[union-attr]
    some = pa.table({"id": [0, 1], "start": [3, 50], "end": [3, 51]})
    report = coincide.JoinReport()
    with pytest.warns(coincide.NoPairsWarning, match="1 of 2 spans of left end where they begin"):
        correlate_tables(some, lasting, overlapping(), report=report, **given)
    assert "holds no moment" in report.summary().no_pairs.hints[0]  # type: ignore[union-attr]
    given["left_time"] = spans("start", "end")
    with pytest.warns(coincide.NoPairsWarning) as told:
        correlate_tables(instants, lasting.slice(1), overlapping(), **given)
    assert "holds no moment" not in str(told[0].message)


def test_timedeltas_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    side = pandas.DataFrame({
        "id": [0, 1], "start": pandas.to_datetime(["2024-01-01 00:00", "2024-01-01 01:00"]),
        "lasted": [timedelta(hours=1), None],
    })  # fmt: skip
    time = spans("start", duration="lasted", open_ends=True)
    found = correlate_tables(side, condition=relation("meets"), left_time=time)
    assert pair_ids(found) == [(0, 1)]


KINDS: dict[str, tuple[pa.Array, pa.Array, pa.DataType, CorrelateOptions]] = {
    "zoned": (
        pa.array([1, 3], pa.timestamp("s", "Europe/Rome")), pa.array([5, 9], pa.timestamp("s", "UTC")),
        pa.timestamp("us", "Europe/Rome"), CorrelateOptions(),
    ),
    "nanoseconds": (
        pa.array([1, 3], pa.timestamp("ns")), pa.array([5, 9], pa.timestamp("ns")),
        pa.timestamp("ns"), CorrelateOptions(unit="ns"),
    ),
    "dates": (
        pa.array([1, 3], pa.date32()), pa.array([5, 9], pa.date32()), pa.timestamp("us"),
        CorrelateOptions(),
    ),
    "durations": (
        pa.array([1, 3], pa.duration("s")), pa.array([5, 9], pa.duration("s")), pa.duration("s"),
        CorrelateOptions(),
    ),
    "numbers": (pa.array([1, 3], pa.int16()), pa.array([5, 9]), pa.int64(), CorrelateOptions()),
    "numbers of a unit": (
        pa.array([1, 3]), pa.array([5, 9]), pa.int64(), CorrelateOptions(unit="s", tick="ms"),
    ),
    "floats": (pa.array([0.1, 0.3]), pa.array([0.7, 1.9]), pa.float64(), CorrelateOptions(unit="s")),
}  # fmt: skip


@pytest.mark.parametrize("emit", ["pairs", "lists", "best"])
@pytest.mark.parametrize("name", KINDS)
def test_ends_of_what_is_in_common_are_times_as_they_went_in(name: str, emit: Any) -> None:
    start, end, kind, options = KINDS[name]
    left, right = (
        pa.table({"id": [0], "start": start.slice(i, 1), "end": end.slice(i, 1)}) for i in (0, 1)
    )
    found = correlate_tables(
        left, right, overlapping(), left_time=spans("start", "end"), right_time=spans("start", "end"),
        pair_columns=("overlap_end", "overlap_start"), emit=emit, options=options,
    )  # fmt: skip
    wrapped = pa.list_(kind) if emit == "lists" else kind
    assert found.schema.types[2:] == [wrapped] * 2
    columns = [found[each].combine_chunks() for each in ("overlap_start", "overlap_end")]
    found_start, found_end = (each.flatten() if emit == "lists" else each for each in columns)
    assert found_start.to_pylist() == start.slice(1, 1).cast(kind).to_pylist()
    assert found_end.to_pylist() == end.slice(0, 1).cast(kind).to_pylist()


def test_ends_of_other_units_are_floats_of_the_left_one() -> None:
    left = pa.table({"id": [0], "start": [1], "end": [4]})
    right = pa.table({"id": [0], "start": [1500], "end": [9000]})
    found = correlate_tables(
        left, right, overlapping(), left_time=spans("start", "end"), right_time=spans("start", "end"),
        pair_columns=("overlap_start", "overlap_end"),
        options=CorrelateOptions(left_unit="s", right_unit="ms"),
    )  # fmt: skip
    assert found.to_pylist() == [
        {"left_id": 0, "right_id": 0, "overlap_start": 1.5, "overlap_end": 4.0}
    ]
