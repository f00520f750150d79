"""Random streams: what comes out is the batch join of all rows that are not late."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.helpers.spark_streams import ROCKS, random_streams, streamed

pytestmark = pytest.mark.spark


def check(spark: SparkSession, folder: Path, seed: int, shapes: int) -> None:
    for name, value in ROCKS.items():
        spark.conf.set(name, value)
    case = random_streams(seed, shapes=shapes)
    rows, progress = streamed(case.joined(spark, case.written(folder)), f"random{seed}")
    late = case.check(rows)
    counted = [each["observedMetrics"]["join0_late"] for each in progress]
    assert late == sum(each["left"] + each["right"] for each in counted)


@pytest.mark.parametrize("seed", [3, 4])
def test_some(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, seed, shapes=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 210))
def test_many(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, seed, shapes=2)
