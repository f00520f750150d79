"""Filters of columns that folders name: tasks read the files that Spark would, or Spark reads them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide import CorrelateOptions, JoinReport, correlate, correlate_tables
from spark_plugin.frames.plain_reads import plain_read
from tests.helpers.rows import in_order, lists_in_order
from tests.spark_plugin.ways.files.test_folder_columns import (
    WITHIN,
    as_spark_reads,
    drawn,
    events,
    sides,
    written,
)

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]
__all__ = ["sides"]  # a fixture

ALL_FILES = "spark.sql.files.ignoreCorruptFiles"
"""A setting by which no read counts as files, and Spark's answers stay what they are."""


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A setting of Spark's, for a while."""
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def ids_of(paths: tuple[str, ...]) -> list[int]:
    """What files hold, in order."""
    return sorted(
        each for path in paths for each in pq.read_table(path, partitioning=None)["id"].to_pylist()
    )


@st.composite
def conditions(draw: st.DrawFn, values: dict[str, list[Column]]) -> Column:
    """A filter of some columns, by values that they have, and by nulls."""
    name = draw(st.sampled_from(sorted(values)))
    column, value = F.col(f"`{name}`"), st.sampled_from(values[name])
    kind = draw(st.sampled_from(["compared", "same", "in", "between", "null", "and", "or", "not"]))
    if kind == "compared":
        compare = draw(st.sampled_from([eq, ne, lt, le, gt, ge]))
        sides = [column, draw(value)]
        return compare(*(sides if draw(st.booleans()) else reversed(sides)))
    if kind == "same":
        return column.eqNullSafe(draw(value))
    if kind == "in":
        return column.isin(draw(st.lists(value, min_size=1, max_size=3)))
    if kind == "between":
        return column.between(draw(value), draw(value))
    if kind == "null":
        return column.isNull() if draw(st.booleans()) else column.isNotNull()
    if kind == "not":
        return ~draw(conditions(values))
    return (and_ if kind == "and" else or_)(draw(conditions(values)), draw(conditions(values)))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_files_that_filters_leave_are_those_of_spark(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("told") / "events"
    names, rows = drawn(data, folder)
    frame = spark.read.parquet(str(folder))
    types = {name: frame.schema[name].dataType for name in names}
    values = {
        name: [F.lit(each[i]).cast(types[name]) for each in rows] + [F.lit(None)]
        for i, name in enumerate(names)
        if types[name] != T.NullType()
    }
    assume(values)
    condition = data.draw(conditions(values))
    filtered = frame.where(condition)
    expected = sorted(filtered.select("id").toArrow()["id"].to_pylist())
    read = plain_read(filtered, ["id"])
    assert (ids_of(read.paths) if read else []) == expected
    assert (read is None) == (not expected)


def swapped(frame: DataFrame) -> DataFrame:
    """Both columns of folders, each by the other's name."""
    return frame.selectExpr("id", "min_time", "max_time", "part AS text", "text AS part")


FILTERS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a comparison": lambda f: f.where("part >= 2"),
    "a comparison with text": lambda f: f.where("part < '2'"),
    "with a number of another type": lambda f: f.where("part > 1.5"),
    "between": lambda f: f.where("part BETWEEN 1 AND 2"),
    "one of": lambda f: f.where("text IN ('null', 'a,b', 'none such')"),
    "none of, which leaves out nulls": lambda f: f.where("text NOT IN ('null', 'a,b')"),
    "nulls": lambda f: f.where("text IS NULL OR part IS NULL"),
    "equal or null": lambda f: f.where("NOT (text <=> NULL) AND NOT text <=> '07'"),
    "not": lambda f: f.where(~((F.col("part") == 1) | (F.col("text") == "null"))),
    "names in other letters": lambda f: f.where("PART > 0 AND Text > 'a'"),
    "the other way round": lambda f: f.where("2 <= part"),
    "columns with each other": lambda f: f.where("CAST(part AS STRING) < text"),
    "twice": lambda f: f.where("part > 0").alias("a").where("a.part < 3").where("text <> 'null'"),
    "above chosen columns": lambda f: f.drop("value").where("part = 1"),
    "below chosen columns": lambda f: f.where("part = 1").drop("text", "value"),
    "above new names": lambda f: f.withColumnRenamed("part", "p").where("p = 1 OR p IS NULL"),
    "below swapped names": lambda f: swapped(f.where("part <> 1")),
    "between swapped names": lambda f: swapped(f.where("part > 0")).where("part <> '07'"),
    "a date that is computed from a text": lambda f: f.where(
        "to_date('2026-11-02') > DATE'2026-11-01' AND part = 1 OR part = 2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_of_folders_leaves_files(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame], name: str
) -> None:
    filtered = FILTERS[name](sides[0])
    read = plain_read(filtered, ["id", "min_time", "max_time"])
    assert read is not None
    found = ids_of(read.paths)
    assert 0 < len(found) < 400
    assert found == sorted(filtered.select("id").toArrow()["id"].to_pylist())
    with setting(spark, ALL_FILES, "true"):
        assert plain_read(filtered, ["id"]) is None


@pytest.mark.parametrize("way", ["auto", "exchange"])
@pytest.mark.parametrize("name", ["one of", "nulls", "between swapped names", "between"])
def test_joins_of_what_filters_leave(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame], name: str, way: Any
) -> None:
    left, right = FILTERS[name](sides[0]), sides[1].where("part IN (1, 2, 3)")
    asked: dict[str, Any] = {
        **WITHIN, "how": "left", "left_columns": ["id", "part", "text"], "right_columns": ["part"],
    }  # fmt: skip
    report = JoinReport()
    found = correlate(left, right, **asked, options=CorrelateOptions(way=way), report=report)
    assert "parquet" not in str(found._jdf.queryExecution().optimizedPlan().toString())
    expected = correlate_tables(*map(as_spark_reads, (left, right)), **asked)
    table = found.toArrow()
    assert table.num_rows > 0
    assert in_order(table) == in_order(expected.cast(table.schema))
    assert report.summary().way == ("files" if way == "auto" else way)
    assert report.summary().left.rows == left.count() < sides[0].count()
    with setting(spark, ALL_FILES, "true"):
        closed = correlate(left, right, **asked, options=CorrelateOptions(way="exchange"))
        assert "parquet" in str(closed._jdf.queryExecution().optimizedPlan().toString())
        assert in_order(closed.toArrow()) == in_order(table)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_instants_and_dates_are_compared_in_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    days = pa.array([f"2026-11-0{1 + i % 4}" for i in range(400)])
    table = events(1).drop_columns(["text", "part"]).append_column("day", days)
    written(tmp_path / "lake", table, "day")
    with setting(spark, "spark.sql.session.timeZone", zone):
        frame = spark.read.parquet(str(tmp_path / "lake"))
        for condition in (
            "day >= '2026-11-02'",
            "day > TIMESTAMP'2026-11-02 02:00:00Z'",
            "day < TIMESTAMP'2026-11-03 03:30:00'",
            "CAST(day AS TIMESTAMP) = TIMESTAMP'2026-11-03 00:00:00'",
        ):
            filtered = frame.where(condition)
            read = plain_read(filtered, ["id", "day"])
            assert read is not None
            assert ids_of(read.paths) == sorted(filtered.toArrow()["id"].to_pylist())
            assert 0 < len(read.paths) < 4


CLOSED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a column of files": lambda f: f.where("id > 1010"),
    "both": lambda f: f.where("part = 1 AND value > 0"),
    "one after the other": lambda f: f.where("part = 1").where("value > 0"),
    "one or the other": lambda f: f.where("part = 1 OR value > 0"),
    "a column of files that has the name of a folder's": lambda f: (
        f.drop("part").withColumnRenamed("id", "part").where("part > 1010")
        .withColumnRenamed("part", "id")
    ),
    "one computed of both": lambda f: f.withColumn("x", F.col("part") + F.col("id")).where("x > 9"),
    "chance": lambda f: f.where("part > rand(1) * 3"),
    "above chance": lambda f: f.withColumn("r", F.rand(1)).where("part = 1"),
    "today": lambda f: f.where("part < year(current_date())"),
    "arithmetic": lambda f: f.where("part + 1 > 2"),
    "a pattern": lambda f: f.where("text LIKE 'a%'"),
    "a function": lambda f: f.where(F.udf(lambda part: part == 1, "boolean")("part")),
    "a subquery": lambda f: f.where("part = (SELECT 1)"),
    "a subquery of rows": lambda f: f.where("part IN (SELECT 1)"),
    "no column": lambda f: f.where("part = 1").where("1 < 2"),
    "above a limit": lambda f: f.limit(100).where("part = 1"),
    "above a union": lambda f: f.unionAll(f).where("part = 1"),
    "no file left": lambda f: f.where("part = 77"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED)
def test_other_filters_are_sparks(sides: tuple[DataFrame, DataFrame], name: str) -> None:
    assert plain_read(CLOSED[name](sides[0]), ["id", "min_time", "max_time"]) is None
    assert plain_read(sides[0], ["id", "min_time", "max_time"]) is not None


@pytest.mark.parametrize("name", ["both", "no file left", "today"])
def test_joins_of_what_spark_filters(sides: tuple[DataFrame, DataFrame], name: str) -> None:
    given = CLOSED[name](sides[0]), sides[1]
    report = JoinReport()
    found = correlate(*given, **WITHIN, how="full", report=report).toArrow()
    expected = correlate_tables(*map(as_spark_reads, given), **WITHIN, how="full")
    assert found.num_rows
    assert in_order(found) == in_order(expected.cast(found.schema))
    assert report.summary().way != "files"


def test_what_is_cached_with_a_filter_is_no_read(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    left = sides[0].where("part = 1").cache()
    try:
        assert plain_read(left, ["id"]) is None
        assert plain_read(left.where("text IS NULL"), ["id"]) is None
    finally:
        left.unpersist()
    assert plain_read(left, ["id"]) is not None


def test_a_value_that_is_none_of_its_type_is_an_error_of_sparks(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame], caplog: pytest.LogCaptureFixture
) -> None:
    left = sides[0].where("part = 'one'")
    with caplog.at_level(logging.WARNING, "coincide"):
        assert plain_read(left, ["id"]) is None
    assert "files go through Spark" in caplog.text
    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        correlate(left, sides[1], **WITHIN).toArrow()


def test_keys_of_filtered_folders(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = (side.where("part >= 1 AND text IS NOT NULL") for side in sides)
    asked: dict[str, Any] = {**WITHIN, "by": ["part", "text"], "emit": "lists"}
    found = correlate(left, right, **asked, options=CorrelateOptions(slices=5, way="exchange"))
    expected = correlate_tables(*map(as_spark_reads, (left, right)), **asked)
    assert expected.num_rows
    table = found.toArrow()
    assert lists_in_order(table) == lists_in_order(expected.cast(table.schema))


def test_many_folders_take_few_questions(spark: SparkSession, tmp_path: Path) -> None:
    parts = [str(i % 60) for i in range(400)]
    table = events(1).drop_columns(["text", "part"]).append_column("part", pa.array(parts))
    written(tmp_path / "lake", table, "part")
    frame = spark.read.parquet(str(tmp_path / "lake"))
    wanted = reduce(or_, (F.col("part") == i for i in range(50)))
    jobs = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("planned", "")
    try:
        read = plain_read(frame.where(wanted), ["id", "part"])
        assert not jobs.getJobIdsForGroup("planned")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert read is not None
    assert len(read.paths) == 50
