"""Small sides that only read files: the driver reads them without a job."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import CorrelateOptions, DataError, correlate, correlate_tables
from spark_plugin.ways import choosing
from spark_plugin.ways.broadcast.collecting import collected_sides
from tests.helpers.spark_cases import jobs

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]


def table(seed: int, rows: int = 800) -> pa.Table:
    """Events in no order, of columns of many types."""
    rng = np.random.default_rng(seed)
    low, lacks = rng.integers(0, 9_000, rows), rng.random(rows) < 0.05
    day = datetime.date(2026, 1, 1)
    return pa.table({
        "id": np.arange(rows) + 1_000 * seed,
        "min_time": pa.array(low, pa.timestamp("ms"), mask=lacks),
        "max_time": pa.array(low + rng.integers(0, 30, rows), pa.timestamp("ms")),
        "key": pa.array(rng.integers(0, 5, rows).astype(np.int8), mask=rng.random(rows) < 0.05),
        "text": pa.array(np.array(["", "é", "b" * 50])[rng.integers(0, 3, rows)]).dictionary_encode(),
        "value": rng.normal(size=rows).astype(np.float32),
        "day": [day] * rows,
        "list": [[1, 2], None] * (rows // 2),
    })  # fmt: skip


def stored(spark: SparkSession, folder: Path, rows: pa.Table) -> DataFrame:
    folder.mkdir(parents=True)
    pq.write_table(rows.slice(0, rows.num_rows // 3), folder / "a.parquet", row_group_size=50)
    pq.write_table(rows.slice(rows.num_rows // 3), folder / "b.parquet", row_group_size=90)
    return spark.read.parquet(str(folder))


def rows_of(found: pa.Table) -> Counter[str]:
    return Counter(map(str, found.to_pylist()))


COLUMNS = ["id", "text", "value", "day", "list"]
ASKED: dict[str, dict[str, Any]] = {
    "pairs": {"left_columns": COLUMNS, "right_columns": ["id", "max_time", "key"]},
    "by": {"by": ["key", "text"], "left_columns": COLUMNS},
    "left": {"how": "left", "by": "text"},
    "counts": {"emit": "counts"},
}


@pytest.mark.parametrize("way", ["broadcast-both", "auto"])
@pytest.mark.parametrize("name", ASKED)
def test_two_small_sides_of_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: Any
) -> None:
    tables = [table(seed) for seed in (1, 2)]
    left, right = (stored(spark, tmp_path / str(i), each) for i, each in enumerate(tables))
    asked: dict[str, Any] = {"within": ("-20ms", "30ms"), "confidence": 0.3, **ASKED[name]}
    collected = []

    def noted(*given: Any, **more: Any) -> Any:
        collected.append(collected_sides(*given, **more))
        return collected[-1]

    monkeypatch.setattr(choosing, "collected_sides", noted)
    with jobs(spark, "collected") as ran:
        found = correlate(left, right, **asked, options=CorrelateOptions(way=way))
    assert not ran
    assert way == "auto" or collected[0] is not None
    assert rows_of(found.toArrow()) == rows_of(correlate_tables(*tables, **asked))


def test_one_stream_and_a_side_of_rows_made_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    tables = [table(seed) for seed in (1, 2)]
    left, right = (stored(spark, tmp_path / str(i), each) for i, each in enumerate(tables))
    both = CorrelateOptions(way="broadcast-both")
    asked: dict[str, Any] = {"within": ("-20ms", "30ms"), "confidence": 0.3, "by": "text"}
    with jobs(spark, "one") as ran:
        one = correlate(left, **asked, options=both)
    assert not ran
    assert rows_of(one.toArrow()).total() == correlate_tables(tables[0], **asked).num_rows
    with jobs(spark, "mixed") as ran:
        mixed = correlate(left, right.where("id > 2_100".replace("_", "")), **asked, options=both)
    assert len(ran) == 1
    kept = tables[1].slice(101)
    assert rows_of(mixed.toArrow()) == rows_of(correlate_tables(tables[0], kept, **asked))


@pytest.mark.parametrize("most", [{"broadcast_bytes": 9_000}, {"slice_rows": 500}])
def test_files_that_are_too_large_are_not_collected(
    spark: SparkSession, tmp_path: Path, most: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [table(seed) for seed in (1, 2)]
    left, right = (stored(spark, tmp_path / str(i), each) for i, each in enumerate(tables))
    found: list[Any] = []

    def noted(*given: Any, **more: Any) -> Any:
        found.append(collected_sides(*given, **more))
        return found[-1]

    monkeypatch.setattr(choosing, "collected_sides", noted)
    asked: dict[str, Any] = {"within": ("-20ms", "30ms"), "confidence": 0.3, "matching": "mutual"}
    pairs = correlate(left, right, **asked, options=CorrelateOptions(**most))
    assert all(each is None for each in found)
    assert rows_of(pairs.toArrow()) == rows_of(correlate_tables(*tables, **asked))


def test_invalid_rows_of_collected_files_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    good = table(1)
    wrong = good.set_column(2, "max_time", pa.array([1] * 800, pa.timestamp("ms")))
    left, right = (stored(spark, tmp_path / str(i), each) for i, each in enumerate([wrong, good]))
    both = CorrelateOptions(way="broadcast-both")
    with pytest.raises(DataError, match="max_time"):
        correlate(left, right, within=(0, "30ms"), confidence=0.5, options=both)
