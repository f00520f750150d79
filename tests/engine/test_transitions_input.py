"""Region transitions of bad input: a clear error, or left out and counted."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    SchemaError,
    TransitionMonitor,
    TransitionReport,
    transition_tables,
)
from tests.helpers.transition_cases import at, event_table

DROP = CorrelateOptions(invalid="drop")
FLOAT_SECONDS = CorrelateOptions(unit="s", tick="s")
UTC = dt.UTC


def columns(**changed: Any) -> pa.Table:
    """In at 0, out at 5, in at 20, out at 21, with some columns in another way."""
    plain: dict[str, Any] = {
        "query_id": [1, 1, 1, 1], "stream_id": ["a", "a", "a", "a"], "event": ["I", "O", "I", "O"],
        "min_time": [0, 5, 20, 21], "max_time": [0, 5, 20, 21],
    }  # fmt: skip
    return pa.table({**plain, **changed})


BAD_ROWS = [
    ({"query_id": [1, 1, None, None]}, "nulls in query_id in 2 rows .found query_id=None"),
    ({"stream_id": ["a", "a", None, None]}, "nulls in stream_id in 2 rows"),
    ({"event": ["I", "O", None, None]}, "nulls in event in 2 rows"),
    ({"min_time": [0, 5, None, None]}, "nulls in min_time in 2 rows"),
    ({"event": ["I", "O", "in", "i"]}, "words other than 'I' and 'O' in event in 2 rows .*event=in"),
    ({"min_time": [0, 5, 22, 22]}, "min above max in min_time and max_time in 2 rows"),
    ({"max_time": [0, 5, 2**61, 2**62]}, "times that reach 2\\^61 ticks in .* in 2 rows"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), BAD_ROWS)
def test_bad_rows_are_refused_or_dropped(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"(?s)events: {message}.*invalid='drop'"):
        transition_tables(columns(**changed), within=10, confidence=0.5)
    report = TransitionReport()
    with pytest.warns(DroppedRowsWarning, match="events, 4 rows: skipped 2 invalid rows"):
        found = transition_tables(
            columns(**changed), within=10, confidence=0.5, options=DROP, report=report, until=100
        )
    assert found["transition"].to_pylist() == ["I>O", "O>!I"]
    summary = report.summary()
    assert (summary.counts.events, sum(summary.counts.dropped.values())) == (4, 2)


def test_each_bad_row_counts_once() -> None:
    table = columns(event=["I", None, "x", "O"], min_time=[0, 9, 9, 30], query_id=[1, None, 1, 1])
    with pytest.raises(
        DataError, match=r"nulls in query_id and event in 1 row.* events: words.* events: min above"
    ):
        transition_tables(table, within=10)
    report = TransitionReport()
    transition_tables(table, within=10, options=DROP, report=report)
    assert report.summary().counts.dropped == {"null": 1, "event": 1, "order": 1}


def test_floats_that_are_no_times() -> None:
    bad = columns(min_time=[0.0, 5.0, np.nan, np.inf], max_time=[0.0, 5.0, 20.0, np.inf])
    with pytest.raises(DataError, match="NaN or infinity in min_time and max_time in 2 rows"):
        transition_tables(bad, within=10, options=FLOAT_SECONDS)


def test_repeated_events() -> None:
    table = columns(event=["I", "I", "O", "O"])
    with pytest.raises(DataError, match=r"2 rows repeat the event before.*event=I, min_time=5"):
        transition_tables(table, within=10)
    for repeated in ("first", "last"):
        assert transition_tables(table, within=10, repeated=repeated).num_rows


def test_intervals_need_a_confidence() -> None:
    with pytest.raises(ConditionError, match=r"intervals in 1 row, .*confidence=0\.9. Above 0\.5"):
        transition_tables(columns(min_time=[0, 5, 20, 20]), within=10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"event": [1, 0, 1, 0]}, "events.event must be a text"),
        (
            {"query_id": [0.5, 0.5, 0.5, 0.5]},
            "events.query_id has a type that cannot be compared exactly",
        ),
        ({"stream_id": [[1]] * 4}, "events.stream_id has a type .*found list<"),
        ({"min_time": ["0", "5", "20", "21"]}, "events.min_time must be a timestamp, a date, a"),
        (
            {"min_time": pa.array([0, 5, 20, 21], pa.timestamp("us"))},
            "must have one kind",
        ),
    ],
)
def test_columns_of_wrong_types(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        transition_tables(columns(**changed), within=10)


def test_missing_columns_and_tables() -> None:
    with pytest.raises(SchemaError, match=r"events has no column 'event' .found 'query_id'"):
        transition_tables(columns().drop("event"), within=10)
    with pytest.raises(
        SchemaError, match=r"must be a table that offers Arrow's C stream.*found int"
    ):
        transition_tables(1, within=10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"within": -1}, "cannot be negative .found -1"),
        ({"within": "-1s"}, "cannot be negative .found '-1s'"),
        ({"within": 1.5}, "a duration is an int"),
        ({"within": "3min"}, "Give the unit of the columns, for example options=CorrelateOptions"),
        ({"within": 2**61}, "bounds must stay below"),
        ({"confidence": 0.0}, r"must lie in \(0, 1\]"),
        ({"confidence": "high"}, "must be a number"),
        ({"query": 3}, "query must be the name of a column"),
        ({"time": ("a", "b", "c")}, "time must be the name of a column of exact instants, or a"),
        ({"repeated": "both"}, "repeated must be one of raise, first, last"),
        ({"options": CorrelateOptions(slices=3)}, "found slices"),
        ({"options": None}, "options must be CorrelateOptions"),
        ({"query": "min_time"}, "two columns named 'min_time'"),
        ({"stream": "query_id"}, "two columns named 'query_id'"),
        ({"report": object()}, "report must be a TransitionReport"),
        ({"until": "8 o'clock"}, "until must be a time like those of events.max_time"),
        ({"until": 2**61}, "until must be a time"),
        ({"until": True}, "until must be a time"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConditionError, match=f"(?i){message}"):
        transition_tables(columns(), **{"within": 10, **arguments})


def test_tables_without_rows() -> None:
    found = transition_tables(event_table([]), within=10)
    assert (found.num_rows, len(found.schema)) == (0, 11)
    monitor = TransitionMonitor(within=10)
    assert monitor.push(event_table([])).num_rows == monitor.flush().num_rows == 0
    assert monitor.advance(11).num_rows == 0


@pytest.mark.parametrize(
    "until",
    [
        dt.datetime(2024, 1, 1, 0, 0, 11, tzinfo=UTC),
        pd.Timestamp("2024-01-01 00:00:10.000001", tz="UTC"),
        pa.scalar(dt.datetime(2024, 1, 1, 0, 0, 11, tzinfo=UTC), pa.timestamp("s", "Europe/Rome")),
    ],
)
def test_until_as_timestamps_are_given(until: Any) -> None:
    start = dt.datetime(2024, 1, 1, tzinfo=UTC)
    table = pa.table({"query_id": [1], "stream_id": [1], "event": ["I"], "at": [start]})
    assert transition_tables(table, within="10s", time="at").num_rows == 0
    assert transition_tables(table, within="10s", time="at", until=until).num_rows == 1
    for wrong in (dt.datetime(2024, 1, 2), 5, dt.date(2024, 1, 2), "noon"):
        with pytest.raises(ConditionError, match="a datetime with a time zone"):
            transition_tables(table, within="10s", time="at", until=wrong)


def test_nanoseconds_of_until_count() -> None:
    table = pa.table({"query_id": [1], "stream_id": [1], "event": ["I"], "at": [0]})
    table = table.set_column(3, "at", pa.array([0], pa.timestamp("ns")))
    options = CorrelateOptions(unit="ns")
    for until, rows in ((pd.Timestamp(10_000), 0), (np.datetime64(10_001, "ns"), 1)):
        found = transition_tables(table, within="10us", time="at", until=until, options=options)
        assert found.num_rows == rows
        assert found.schema.field("max_time").type == pa.timestamp("ns")


def test_a_frame_of_pandas() -> None:
    found = transition_tables(columns().to_pandas(), within=10)
    assert found["transition"].to_pylist() == ["I>O", "O>!I", "I>O"]


def monitor_at_ten(**arguments: Any) -> TransitionMonitor:
    """Has seen an I at 0 and an I of another stream at 8, and the clock at 10."""
    monitor = TransitionMonitor(within=5, **arguments)
    monitor.push(event_table([at(0, "I"), at(8, "I", "other")]))
    assert monitor.advance(10)["transition"].to_pylist() == ["I>!O"]
    return monitor


def test_late_events_of_a_stream() -> None:
    behind_the_clock, behind_the_last = at(9, "O"), at(11, "O", "other")
    push = event_table([behind_the_clock, at(12, "O", "other")])
    with pytest.raises(DataError, match="times in min_time before 10, where the clock is, in 1"):
        monitor_at_ten().push(push)
    assert monitor_at_ten(options=DROP).push(push).num_rows == 1

    push = event_table([at(12, "O", "other"), at(13, "I", "other"), behind_the_last])
    monitor = monitor_at_ten()
    with pytest.raises(DataError, match=r"1 row come after a later event .*event=O, min_time=11"):
        monitor.push(push)
    monitor.push(push.slice(0, 2))  # what was refused has left no trace
    with pytest.raises(DataError, match="Push events in order of their times, give all at once to"):
        monitor.push(push.slice(2))
    monitor = monitor_at_ten(options=DROP)
    monitor.push(push)
    assert monitor.summary().counts.dropped == {"late": 1}
    assert monitor.summary().counts.events == 5


def test_what_is_left_out_as_repeated_still_moves_its_stream_on() -> None:
    for pushes in ([3], [1, 1, 1], [2, 1]):
        monitor = TransitionMonitor(within=5, repeated="first")
        table, start = event_table([at(0, "I"), at(20, "I"), at(10, "O")]), 0
        for size in pushes[:-1]:
            monitor.push(table.slice(start, size))
            start += size
        with pytest.raises(
            DataError, match="Push events in order of their times, give all at once to"
        ):
            monitor.push(table.slice(start))


def test_the_clock_does_not_go_back() -> None:
    with pytest.raises(ConditionError, match=r"the clock cannot go back from 10 .found 9"):
        monitor_at_ten().advance(9)
    assert monitor_at_ten().advance(10).num_rows == 0
    assert monitor_at_ten().flush().num_rows == 0  # known up to 10, whatever the events


def test_a_monitor_before_its_first_push() -> None:
    monitor = TransitionMonitor(within=5)
    assert monitor.summary().undecided == 0
    for use in (lambda: monitor.advance(3), monitor.flush):
        with pytest.raises(ConditionError, match=r"\(\) does not know the columns yet"):
            use()


def test_pushes_of_other_types() -> None:
    monitor = TransitionMonitor(within=5)
    monitor.push(event_table([at(0, "I")]))
    with pytest.raises(SchemaError, match="query_id is string and was int64"):
        monitor.push(columns(query_id=["1", "1", "1", "1"]))


def test_a_report_of_nothing() -> None:
    with pytest.raises(ConditionError, match="nothing has reported here"):
        TransitionReport().summary()
