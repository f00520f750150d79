"""The memory of Spark's Python workers while they aggregate does not grow with the number of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.processes import peak_memory
from coincide import CorrelateOptions, correlate
from tests.helpers.spark_cases import frame

pytest.importorskip("psutil")
pytestmark = [pytest.mark.spark, pytest.mark.slow]

EVENTS = 20_000
NARROW, WIDE = 50, 500
"""Half a window: 100 and 1,000 matches of each event. Rows of all pairs are 32 and 320 MB."""
MOST_MB = 40
BY_RANGES = {"n": "count", "sum": ("value", "sum"), "most": ("value", "max")}
BY_PAIRS = {"apart": ("delta", "sum")}


def test_ten_times_the_pairs(spark: SparkSession) -> None:
    """Events stay, the window is ten times as wide. Pairs are made for some aggregates, a few at a time."""
    values = np.random.default_rng(1).standard_normal(EVENTS)
    events = frame(spark, pa.table({"id": np.arange(EVENTS), "value": values})).repartition(2)
    given: dict[str, Any] = {
        "left_time": "id", "right_time": "id", "emit": "aggregates",
        "aggregates": BY_RANGES | BY_PAIRS,
        "options": CorrelateOptions(way="exchange", slices=2, batch_pairs=100_000),
    }  # fmt: skip

    def peak(half: int) -> tuple[int, float]:
        """How many pairs there are, and the MB of the largest worker meanwhile."""
        with peak_memory() as seen:
            found = correlate(events, events, within=(-half, half - 1), **given)
            row = found.agg(F.sum("n").alias("pairs")).head()
        assert row is not None
        return row["pairs"], seen.worker / 1e6

    few, before = peak(NARROW)
    many, after = peak(WIDE)
    assert many > 9 * few
    assert after - before < MOST_MB, (before, after)
