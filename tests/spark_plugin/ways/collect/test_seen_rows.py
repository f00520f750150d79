"""Few rows of what Spark takes for many: once a look has told how few they are, they are collected, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import CorrelateOptions, TimingCondition, correlate_tables, within
from coincide.errors import DataError
from spark_plugin.ways import matching
from spark_plugin.ways.collect import collecting
from spark_plugin.ways.correlation import Correlation
from tests.helpers.joins import plan_correlation
from tests.helpers.spark_cases import frame, pair_ids

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-4, 6), 0.5)


def stream(seed: int, n: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 4000, n)
    return pa.table({
        "min_time": low, "max_time": low + rng.integers(0, 9, n), "id": range(n),
        "word": ["a word"] * n,
    })  # fmt: skip


LEFT, RIGHT = stream(1), stream(2)


def many(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Rows that Spark takes for as many as there can be: those of an RDD it does not know."""
    rows = frame(spark, table)
    return spark.createDataFrame(rows.rdd, rows.schema)


def planned(
    spark: SparkSession, options: CorrelateOptions | None = None, **arguments: Any
) -> Correlation:
    sides = many(spark, LEFT), many(spark, RIGHT)
    return plan_correlation(*sides, CONDITION, options=options or CorrelateOptions(), **arguments)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sides of each look."""
    seen: list[Any] = []
    look_at = matching.look_at
    monkeypatch.setattr(
        matching, "look_at", lambda sides, *others: seen.append(sides) or look_at(sides, *others)
    )
    return seen


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was collected."""
    seen: list[Any] = []
    collect = collecting.collected_rows
    monkeypatch.setattr(
        collecting, "collected_rows", lambda *asked: seen.append(asked) or collect(*asked)
    )
    return seen


@pytest.mark.parametrize("arguments", [{}, {"by": "word", "how": "left"}, {"matching": "optimal"}])
def test_few_rows_are_looked_at_and_collected(
    spark: SparkSession, looks: list[Any], collections: list[Any], arguments: dict[str, Any]
) -> None:
    join = planned(spark, **arguments)
    assert (join.way, len(looks), len(collections)) == ("collect", 1, 2)
    expected = correlate_tables(LEFT, RIGHT, CONDITION, **arguments)
    ids = zip(expected["left_id"].to_pylist(), expected["right_id"].to_pylist(), strict=True)
    assert expected.num_rows > 100
    assert pair_ids(join.dataframe) == sorted(ids)


@pytest.mark.parametrize(
    "options",
    [
        {"slice_rows": 299},
        {"slice_bytes": 2000},
        {"broadcast_bytes": 0},
        {"way": "exchange"},
        {"slices": 4},
    ],
    ids=repr,
)
def test_options_keep_them_apart(
    spark: SparkSession, collections: list[Any], options: dict[str, Any]
) -> None:
    join = planned(spark, CorrelateOptions(**options), left_columns=["id", "word"])
    assert join.way != "collect"
    assert collections == []


def test_as_many_as_options_allow(spark: SparkSession) -> None:
    size = 300 * (16 + 8)
    for least, is_collected in ((2 * size, True), (2 * size - 1, False)):
        options = CorrelateOptions(slice_bytes=least)
        join = planned(spark, options, left_columns="id", right_columns="id")
        assert (join.way == "collect") == is_collected
    assert planned(spark, CorrelateOptions(slice_rows=300)).way == "collect"


def test_of_nested_columns_nobody_knows_the_size(
    spark: SparkSession, collections: list[Any]
) -> None:
    left = many(spark, LEFT.append_column("nested", pa.array([["x"]] * LEFT.num_rows)))
    join = plan_correlation(left, many(spark, RIGHT), CONDITION, left_columns=["id", "nested"])
    assert join.way != "collect"
    assert collections == []


def test_what_was_collected_in_vain_is_not_collected_again(
    spark: SparkSession, collections: list[Any]
) -> None:
    sides = frame(spark, LEFT), frame(spark, RIGHT)
    join = plan_correlation(*sides, CONDITION, options=CorrelateOptions(slice_rows=299))
    assert (join.way != "collect", len(collections)) == (True, 2)


def test_invalid_rows_are_told_of_as_always(spark: SparkSession) -> None:
    bad = LEFT.set_column(1, "max_time", pa.array(LEFT["min_time"].to_numpy() - 1))
    sides = many(spark, pa.concat_tables([LEFT, bad.slice(0, 5)])), many(spark, RIGHT)
    with pytest.raises(DataError, match="in 5 rows"):
        plan_correlation(*sides, CONDITION)
    join = plan_correlation(
        *sides, CONDITION, options=CorrelateOptions(invalid="drop"), observe=True
    )
    assert join.way == "collect"
    assert len(pair_ids(join.dataframe)) == correlate_tables(LEFT, RIGHT, CONDITION).num_rows
