"""Random streams: what comes out is the batch join of all rows that are not late."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from coincide import ConditionError, CorrelateOptions, overlapping, spans
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.spark_streams import MANY, arriving, random_streams, streamed
from tests.helpers.stream_simulation import simulated

pytestmark = pytest.mark.spark


def check(spark: SparkSession, folder: Path, seed: int, shapes: int) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    case = random_streams(seed, shapes=shapes)
    rows, progress = streamed(case.joined(spark, case.written(folder)), f"random{seed}")
    late = case.check(rows)
    counted = [each["observedMetrics"]["join0_late"] for each in progress]
    assert late == sum(each["left"] + each["right"] for each in counted)


def test_two_streams(spark: SparkSession, tmp_path: Path) -> None:
    check(spark, tmp_path, 35, shapes=2)


def test_some_without_the_engine_of_streams(spark: SparkSession) -> None:
    late = [check_simulated(spark, seed) for seed in range(300, 306)]
    assert sum(late) > 0


def with_durations(files: list[pa.Table]) -> list[pa.Table]:
    lasted = [pc.subtract(table["seen_at"], table["min_time"]) for table in files]
    return [t.append_column("lasted", n) for t, n in zip(files, lasted, strict=True)]


@pytest.mark.parametrize("kind", ["ends", "durations"])
def test_spans_meet_in_streams_too(spark: SparkSession, kind: str) -> None:
    lasting = spans("min_time", "seen_at")
    if kind == "durations":
        lasting = spans("min_time", duration="lasted")
    options = CorrelateOptions(unit="ms", left_longest=100, right_longest=100)
    join = {"condition": overlapping(), "left_time": lasting, "right_time": lasting, "by": "key"}
    case = random_streams(301, rows=300)
    case = replace(
        case, join={**join, "options": options}, shapes=[("inner", "pairs", False)], more={},
        files=(with_durations(case.files[0]), with_durations(case.files[1])),
    )  # fmt: skip
    found = [(0, json.dumps(row)) for row in simulated(spark, case, case.shapes[0])]
    assert len(found) > 5
    case.check(found)


def test_aggregates_of_streams(spark: SparkSession) -> None:
    """Slices are closed one after the other; nulls in keys and times, none late."""
    aggregates = {
        "n": "count", "ids": ("id", "sum"), "last": ("device", "last"), "first": ("id", "min"),
        "soonest": ("delta", "min"), "usual": ("delta", "mean"),
    }  # fmt: skip
    for seed in (303,):
        case = random_streams(seed, rows=300)
        random = np.random.default_rng(seed)
        left, right = (arriving(random, 200, delay, 4, late=0.0) for delay in case.delays)
        case = replace(
            case, files=(left, right), shapes=[("left", "aggregates", False)],
            join={**case.join, "aggregates": aggregates},
        )  # fmt: skip
        found = simulated(spark, case, case.shapes[0])
        assert sum(row["n"] > 1 for row in found) > 20
        assert case.check([(0, json.dumps(row)) for row in found]) == 0


def test_events_that_go_on_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """No row would ever be final."""
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    case = random_streams(302, rows=20)
    lasting = spans("min_time", "seen_at", open_ends=True)
    join = {"condition": overlapping(), "left_time": lasting, "right_time": lasting, "by": "key"}
    case = replace(case, shapes=[("inner", "pairs", False)], more={})
    for longest, message in ((None, "streams need events that end"), (100, "Remove left_longest")):
        options = CorrelateOptions(unit="ms", left_longest=longest, right_longest=longest)
        asked = replace(case, join={**join, "options": options})
        with pytest.raises(ConditionError, match=message):
            asked.joined(spark, case.written(tmp_path / str(longest)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(310, 310 + 5 * MANY))
def test_many_without_the_engine_of_streams(spark: SparkSession, seed: int) -> None:
    check_simulated(spark, seed)


def check_simulated(spark: SparkSession, seed: int) -> int:
    case = random_streams(seed)
    found = [
        (i, json.dumps(row))
        for i, shape in enumerate(case.shapes)
        for row in simulated(spark, case, shape, together=[1, 3, 16][i % 3])
    ]
    return case.check(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(9, 9 + MANY))
def test_many(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, seed, shapes=2)
