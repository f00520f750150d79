"""Region transitions of DataFrames: those of tables, whatever the partitions, batches and types."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import coincide
from coincide import (
    BorderOptions,
    CorrelateOptions,
    TransitionReport,
    border_crossings,
    transition_tables,
    transitions,
)
from tests.helpers.border_tables import NAMES, least_last, random_queries, random_readings
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import SPREAD, frame, jobs, refusal, settings

pytestmark = pytest.mark.spark

DROP = CorrelateOptions(invalid="drop")
DAYS = pa.array([dt.date(2024, 1, 1) + dt.timedelta(k) for k in range(5)])
BYTES = pa.array([b"\xff", b"", b"a"])
KINDS = {
    "instants": (DAYS, pa.array(["a", "it's"]), pa.timestamp("us", "UTC"), "3ms", {}),
    "clocks": (BYTES, DAYS, pa.timestamp("us"), "2000us", {}),
    "numbers": (pa.array(range(9), pa.int16()), BYTES, pa.int32(), 2500, {}),
    "floats": (pa.array(["x"]), pa.array([True, False]), pa.float64(), "2s", {"unit": "ms"}),
}


def random_events(queries: pa.Array, streams: pa.Array, times: pa.DataType) -> pa.Table:
    """Events that alternate, no two of a query and stream at one midpoint, in random order."""
    random = np.random.default_rng(7)
    columns: dict[str, list[Any]] = {name: [] for name in ("q", "s", "word", "low", "high")}
    for query in range(len(queries)):
        for stream in range(len(streams)):
            n = int(random.integers(0, 12))
            midpoint = np.cumsum(random.integers(1, 4000, n))
            margin = random.integers(0, 3, n) * 300
            columns["q"] += [query] * n
            columns["s"] += [stream] * n
            columns["word"] += ["IO"[(k + stream) % 2] for k in range(n)]
            columns["low"] += (midpoint - margin).tolist()
            columns["high"] += (midpoint + margin).tolist()
    table = pa.table(
        {
            "query_id": queries.take(pa.array(columns["q"])),
            "stream_id": streams.take(pa.array(columns["s"])),
            "event": columns["word"],
            "min_time": pa.array(columns["low"], pa.int64()).cast(times),
            "max_time": pa.array(columns["high"], pa.int64()).cast(times),
        }
    )
    return table.take(pa.array(random.permutation(table.num_rows)))


def events(**changed: Any) -> pa.Table:
    plain: dict[str, Any] = {
        "query_id": [1, 1, 1, 1], "stream_id": ["a", "a", "a", "a"], "event": ["I", "O", "I", "O"],
        "min_time": [0, 5, 20, 21], "max_time": [0, 5, 20, 21],
    }  # fmt: skip
    return pa.table({**plain, **changed})


@pytest.mark.parametrize("kind", KINDS)
def test_transitions_are_those_of_tables(spark: SparkSession, kind: str) -> None:
    queries, streams, times, within, units = KINDS[kind]
    given = random_events(queries, streams, times)
    report, expected = TransitionReport(), TransitionReport()
    asked: dict[str, Any] = {
        "within": within, "confidence": 0.7, "options": CorrelateOptions(**units),
    }  # fmt: skip
    wanted = transition_tables(given, report=expected, **asked)
    with settings(spark, {**SPREAD, "spark.sql.execution.arrow.maxRecordsPerBatch": 3}):
        found = transitions(frame(spark, given).repartition(3), report=report, **asked)
        table = found.toArrow()
    assert in_order(table.cast(wanted.schema)) == in_order(wanted)
    assert wanted.num_rows > 5
    assert report.summary() == expected.summary()
    kinds, own = dict(found.dtypes), dict(frame(spark, given).dtypes)
    assert (kinds["query_id"], kinds["stream_id"]) == (own["query_id"], own["stream_id"])
    is_timestamp = own["min_time"].startswith("timestamp")
    assert kinds["max_time"] == (own["max_time"] if is_timestamp else "bigint")


def test_crossings_of_streams_that_pass_through(spark: SparkSession) -> None:
    """An I and an O of one interval: of tables in the order of their rows, on Spark by the rule."""
    streams = pa.array([f"s{k}" for k in range(5)])
    readings = random_readings(11, 200, streams, pa.timestamp("us", "UTC"))
    queries = random_queries(12, pa.array(range(9)))
    options = BorderOptions(pass_through=True, first="outside")
    names: dict[str, Any] = {**NAMES, "values": "x", "options": options}
    asked: dict[str, Any] = {
        "within": "5ms", "confidence": 0.6, "query": "query", "stream": "stream",
    }  # fmt: skip
    crossings = coincide.border_crossing_tables(least_last(readings), queries, **names)
    wanted = transition_tables(crossings, **asked)
    assert (np.diff(crossings["min_time"].to_numpy().astype("int64")) == 0).any()
    found = transitions(border_crossings(frame(spark, readings), queries, **names), **asked)
    assert in_order(found.toArrow()) == in_order(wanted)
    assert wanted.num_rows > 20


def test_events_of_one_stream_that_are_told_twice(spark: SparkSession) -> None:
    """Without a column of the stream; the reported crossings and stays are counted."""
    given = pa.table(
        {
            **{"query_id": [1, 1, 1], "event": ["I", "O", "I"]},
            **{"min_time": [0, 300, 900], "max_time": [60, 360, 960]},
        }
    )
    asked: dict[str, Any] = {"stream": None, "within": 300, "confidence": 0.5}
    report = TransitionReport()
    found = transitions(frame(spark, given), report=report, **asked).toArrow()
    with pytest.warns(coincide.AmbiguousCrossingsWarning):
        wanted = transition_tables(given, **asked)
    assert in_order(found.cast(wanted.schema)) == in_order(wanted)
    with pytest.warns(
        coincide.AmbiguousCrossingsWarning, match="1 are reported as crossed and as stayed"
    ):
        assert report.summary().counts.both == 1


def test_the_end_of_the_data_is_measured_or_told(spark: SparkSession) -> None:
    given = frame(spark, events())
    with jobs(spark, "measured") as started:
        found = transitions(given, within=10)
    assert len(started) >= 1
    assert [row.transition for row in found.collect()] == ["I>O", "O>!I", "I>O"]
    with jobs(spark, "told") as started:
        found = transitions(given, within=10, until=32)
    assert started == []
    assert [row.transition for row in found.collect()] == ["I>O", "O>!I", "I>O", "O>!I"]


BAD = events(
    query_id=[1, None, 1, 1, 1, 1], stream_id=["it's", "a", "b", None, "d", "e"],
    event=["in", "I", None, "O", "I", "I"], min_time=[0, 1, 2, 3, 9, 0], max_time=[0, 1, 2, 3, 4, 2**61],
)  # fmt: skip


def test_invalid_events_fail_the_job_with_their_counts_and_examples(spark: SparkSession) -> None:
    asked: dict[str, Any] = {"within": 10, "confidence": 0.5}
    with settings(spark, SPREAD):
        words = refusal(transitions(frame(spark, BAD).repartition(4), **asked))
    with pytest.raises(coincide.DataError) as raised:
        transition_tables(BAD, **asked)
    found, wanted = words.split(" events: "), str(raised.value).split(" events: ")
    assert [part.split("(found")[0] for part in found] == [
        part.split("(found")[0] for part in wanted
    ]
    assert "event=in" in words
    assert "max_time=2305843009213693952" in words


def test_invalid_events_are_left_out_and_counted(spark: SparkSession) -> None:
    report, expected = TransitionReport(), TransitionReport()
    given = pa.concat_tables([events(), BAD])
    asked: dict[str, Any] = {"within": 10, "confidence": 0.5, "options": DROP}
    found = transitions(frame(spark, given), report=report, **asked).toArrow()
    wanted = transition_tables(given, report=expected, **asked)
    assert in_order(found) == in_order(wanted)
    with pytest.warns(coincide.DroppedRowsWarning, match="6 invalid"):
        assert report.summary() == expected.summary()


def test_floats_are_rounded_and_may_be_no_times(spark: SparkSession) -> None:
    report, expected = TransitionReport(), TransitionReport()
    inf = math.inf
    given = events(
        query_id=[1, 1, 1, 2, 2], stream_id=["a"] * 5, event=["I", "O", "I", "O", "I"],
        min_time=[2.5e-7, 5.0, math.nan, -inf, 4.0], max_time=[1.0, 6.0, 9.0, inf, 1e300],
    )  # fmt: skip
    options = CorrelateOptions(unit="ms", invalid="drop")
    asked: dict[str, Any] = {"within": "10ms", "confidence": 0.5, "options": options}
    found = transitions(frame(spark, given), report=report, **asked).toArrow()
    wanted = transition_tables(given, report=expected, **asked)
    assert in_order(found) == in_order(wanted)
    assert report.summary() == expected.summary()
    assert report.summary().counts.dropped == {"not_finite": 2, "range": 1}
    assert report.summary().rounded == pytest.approx(0.25)


def test_repeated_events_and_intervals_without_a_confidence(spark: SparkSession) -> None:
    given = frame(spark, events(event=["I", "I", "I", "O"]))
    words = refusal(transitions(given, within=10))
    assert "events: 2 rows repeat the event before, I after I or O" in words
    rows = {
        which: [tuple(row)[2:5] for row in transitions(given, within=10, repeated=which).collect()]
        for which in ("first", "last")
    }
    assert rows["first"] == [("I>!O", 0, 0)]
    assert rows["last"] == [("I>!O", 5, 5), ("I>O", 20, 20)]
    intervals = frame(spark, events(max_time=[1, 6, 21, 22]))
    assert "the timestamps are intervals in" in refusal(transitions(intervals, within=10))


def test_no_events(spark: SparkSession) -> None:
    report = TransitionReport()
    found = transitions(frame(spark, events()).where("false"), within=10, report=report)
    assert found.count() == 0
    assert found.columns[2:] == [
        "transition", "first_min_time", "first_max_time", "min_time", "max_time", "next_min_time",
        "next_max_time", "min_duration", "max_duration",
    ]  # fmt: skip
    assert report.summary().counts.events == 0


@pytest.mark.parametrize(
    ("changed", "arguments", "error", "words"),
    [
        ({"query_id": [1.0] * 4}, {}, coincide.SchemaError, "compared exactly"),
        ({"event": [1, 2, 3, 4]}, {}, coincide.SchemaError, "must be a text"),
        ({"min_time": ["a"] * 4}, {}, coincide.SchemaError, "must be a timestamp, a date, a"),
        ({"min_time": [1.0] * 4}, {}, coincide.SchemaError, "Cast one|need a unit"),
        ({}, {"event": "word"}, coincide.SchemaError, "no column 'word'"),
        ({}, {"within": "3min"}, coincide.ConditionError, "unit"),
        ({}, {"within": -1}, coincide.ConditionError, "cannot be negative"),
        ({}, {"until": "noon"}, coincide.ConditionError, "until must be a time"),
        ({}, {"report": 3}, coincide.ConditionError, "report must be a TransitionReport"),
        ({}, {"query": "Max_Time"}, coincide.SchemaError, "no column 'Max_Time'"),
    ],
)
def test_what_cannot_be_is_said_before_a_job_runs(
    spark: SparkSession, changed: Any, arguments: Any, error: type, words: str
) -> None:
    given = {"within": 10, **arguments}
    with jobs(spark, "refused") as started, pytest.raises(error, match=words):
        transitions(frame(spark, events(**changed)), **given)
    assert started == []


def test_tables_and_streams_are_no_events(spark: SparkSession) -> None:
    with pytest.raises(coincide.SchemaError, match="transition_tables"):
        transitions(events(), within=10)  # type: ignore[arg-type]
    stream = spark.readStream.format("rate").load().selectExpr(
        "value AS query_id", "value AS stream_id", "'I' AS event", "timestamp AS min_time"
    )  # fmt: skip
    with pytest.raises(coincide.ConditionError, match="Use transition_streams"):
        transitions(stream, within=10, time="min_time")
