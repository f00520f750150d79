"""One join of Parquet files in no order, of chosen folders: quick, next to the slow `test_packed_files`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, JoinReport, correlate, correlate_tables
from tests.helpers.rows import in_order

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]


def events(seed: int, size: int = 200) -> pa.Table:
    """Events in no order, of three keys."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 2_000, size)
    return pa.table({
        "id": np.arange(size) + 1_000 * seed, "min_time": at,
        "max_time": at + rng.integers(0, 40, size), "key": rng.integers(0, 3, size),
    })  # fmt: skip


def of_doors(table: pa.Table, *doors: int) -> pa.Table:
    """The events of some of three doors."""
    return table.filter(np.isin(table["id"].to_numpy() % 3, doors))


def test_tasks_pack_files_in_no_order(spark: SparkSession, tmp_path: Path) -> None:
    tables = [events(1), events(2)]
    for name, table in zip(("left", "right"), tables, strict=True):
        for door in range(3):
            inside = tmp_path / name / f"door={door}"
            inside.mkdir(parents=True)
            rows = of_doors(table, door)
            pq.write_table(rows, inside / "a.parquet", row_group_size=16)
    left, right = (spark.read.parquet(str(tmp_path / name)) for name in ("left", "right"))
    asked: dict[str, Any] = {"within": (-20, 60), "confidence": 0.4, "by": "key", "how": "left"}
    report, options = JoinReport(), CorrelateOptions(way="exchange", slices=3)
    found = correlate(left.where("door > 0"), right, **asked, options=options, report=report)
    assert "parquet" not in str(found._jdf.queryExecution().optimizedPlan().toString())
    kept = of_doors(tables[0], 1, 2)
    expected = correlate_tables(kept, tables[1], **asked)
    table = found.toArrow()
    assert 0 < table["right_id"].null_count < table.num_rows
    assert in_order(table) == in_order(expected)
    assert report.summary().way == "exchange"
    assert report.summary().left.rows == kept.num_rows < 200
