"""Sequences and coincidences of DataFrames: what tables give, whatever the slices."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    NoPairsWarning,
    SchemaError,
    SequenceReport,
    coincidence_tables,
    coincidences,
    sequence_tables,
    sequences,
    spark_errors_as_ours,
)
from tests.helpers.sequence_spark import (
    asked_of_coincidences,
    asked_of_sequences,
    certain_rows,
    frames_of,
    on_a_way,
    rows_of,
)
from tests.helpers.tuple_conditions import drawn_condition, with_values

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]


@pytest.mark.parametrize("seed", range(24))
def test_sequences_are_those_of_tables(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    case, asked = asked_of_sequences(rng)
    asked = on_a_way(rng, case, asked)
    expected = sequence_tables(case.tables, **asked.words)
    found = sequences(frames_of(spark, case), **asked.on_spark).toArrow()
    assert found.schema == expected.schema
    assert certain_rows(case, asked, found) == certain_rows(case, asked, expected)


@pytest.mark.parametrize("seed", range(16))
def test_coincidences_are_those_of_tables(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    case, asked = asked_of_coincidences(rng)
    asked = on_a_way(rng, case, asked)
    expected = coincidence_tables(case.tables, **asked.words)
    found = coincidences(frames_of(spark, case), **asked.on_spark).toArrow()
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)


@pytest.mark.parametrize("seed", range(10))
def test_sequences_that_meet_a_condition_are_those_of_tables(
    spark: SparkSession, seed: int
) -> None:
    rng = random.Random(500 + seed)
    case, asked = asked_of_sequences(rng)
    case = with_values(case, rng)
    asked.words["where"] = drawn_condition(rng, case.names).sql
    asked = on_a_way(rng, case, asked)
    expected = sequence_tables(case.tables, **asked.words)
    found = sequences(frames_of(spark, case), **asked.on_spark).toArrow()
    assert found.schema == expected.schema
    assert certain_rows(case, asked, found) == certain_rows(case, asked, expected)


@pytest.mark.parametrize("seed", range(6))
def test_sets_that_meet_a_condition_are_those_of_tables(spark: SparkSession, seed: int) -> None:
    rng = random.Random(700 + seed)
    case, asked = asked_of_coincidences(rng)
    case = with_values(case, rng)
    asked.words["where"] = drawn_condition(rng, case.names).sql
    asked = on_a_way(rng, case, asked)
    expected = coincidence_tables(case.tables, **asked.words)
    found = coincidences(frames_of(spark, case), **asked.on_spark).toArrow()
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)


def test_a_condition_is_on_columns_of_any_type(spark: SparkSession) -> None:
    query = (
        "SELECT id, id * {step} AS t, concat('n', id % 3) AS text, id % 2 = 0 AS even,"
        " TIMESTAMP '2026-01-01 00:00:00Z' + make_dt_interval(0, 0, 0, id) AS at,"
        " CAST(id AS decimal(9, 2)) AS price, DATE '2026-01-01' AS day FROM range(40)"
    )
    one, two = (spark.sql(query.format(step=step)) for step in (2, 3))
    tables = [one.toArrow(), two.toArrow()]
    for where in (
        "a_text = b_text AND b_text <> c_text AND NOT a_even",
        "c_at - a_at < INTERVAL '3' SECOND AND b_price * 2 > a_price AND a_day = DATE '2026-01-01'",
        (pc.field("a_price") + pc.field("b_price")).cast("float64") > 20.0,
    ):
        asked: dict[str, Any] = {"windows": [(0, 9), (-9, 0)], "time": "t", "where": where}
        # The first one is at two places, which need different columns.
        found = sequences([one, two, one], **asked, options=CorrelateOptions(slices=3)).toArrow()
        expected = sequence_tables([tables[0], tables[1], tables[0]], **asked)
        assert rows_of(found) == rows_of(expected)
        assert found.column_names == ["a_id", "b_id", "c_id"]
        whole = sequence_tables(
            [tables[0], tables[1], tables[0]], windows=asked["windows"], time="t"
        )
        assert 0 < found.num_rows < whole.num_rows


def test_a_report_says_that_the_condition_may_be_why(spark: SparkSession) -> None:
    report = SequenceReport()
    found = sequences(
        shop(spark), WINDOWS, time="at", by="user", where="click_id > 9", report=report
    )
    assert found.collect() == []
    with pytest.warns(NoPairsWarning, match="none of these tuples meets where"):
        report.summary()


CLICKS = [(1, 0, "ann"), (2, 60, "bob"), (3, 4_000, "ann"), (4, None, "ann"), (5, 10, None)]
CARTS = [(11, 118, "ann"), (12, 100, "bob"), (13, 4_050, "ann")]
PAYMENTS = [(21, 1_700, "ann"), (22, 400, "bob")]
WINDOWS = [(0, 120), (0, 1_800)]


def shop(spark: SparkSession) -> dict[str, Any]:
    """Clicks, carts and payments as DataFrames."""
    given = {"click": CLICKS, "cart": CARTS, "pay": PAYMENTS}
    schema = "id long, at long, user string"
    return {name: spark.createDataFrame(rows, schema) for name, rows in given.items()}


def test_clicks_without_a_payment_keep_those_without_a_time_or_key(spark: SparkSession) -> None:
    found = sequences(shop(spark), WINDOWS, time="at", by="user", how="anti")
    rows = {(row["user"], row["click_id"]) for row in found.collect()}
    assert rows == {("ann", 3), ("ann", 4), (None, 5)}


@pytest.mark.parametrize("is_measured", [False, True])
def test_a_report_tells_of_rows_and_of_what_tasks_found(
    spark: SparkSession, is_measured: bool
) -> None:
    report = SequenceReport()
    options = CorrelateOptions(slices=4, invalid="drop" if is_measured else "raise")
    found = sequences(shop(spark), WINDOWS, time="at", by="user", options=options, report=report)
    assert "summary() has all numbers" in str(report)
    assert rows_of(found.toArrow()) == Counter([("ann", 1, 11, 21), ("bob", 2, 12, 22)])
    told = report.summary()
    assert (told.found, told.tried, told.doubted, told.seconds) == (2, 2, 0, None)
    # Those near the end of a slice count in both.
    assert told.links["click to cart"] == 3
    assert 2 <= told.links["cart to pay"] <= 4
    assert {name: (c.rows, c.unmatchable) for name, c in told.streams.items()} == {
        "click": (5, 2), "cart": (3, 0), "pay": (2, 0),
    }  # fmt: skip


def test_a_report_says_why_nothing_is_found(spark: SparkSession) -> None:
    report = SequenceReport()
    found = sequences(shop(spark), [(0, 1), (0, 1)], time="at", by="user", report=report)
    assert found.collect() == []
    with pytest.warns(NoPairsWarning, match="no two events from click to cart"):
        report.summary()


def test_one_frame_at_several_places_meets_no_event_twice(spark: SparkSession) -> None:
    rows = [(k, 10 * (k % 7)) for k in range(40)]
    frame, table = spark.createDataFrame(rows, "id long, t long"), pa.table({
        "id": [k for k, _ in rows], "t": [t for _, t in rows],
    })  # fmt: skip
    asked: dict[str, Any] = {"windows": [(0, 10), (-10, 0)], "time": "t"}
    found = sequences([frame, frame, frame], **asked, options=CorrelateOptions(slices=3))
    # It is read once.
    assert found._jdf.queryExecution().optimizedPlan().toString().count("MapInArrow") == 2
    assert rows_of(found.toArrow()) == rows_of(sequence_tables([table] * 3, **asked))


def test_timestamps_and_texts_come_back_as_they_were(spark: SparkSession) -> None:
    query = (
        "SELECT TIMESTAMP '2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id * {step}) AS at, "
    )
    query += "concat('{name}', id) AS id, DATE '2026-01-01' AS day FROM range(30)"
    frames = [spark.sql(query.format(step=step, name=name)) for step, name in ((2, "a"), (3, "b"))]
    asked: dict[str, Any] = {
        "windows": [("0s", "4s"), ("0s", "4s")], "time": "at", "columns": ["id", "at", "day"],
    }  # fmt: skip
    found = sequences([*frames, frames[0]], **asked, options=CorrelateOptions(slices=5)).toArrow()
    tables = [frame.toArrow() for frame in frames]
    expected = sequence_tables([*tables, tables[0]], **asked)
    assert found.column_names == expected.column_names
    assert rows_of(found) == rows_of(expected)
    assert found.num_rows > 50


def refused(spark: SparkSession) -> dict[str, tuple[Any, type[Exception], str]]:
    """What is refused when a search is planned, and the words."""
    frame = spark.createDataFrame([(1, 2, 3)], "id long, t long, other long")
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "value AS t")
    two: dict[str, Any] = {"windows": [(0, 1)], "time": "t"}
    table = pa.table({"id": [1], "t": [2]})
    copy = frame.selectExpr("*")
    return {
        "a table": (lambda: sequences([frame, table], **two), SchemaError, "b must be a Spark DataFrame"),
        "a stream": (
            lambda: sequences([frame, stream], **two), ConditionError,
            "b is a streaming.*Use sequence_streams",
        ),
        "a broadcast": (
            lambda: sequences([frame, copy], **two, options=CorrelateOptions(way="broadcast-left")),
            ConditionError, "all but one .found way='broadcast-left'.",
        ),
        "several GPUs": (
            lambda: sequences(
                [frame, copy], **two, backend="gpu", options=CorrelateOptions(devices="all")
            ),
            ConditionError, "devices",
        ),
        "other keys": (
            lambda: sequences([frame, frame], **two, by=[("id", "other")]),
            ConditionError, "the same keys at all its places .found other ones for a and b",
        ),
        "no such column": (
            lambda: sequences([frame, copy], **two, where="a_x = b_id"), SchemaError,
            "a sequence has no column 'a_x'",
        ),
        "no boolean": (
            lambda: coincidences([frame, copy], 5, time="t", where="a_id + b_id"), ConditionError,
            "true or false for a set",
        ),
        "no column": (lambda: sequences([frame, copy], **two, columns="x"), SchemaError, "'x'"),
        "one twice": (lambda: coincidences([frame, frame], 5, time="t"), ConditionError, "different"),
        "all excluded": (
            lambda: sequences([frame, copy, copy], [(0, 1), (0, 1)], time="t", total=(5, 9)),
            ConditionError, "excludes all",
        ),
        "case alone": (
            lambda: sequences(
                {"A": frame, "a": copy}, **two
            ), ConditionError, "differ only in case",
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["a table", "a stream", "a broadcast", "several GPUs", "other keys", "no column",
     "no such column", "no boolean",
     "one twice", "all excluded", "case alone"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_when_planned(spark: SparkSession, name: str) -> None:
    ask, kind, words = refused(spark)[name]
    with pytest.raises(kind, match=words):
        ask()


def test_invalid_rows_are_refused_or_dropped(spark: SparkSession) -> None:
    schema = "id long, min_time long, max_time long"
    wrong = spark.createDataFrame([(1, 5, 3), (2, 0, 1)], schema)
    right = spark.createDataFrame([(3, 1, 2)], schema)
    with pytest.raises(DataError, match="min_time"):
        sequences([wrong, right], [(0, 5)], 0.5).collect()
    with pytest.warns(DroppedRowsWarning):
        found = sequences([wrong, right], [(0, 5)], 0.5, options=CorrelateOptions(invalid="drop"))
    assert rows_of(found.toArrow()) == Counter([(2, 3)])


def test_a_limit_on_sequences_is_a_tasks(spark: SparkSession) -> None:
    frames = [spark.range(50).selectExpr("id", "id AS t") for _ in range(2)]
    found = sequences(frames, [(0, 5)], time="t", options=CorrelateOptions(max_pairs=3, slices=1))
    with pytest.raises(Exception, match="sequences"), spark_errors_as_ours():
        found.collect()


def test_a_source_with_longer_events_than_were_planned_is_an_error(spark: SparkSession) -> None:
    # Each computation is later than the one before, and gives longer events.
    schema = "CAST(unix_micros(current_timestamp()) % 1000000007 AS long)"
    growing = spark.range(1).selectExpr("id", "0L AS min_time", f"{schema} AS max_time")
    other = spark.range(1).selectExpr("id", "0L AS min_time", "5L AS max_time")
    options = CorrelateOptions(invalid="drop", way="exchange")
    found = sequences([growing, other], [(0, 5)], 0.1, options=options)
    with pytest.raises(Exception, match="current_timestamp"), spark_errors_as_ours():
        found.collect()


@pytest.mark.parametrize("is_measured", [False, True])
def test_events_longer_than_any_match_are_counted(spark: SparkSession, is_measured: bool) -> None:
    schema = "id long, min_time long, max_time long"
    rows = [[(1, 0, 3), (2, 0, 900)], [(3, 2, 4)], [(4, 3, 5), (5, None, None)]]
    frames = [spark.createDataFrame(each, schema) for each in rows]
    names = "id", "min_time", "max_time"
    tables = [
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in each]) for each in rows
    ]
    asked: dict[str, Any] = {"windows": [(0, 5), (0, 5)], "confidence": 0.6}
    reports = SequenceReport(), SequenceReport()
    options = CorrelateOptions(invalid="drop" if is_measured else "raise")
    sequences(frames, **asked, options=options, report=reports[0]).collect()
    sequence_tables(tables, **asked, report=reports[1])
    told, expected = (report.summary().streams for report in reports)
    assert told == expected
    assert told["a"].too_long == 1
