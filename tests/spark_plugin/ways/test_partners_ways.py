"""Which partners are handed out: every way chooses those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CorrelateOptions,
    TimingCondition,
    correlate,
    correlate_files,
    correlate_tables,
    within,
)
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark
CONDITION = TimingCondition(within(-15, 25), 0.05)
COLUMNS = {
    "by": "key", "left_columns": ["name", "id"], "right_columns": ["weight", "name", "id"],
}  # fmt: skip
WAYS = ("exchange", "dealt", "broadcast-left", "broadcast-right", "direct")
CASES = [
    ("first", 1, "inner", False), ("nearest", 3, "left", True),
    ("last", 2, "left", False), ("probability", 2, "inner", True),
]  # fmt: skip


def events(n: int, seed: int) -> pa.Table:
    """Equal times, midpoints, names and weights, nulls and NaN among them."""
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 40, n) * 10)
    return pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 10, 20], n),
        "name": pa.array(rng.choice(["b", "ab", "", "é", None], n)),
        "weight": pa.array(rng.choice([np.nan, -1.0, 0.5, None], n).tolist(), pa.float64()),
        "key": pa.array(rng.choice([1, 2, None], n, p=[0.5, 0.4, 0.1]).tolist(), pa.int64()),
        "id": np.arange(n) // 2,
    })  # fmt: skip


SIDES = events(90, 1), events(120, 2)


def joined(spark: SparkSession, folder: Path, way: str, **arguments: Any) -> DataFrame:
    given = COLUMNS | arguments
    if way == "direct":
        paths = folder / "left.parquet", folder / "right.parquet"
        for path, table in zip(paths, SIDES, strict=True):
            pq.write_table(table, path, row_group_size=16)
        options = CorrelateOptions(way=way, slices=4, max_replication=1e9)
        return correlate_files(spark, *paths, CONDITION, options=options, **given)
    left, right = (frame(spark, table).repartition(3) for table in SIDES)
    options = CorrelateOptions(way="exchange" if way == "dealt" else way)
    if way == "dealt":
        options = CorrelateOptions(way="exchange", slice_rows=40, max_replication=1.0)
    return correlate(left, right, CONDITION, options=options, **given)


def rows_of(table: pa.Table) -> list[str]:
    """In one order; nulls and NaN are told apart."""
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("prefer", "k", "how", "probability"), CASES)
def test_the_best_partners_by_every_way(
    spark: SparkSession, small_slices: None, tmp_path: Path, way: str, prefer: str, k: int, how: str,
    probability: bool,
) -> None:  # fmt: skip
    given = {"emit": "best", "prefer": prefer, "k": k, "how": how, "probability": probability}
    found = joined(spark, tmp_path, way, **given)
    expected = correlate_tables(*SIDES, CONDITION, **COLUMNS, **given)
    assert expected.num_rows > 60
    assert found.columns == expected.column_names
    assert rows_of(found.toArrow()) == rows_of(expected)


@pytest.mark.parametrize("way", WAYS[:-1])
@pytest.mark.parametrize("prefer", ["probability", "first"])
def test_mutual_pairs_by_every_way(
    spark: SparkSession, small_slices: None, tmp_path: Path, way: str, prefer: str
) -> None:
    given = {"matching": "mutual", "prefer": prefer, "probability": prefer == "first"}
    found = joined(spark, tmp_path, way, **given)
    expected = correlate_tables(*SIDES, CONDITION, **COLUMNS, **given)
    assert expected.num_rows > 20
    assert found.columns == expected.column_names
    assert rows_of(found.toArrow()) == rows_of(expected)


@pytest.mark.parametrize("prefer", ["probability", "nearest"])
def test_the_optimal_assignment_does_not_depend_on_slices(
    spark: SparkSession, small_slices: None, tmp_path: Path, prefer: str
) -> None:
    given = {"matching": "optimal", "prefer": prefer, "probability": True}
    found = joined(spark, tmp_path, "dealt", **given)
    expected = correlate_tables(*SIDES, CONDITION, **COLUMNS, **given)
    assert expected.num_rows > 40
    assert rows_of(found.toArrow()) == rows_of(expected)
