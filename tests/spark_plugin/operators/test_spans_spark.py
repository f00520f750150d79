"""Spans on Spark: every way gives what one process gives, whose answers are those of the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bench.hunt.questions import lasting as drawn_spans
from coincide import (
    CorrelateOptions,
    DataError,
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


def lasting(seed: int, size: int, shortest: int = 0) -> pa.Table:
    """Spans of a few keys, some of no length, and a few far longer than the rest."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, 20_000, size))
    length = shortest + rng.choice([0, 1, 5, 40, 200], size)
    length[:: size // 4] = 6_000
    return pa.table({
        "id": np.arange(size), "start": start, "end": start + length, "key": rng.integers(0, 3, size)
    })  # fmt: skip


LEFT, RIGHT = lasting(1, 300), lasting(2, 280)
TIMES = {
    "left_time": spans("start", "end", closed="left"), "right_time": spans("start", "end"), "by": "key",
}  # fmt: skip
UNSURE = lasting(3, 300, 7), lasting(4, 280, 7)
UNCERTAIN: dict[str, Any] = {
    "left_time": spans("start", "end", closed="left", around=(0, 4)),
    "right_time": spans("start", "end", around=3), "by": "key", "confidence": 0.4,
}  # fmt: skip
POINTS = {"left_time": spans("start", "end"), "right_time": "start", "by": "key"}

ASKED: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "exchange": (overlapping(), {**TIMES, "pair_columns": "overlap"}, {"way": "exchange", "slices": 5}),
    "a gap": (overlapping(gap=30), {**TIMES, "how": "full"}, {"way": "exchange", "slices": 4}),
    "small slices": (
        overlapping(min_overlap=2), {**TIMES, "emit": "best"}, {"way": "exchange", "slice_rows": 60},
    ),
    "best three": (overlapping(), {**TIMES, "emit": "best", "k": 3}, {"way": "exchange", "slices": 5}),
    "nearest": (overlapping(gap=99), {**TIMES, "emit": "best", "prefer": "nearest"}, {"slices": 3}),
    "small left": (containing(), {**POINTS, "emit": "counts"}, {"way": "broadcast-left"}),
    "small left, best": (overlapping(), {**TIMES, "emit": "best"}, {"way": "broadcast-left"}),
    "small left, aggregates": (
        overlapping(gap=30),
        {**TIMES, "emit": "aggregates", "how": "left", "aggregates": {
            "n": "count", "first": ("id", "first"), "last": ("id", "last"), "time": ("overlap", "sum"),
            "least": ("overlap", "min"), "spread": ("end", "std"),
        }},
        {"way": "broadcast-left", "slice_rows": 60},
    ),
    "small right": (inside(), {**TIMES, "how": "left"}, {"way": "broadcast-right"}),
    "both": (following(50), {**TIMES, "how": "anti"}, {"way": "broadcast-both"}),
    "mutual": (overlapping(), {**TIMES, "matching": "mutual"}, {"way": "exchange", "slices": 3}),
    "uncertain": (
        overlapping(gap=2), {**UNCERTAIN, "probability": True, "how": "full"},
        {"way": "exchange", "slices": 5},
    ),
    "uncertain, best": (
        overlapping(), {**UNCERTAIN, "emit": "best", "k": 2, "probability": True},
        {"way": "exchange", "slices": 3},
    ),
    "uncertain, small left": (inside(), {**UNCERTAIN, "emit": "best"}, {"way": "broadcast-left"}),
    "uncertain, small right": (containing(), {**UNCERTAIN, "how": "left"}, {"way": "broadcast-right"}),
    "uncertain, both": (following(50), {**UNCERTAIN, "matching": "mutual"}, {"way": "broadcast-both"}),
    "ties": (
        overlapping(gap=30), {**TIMES, "emit": "best", "k": 2, "ties": "all", "how": "left"},
        {"way": "exchange", "slices": 4},
    ),
    "ties, small left": (
        overlapping(gap=30), {**TIMES, "emit": "best", "k": 2, "ties": "all"}, {"way": "broadcast-left"},
    ),
    "ties, small slices": (
        overlapping(gap=30),
        {**TIMES, "emit": "best", "ties": "all", "prefer": "nearest", "pair_columns": "overlap"},
        {"way": "exchange", "slice_rows": 60},
    ),
    "ties of a column, small left": (
        overlapping(gap=30),
        {**TIMES, "emit": "best", "ties": "all", "prefer": "-end", "k": 3, "how": "left"},
        {"way": "broadcast-left"},
    ),
    "the next": (
        relation("before"), {**TIMES, "emit": "best", "prefer": "nearest", "k": 2, "how": "left"},
        {"way": "exchange", "slices": 4},
    ),
    "the last": (
        relation("after"), {**TIMES, "emit": "best", "prefer": "nearest"}, {"way": "broadcast-left"},
    ),
    "the next, small slices": (
        relation("before"), {**TIMES, "emit": "best", "prefer": "nearest"},
        {"way": "exchange", "slice_rows": 60},
    ),
    "no next": (relation("before"), {**TIMES, "how": "anti"}, {"way": "exchange", "slices": 4}),
    "Allen's": (relation("overlapped-by"), {**TIMES, "how": "semi"}, {"way": "exchange", "slices": 6}),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_as_in_one_process(spark: SparkSession, name: str) -> None:
    condition, asked, options = ASKED[name]
    tables = UNSURE if "confidence" in asked else (LEFT, RIGHT)
    want = correlate_tables(*tables, condition, **asked)
    left, right = map(spark.createDataFrame, tables)
    found = correlate(left, right, condition, **asked, options=CorrelateOptions(**options))
    assert in_order(found.toArrow()) == in_order(want)
    assert want.num_rows


def going_on(seed: int, size: int) -> pa.Table:
    """Starts, how many halves of a tick events last, and when they end, as timestamps and numbers."""
    side, rng = lasting(seed, size), np.random.default_rng(seed)
    start, end = side["start"].to_numpy(), side["end"].to_numpy()
    none, nothing = rng.random(size) < 0.1, rng.random(size) < 0.03
    return pa.table({
        "id": side["id"], "key": side["key"],
        "start": pa.array(start, mask=nothing), "end": pa.array(end, mask=none),
        "halves": pa.array((end - start) * 2.0, mask=none),
        "at": pa.array(start, pa.timestamp("us", "UTC"), mask=nothing),
        "lasted": pa.array(end - start, pa.duration("us"), mask=none),
    })  # fmt: skip


GOING = going_on(5, 300), going_on(6, 280)
OPEN: dict[str, tuple[Any, dict[str, Any], CorrelateOptions]] = {
    "exchange": (
        overlapping(gap=30),
        {
            "left_time": spans("start", "end", open_ends=True), "right_time": spans("start", "end"),
            "how": "full",
        },
        CorrelateOptions(way="exchange", slices=5),
    ),
    "both": (
        overlapping(),
        {
            "left_time": spans("start", "end", open_ends=True, closed="left"),
            "right_time": spans("start", "end", open_ends=True),
            "pair_columns": ("overlap", "overlap_start", "overlap_end"),
        },
        CorrelateOptions(way="exchange", slices=4),
    ),
    "durations": (
        inside(),
        {
            "left_time": spans("at", duration="lasted"),
            "right_time": spans("at", duration="lasted", open_ends=True),
            "pair_columns": ("overlap_start", "overlap_end"), "how": "left",
        },
        CorrelateOptions(way="broadcast-left"),
    ),
    "numbers": (
        overlapping(min_overlap="2us"),
        {
            "left_time": spans("at", duration="halves", unit="us"),
            "right_time": spans("at", duration="halves", unit="us", open_ends=True),
            "emit": "best", "pair_columns": "overlap_end", "k": 2,
        },
        CorrelateOptions(way="exchange", slices=3),
    ),
    "one by files": (
        containing(),
        {
            "left_time": spans("start", duration="halves", open_ends=True),
            "right_time": spans("start", duration="halves"), "how": "left",
        },
        CorrelateOptions(unit="ms", tick="us", way="broadcast-right"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_events_that_go_on_or_have_a_duration(spark: SparkSession, name: str) -> None:
    condition, asked, options = OPEN[name]
    want = correlate_tables(*GOING, condition, by="key", **asked, options=options)
    left, right = map(spark.createDataFrame, GOING)
    found = correlate(left, right, condition, by="key", **asked, options=options)
    assert in_order(found.toArrow()) == in_order(want)
    assert want.num_rows > 100


DRAWN: dict[str, dict[str, Any]] = {
    "overlapping": {"way": "exchange", "slices": 5},
    "a gap of 2": {"way": "broadcast-left"},
    "containing, off by 2": {"way": "exchange", "slice_rows": 40},
    "inside": {"way": "broadcast-right"},
    "equals": {"way": "broadcast-both"},
    "following": {"way": "exchange", "slices": 3},
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_events_that_may_go_on(spark: SparkSession, name: str) -> None:
    def joined(left: pa.Table, right: pa.Table, *given: Any, **asked: Any) -> pa.Table:
        frames = map(spark.createDataFrame, (left, right))
        return correlate(*frames, *given, **asked).toArrow()

    for seed in range(4):
        random = np.random.default_rng([seed, *name.encode()])
        assert drawn_spans.wrong(random, joined, DRAWN[name], name) is None


def test_from_files_without_an_end(spark: SparkSession, tmp_path: Path) -> None:
    """Statistics of ends do not bound such events: by files only where the longest is declared."""
    for side, table in zip(("left", "right"), GOING, strict=True):
        pq.write_table(table, tmp_path / f"{side}.parquet", row_group_size=40)
    files = tmp_path / "left.parquet", tmp_path / "right.parquet"
    for open_ends, longest in ((True, None), (False, "6000us")):
        asked: dict[str, Any] = {
            "condition": overlapping(), "by": "key",
            "left_time": spans("start", "end", open_ends=open_ends),
            "right_time": spans("start", "end"),
        }  # fmt: skip
        if not open_ends:
            asked["left_time"] = spans("at", duration="lasted")
            asked["right_time"] = spans("at", duration="lasted")
            asked["pair_columns"] = "overlap_start"
        options = CorrelateOptions(left_longest=longest, right_longest=longest, slices=4)
        report = JoinReport()
        found = correlate_files(spark, *files, **asked, options=options, report=report)
        assert in_order(found.toArrow()) == in_order(correlate_tables(*GOING, **asked))
        assert report.summary().way == ("exchange" if open_ends else "files")


def test_spans_without_a_moment_are_the_reason(spark: SparkSession) -> None:
    instants = pa.table({"id": [0, 1], "start": [3, 5], "end": [3, 5]})
    sides = map(spark.createDataFrame, (instants, pa.table({"id": [0], "start": [0], "end": [9]})))
    report = JoinReport()
    found = correlate(
        *sides, overlapping(), left_time=spans("start", "end", closed="left"),
        right_time=spans("start", "end"), report=report, options=CorrelateOptions(way="exchange"),
    )  # fmt: skip
    assert found.count() == 0
    no_pairs = report.summary().no_pairs
    assert no_pairs is not None
    assert "all 2 spans of left end where they begin" in no_pairs.reasons[0]


def test_one_stream(spark: SparkSession) -> None:
    asked: dict[str, Any] = {
        "condition": overlapping(),
        "left_time": TIMES["left_time"],
        "by": "key",
    }
    for emit in ("pairs", "counts"):
        found = correlate(spark.createDataFrame(LEFT), emit=emit, **asked)
        assert in_order(found.toArrow()) == in_order(correlate_tables(LEFT, emit=emit, **asked))


def test_ends_that_may_come_before_their_starts_are_refused(spark: SparkSession) -> None:
    with pytest.raises(
        DataError, match="starts that are or may be after their ends in start and end"
    ):
        correlate(
            spark.createDataFrame(LEFT), condition=overlapping(), confidence=0.4,
            left_time=UNCERTAIN["left_time"],
        )  # fmt: skip


@pytest.mark.parametrize("name", ["known", "uncertain"])
def test_from_files(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Tasks read their own slices; in one process, and by Spark's tasks."""
    tables, asked = (UNSURE, UNCERTAIN) if name == "uncertain" else ((LEFT, RIGHT), TIMES)
    for side, table in zip(("left", "right"), tables, strict=True):
        pq.write_table(table, tmp_path / f"{side}.parquet", row_group_size=40)
    want = correlate_tables(*tables, overlapping(gap=5), **asked)
    report = JoinReport()
    found = correlate_files(
        spark, tmp_path / "left.parquet", tmp_path / "right.parquet", overlapping(gap=5), **asked,
        options=CorrelateOptions(way="files", slices=4), report=report,
    )  # fmt: skip
    assert in_order(found.toArrow()) == in_order(want)
    assert report.summary().way == "files"


@pytest.mark.parametrize("way", ["exchange", "broadcast-both"])
def test_spans_that_are_too_short_for_their_widths_are_invalid(
    spark: SparkSession, way: str
) -> None:
    own = pa.table({"id": [1, 2], "start": [0, 50], "end": [20, 55]})
    frames = [spark.createDataFrame(own)] * 2
    given: dict[str, Any] = {
        "condition": overlapping(), "confidence": 0.5, "right_time": spans("start", "end"),
        "left_time": spans("start", "end", around=4),
    }  # fmt: skip
    found = correlate(*frames, **given, options=CorrelateOptions(way=way, invalid="drop"))
    assert found.toArrow()["left_id"].to_pylist() == [1]
    with pytest.raises(DataError, match=r"left: .* in 1 row"):
        correlate(*frames, **given, options=CorrelateOptions(way=way)).toArrow()
