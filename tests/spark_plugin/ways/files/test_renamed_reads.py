"""Plain reads of Parquet whose columns have other names in the files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CorrelateOptions,
    JoinReport,
    TimingCondition,
    around,
    correlate,
    correlate_tables,
    histograms,
    within,
)
from coincide.engine.events.time_arguments import AroundByRow
from coincide.model.errors import ConditionError
from tests.helpers.histogram_tables import by_device, events, random_templates
from tests.helpers.rows import lists_in_order, sorted_table
from tests.spark_plugin.ways.files.test_direct_spark import CONDITION, expected
from tests.spark_plugin.ways.files.test_plain_frames import read, sides, way_of

pytestmark = pytest.mark.spark
__all__ = ["sides"]  # a fixture


RENAMED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "by withColumnsRenamed": lambda frame: frame.withColumnsRenamed(
        {"id": "number", "min_time": "from", "max_time": "to", "key": "truck"}
    ),
    "by select": lambda frame: frame.selectExpr(
        "key AS truck", "id + 1 AS id", "id AS number", "max_time AS `to`", "min_time AS `from`"
    ),
    "in two steps": lambda frame: frame.toDF(*(f"{name} of" for name in frame.columns)).selectExpr(
        "`id of` AS number", "`min_time of` AS `from`", "`max_time of` AS `to`", "`key of` AS truck"
    ),
    "one for another": lambda frame: frame.selectExpr(
        "id AS number",
        "min_time AS `from`",
        "max_time AS `to`",
        "key AS truck",
        "id AS key",
        "key AS id",
    ),
}


@pytest.mark.parametrize(
    ("how_made", "emit"),
    [
        ("by withColumnsRenamed", "pairs"), ("by select", "lists"), ("in two steps", "counts"),
        ("one for another", "pairs"), ("one for another", "lists"),
    ],
)  # fmt: skip
def test_renamed_columns_are_those_of_the_files(
    spark: SparkSession, sides: tuple[Path, Path], how_made: str, emit: Any
) -> None:
    left, right = read(spark, sides)
    report = JoinReport()
    found = correlate(
        RENAMED[how_made](left), right, CONDITION, left_time=("from", "to"), left_columns=["number"],
        by=[("truck", "key")], how="left", emit=emit, report=report,
    )  # fmt: skip
    wanted = correlate_tables(
        *map(pq.read_table, sides), CONDITION, by="key", how="left", emit=emit
    )
    wanted = wanted.rename_columns(["truck", "left_number", *wanted.column_names[2:]])
    assert lists_in_order(found.toArrow()) == lists_in_order(wanted)
    assert report.summary().way == "files"


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (around("t", 3), around("min_time", 3)),
        (around("t", column=("off", "late")), around("min_time", column=("key", "other"))),
        ("t", "min_time"),
    ],
    ids=["by a number", "by rows", "exact"],
)
def test_around_renamed_stamps(
    spark: SparkSession, sides: tuple[Path, Path], given: Any, stored: Any
) -> None:
    left = pq.read_table(sides[0])
    other = pc.add(left.column("key"), 50)
    pq.write_table(left.append_column("other", other), sides[0], row_group_size=500)
    frames = read(spark, sides)
    named = frames[0].selectExpr("id AS number", "min_time AS t", "key AS off", "other AS late")
    is_by_row = isinstance(given, AroundByRow)
    report, options = JoinReport(), CorrelateOptions(left_longest=100 if is_by_row else None)
    found = correlate(
        named, frames[1], CONDITION, left_time=given, left_columns="number", report=report,
        options=options,
    )  # fmt: skip
    wanted = correlate_tables(*map(pq.read_table, sides), CONDITION, left_time=stored)
    wanted = wanted.rename_columns(["left_number", "right_id"])
    assert sorted_table(found.toArrow().cast(wanted.schema)) == sorted_table(wanted)
    assert report.summary().way == "files"


def test_one_column_under_two_names(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, right = read(spark, sides)
    twice = left.selectExpr("id AS a", "id AS b", "min_time", "max_time")
    assert way_of(twice, right, left_columns=["b"]) == "files"
    asked = {"left_columns": ["b", "a"], "options": CorrelateOptions(way="files")}
    found = correlate(twice, right, CONDITION, **asked).toArrow()
    assert found.column_names == ["left_b", "left_a", "right_id"]
    assert found.column("left_a") == found.column("left_b")
    wanted = expected(sides).rename_columns(["left_a", "right_id"])
    assert sorted_table(found.drop_columns("left_b").cast(wanted.schema)) == sorted_table(wanted)


def test_one_renamed_stream(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, _ = read(spark, sides)
    report = JoinReport()
    found = correlate(
        left.withColumnsRenamed({"id": "n", "min_time": "t", "key": "k"}), None, CONDITION,
        left_time=("t", "max_time"), by="k", left_columns=["n"], right_columns=["n"], report=report,
    )  # fmt: skip
    wanted = correlate_tables(pq.read_table(sides[0]), None, CONDITION, by="key")
    wanted = wanted.rename_columns(["k", "left_n", "right_n"])
    assert sorted_table(found.toArrow().cast(wanted.schema)) == sorted_table(wanted)
    assert report.summary().way == "files"


def test_a_condition_on_renamed_columns(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, right = read(spark, sides)
    swapped = left.selectExpr("id AS key", "key AS id", "min_time", "max_time")
    asked = {"where": "left_id = right_id", "options": CorrelateOptions(way="files")}
    found = correlate(swapped, right, CONDITION, **asked).toArrow()
    stored = pq.read_table(sides[0], columns=["id", "key"]).to_pylist()
    keys = {row["id"]: row["key"] for row in stored}
    wanted = expected(sides).to_pylist()
    assert found.num_rows
    assert sorted(found.column("right_id").to_pylist()) == sorted(
        pair["right_id"] for pair in wanted if keys[pair["left_id"]] == pair["right_id"]
    )
    with pytest.raises(ConditionError, match="would be named left_id"):
        correlate(
            left.withColumnRenamed("key", "left_id"), right, CONDITION, by=[("left_id", "key")]
        )


def test_renamed_columns_of_histograms(spark: SparkSession, tmp_path: Path) -> None:
    paths, templates = [tmp_path / "left.parquet", tmp_path / "right.parquet"], random_templates(3)
    tables = [events(seed, 300) for seed in (5, 6)]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, row_group_size=50)
    condition = TimingCondition(within(-20, 20), 0.6)
    named = spark.read.parquet(str(paths[0])).selectExpr("seen_at AS device", "device AS t", "id")
    found = correlate(
        named, spark.read.parquet(str(paths[1])), condition,
        left_time=histograms("device", template="t", templates=templates),
        right_time=by_device(templates), options=CorrelateOptions(way="files"),
    ).toArrow()  # fmt: skip
    clocks = {"left_time": by_device(templates), "right_time": by_device(templates)}
    wanted = correlate_tables(*tables, condition, **clocks)
    assert wanted.num_rows
    assert sorted_table(found.cast(wanted.schema)) == sorted_table(wanted)


def test_renamed_instants_of_an_old_kind_are_read_by_spark(
    spark: SparkSession, sides: tuple[Path, Path]
) -> None:
    table = pq.read_table(sides[0])
    when = pa.array([dt.datetime(2, 1, 1)] * table.num_rows, pa.timestamp("us", "UTC"))
    table = table.append_column("seen", when)
    pq.write_table(table, sides[0], use_deprecated_int96_timestamps=True, row_group_size=500)
    left, right = read(spark, sides)
    named = left.withColumnsRenamed({"seen": "when", "id": "n"})
    assert way_of(named, right, left_columns=["n"]) == "files"
    assert way_of(named, right, left_columns=["n", "when"]) != "files"
