"""Which of the matches that several tasks have found is the best one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_plugin.ways.partial_results import order_of_best

pytestmark = pytest.mark.spark

ALIKE = (0.7, 0.7 + 2**-52)
"""Sums over buckets that would be equal but for rounding."""


@pytest.mark.parametrize(("are_uniform", "best"), [(False, "near"), (True, "likely")])
def test_probabilities_of_histograms_are_compared_as_kernels_do(
    spark: SparkSession, are_uniform: bool, best: str
) -> None:
    """To one part in 2**40, so that the nearer one of two that are as likely wins."""
    rows = [
        ("likely", ALIKE[1], 5), ("near", ALIKE[0], 3), ("far", ALIKE[0], 9),
        ("unlikely", 0.6999, 0), ("none", None, None),
    ]  # fmt: skip
    parts = spark.createDataFrame(rows, "name string, probability double, distance long")
    least = order_of_best([], "probability", "distance", are_uniform=are_uniform)
    found = parts.selectExpr(f"min_by(name, struct({', '.join(least)})) AS best")
    assert found.collect() == [(best,)]
