"""Which matches a join returns: second preferences, assignments, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    SchemaError,
    TimingCondition,
    correlate,
    correlate_files,
    correlate_tables,
    histograms,
    within,
)
from coincide.engine.files.planning import NotDirect
from tests.helpers.joins import plan_correlation
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import SPREAD, frame, settings

if TYPE_CHECKING:
    from spark_plugin.ways.correlation import Correlation

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("any_order")]
CONDITION = TimingCondition(within(-15, 25), 0.05)
COLUMNS = {
    "by": "key", "left_columns": ["name", "id"], "right_columns": ["weight", "name", "id"],
}  # fmt: skip


def events(n: int, seed: int) -> pa.Table:
    """Equal times, midpoints, names and weights, nulls and NaN among them; long pauses between bursts."""
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 5, n) * 1000 + rng.integers(0, 9, n) * 10)
    table = pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 10, 20], n),
        "name": pa.array(rng.choice(["b", "ab", "", "é", None], n)),
        "weight": pa.array(rng.choice([np.nan, -1.0, 0.5, None], n).tolist(), pa.float64()),
        "key": pa.array(rng.choice([1, 2, None], n, p=[0.5, 0.4, 0.1]).tolist(), pa.int64()),
        "id": np.arange(n) // 2,
    })  # fmt: skip
    # Some events are alike in all.
    return pa.concat_tables([table, table.slice(3, 12)])


SIDES = events(90, 1), events(120, 2)
OPTIONS = {
    "small slices": CorrelateOptions(way="exchange", slice_rows=24),
    "files": CorrelateOptions(way="files", slices=4),
}


def joined(spark: SparkSession, way: str, **arguments: Any) -> Correlation:
    options = OPTIONS.get(way) or CorrelateOptions(way=way)
    frames = (frame(spark, table).repartition(3) for table in SIDES)
    return plan_correlation(
        *frames, CONDITION, options=options, observe=True, **COLUMNS | arguments
    )


def joined_directly(spark: SparkSession, folder: Path, **arguments: Any) -> DataFrame:
    paths = folder / "left.parquet", folder / "right.parquet"
    for path, table in zip(paths, SIDES, strict=True):
        pq.write_table(table, path, row_group_size=16)
    given = COLUMNS | arguments
    return correlate_files(spark, *paths, CONDITION, options=OPTIONS["files"], **given)


@pytest.fixture
def few_partitions(spark: SparkSession) -> Iterator[None]:
    with settings(spark, SPREAD):
        yield


CASES = int(os.environ.get("COINCIDE_CASES", "3"))
WAYS = "exchange", "small slices", "broadcast-left", "broadcast-right", "files"


@pytest.mark.parametrize("seed", range(CASES))
def test_a_second_column_decides_among_equals(
    spark: SparkSession, small_slices: None, few_partitions: None, tmp_path: Path, seed: int
) -> None:
    """Drawn: the first preference, the column, and what the answer looks like."""
    rng = np.random.default_rng([7, seed])
    first = str(rng.choice(["probability", "nearest", "first", "last", "weight", "-weight"]))
    second = str(rng.choice(["weight", "-weight", "id", "-id", "-min_time"]))
    given: dict[str, Any] = {"prefer": (first, second), "how": str(rng.choice(["inner", "left"]))}
    if rng.integers(3) == 0:
        given["matching"] = "mutual"
        given["right_columns"] = ["name", "weight", "id", "min_time"]
    else:
        given |= {"emit": "best", "k": int(rng.integers(1, 4))}
        given["ties"] = str(rng.choice(["order", "all"]))
    ways = [way for way in WAYS if way != "files" or given["how"] == "inner"]
    way = ways[int(rng.integers(len(ways)))]
    if way == "files":
        found = joined_directly(spark, tmp_path, **given)
    else:
        found = joined(spark, way, **given).dataframe
    expected = correlate_tables(*SIDES, CONDITION, **COLUMNS | given)
    assert expected.num_rows > 10
    assert in_order(found.toArrow()) == in_order(expected)


def test_tasks_compare_numbers_and_times_alone(spark: SparkSession, tmp_path: Path) -> None:
    for way in ("exchange", "files"):
        join = joined_directly if way == "files" else joined
        first = tmp_path if way == "files" else way
        with pytest.raises(
            SchemaError, match=r"on Spark takes a column of numbers or times .*name"
        ):
            join(spark, first, emit="best", prefer=["last", "-name"])


def test_the_optimal_assignment_does_not_depend_on_slices(
    spark: SparkSession, small_slices: None, few_partitions: None
) -> None:
    given = {"matching": "optimal", "prefer": "nearest", "probability": True, "how": "left"}
    planned = joined(spark, "small slices", **given)
    assert planned.plan.count > 4
    expected = correlate_tables(*SIDES, CONDITION, **COLUMNS, **given)
    assert expected.num_rows > 40
    assert in_order(planned.dataframe.toArrow()) == in_order(expected)
    spread = planned.dataframe.selectExpr("spark_partition_id() AS p").distinct()
    assert spread.count() > 1


def test_a_matching_of_nothing_says_so(spark: SparkSession, few_partitions: None) -> None:
    for matching in ("mutual", "optimal"):
        right = frame(spark, SIDES[1].slice(0, 0))
        planned = plan_correlation(
            frame(spark, SIDES[0]), right, CONDITION, matching=matching, observe=True, **COLUMNS
        )
        assert planned.dataframe.toArrow().num_rows == 0
        summary = planned.summary()
        assert summary.counters is None or summary.counters.pairs == 0


def test_what_cannot_be_matched_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load()
    stream = stream.selectExpr("value AS id", "value AS min_time", "value AS max_time")
    longest = CorrelateOptions(way="broadcast-right", left_longest=0, right_longest=9)
    with pytest.raises(ConditionError, match=r"left is streaming.*Remove matching"):
        correlate(
            stream, frame(spark, SIDES[1]), CONDITION, matching="mutual", options=longest
        )  # fmt: skip
    with pytest.raises(ConditionError, match="Remove way='broadcast-left'"):
        joined(spark, "broadcast-left", matching="optimal")
    with pytest.raises(NotDirect, match="compares pairs of different slices of files"):
        joined_directly(spark, tmp_path, matching="optimal")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            {"where": "left_more > 0"},
            "on Spark identifies events by their output columns. Add 'more'",
        ),
        (
            {
                "left_time": histograms(
                    "min_time", template="key", templates={"a": ([-1, 0], [1.0])}
                )
            },
            "on Spark identifies events by their output columns. Add 'key'",
        ),
    ],
    ids=["where", "histograms"],
)
def test_events_that_cannot_be_known_again_are_not_matched(
    spark: SparkSession, asked: dict[str, Any], told: str
) -> None:
    rows = pa.table({"id": [1], "min_time": [0], "max_time": [1], "key": ["a"], "more": [1]})
    events = spark.createDataFrame(rows)
    with pytest.raises(ConditionError, match=told):
        correlate(events, events, within=(0, 5), confidence=0.5, matching="mutual", **asked)
    known = {**asked, "left_columns": ["id", "key", "more"]}
    assert correlate(
        events, events, within=(0, 5), confidence=0.1, matching="mutual", **known
    ).count()
