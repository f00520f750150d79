"""Sizes of rows on the wire."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_plugin.frames.estimates import are_narrow
from tests.helpers.spark_cases import frame
from tests.spark_plugin.frames.test_statistics import events

NUMBERS = {f"n{i}": pa.array([0], pa.int64()) for i in range(200)}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("columns", "expected"),
    [(["n0", "n1"], True), (["n0", "word"], False), (list(NUMBERS), False)],
)
def test_rows_that_are_narrow(spark: SparkSession, columns: list[str], expected: bool) -> None:
    """Alike and short: neither texts of any length nor hundreds of numbers."""
    times = {name: pa.array([0], pa.int64()) for name in ("min_time", "max_time")}
    source = frame(spark, pa.table({**times, **NUMBERS, "word": ["x"]}))
    wide, narrow = (replace(events("left", source), payload=each) for each in (columns, ["n0"]))
    assert are_narrow((narrow, wide)) == expected
    assert are_narrow((wide, narrow)) == expected
