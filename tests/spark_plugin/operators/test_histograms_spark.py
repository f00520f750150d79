"""Histogram timestamps on Spark: every way gives what one process gives."""

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
    DataError,
    JoinReport,
    TimingCondition,
    correlate,
    correlate_files,
    correlate_tables,
    within,
)
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.histogram_tables import (
    by_device,
    events,
    in_order,
    random_templates,
    spoiled,
    with_ends,
)
from tests.helpers.joins import plan_correlation

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-30, 50), 0.55)
MINE, THEIRS = random_templates(1), random_templates(2)
LEFT, RIGHT = events(1, 300), with_ends(events(2, 300))
BOTH = {"left_time": by_device(MINE), "right_time": by_device(THEIRS), "by": "place"}
MIXED = {"left_time": by_device(MINE), "right_time": ("min_time", "seen_at")}

ASKED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exchange": ({**BOTH, "probability": True}, {"way": "exchange", "slices": 3}),
    "exchange of mixed sides": ({**MIXED, "how": "left"}, {"way": "exchange", "slices": 3}),
    "small slices": ({**BOTH, "emit": "best"}, {"way": "exchange", "slice_rows": 60}),
    "small left": ({**BOTH, "emit": "best"}, {"way": "broadcast-left"}),
    "small left, aggregates": (
        {**BOTH, "emit": "aggregates", "how": "left", "aggregates": {
            "n": "count", "first": ("id", "first"), "last": ("id", "last"), "sure": ("probability", "sum"),
            "surest": ("probability", "max"), "apart": ("delta", "std"),
        }},
        {"way": "broadcast-left", "slice_rows": 60},
    ),
    "small right": ({**MIXED, "emit": "counts", "how": "left"}, {"way": "broadcast-right"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_as_in_one_process(spark: SparkSession, name: str) -> None:
    asked, options = ASKED[name]
    want = correlate_tables(LEFT, RIGHT, CONDITION, **asked)
    left, right = map(spark.createDataFrame, (LEFT, RIGHT))
    found = correlate(left, right, CONDITION, **asked, options=CorrelateOptions(**options))
    assert in_order(found.toArrow()) == in_order(want)
    assert want.num_rows


def test_an_exchange_and_its_mirror_image_are_the_same_pairs(spark: SparkSession) -> None:
    """Sides swapped, and the window turned round."""
    options = CorrelateOptions(way="exchange", slice_rows=60)
    mine, theirs, found = BOTH["left_time"], BOTH["right_time"], {}
    for sides, names, times, window in (
        ((LEFT, RIGHT), ("left_id", "right_id"), (mine, theirs), (-30, 50)),
        ((RIGHT, LEFT), ("right_id", "left_id"), (theirs, mine), (-50, 30)),
    ):
        planned = plan_correlation(
            *map(spark.createDataFrame, sides), TimingCondition(within(*window), 0.55),
            left_time=times[0], right_time=times[1], by="place", options=options,
        )  # fmt: skip
        assert planned.plan.count > 4
        rows = planned.dataframe.toArrow()
        found[window] = sorted(zip(*(rows[name].to_pylist() for name in names), strict=True))
    assert found[-30, 50] == found[-50, 30]
    assert len(found[-30, 50]) == correlate_tables(LEFT, RIGHT, CONDITION, **BOTH).num_rows > 500


def mirrored() -> tuple[pa.Table, pa.Table, pa.Table]:
    """An event per place, two as likely ones of which one mirrors the other, and templates."""
    rng, rows, templates = np.random.default_rng(5), [], []
    for place in range(40):
        inner, masses = np.sort(rng.integers(1, 30, 5)), rng.dirichlet(np.ones(6))
        edges = np.array([0, *inner, 30])
        # Around 3000 the middles are 12 later and 12 earlier.
        for name, ends, parts, at in (
            (f"{place}", edges, masses, 3027),
            (f"{place} mirrored", 30 - edges[::-1], masses[::-1], 3003),
        ):
            templates.append({"template": name, "edges": ends, "masses": parts})
            rows.append({"id": len(rows), "device": name, "seen_at": at, "place": place})
    places = range(40)
    left = {"id": places, "place": places, "min_time": [2990] * 40, "seen_at": [3010] * 40}
    return pa.table(left), pa.Table.from_pylist(rows), pa.Table.from_pylist(templates)


def test_matches_as_likely_of_two_tasks_are_told_apart_as_by_one(spark: SparkSession) -> None:
    left, right, templates = mirrored()
    asked: dict[str, Any] = {
        "left_time": ("min_time", "seen_at"), "right_time": by_device(templates), "by": "place",
        "emit": "best",
    }  # fmt: skip
    condition = TimingCondition(within(-20, 20), 0.1)
    want = correlate_tables(left, right, condition, **asked)
    assert sorted(want["right_id"].to_pylist()) == list(range(1, 80, 2))  # the earlier ones
    of_tasks = [spark.createDataFrame(right.take(np.arange(k, 80, 2))).coalesce(1) for k in (0, 1)]
    found = correlate(
        spark.createDataFrame(left), of_tasks[0].union(of_tasks[1]), condition, **asked,
        options=CorrelateOptions(way="broadcast-left"),
    )  # fmt: skip
    assert in_order(found.toArrow()) == in_order(want)


def test_files_are_read_directly(spark: SparkSession, tmp_path: Path) -> None:
    """By tasks that read their slices, and by the data source."""
    paths = [str(tmp_path / f"{side}.parquet") for side in ("left", "right")]
    for path, table in zip(paths, (LEFT, RIGHT), strict=True):
        pq.write_table(table, path, row_group_size=20)
    want = correlate_tables(LEFT, RIGHT, CONDITION, **BOTH, probability=True)
    options = CorrelateOptions(way="files", slices=4)
    found = correlate_files(spark, *paths, CONDITION, **BOTH, probability=True, options=options)
    assert in_order(found.toArrow()) == in_order(want)
    spark.dataSource.register(CoincideSource)
    words = {"left": paths[0], "right": paths[1], "within": "-30,50", "confidence": "0.55"}
    for side, templates in (("left", MINE), ("right", THEIRS)):
        words[f"{side}_templates"] = str(tmp_path / f"{side}_templates.parquet")
        words |= {f"{side}_time": "seen_at", f"{side}_template": "device"}
        pq.write_table(templates, words[f"{side}_templates"])
    words |= {"by": "place", "probability": "true", "slices": "3"}
    source = spark.read.format("coincide").options(**words).load()
    assert in_order(source.toArrow()) == in_order(want)


def test_invalid_rows(spark: SparkSession) -> None:
    left, right = map(spark.createDataFrame, (spoiled(LEFT), RIGHT))
    with pytest.raises(DataError, match=r"templates in device in 2 rows .found seen_at=\d+, dev"):
        correlate(left, right, CONDITION, **BOTH)
    report, asked = JoinReport(), {**BOTH, "how": "left", "emit": "counts"}
    options = CorrelateOptions(invalid="drop", way="exchange")
    with pytest.warns(match="2 with an unknown template"):
        found = correlate(left, right, CONDITION, **asked, options=options, report=report)
    with pytest.warns(match="2 with an unknown template"):
        want = correlate_tables(spoiled(LEFT), RIGHT, CONDITION, **asked, options=options)
    assert report.left is not None
    assert (report.left.invalid, report.left.unmatchable) == ({"template": 2}, 1)
    assert in_order(found.toArrow()) == in_order(want)
    far = spoiled(LEFT).slice(4).set_column(2, "seen_at", pa.array([-(2**61) + 5] * 296))
    with pytest.raises(DataError, match=r"times that reach 2\^61 ticks in seen_at in 296 rows"):
        correlate(spark.createDataFrame(far), right, CONDITION, **BOTH)
