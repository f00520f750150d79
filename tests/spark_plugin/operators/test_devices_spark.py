"""Spark deals its GPUs: no operator on Spark takes all those of a process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    accidental_pairs,
    correlate,
    correlate_files,
)
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

EVENTS = pa.table({"id": [0, 1], "min_time": [0, 5], "max_time": [1, 6]})
GIVEN: dict[str, Any] = {
    "within": (-5, 5), "confidence": 0.5, "backend": "gpu",
    "options": CorrelateOptions(devices="all"),
}  # fmt: skip
Ask = Callable[[SparkSession, DataFrame, Path], object]


@pytest.mark.parametrize(
    "ask",
    [
        lambda _, events, __: correlate(events, events, **GIVEN),
        lambda _, events, __: accidental_pairs(events, events, shifts=(50,), **GIVEN),
        lambda spark, _, path: correlate_files(spark, path, path, **GIVEN),
        lambda spark, _, path: correlate_files(
            spark, path, path, output=path.parent / "o", **GIVEN
        ),
    ],
    ids=["frames", "accidental", "files", "to files"],
)
def test_all_devices_are_refused(spark: SparkSession, ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(EVENTS, path)
    with pytest.raises(
        ConditionError, match=r"a task has the one that Spark gives it\. Remove it\."
    ):
        ask(spark, frame(spark, EVENTS), path)
    assert list(tmp_path.iterdir()) == [path]
