"""Which ends a range holds, of a table and of a query; one stream; options as arguments."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coincide
from coincide import BorderMonitor, BorderOptions, border_crossing_tables, inside_tables
from coincide.model.borders.index import CLOSED, as_given, closed_bits, half_open
from coincide.model.borders.options import BorderWords
from tests.helpers.rows import tuples

BANDS = pa.table({"query_id": ["low", "mid", "high"], "lower": [0, 6, 11], "upper": [5, 10, 99]})
INF = math.inf


def readings(*values: Any, **columns: Any) -> pa.Table:
    n = len(values)
    given = {"stream_id": [1] * n, "time": range(n), "value": list(values)}
    return pa.table({**given, **columns})


def test_bands_of_whole_numbers_are_those_of_between() -> None:
    """A reading is in the band of which it is BETWEEN the borders, and each is in one."""
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(3)
    table = readings(*rng.integers(0, 99, 400).tolist())
    found = border_crossing_tables(table, BANDS, closed="both")
    ((counted,),) = duckdb.sql(
        """SELECT count(*) FROM (
            SELECT r.time, q.query_id, r.value BETWEEN q.lower AND q.upper AS is_in,
                lag(is_in) OVER (PARTITION BY q.query_id ORDER BY r.time) AS was_in
            FROM "table" r, BANDS q) WHERE is_in <> was_in"""
    ).fetchall()
    assert found.num_rows == counted > 150
    assert found["event"].to_pylist().count("I") * 2 == found.num_rows
    half = border_crossing_tables(table, BANDS)
    assert half.num_rows != found.num_rows


# Into which ranges [3, 7] comes with which ends a stream that reads 0 and then a value.
@pytest.mark.parametrize(
    ("closed", "held"), [("left", "3 5"), ("right", "5 7"), ("both", "3 5 7"), ("neither", "5")]
)
def test_what_a_range_holds(closed: Any, held: str) -> None:
    area = pa.table({"query_id": ["a"], "lower": [3.0], "upper": [7.0]})
    for value in (3, 5, 7, math.nextafter(3, 0), math.nextafter(7, 8)):
        found = border_crossing_tables(readings(0.0, float(value)), area, closed=closed)
        assert found.num_rows == (str(value) in held.split())
        there = inside_tables(readings(float(value)), area, closed=closed)
        assert there.num_rows == (str(value) in held.split())


def test_each_query_says_what_it_holds() -> None:
    words = pa.array([*CLOSED, None]).dictionary_encode()
    queries = pa.table(
        {"query_id": [*CLOSED, "none"], "lower": [3] * 5, "upper": [7] * 5, "ends": words}
    )
    asked: dict[str, Any] = {"closed_column": "ends", "closed": "both"}
    found = border_crossing_tables(readings(0, 7, 9, 3), queries, **asked)
    assert sorted(tuples(found)) == sorted(
        [(q, 1, "I", 0, 1) for q in ("right", "both", "none")]
        + [(q, 1, "O", 1, 2) for q in ("right", "both", "none")]
        + [(q, 1, "I", 2, 3) for q in ("left", "both", "none")]
    )
    monitor = BorderMonitor(queries.slice(0, 0), **asked)
    monitor.add(queries)
    assert sorted(tuples(monitor.push(readings(0, 7, 9, 3)))) == sorted(tuples(found))


@pytest.mark.parametrize("closed", CLOSED)
def test_a_point_and_an_empty_range(closed: Any) -> None:
    """lower = upper holds that value where both ends are held, and else nothing."""
    points = pa.table(
        {"query_id": range(4), "lower": [5.0, -0.0, 5e-324, 0.0], "upper": [5.0, 0.0, 5e-324, -0.0]}
    )
    report = coincide.BorderReport()
    walk = readings(4.0, 5.0, 6.0, 0.0, -1.0, 5e-324)
    found = border_crossing_tables(walk, points, closed=closed, report=report)
    is_point = closed == "both"
    assert report.summary().empty == (0 if is_point else 4)
    assert sorted(found["query_id"].to_pylist()) == ([0, 0, 1, 1, 2, 3, 3] if is_point else [])
    through = border_crossing_tables(
        readings(4.0, 6.0), points, closed=closed, pass_through=True, interpolate=True
    )
    assert tuples(through) == ([(0, 1, "I", 0, 1, 0), (0, 1, "O", 0, 1, 0)] if is_point else [])


def test_borders_are_stepped_and_found_again() -> None:
    """Infinite ones stay; ranges without a float between are empty; what is held is the same."""
    most = np.finfo(np.float64).max
    ends = [-INF, -most, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.nextafter(1, 2), most, INF]
    values = [v for v in ends if math.isfinite(v)]
    for (a, b), closed in itertools.product(
        itertools.combinations_with_replacement(ends, 2), CLOSED
    ):
        bits = closed_bits([closed])
        lower, upper = half_open(np.array([[a]]), np.array([[b]]), bits)
        for v in values:
            above = a < v or (a == v and closed in ("left", "both"))
            below = v < b or (v == b and closed in ("right", "both"))
            assert (lower[0, 0] <= v < upper[0, 0]) == (above and below)
        assert lower[0, 0] <= upper[0, 0]
        if lower[0, 0] < upper[0, 0]:
            given = as_given(lower, upper, bits)
            assert (given[0][0, 0], given[1][0, 0]) in ((a, b), (a, INF if b == most else b))


def test_moves_meet_the_border_itself() -> None:
    """From 10 to 0 in 10 ticks the border 5 is met at 5, whatever the range holds."""
    area = pa.table({"query_id": ["a"], "lower": [2.0], "upper": [5.0]})
    for closed in CLOSED:
        found = border_crossing_tables(
            readings(10.0, 0.0, time=[0, 10]), area, closed=closed, pass_through=True, interpolate=True
        )  # fmt: skip
        assert [row[-1] for row in tuples(found)] == [5, 8]


def test_a_line_that_touches_a_corner() -> None:
    """It meets the square only in (4, 4), which the square holds where both ends are held."""
    square = pa.table(
        {"query_id": [1], "lower_x": [2], "upper_x": [4], "lower_y": [2], "upper_y": [4]}
    )
    moves = pa.table({"stream_id": [1, 1], "time": [0, 8], "x": [0.0, 8.0], "y": [8.0, 0.0]})
    for closed in CLOSED:
        found = border_crossing_tables(
            moves, square, values=("x", "y"), closed=closed, pass_through=True, interpolate=True
        )
        both = [(1, 1, "I", 0, 8, 4), (1, 1, "O", 0, 8, 4)]
        assert tuples(found) == (both if closed in ("both", "right") else [])


def test_hysteresis_goes_from_the_border_and_its_end() -> None:
    """Held up to 5 and gone after 5.5; a margin is added to the border, not to the float after it."""
    zero = pa.table({"query_id": ["z"], "lower": [-1.0], "upper": [0.0]})
    for closed, leaves in (("both", False), ("left", True)):
        found = border_crossing_tables(
            readings(-0.5, 0.5, 0.75),
            zero,
            closed=closed,
            hysteresis=0.5,  # type: ignore[arg-type]
        )
        assert tuples(found)[0][3:] == ((0, 1) if leaves else (1, 2))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"closed": "open"}, coincide.ConditionError, "closed must be one of left, right, both, neither"),
        ({"closed_column": "ends"}, coincide.SchemaError, "queries has no column 'ends'"),
        ({"closed_column": "lower"}, coincide.SchemaError, "queries.lower must be a text"),
        ({"closed_column": "word"}, coincide.DataError, "word other than left, .* word=open"),
        ({"closed_column": 3}, coincide.ConditionError, "the name of a column or None .found 3"),
        ({"frist": "outside"}, coincide.ConditionError, "no argument 'frist'. .* options first, "),
        ({"first": "inside"}, coincide.ConditionError, "first must be one of"),
        ({"stream": None, "values": "time"}, coincide.ConditionError, "two columns named 'time'"),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense(arguments: Any, error: type, words: str) -> None:
    queries = BANDS.append_column("word", pa.array(["left", "open", "both"]))
    with pytest.raises(error, match=words):
        border_crossing_tables(readings(1, 2), queries, **arguments)


def test_options_are_arguments_of_their_own() -> None:
    inside = readings(7, 7)
    found = border_crossing_tables(inside, BANDS, first="outside")
    assert tuples(found) == [("mid", 1, "I", 0, 0)]
    assert found.equals(BorderMonitor(BANDS, first="outside").push(inside))
    options = BorderOptions(first="outside", hysteresis=1.0)
    assert border_crossing_tables(inside, BANDS, options=options, first="ignore").num_rows == 0
    assert set(BorderWords.__annotations__) == set(vars(BorderOptions()))


def test_readings_of_one_stream_need_no_column() -> None:
    """Nor have their crossings one; they go on into transitions and a join."""
    alone = readings(7, 12, 7, 3).drop(["stream_id"])
    found = border_crossing_tables(alone, BANDS, stream=None, closed="both")
    assert found.column_names == ["query_id", "event", "min_time", "max_time"]
    with_it = border_crossing_tables(readings(7, 12, 7, 3), BANDS, closed="both")
    assert found.equals(with_it.drop(["stream_id"]))
    assert tuples(inside_tables(alone, BANDS, stream=None)) == [("low",)]
    monitor = BorderMonitor(BANDS, stream=None, closed="both", delay=1)
    parts = [monitor.push(alone.slice(0, 2)), monitor.push(alone.slice(2)), monitor.flush()]
    assert sorted(tuples(pa.concat_tables(parts))) == sorted(tuples(found))
    stays = coincide.transition_tables(found, stream=None, within=1, confidence=0.9)
    assert stays.column_names[:2] == ["query_id", "transition"]
    kept = coincide.transition_tables(with_it, within=1, confidence=0.9)
    assert stays.equals(kept.drop(["stream_id"]))
    pairs = coincide.correlate_tables(
        found, stays, within=(0, 2), confidence=0.5, by="query_id",
        left_columns="event", right_columns="transition",
    )  # fmt: skip
    assert pairs.num_rows > 0
    with pytest.raises(
        coincide.SchemaError, match=r"'stream_id'.*, or use stream=None if all rows"
    ):
        border_crossing_tables(alone, BANDS)
    with pytest.raises(
        coincide.SchemaError, match=r"'stream_id'.*, or use stream=None if all rows"
    ):
        coincide.transition_tables(found, within=1, confidence=0.9)


def test_events_of_one_stream_are_described_without_one() -> None:
    events = pa.table({"query_id": [1, 1], "event": ["I", "I"], "at": [0, 1]})
    with pytest.raises(coincide.DataError, match="found query_id=1, event=I, at=1"):
        coincide.transition_tables(events, stream=None, time="at", within=3)
    with pytest.raises(coincide.DataError, match=r"nulls in time in 1 row .found time=None"):
        border_crossing_tables(
            pa.table({"time": pa.array([None], pa.int64()), "value": [1.0]}), BANDS, stream=None
        )


# Questions without a crossing, and what is said: values, queries, arguments, words.
HOT = {"query_id": ["warm", "hot"], "lower": [200.0, 300.0], "upper": [250.0, None]}
NONE: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any], str]] = {
    "far": (
        [19.0, 31.0], HOT, {},
        r"value was read from 19 to 31, and no range reaches there: ranges go from 200 to inf. The",
    ),
    "on the border": (
        [19.0, 200.0], HOT, {"closed": "right"}, r"\(200, 250\] of query_id 'warm', is 0 away",
    ),
    "unit": (
        [19_500.0, 31.0e4], {**HOT, "upper": [250.0, 310.0]}, {}, "divided by 1,000 would reach one",
    ),
    "inside": ([210.0, 220.0], HOT, {}, "from 210 to 220; .*always within 1 of the ranges"),
    "over": ([190.0, 260.0], HOT, {}, "pass_through=True finds a move over a"),
    "gaps": ([math.nan, math.nan], HOT, {}, "no reading has a value in each dimension"),
    "no range": ([1.0, 2.0], {**HOT, "upper": [200.0, 300.0]}, {}, "no query has a range that contains"),
}  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_why_no_crossing_is_found(name: str) -> None:
    values, queries, arguments, words = NONE[name]
    report = coincide.BorderReport()
    with pytest.warns(coincide.NoPairsWarning, match=words):
        border_crossing_tables(readings(*values), pa.table(queries), report=report, **arguments)
    monitor = BorderMonitor(pa.table(queries), **arguments)
    for value in range(len(values)):
        monitor.push(readings(*values).slice(value, 1))
    assert monitor.summary().why_none == report.summary().why_none


def test_streams_of_one_reading_cross_nothing() -> None:
    table = readings(20.0, 220.0, 230.0, stream_id=[1, 2, 2])
    with pytest.warns(coincide.NoPairsWarning, match="found: 1 of 2 streams have one reading only"):
        border_crossing_tables(table, pa.table(HOT))
    words = "each of 2 streams has one reading, .* first='outside' counts"
    with pytest.warns(coincide.NoPairsWarning, match=words):
        border_crossing_tables(table.slice(0, 2), pa.table(HOT))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        border_crossing_tables(table, pa.table(HOT), first="outside")
        inside_tables(table, pa.table(HOT))
