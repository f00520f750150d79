"""Labels land where they are asked to: Spark's own hash, and Spark's own exchange."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_plugin.tasks.labels import partition_labels, spark_hash
from tests.helpers.spark_cases import frame

COUNTS = (1, 2, 3, 7, 64, 97, 200)


@pytest.mark.parametrize("partitions", [*COUNTS, 2048, 5000])
def test_one_label_for_each_partition(partitions: int) -> None:
    labels = partition_labels(partitions)
    assert labels.shape == (partitions,)
    homes = spark_hash(labels).astype(np.int64) % partitions
    assert np.array_equal(homes, np.arange(partitions))


@pytest.mark.spark
def test_the_hash_is_sparks(spark: SparkSession) -> None:
    ends = [0, 1, -1, 2**31, 2**32, -(2**31), 2**63 - 1, -(2**63)]
    drawn = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 2000)
    values = np.concatenate([ends, range(100), drawn])
    hashed = frame(spark, pa.table({"v": values})).select("v", F.hash("v").alias("h")).toArrow()
    assert np.array_equal(spark_hash(hashed["v"].to_numpy()), hashed["h"].to_numpy())


@pytest.mark.spark
def test_the_exchange_puts_each_label_into_its_partition(spark: SparkSession) -> None:
    for partitions in COUNTS:
        labels = partition_labels(partitions)
        rows = pa.table({"p": np.repeat(np.arange(partitions), 3), "label": np.repeat(labels, 3)})
        placed = frame(spark, rows).repartition(partitions, "label")
        found = placed.select("p", F.spark_partition_id().alias("home")).toArrow()
        assert found.num_rows == 3 * partitions
        assert found["p"].equals(found["home"].cast(pa.int64()))
