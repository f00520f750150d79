"""Spans on Spark: every way gives what one process gives, whose answers are those of the oracle."""

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
    containing,
    correlate,
    correlate_files,
    correlate_tables,
    following,
    inside,
    overlapping,
    relation,
    spans,
)
from tests.helpers.histogram_tables import in_order

pytestmark = pytest.mark.spark


def lasting(seed: int, size: int) -> pa.Table:
    """Spans of a few keys, some of no length, and a few far longer than the rest."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, 20_000, size))
    length = rng.choice([0, 1, 5, 40, 200], size)
    length[:: size // 4] = 6_000
    return pa.table({
        "id": np.arange(size), "start": start, "end": start + length, "key": rng.integers(0, 3, size)
    })  # fmt: skip


LEFT, RIGHT = lasting(1, 300), lasting(2, 280)
TIMES = {
    "left_time": spans("start", "end", closed="left"), "right_time": spans("start", "end"), "by": "key",
}  # fmt: skip
POINTS = {"left_time": spans("start", "end"), "right_time": "start", "by": "key"}

ASKED: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "exchange": (overlapping(), {**TIMES, "pair_columns": "overlap"}, {"way": "exchange", "slices": 5}),
    "a gap": (overlapping(gap=30), {**TIMES, "how": "full"}, {"way": "exchange", "slices": 4}),
    "dealt": (overlapping(min_overlap=2), {**TIMES, "emit": "best"}, {"way": "exchange", "slice_rows": 60}),
    "best three": (overlapping(), {**TIMES, "emit": "best", "k": 3}, {"way": "exchange", "slices": 5}),
    "nearest": (overlapping(gap=99), {**TIMES, "emit": "best", "prefer": "nearest"}, {"slices": 3}),
    "small left": (containing(), {**POINTS, "emit": "counts"}, {"way": "broadcast-left"}),
    "small left, best": (overlapping(), {**TIMES, "emit": "best"}, {"way": "broadcast-left"}),
    "small right": (inside(), {**TIMES, "how": "left"}, {"way": "broadcast-right"}),
    "both": (following(50), {**TIMES, "how": "anti"}, {"way": "broadcast-both"}),
    "mutual": (overlapping(), {**TIMES, "matching": "mutual"}, {"way": "exchange", "slices": 3}),
    "Allen's": (relation("overlapped-by"), {**TIMES, "how": "semi"}, {"way": "exchange", "slices": 6}),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_as_in_one_process(spark: SparkSession, name: str) -> None:
    condition, asked, options = ASKED[name]
    want = correlate_tables(LEFT, RIGHT, condition, **asked)
    left, right = map(spark.createDataFrame, (LEFT, RIGHT))
    found = correlate(left, right, condition, **asked, options=CorrelateOptions(**options))
    assert in_order(found.toArrow()) == in_order(want)
    assert want.num_rows


def test_one_stream(spark: SparkSession) -> None:
    asked: dict[str, Any] = {
        "condition": overlapping(),
        "left_time": TIMES["left_time"],
        "by": "key",
    }
    for emit in ("pairs", "counts"):
        found = correlate(spark.createDataFrame(LEFT), emit=emit, **asked)
        assert in_order(found.toArrow()) == in_order(correlate_tables(LEFT, emit=emit, **asked))


def test_from_files(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks read their own slices; in one process, and by Spark's tasks."""
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=40)
    want = correlate_tables(LEFT, RIGHT, overlapping(gap=5), **TIMES)
    report = JoinReport()
    found = correlate_files(
        spark, tmp_path / "left.parquet", tmp_path / "right.parquet", overlapping(gap=5), **TIMES,
        options=CorrelateOptions(way="files", slices=4), report=report,
    )  # fmt: skip
    assert in_order(found.toArrow()) == in_order(want)
    assert report.summary().way == "files"
