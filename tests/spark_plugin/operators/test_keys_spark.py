"""Keys of other names, widths and cases on Spark: as in one process, by every way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CorrelateOptions,
    JoinReport,
    TimingCondition,
    correlate,
    correlate_files,
    correlate_tables,
    within,
)
from coincide.engine.join.arguments import JoinArguments
from spark_plugin.frames import evidence
from spark_plugin.tasks.slice_plan import SlicePlan
from spark_plugin.ways.correlation import plan_correlation
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

TEXTS = [
    "ISTA",
    "ista",
    "École",
    "éCOLE",
    "\u212aelvin",
    "kelvin",
    "\u0130x",
    "ix",
    "\U00010400",
    "\U00010428",
    "a\tb",
]
GIVEN: dict[str, Any] = {
    "by": [("station", "sta"), ("place", "PLACE")], "within": 40, "confidence": 0.5,
    "right_columns": ("id", "station"),
}  # fmt: skip


def side(seed: int, name: str, place: str, kind: pa.DataType, size: int = 400) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 100, size))
    return pa.table(
        {
            "id": np.arange(size),
            "min_time": times,
            "max_time": times + random.integers(0, 9, size),
            name: pa.array([TEXTS[i] for i in random.integers(0, len(TEXTS), size)]),
            place: pa.array(random.integers(-1, 1, size), kind),
        }
    )


LEFT = side(1, "station", "place", pa.int8())
RIGHT = side(2, "sta", "PLACE", pa.int64()).append_column("station", pa.array(np.arange(400)))


EXPECTED = correlate_tables(LEFT, RIGHT, **GIVEN)


@pytest.mark.parametrize(
    "options", [{"slices": 30}, {"way": "broadcast-right"}, {"way": "broadcast-left"}]
)
def test_dataframes(spark: SparkSession, options: dict[str, Any]) -> None:
    found = correlate(
        frame(spark, LEFT), frame(spark, RIGHT), **GIVEN, options=CorrelateOptions(**options)
    ).toArrow()
    assert found.column_names == EXPECTED.column_names
    assert in_order(found) == in_order(EXPECTED)
    assert found.num_rows > 100


def test_buckets_of_keys(spark: SparkSession) -> None:
    """Keys that are equal to workers are in one slice, whatever Spark takes them for."""
    arguments = JoinArguments(
        TimingCondition(within(-40, 40), 0.5), by=GIVEN["by"],
        options=CorrelateOptions(slices=30, slice_rows=1),
    )  # fmt: skip
    planned = plan_correlation(frame(spark, LEFT), frame(spark, RIGHT), arguments)
    assert isinstance(planned.plan, SlicePlan)
    assert planned.plan.buckets > 5
    assert planned.dataframe.count() == EXPECTED.num_rows


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.parquet") for name in ("left", "right")]
    for path, table in zip(paths, (LEFT, RIGHT), strict=True):
        pq.write_table(table, path, row_group_size=100)
    options = CorrelateOptions(way="files", slices=3)
    found = correlate_files(spark, *paths, **GIVEN, options=options).toArrow()
    assert in_order(found) == in_order(EXPECTED)


def test_why_nothing_is_found_counts_keys(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "_MOST_KEYS", 1)
    texts = {"left": ["ISTA", "ISTA", "Rome", "x"], "right": ["ISTA", "Rome", "Rome", "y"]}
    left, right = (
        frame(spark, pa.table({"id": [0] * 4, "t": [at] * 4, "station": texts[name]}))
        for name, at in (("left", 0), ("right", 1000))
    )
    report = JoinReport()
    asked: dict[str, Any] = {"left_time": "t", "right_time": "t", "by": "station"}
    correlate(left, right, within=1, confidence=0.5, report=report, **asked).collect()
    told = report.summary().no_pairs
    assert told is not None
    assert told.keys is not None
    assert (told.keys.left, told.keys.right, told.keys.shared) == (3, 3, 2)
