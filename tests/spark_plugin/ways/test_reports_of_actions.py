"""Reports of actions that need a part of the result, compute it more than once, or fail."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
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
WAYS = [
    "files", "broadcast",
    *(pytest.param(way, marks=pytest.mark.slow) for way in ("exchange", "broadcast-both")),
]  # fmt: skip


def sides(spark: SparkSession, folder: Path, way: str) -> list[DataFrame]:
    """Two streams of which only the last quarter has matches, in files of small row groups."""
    low = np.arange(400) * 1000
    shift = np.where(np.arange(400) < 300, 500, 0)
    frames = []
    for name, begin in (("left", low), ("right", low + shift)):
        table = pa.table({"id": np.arange(400), "min_time": begin, "max_time": begin + 10})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=10)
        frames.append(spark.read.parquet(str(folder / f"{name}.parquet")))
    return frames if way == "files" else [frame.where("id >= 0") for frame in frames]


@pytest.mark.parametrize("way", ["files", "exchange"])
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


@pytest.mark.parametrize(
    ("way", "how", "action"),
    [
        *((way, "left", "take") for way in ("files", "exchange", "broadcast", "broadcast-both")),
        ("files", "anti", "take"),
        pytest.param("files", "left", "tail", marks=pytest.mark.slow),
        ("broadcast", "left", "tail"),
    ],
)
def test_what_was_not_begun_is_not_taken_for_nothing(
    spark: SparkSession, tmp_path: Path, way: str, how: str, action: str
) -> None:
    """Events without a match are all that is needed, and no task is stopped in its middle."""
    report = JoinReport()
    options = CorrelateOptions(way=way, slices=12 if way in ("files", "exchange") else None)  # type: ignore[arg-type]
    left, right = sides(spark, tmp_path, way)
    if way == "broadcast":
        left = left.repartitionByRange(12, "id")
    found = correlate(left, right, CONDITION, how=how, options=options, report=report)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoPairsWarning)
        assert len(getattr(found, action)(12)) == 12
        assert report.summary().no_pairs is None
    counters = report.summary().counters
    assert counters is None or counters.pairs == 100


@pytest.mark.parametrize("way", ["files", "exchange"])
def test_all_that_ended_is_told(spark: SparkSession, tmp_path: Path, way: str) -> None:
    report = JoinReport()
    options = CorrelateOptions(way=way, slices=4)  # type: ignore[arg-type]
    found = correlate(*sides(spark, tmp_path, way), CONDITION, options=options, report=report)
    assert len(found.take(401)) == 100
    counters = report.summary().counters
    assert counters is not None
    assert counters.pairs == 100


@pytest.mark.parametrize("way", WAYS)
def test_what_a_sort_computes_twice_is_told_once(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    report = JoinReport()
    options = CorrelateOptions(way=way)  # type: ignore[arg-type]
    found = correlate(*sides(spark, tmp_path, way), CONDITION, options=options, report=report)
    found.repartitionByRange(2, "left_id").write.parquet(str(tmp_path / "out"))
    summary = report.summary()
    assert summary.counters is not None
    assert summary.counters.pairs == 100
    assert summary.left is None or summary.left.rows == 400


@pytest.mark.parametrize("way", WAYS)
def test_of_what_never_began_nothing_is_told(spark: SparkSession, tmp_path: Path, way: str) -> None:
    report = JoinReport()
    options = CorrelateOptions(way=way)  # type: ignore[arg-type]
    found = correlate(*sides(spark, tmp_path, way), CONDITION, options=options, report=report)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoPairsWarning)
        with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
            found.write.parquet(str(tmp_path))
        assert report.summary().counters is None


@pytest.mark.parametrize("way", ["files", "exchange"])
def test_two_joins_of_one_query_have_reports(spark: SparkSession, tmp_path: Path, way: str) -> None:
    near, far = JoinReport(), JoinReport()
    options = CorrelateOptions(way=way)  # type: ignore[arg-type]
    left, right = sides(spark, tmp_path, way)
    beyond = TimingCondition(within(460, 560), 0.6)
    found = correlate(left, right, CONDITION, options=options, report=near).unionAll(
        correlate(left, right, beyond, options=options, report=far)
    )
    assert found.count() == 400
    counted = [report.summary().counters for report in (near, far)]
    assert [each and each.pairs for each in counted] == [100, 300]
    again = JoinReport()
    chained = correlate(
        correlate(left, right, CONDITION, left_columns="*", report=near).selectExpr(
            "left_min_time AS min_time", "left_max_time AS max_time", "left_id AS id"
        ),
        right, CONDITION, report=again, options=CorrelateOptions(way="exchange"),
    )  # fmt: skip
    assert chained.count() == 100
    summary = again.summary()
    assert summary.counters is not None
    assert summary.counters.pairs == 100
