"""Border crossings of DataFrames: those of tables, whatever the partitions, batches and types."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import coincide
from coincide import BorderOptions, BorderReport, border_crossing_tables, border_crossings
from tests.helpers.border_tables import (
    NAMES,
    counts_of,
    least_last,
    random_queries,
    random_readings,
)
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import SPREAD, frame, jobs, refusal, settings

pytestmark = pytest.mark.spark

QUERIES = pa.table({"query_id": ["hot", "cold"], "lower": [28.0, None], "upper": [None, 5.0]})
DAYS = pa.array([dt.date(2024, 1, 1) + dt.timedelta(k) for k in range(9)])
TEXTS = pa.array([f"it's {k}" for k in range(60)])
TYPES = {
    "texts, instants": (TEXTS, pa.array(range(40)), pa.timestamp("us", "UTC"), {}),
    "days, clocks": (DAYS, pa.array(map(str, range(40))), pa.timestamp("us"), {"hysteresis": 1.0}),
    "bytes, floats": (
        pa.array([b"\xff", b"", b"a"]), DAYS, pa.float64(), {"unit": "ms", "first": "outside"},
    ),
    "integers": (
        pa.array(range(99), pa.int16()), pa.array([b"\xff", b"a"]), pa.int32(), {"pass_through": True},
    ),
}  # fmt: skip


def readings(**columns: Any) -> pa.Table:
    given = {"stream_id": [1, 1, 1, 1], "time": [0, 10, 20, 30], "value": [20.0, 30.0, 28.0, 4.0]}
    return pa.table({**given, **columns})


@pytest.mark.parametrize("types", TYPES)
def test_crossings_are_those_of_tables(spark: SparkSession, types: str) -> None:
    streams, ids, times, more = TYPES[types]
    dimensions = 2 if types == "integers" else 1
    given = random_readings(5, 600, streams, times, dimensions)
    queries = random_queries(6, ids, dimensions)
    names = {**NAMES, "values": ["x", "y"][:dimensions]}
    options = BorderOptions(interpolate=True, **more)
    report, expected = BorderReport(), BorderReport()
    least = least_last(given)
    wanted = border_crossing_tables(least, queries, options=options, report=expected, **names)
    asked = frame(spark, queries) if types == "days, clocks" else queries
    with settings(spark, {**SPREAD, "spark.sql.execution.arrow.maxRecordsPerBatch": 13}):
        found = border_crossings(
            frame(spark, given).repartition(3), asked, options=options, report=report, **names
        )
        table = found.toArrow()
    assert in_order(table.cast(wanted.schema)) == in_order(wanted)
    assert wanted.num_rows > 100
    assert counts_of(report.summary()) == counts_of(expected.summary())
    assert report.summary().gaps
    assert report.summary().repeated
    kinds = dict(found.dtypes)
    assert kinds["stream"] == dict(frame(spark, given).dtypes)["stream"]
    assert kinds["query"] == dict(frame(spark, queries).dtypes)["query"]
    time = dict(frame(spark, given).dtypes)["at"]
    assert kinds["min_time"] == (time if time.startswith("timestamp") else "bigint")


def test_nothing_runs_before_the_result_is_used(spark: SparkSession) -> None:
    with jobs(spark, "planning") as started:
        found = border_crossings(frame(spark, readings(value=[1.0, math.inf, 2.0, 3.0])), QUERIES)
    assert started == []
    assert refusal(found).startswith("readings: infinite values in value in 1 row (found")


INVALID = pa.table(
    {
        "stream_id": ["it's a", None, "b", "c", None, *"defgh"],
        "time": pa.array([0.0, 1.0, math.nan, 3.0, 4.0, 1e30, 5.0, None, 6.0, 7.0]),
        "value": [1.0, 30.0, 2.0, math.inf, 1.0, 2.0, -math.inf, 3.0, None, math.nan],
    }
)


def test_invalid_readings_fail_the_job_with_their_count_and_an_example(spark: SparkSession) -> None:
    options = BorderOptions(unit="s")
    given = frame(spark, INVALID).repartition(4)
    with settings(spark, SPREAD):
        words = refusal(border_crossings(given, QUERIES, options=options))
    with pytest.raises(coincide.DataError) as raised:
        border_crossing_tables(INVALID, QUERIES, options=options)
    without = re.compile(r"\(found .*?\)(?=\. (?:Here|Fix))")
    assert without.sub("", words) == without.sub("", str(raised.value))
    assert "in 3 rows" in words
    assert "stream_id=None" in words or "time=None" in words


def test_invalid_readings_are_left_out_and_counted(spark: SparkSession) -> None:
    options = BorderOptions(unit="s", invalid="drop", first="outside")
    report, expected = BorderReport(), BorderReport()
    found = border_crossings(frame(spark, INVALID), QUERIES, options=options, report=report)
    table = found.toArrow()
    wanted = border_crossing_tables(INVALID, QUERIES, options=options, report=expected)
    assert in_order(table) == in_order(wanted)
    with pytest.warns(coincide.DroppedRowsWarning, match="7 invalid"):
        assert counts_of(report.summary()) == counts_of(expected.summary())


def test_integers_beyond_floats_are_refused_even_where_others_are_dropped(
    spark: SparkSession,
) -> None:
    given = frame(spark, readings(value=[1, 2**53 + 1, -(2**63), 2**53]))
    words = refusal(border_crossings(given, QUERIES, options=BorderOptions(invalid="drop")))
    assert words.startswith("readings.value has integers beyond 2^53")
    assert "in 2 rows (found stream_id=1, time=" in words


def test_integers_may_stand_beside_readings_that_are_left_out(spark: SparkSession) -> None:
    """One of these might be refused; those that are not refused give no example."""
    given = readings(stream_id=[1, None, 1, 1], value=[1, 2, 30, 4])
    options = BorderOptions(invalid="drop")
    found = border_crossings(frame(spark, given), QUERIES, options=options).toArrow()
    with pytest.warns(coincide.DroppedRowsWarning, match="1 invalid"):
        wanted = border_crossing_tables(given, QUERIES, options=options)
    assert wanted.num_rows
    assert in_order(found) == in_order(wanted)


def test_tables_without_rows(spark: SparkSession) -> None:
    report = BorderReport()
    nothing = frame(spark, readings()).where("false")
    found = border_crossings(nothing, QUERIES, report=report)
    assert found.count() == 0
    assert found.columns == ["query_id", "stream_id", "event", "min_time", "max_time"]
    assert (report.summary().readings, report.summary().queries) == (0, 2)
    some = border_crossings(frame(spark, readings()), QUERIES.slice(0, 0), report=report)
    assert some.count() == 0
    assert (report.summary().readings, report.summary().queries) == (4, 0)


def test_names_that_need_quotes(spark: SparkSession) -> None:
    given = readings().rename_columns(["a b", "it's`", "x.y"])
    queries = QUERIES.rename_columns(["q'", "lower", "upper"])
    names: dict[str, Any] = {"stream": "a b", "time": "it's`", "values": "x.y", "query": "q'"}
    found = border_crossings(frame(spark, given), queries, **names)
    assert found.columns[:2] == ["q'", "a b"]
    assert in_order(found.toArrow()) == in_order(border_crossing_tables(given, queries, **names))


@pytest.mark.parametrize(
    ("changes", "arguments", "error", "words"),
    [
        ({"value": ["a"] * 4}, {}, coincide.SchemaError, "readings.value must be an integer"),
        ({"stream_id": [1.0] * 4}, {}, coincide.SchemaError, "compared exactly"),
        ({"time": ["a"] * 4}, {}, coincide.SchemaError, "readings.time must be"),
        ({"time": [1.0] * 4}, {}, coincide.SchemaError, "float time columns need a unit"),
        ({}, {"values": "speed"}, coincide.SchemaError, "no column 'speed'"),
        ({}, {"stream": "event"}, coincide.ConditionError, "two columns named 'event'"),
        ({}, {"queries": QUERIES.drop("lower")}, coincide.SchemaError, "no column 'lower_value'"),
        ({}, {"report": 3}, coincide.ConditionError, "report must be a BorderReport"),
        (
            {"time": pa.array(np.arange(4), pa.timestamp("us"))},
            {"options": BorderOptions(unit="ns")},
            coincide.ConditionError,
            "found ns",
        ),
    ],
)
def test_what_cannot_be_is_said_before_a_job_runs(
    spark: SparkSession, changes: Any, arguments: Any, error: type, words: str
) -> None:
    given = {"queries": QUERIES, **arguments}
    with jobs(spark, "refused") as started, pytest.raises(error, match=words):
        border_crossings(frame(spark, readings(**changes)), **given)
    assert started == []


def test_columns_that_spark_cannot_tell_apart(spark: SparkSession) -> None:
    queries = QUERIES.rename_columns(["Stream_ID", "lower", "upper"])
    with pytest.raises(coincide.ConditionError, match="Spark cannot tell them apart"):
        border_crossings(frame(spark, readings()), queries, query="Stream_ID")


def test_a_query_that_makes_no_sense(spark: SparkSession) -> None:
    queries = frame(spark, pa.table({"query_id": [1, 1], "lower": [1, 2], "upper": [2, 3]}))
    with pytest.raises(coincide.DataError, match="ids that other rows have"):
        border_crossings(frame(spark, readings()), queries)


def test_tables_and_streams_are_no_readings(spark: SparkSession) -> None:
    with pytest.raises(coincide.SchemaError, match="border_crossing_tables"):
        border_crossings(readings(), QUERIES)  # type: ignore[arg-type]
    stream = spark.readStream.format("rate").load().selectExpr("value AS stream_id", "value")
    stream = stream.withColumn("time", stream["value"])
    with pytest.raises(coincide.ConditionError, match="Use border_crossing_streams"):
        border_crossings(stream, QUERIES)


def test_ranges_that_hold_other_ends_and_readings_of_one_stream(spark: SparkSession) -> None:
    """A word for each query, and one for those without; refused readings have no stream to name."""
    given = random_readings(21, 300, TEXTS.slice(0, 1), pa.timestamp("us", "UTC")).drop(["stream"])
    queries = random_queries(22, pa.array(range(20)))
    words = pa.array(["both", "neither", "right", "left", None] * 4)
    asked: dict[str, Any] = {
        **NAMES, "stream": None, "values": "x", "closed": "both", "closed_column": "ends",
    }  # fmt: skip
    queries = queries.append_column("ends", words)
    found = border_crossings(frame(spark, given), frame(spark, queries), **asked)
    wanted = border_crossing_tables(least_last(given), queries, **asked)
    assert found.columns == ["query", "event", "min_time", "max_time"]
    assert in_order(found.toArrow().cast(wanted.schema)) == in_order(wanted)
    assert wanted.num_rows > 100
    bad = given.set_column(1, "x", pa.array([math.inf] * given.num_rows))
    told = refusal(border_crossings(frame(spark, bad), queries, **asked))
    assert "infinite values in x in 300 rows (found at=" in told
    with pytest.raises(coincide.DataError, match="ends other than"):
        border_crossings(frame(spark, given), queries.set_column(3, "ends", [["no"] * 20]), **asked)


def test_why_no_crossing_is_found(spark: SparkSession) -> None:
    """The same as with tables; only an empty answer takes a job that reads the readings."""
    far = pa.table({"query_id": ["a", "b"], "lower": [300.0, 900.0], "upper": [400.0, None]})
    given = readings(stream_id=[1, 1, 1, 2], value=[20.0, None, 30.0, 28.0])
    report, expected = BorderReport(), BorderReport()
    border_crossings(frame(spark, given), far, report=report).collect()
    with pytest.warns(coincide.NoPairsWarning, match="is 270 away"):
        border_crossing_tables(given, far, report=expected)
    with pytest.warns(coincide.NoPairsWarning, match="is 270 away"):
        assert counts_of(report.summary()) == counts_of(expected.summary())
    assert report.summary().why_none[0] == "1 of 2 streams have one reading only"
