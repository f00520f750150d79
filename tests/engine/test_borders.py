"""Border crossings of Arrow tables in one process: columns, types, bad input, queries that come and go."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import coincide
from coincide import BorderMonitor, BorderOptions, border_crossing_tables, inside_tables
from coincide.engine.borders.ids import IdRun, QueryIds
from coincide.engine.borders.monitor import NewSearch
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.monitor import OpenPairs
from tests.helpers.rows import tuples

QUERIES = pa.table({"query_id": ["hot", "cold"], "lower": [28.0, None], "upper": [None, 5.0]})


def readings(**columns: Any) -> pa.Table:
    given = {"stream_id": [1, 1, 1, 1], "time": [0, 10, 20, 30], "value": [20.0, 30.0, 28.0, 4.0]}
    return pa.table({**given, **columns})


def test_a_stream_enters_and_leaves() -> None:
    found = border_crossing_tables(readings(), QUERIES)
    assert found.column_names == ["query_id", "stream_id", "event", "min_time", "max_time"]
    assert tuples(found) == [
        ("hot", 1, "I", 0, 10),
        ("hot", 1, "O", 20, 30),
        ("cold", 1, "I", 20, 30),
    ]


def test_crossings_have_the_instants_of_straight_moves() -> None:
    options = BorderOptions(interpolate=True)
    found = border_crossing_tables(readings(), QUERIES, options=options)
    assert found.column("crossing_time").to_pylist() == [8, 20, 29]


def test_a_first_reading_inside_may_come_from_outside() -> None:
    inside = readings(value=[30.0] * 4)
    assert not border_crossing_tables(inside, QUERIES).num_rows
    found = border_crossing_tables(inside, QUERIES, options=BorderOptions(first="outside"))
    assert tuples(found) == [("hot", 1, "I", 0, 0)]


def test_timestamps_stay_timestamps_and_feed_correlate() -> None:
    times = pa.array([dt.datetime(2024, 1, 1, 0, k, tzinfo=dt.UTC) for k in range(4)])
    found = border_crossing_tables(readings(time=times), QUERIES)
    assert found.schema.field("min_time").type == pa.timestamp("us", "UTC")
    windows = pa.table({"id": [7], "min_time": times[:1], "max_time": times[1:2]})
    condition = coincide.TimingCondition(coincide.within("-1min", "1min"), 0.5)
    pairs = coincide.correlate_tables(found, windows, condition, left_columns=("query_id", "event"))
    assert tuples(pairs) == [("hot", "I", 7)]


def test_readings_in_any_order_and_of_any_library() -> None:
    table = readings(stream_id=["b", "a", "b", "a"]).to_pandas()
    found = border_crossing_tables(table.sample(frac=1, random_state=3), QUERIES.to_pandas())
    assert sorted(tuples(found)) == [
        ("cold", "a", "I", 10, 30),
        ("hot", "a", "O", 10, 30),
        ("hot", "b", "I", 0, 20),
    ]


def test_two_dimensions() -> None:
    moves = pa.table({"s": [1] * 4, "t": range(4), "x": [0, 5, 5, 5], "y": [5, 5, 20, 5]})
    areas = pa.table({"q": [9], "lower_x": [3], "upper_x": [8], "lower_y": [0], "upper_y": [10]})
    found = border_crossing_tables(moves, areas, stream="s", time="t", values=("x", "y"), query="q")
    assert tuples(found) == [(9, 1, "I", 0, 1), (9, 1, "O", 1, 2), (9, 1, "I", 2, 3)]


def test_pass_through_is_cancelled_or_told() -> None:
    jump = readings(value=[0.0, 10.0, 0.0, 0.0])
    narrow = pa.table({"query_id": ["n"], "lower": [4], "upper": [6]})
    assert not border_crossing_tables(jump, narrow).num_rows
    options = BorderOptions(pass_through=True, interpolate=True)
    found = border_crossing_tables(jump, narrow, options=options)
    assert tuples(found) == [
        ("n", 1, "I", 0, 10, 4), ("n", 1, "O", 0, 10, 6),
        ("n", 1, "I", 10, 20, 14), ("n", 1, "O", 10, 20, 16),
    ]  # fmt: skip


def test_hysteresis_keeps_a_stream_that_flutters() -> None:
    flutter = readings(value=[30.0, 27.5, 28.0, 26.0])
    assert border_crossing_tables(flutter, QUERIES).num_rows == 3
    found = border_crossing_tables(flutter, QUERIES, options=BorderOptions(hysteresis=1.0))
    assert tuples(found) == [("hot", 1, "O", 20, 30)]


def test_gaps_repeated_times_and_invalid_rows_are_counted() -> None:
    table = pa.table(
        {
            "stream_id": [1, 1, 1, None, 1, 1, 1],
            "time": [0.0, 1.0, 1.0, 2.0, math.nan, 3.0, 4.0],
            "value": [10.0, 30.0, 29.0, 1.0, 1.0, None, math.inf],
        }
    )
    report = coincide.BorderReport()
    options = BorderOptions(unit="s", invalid="drop")
    with pytest.warns(coincide.DroppedRowsWarning, match="3 invalid"):
        found = border_crossing_tables(table, QUERIES, options=options, report=report)
    assert tuples(found) == [("hot", 1, "I", 0, 10**9)]
    summary = report.summary()
    assert (summary.readings, summary.gaps, summary.repeated, summary.late) == (7, 1, 1, 0)
    assert summary.dropped == {"null": 1, "not_finite": 1, "infinite": 1}
    assert (summary.entered, summary.left, summary.queries) == (1, 0, 2)


TWICE = pa.table(
    {
        "stream_id": [1, 1, 1, 1, 2, 1],
        "time": [2, 1, 1, 1, 1, 0],
        "value": [0.0, 5.0, 30.0, None, 0.0, 10.0],
    }
)
"""Stream 1 has two readings at one time, and a gap: 30 is hot, and comes later."""
SKIPPED = r"6 rows: skipped 1 that repeat a time of their stream\. Name the column.*stream"


def test_of_readings_at_one_time_the_last_row_counts() -> None:
    report = coincide.BorderReport()
    with pytest.warns(coincide.LateRowsWarning, match=SKIPPED):
        found = border_crossing_tables(TWICE, QUERIES, report=report)
    rows = [("cold", 1, "I", 1, 2), ("hot", 1, "I", 0, 1), ("hot", 1, "O", 1, 2)]
    assert sorted(tuples(found)) == rows
    assert report.summary().repeated == 1
    assert "skipped 1 that repeat a time" in str(report)
    with pytest.warns(coincide.LateRowsWarning, match="5 rows: skipped 1 that repeat a time"):
        there = inside_tables(TWICE.filter(pc.less(TWICE["time"], 2)), QUERIES)
    assert ("hot", 1) in tuples(there)
    swapped = TWICE.take(pa.array([0, 2, 1, 3, 4, 5]))
    assert sorted(tuples(border_crossing_tables(swapped, QUERIES))) == [("cold", 1, "I", 1, 2)]


def test_pushed_readings_at_one_time() -> None:
    """With a delay the last one counts; without one the first, as its crossings were returned."""
    rows = TWICE.sort_by([("time", "ascending")])
    for delay, events in ((5, "IO"), (None, "")):
        for size in (1, 6):
            monitor = BorderMonitor(QUERIES, delay=delay)
            found = [monitor.push(rows.slice(start, size)) for start in range(0, 6, size)]
            if delay is not None:
                with pytest.warns(coincide.LateRowsWarning, match=SKIPPED):
                    found.append(monitor.flush())
            hot = [row for table in found for row in tuples(table) if row[0] == "hot"]
            assert "".join(row[2] for row in hot) == events
            assert monitor.summary().repeated == 1


@pytest.mark.parametrize(
    ("time", "within"),
    [
        (pa.array([0, 2, 9], pa.int64()), 1), (pa.array([0, 1, 2], pa.date32()), "12h"),
        (pa.array([-9, -7, -5], pa.timestamp("us", "Europe/Rome")), "1us"),
        (pa.array([1, 2, 3], pa.duration("ms")), "1ms"),
    ],
)  # fmt: skip
def test_the_last_reading_is_until_of_transitions(time: pa.Array, within: Any) -> None:
    """A stream that entered last is inside until the readings end, which crossings do not say."""
    table = pa.table({"stream_id": [1] * 3, "time": time, "value": [0.0, 30.0, 30.0]})
    report, told_of = coincide.BorderReport(), coincide.TransitionReport()
    found = border_crossing_tables(table, QUERIES.slice(0, 1), report=report)
    last = report.summary().last_reading
    assert last == time[2].cast(found["max_time"].type)
    asked: dict[str, Any] = {"within": within, "confidence": 0.9, "report": told_of}
    assert not coincide.transition_tables(found, **asked).num_rows
    stays = coincide.transition_tables(found, until=last, **asked)
    assert stays["transition"].to_pylist() == ["I>!O"]
    assert stays["next_min_time"].null_count == 1


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"stream_id": [1, None, 1, 1]}, coincide.DataError, "nulls in stream_id or time in 1 row"),
        ({"time": pa.array([0, None, 1, 2])}, coincide.DataError, "nulls in stream_id or time"),
        ({"value": [1.0, math.inf, 1.0, 1.0]}, coincide.DataError, "infinite values in value"),
        (
            {"value": [1, 2**53 + 1, 1, 1]},
            coincide.DataError,
            r"beyond 2\^53, .* in 1 row .found 9007199254740993",
        ),
        ({"value": ["a"] * 4}, coincide.SchemaError, "readings.value must be an integer"),
        ({"stream_id": [1.0] * 4}, coincide.SchemaError, "compared exactly"),
        ({"time": [2**61, 1, 2, 3]}, coincide.DataError, "reach 2\\^61"),
        ({"time": ["a"] * 4}, coincide.SchemaError, "must be a timestamp"),
        ({"time": [0.5, 1, 2, 3]}, coincide.SchemaError, r"options=BorderOptions\(unit='s'\)"),
    ],
)
def test_readings_that_are_none(changes: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        border_crossing_tables(readings(**changes), QUERIES)


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        (
            {"lower": [2.0], "upper": [1.0]},
            coincide.DataError,
            "a lower border above the upper one in 1",
        ),
        ({"lower": [math.nan], "upper": [1.0]}, coincide.DataError, "NaN borders"),
        ({"query_id": pa.nulls(1, pa.string())}, coincide.DataError, "null ids"),
        ({"query_id": ["a", "a"], "lower": [1, 2], "upper": [3, 4]}, coincide.DataError, "id=a"),
        ({"lower": ["x"]}, coincide.SchemaError, "queries.lower must be"),
        ({"query_id": [1.5]}, coincide.SchemaError, "compared exactly"),
    ],
)
def test_queries_that_are_none(columns: dict[str, Any], error: type, words: str) -> None:
    given = {"query_id": ["a"], "lower": [0.0], "upper": [1.0]}
    with pytest.raises(error, match=words):
        border_crossing_tables(readings(), pa.table({**given, **columns}))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"values": ()}, "one to 9"),
        ({"values": [str(k) for k in range(10)]}, "one to 9"),
        ({"values": 3}, "names of the value columns"),
        ({"stream": "time"}, "two columns named 'time'"),
        ({"query": "event"}, "two columns named 'event'"),
        ({"options": 3}, "BorderOptions"),
        ({"options": {}}, "BorderOptions"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(coincide.ConditionError, match=words):
        border_crossing_tables(readings(), QUERIES, **arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"first": "inside"}, "first must be one of"),
        ({"hysteresis": -1}, "hysteresis must be"),
        ({"hysteresis": math.nan}, "hysteresis must be"),
        ({"hysteresis": 1.0, "pass_through": True}, "and hysteresis exclude each other"),
        ({"batch_events": 0}, "batch_events"),
        ({"threads": True}, "threads"),
        ({"unit": "fortnight"}, "is unknown. Use one of"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(coincide.ConditionError, match=words):
        BorderOptions(**options)


def test_empty_tables() -> None:
    found = border_crossing_tables(readings().slice(0, 0), QUERIES)
    assert found.num_rows == 0
    assert found.schema == border_crossing_tables(readings(), QUERIES).schema
    assert not border_crossing_tables(readings(), QUERIES.slice(0, 0)).num_rows


def test_queries_come_and_go_between_pushes() -> None:
    monitor = BorderMonitor(QUERIES)
    table = readings(stream_id=["x", "x", "x", "x"])
    assert tuples(monitor.push(table.slice(0, 2))) == [("hot", "x", "I", 0, 10)]
    assert tuples(monitor.inside()) == [("hot", "x")]
    monitor = pickle.loads(pickle.dumps(monitor))
    monitor.remove(["hot"])
    monitor.add(pa.table({"query_id": ["warm", "hot"], "lower": [20, 29], "upper": [29, 40]}))
    assert tuples(monitor.inside()) == [("hot", "x")]
    found = monitor.push(table.slice(2))
    assert sorted(tuples(found)) == [
        ("cold", "x", "I", 20, 30), ("hot", "x", "O", 10, 20),
        ("warm", "x", "I", 10, 20), ("warm", "x", "O", 20, 30),
    ]  # fmt: skip
    assert monitor.summary().queries == 3
    late = monitor.push(table.slice(0, 1))
    assert not late.num_rows
    assert monitor.summary().late == 1


def test_ids_of_queries_may_be_uuids() -> None:
    ids = pa.array([bytes(16), bytes(15) + b"1", bytes(15) + b"2"], pa.uuid())
    monitor = BorderMonitor(pa.table({"query_id": ids, "lower": [0, 10, 20], "upper": [5, 30, 30]}))
    monitor.remove(ids.slice(2))
    low, middle = (ids[k].as_py() for k in (0, 1))
    assert set(tuples(monitor.push(readings()))) == {
        (middle, 1, "O", 0, 10), (middle, 1, "I", 10, 20), (middle, 1, "O", 20, 30), (low, 1, "I", 20, 30),
    }  # fmt: skip
    with pytest.raises(coincide.DataError, match="belong to no query"):
        monitor.remove(ids.slice(2))
    with pytest.raises(coincide.DataError, match="1 row have ids of live queries"):
        monitor.add(pa.table({"query_id": ids.slice(0, 1), "lower": [0], "upper": [1]}))


def test_changes_that_a_monitor_refuses() -> None:
    monitor = BorderMonitor(QUERIES)
    with pytest.raises(coincide.DataError, match="'hot'"):
        monitor.add(QUERIES.slice(0, 1))
    with pytest.raises(coincide.DataError, match="'tepid'"):
        monitor.remove(["hot", "tepid"])
    with pytest.raises(coincide.SchemaError, match="string"):
        monitor.remove([1])
    with pytest.raises(coincide.SchemaError, match=r"Write \['hot'\]"):
        monitor.remove("hot")  # not its letters
    with pytest.raises(coincide.SchemaError, match="changed its type from string"):
        monitor.add(pa.table({"query_id": [1], "lower": [0], "upper": [1]}))
    monitor.push(readings())
    with pytest.raises(coincide.SchemaError, match="first push"):
        monitor.push(readings(stream_id=["a"] * 4))
    assert monitor.summary().queries == 2


def test_a_change_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is inside new queries is searched for, on a device perhaps: it may fail, and one may go on."""
    monitor = BorderMonitor(QUERIES, options=BorderOptions(hysteresis=1.0))
    monitor.push(readings())
    before = monitor.summary()

    def fail(*_: Any) -> None:
        raise coincide.BackendError("no device")

    for owner, name in ((NewSearch, "__call__"), (QueryIds, "runs_with")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, fail)
            with pytest.raises(coincide.BackendError):
                monitor.add(pa.table({"query_id": ["a", "b"], "lower": [0, 1], "upper": [9, 9]}))
        assert monitor.summary() == before
        assert tuples(monitor.inside()) == [("cold", 1)]
    monitor.add(pa.table({"query_id": ["a", "c"], "lower": [3, 90], "upper": [9, 99]}))
    assert sorted(tuples(monitor.inside())) == [("a", 1), ("cold", 1)]
    assert tuples(monitor.push(readings(time=[40] * 4, value=[95.0] * 4).slice(0, 1))) == [
        ("hot", 1, "I", 30, 40), ("c", 1, "I", 30, 40),
        ("cold", 1, "O", 30, 40), ("a", 1, "O", 30, 40),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("owner", "name", "is_removed", "margin"),
    [
        (IdRun, "rows_of", False, 0.0), (BorderIndex, "removal", False, 0.0),
        (BorderIndex, "removal", False, 1.0), (OpenPairs, "forget_queries", False, 1.0),
        (BorderIndex, "merged", True, 1.0), (IdRun, "swept", True, 0.0),
    ],
)  # fmt: skip
def test_a_removal_that_lacks_memory_is_undone_or_done(
    owner: type, name: str, is_removed: bool, margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    monitor = BorderMonitor(QUERIES, options=BorderOptions(hysteresis=margin))
    nothing = BorderMonitor(QUERIES.slice(0, 0), options=BorderOptions(hysteresis=margin)).nbytes
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fail)
        with nullcontext() if is_removed else pytest.raises(MemoryError):
            monitor.remove(["cold", "hot"])
    assert monitor.summary().queries == (0 if is_removed else 2)
    if not is_removed:
        assert len(tuples(pickle.loads(pickle.dumps(monitor)).push(readings()))) == 3
        monitor.remove(["cold", "hot"])
    monitor.add(QUERIES)
    monitor.remove(["cold", "hot"])
    assert monitor.nbytes == nothing  # what was put off is made up for
    assert monitor.push(readings()).num_rows == 0


def test_many_queries_are_merged_and_removed() -> None:
    """Enough for the small index to be merged, and for a sweep of removed ones."""
    rng = np.random.default_rng(4)
    lower = rng.uniform(0, 100, 12_000)
    queries = pa.table({"query_id": range(12_000), "lower": lower, "upper": lower + 1})
    monitor = BorderMonitor(queries.slice(0, 6000))
    for start in range(6000, 12_000, 1500):
        monitor.add(queries.slice(start, 1500))
    monitor.remove(range(0, 12_000, 2))
    monitor.remove(range(1, 4001, 2))
    monitor.remove([])
    left = queries.filter(pc.is_in(queries["query_id"], pa.array(range(4001, 12_000, 2))))
    walk = readings(stream_id=[1] * 50, time=range(50), value=rng.uniform(0, 100, 50))
    assert sorted(tuples(monitor.push(walk))) == sorted(tuples(border_crossing_tables(walk, left)))
    assert monitor.summary().queries == left.num_rows
    monitor.remove(left["query_id"])
    later = walk.set_column(1, "time", pa.array(range(50, 100)))
    assert not monitor.push(later).num_rows
    monitor.add(left)
    last = walk.set_column(1, "time", pa.array(range(100, 150)))
    both = border_crossing_tables(pa.concat_tables([later, last]), left)
    assert sorted(tuples(monitor.push(last))) == sorted(
        tuples(both.filter(pc.field("max_time") >= 100))
    )


def test_memory_is_what_the_page_says() -> None:
    """Bytes of a query: 40 and two peaks of 4 for each 15 a dimension, and 10; of a stream 9 + 16 d."""
    monitor = BorderMonitor(
        pa.table({"query_id": range(10_000), "lower": np.zeros(10_000), "upper": np.ones(10_000)})
    )
    assert monitor.nbytes == pytest.approx(10_000 * (40 + 8 / 15 + 10), rel=0.02)
    before = monitor.nbytes
    monitor.push(readings(stream_id=range(5000), time=[0] * 5000, value=[0.5] * 5000))
    assert monitor.nbytes - before == pytest.approx(5000 * 25, rel=0.02)


def test_who_is_inside_what() -> None:
    table = readings(stream_id=[1, 2, 3, 3], value=[30.0, 1.0, 30.0, 10.0])
    assert sorted(tuples(inside_tables(table, QUERIES))) == [("cold", 2), ("hot", 1)]
    earlier = table.filter(pc.field("time") <= 20)
    assert sorted(tuples(inside_tables(earlier, QUERIES))) == [("cold", 2), ("hot", 1), ("hot", 3)]


@pytest.mark.nab
def test_the_nab_series(nab_series: pa.Table) -> None:
    """In each series |z| > 4, with the sample's standard deviation; one series starts inside."""
    frame = nab_series.to_pandas()
    groups = frame.groupby("series")["value"]
    frame["z"] = ((frame["value"] - groups.transform("mean")) / groups.transform("std")).abs()
    queries = pa.table({"query_id": [1], "lower": [4], "upper": pa.nulls(1, pa.float64())})
    found = {}
    for first in ("ignore", "outside"):
        report = coincide.BorderReport()
        border_crossing_tables(
            frame, queries, stream="series", time="timestamp", values="z",
            closed="neither", first=first, report=report,
        )  # fmt: skip
        found[first] = report.summary()
    assert (found["outside"].entered, found["outside"].left) == (1225, 1222)
    assert found["ignore"].entered == 1224
