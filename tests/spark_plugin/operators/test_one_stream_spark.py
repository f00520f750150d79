"""One stream joined with itself on Spark: as in one process, by every way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    JoinReport,
    TimingCondition,
    accidental_pair_tables,
    accidental_pairs,
    correlate,
    correlate_files,
    correlate_tables,
    within,
)
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.joins import plan_correlation
from tests.helpers.rows import lists_in_order
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

WINDOW: dict[str, Any] = {"within": (-20, 60), "confidence": 0.6}


def stream(seed: int, size: int = 300) -> pa.Table:
    """Events whose later ends differ, so that their order is known; some match nothing."""
    random = np.random.default_rng(seed)
    latest = np.sort(random.permutation(5 * size)[:size])
    earliest = latest - random.integers(0, 30, size)
    keys = pa.array(np.array(["a", "b", None], object)[random.integers(0, 3, size)], pa.string())
    return pa.table(
        {"id": np.arange(size), "key": keys, "min_time": earliest, "max_time": latest,
         "name": [f"n{i % 7}" for i in range(size)]}
    )  # fmt: skip


BEST = {"emit": "best", "right_columns": ("id", "max_time"), "probability": True}
SMALL_SLICES = {"slice_rows": 100}
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"left_columns": ("id", "name"), "probability": True}, {"slices": 6}),
    ({"how": "left", "emit": "counts"}, {"slices": 6}),
    ({"how": "left", **BEST}, SMALL_SLICES),
    ({"how": "left", **BEST}, {"slices": 6}),
    ({"how": "anti"}, {"slices": 6}),
    ({"emit": "lists"}, SMALL_SLICES),
    ({"how": "left", "where": "left_name <= right_name"}, SMALL_SLICES),
    ({"how": "left", "where": "left_name < right_name"}, {"slices": 6}),
    ({"how": "anti"}, SMALL_SLICES),
    (
        {"matching": "mutual", "prefer": "nearest", "how": "left", "within": (-40, 40)},
        {"slices": 6},
    ),
    ({"matching": "unambiguous", "within": (-10, 10)}, {"slices": 6}),
]


@pytest.mark.parametrize(("shape", "options"), CASES)
def test_dataframes(
    spark: SparkSession, small_slices: None, shape: Any, options: dict[str, Any]
) -> None:
    table, report, told = stream(1), JoinReport(), JoinReport()
    asked = {name: given for name, given in shape.items() if name != "within"}
    condition = TimingCondition(within(*shape.get("within", WINDOW["within"])), 0.6)
    expected = correlate_tables(table, by="key", report=told, condition=condition, **asked)
    planned = plan_correlation(
        frame(spark, table).repartition(3), None, condition, is_one_stream=True, by="key", **asked,
        options=CorrelateOptions(**options), observe=True,
    )  # fmt: skip
    assert planned.plan.count > 5
    planned.tell(report)
    found = planned.dataframe.toArrow()
    assert lists_in_order(found) == lists_in_order(expected)
    assert found.num_rows > (5 if shape.get("how") == "anti" or "matching" in shape else 50)
    summary, wanted = report.summary(), told.summary()
    assert (summary.left, summary.right) == (wanted.left, None)
    assert summary.counters is not None
    assert wanted.counters is not None
    assert summary.counters.pairs == wanted.counters.pairs


def test_files_and_the_data_source(spark: SparkSession, tmp_path: Path) -> None:
    table, path = stream(2, 900), tmp_path / "events.parquet"
    pq.write_table(table, path, row_group_size=90)
    report = JoinReport()
    given: dict[str, Any] = {"by": "key", "how": "left", "emit": "counts", **WINDOW}
    options = CorrelateOptions(way="files", slices=4)
    found = correlate_files(spark, str(path), report=report, options=options, **given)
    expected = lists_in_order(correlate_tables(table, **given))
    assert lists_in_order(found.toArrow()) == expected
    summary = report.summary()
    assert summary.way == "files"
    assert summary.left is not None
    assert (summary.left.rows, summary.right) == (900, None)
    spark.dataSource.register(CoincideSource)
    words = {"by": "key", "how": "left", "emit": "counts", "within": "-20,60", "confidence": 0.6}
    source = spark.read.format("coincide").options(left=str(path), slices=3, **words).load()
    assert lists_in_order(source.toArrow()) == expected


def test_shifts(spark: SparkSession) -> None:
    table, given = stream(3), {**WINDOW, "shifts": (200, -250)}
    found = accidental_pairs(frame(spark, table), options=CorrelateOptions(slices=5), **given)
    assert found == accidental_pair_tables(table, **given)
    assert min(found.counts) > 50


def test_what_only_two_sides_can_do(spark: SparkSession) -> None:
    events = frame(spark, stream(4, 20))
    with pytest.raises(ConditionError, match="a second time as right"):
        correlate(events, **WINDOW, options=CorrelateOptions(way="broadcast"))
