"""Reports of actions that Spark stops early, after tasks that have come to their end."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CorrelateOptions,
    JoinReport,
    NoPairsWarning,
    TimingCondition,
    correlate,
    within,
)

pytestmark = pytest.mark.spark
CONDITION = TimingCondition(within(-40, 60), 0.6)


def sides(spark: SparkSession, folder: Path, way: str) -> list[DataFrame]:
    """Two streams of which only the last quarter has partners, in files of small row groups."""
    low = np.arange(400) * 1000
    shift = np.where(np.arange(400) < 300, 500, 0)
    frames = []
    for name, begin in (("left", low), ("right", low + shift)):
        table = pa.table({"id": np.arange(400), "min_time": begin, "max_time": begin + 10})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=50)
        frames.append(spark.read.parquet(str(folder / f"{name}.parquet")))
    return frames if way == "direct" else [frame.where("id >= 0") for frame in frames]


@pytest.mark.parametrize("way", ["direct", "exchange"])
def test_what_ended_before_is_not_taken_for_all(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    """Slices without pairs came to their end, and the one that has some was stopped."""
    report = JoinReport()
    options = CorrelateOptions(way=way, slices=4)  # type: ignore[arg-type]
    found = correlate(*sides(spark, tmp_path, way), CONDITION, options=options, report=report)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoPairsWarning)
        assert len(found.take(1)) == 1
        assert report.summary().counters is None
        assert report.summary().no_pairs is None


@pytest.mark.parametrize("way", ["direct", "exchange"])
def test_all_that_ended_is_told(spark: SparkSession, tmp_path: Path, way: str) -> None:
    report = JoinReport()
    options = CorrelateOptions(way=way, slices=4)  # type: ignore[arg-type]
    found = correlate(*sides(spark, tmp_path, way), CONDITION, options=options, report=report)
    assert len(found.take(401)) == 100
    counters = report.summary().counters
    assert counters is not None
    assert counters.pairs == 100
