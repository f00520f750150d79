"""The slice plan as Spark expressions puts each row where the plan itself does."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_plugin.tasks.samples import Reach, Step
from spark_plugin.tasks.slices import SlicePlan
from spark_plugin.tasks.wire import CODED
from spark_plugin.ways.exchange.slice_columns import (
    LABEL,
    label_left,
    label_right,
    partition_labels,
)
from tests.helpers.spark_cases import frame
from tests.spark_plugin.ways.exchange.test_slices import left_slices, right_slices

pytestmark = pytest.mark.spark


class Shape(NamedTuple):
    """A plan to try: time slices, key buckets, most parts of a cell on the left, reach, on the right."""

    time_slices: int
    buckets: int = 1
    left_parts: int = 1
    reach: Reach = Reach(-300, 500)
    right_parts: int = 1


OWN = Reach(
    -300, 500, right=(2, 2**61),
    own=(
        Step(2, 5, -3, 4), Step(6, 99, -300, 500), Step(100, 100, 1, 0),
        Step(101, 2**61, -(2**62), 2**62 + 9),
    ),
)  # fmt: skip
FAR = Reach(-(2**63) + 2, 2**63 - 2)

SHAPES = [
    *(Shape(1), Shape(2), Shape(63), Shape(64), Shape(65), Shape(66), Shape(128), Shape(200)),
    *(Shape(1, 5), Shape(1, 1, 4), Shape(1, 3, 3), Shape(7, 1, 3), Shape(9, 4), Shape(70, 3, 3)),
    *(Shape(7, 1, 1, Reach(10**6, 10**6)), Shape(5, 2, 2, FAR), Shape(80, 1, 1, FAR)),
    *(Shape(6, 1, 1, Reach(2**62, 2**63 - 2)), Shape(1, 1, 1, Reach(-3, 4), 5)),
    *(Shape(7, 1, 3, Reach(-300, 500), 4), Shape(5, 3, 2, Reach(-300, 500), 2)),
    *(Shape(9, 1, 1, OWN), Shape(80, 2, 1, OWN), Shape(7, 1, 3, OWN, 4)),
]


def plan_of(shape: Shape, rng: np.random.Generator) -> SlicePlan:
    spread = rng.choice(np.arange(-9000, 9000), shape.time_slices - 1, replace=False)
    if shape.reach is FAR:
        spread = spread * 2**48
    parts = [
        rng.integers(1, most, shape.time_slices * shape.buckets, endpoint=True)
        for most in (shape.left_parts, shape.right_parts)
    ]
    return SlicePlan(np.sort(spread), shape.buckets, *parts, shape.reach, 1.0)


def events(plan: SlicePlan, rng: np.random.Generator) -> pa.Table:
    """Midpoints on, beside and between the cuts as either side sees them, and far away."""
    ends = np.array([-(2**62) + 2, 2**62 - 2, 0])
    cuts = rng.permutation(plan.cuts)[:20]
    near = np.concatenate([cuts, *(np.clip(c, -(2**61), 2**61) for c in plan.seen_cuts)])
    midpoints = np.concatenate([ends, near, near - 1, near + 1, rng.integers(-9999, 9999, 40)])
    n = midpoints.size
    return pa.table({
        "id": np.arange(n + 3),
        "midpoint": pa.array([*midpoints.tolist(), None, None, None], pa.int64()),
        "key_hash": rng.integers(-(2**63), 2**63 - 1, n + 3),
        "salt": rng.integers(-(2**63), 2**63 - 1, n + 3),
        CODED: -1 - rng.choice([0, 2, 5, 6, 50, 99, 100, 101, 2**60], n + 3),
    })  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_expressions_equal_the_plan(spark: SparkSession, shape: Shape) -> None:
    rng = np.random.default_rng(shape.time_slices)
    plan = plan_of(shape, rng)
    table = events(plan, rng)
    source = frame(spark, table)
    left = label_left(source, plan, "salt", source.columns)
    right = label_right(source.filter("midpoint is not null"), plan, "salt", source.columns)
    assert sorted(left.columns) == sorted([*source.columns, LABEL]) == sorted(right.columns)
    both = left.withColumn("side", F.lit("left")).unionByName(
        right.withColumn("side", F.lit("right"))
    )
    found = both.select("side", "id", LABEL).toArrow().to_pylist()
    slice_of = {label: p for p, label in enumerate(partition_labels(plan.count).tolist())}
    placed: dict[tuple[str, int], list[int]] = {}
    for row in found:
        placed.setdefault((row["side"], row["id"]), []).append(slice_of[row[LABEL]])

    for row in table.to_pylist():
        if row["midpoint"] is None:
            mine = [int(plan.first_parts[row["salt"] % plan.first_parts.size])]
        else:
            mine = left_slices(plan, row["midpoint"], row["key_hash"], row["salt"])
        assert sorted(placed.pop(("left", row["id"]))) == mine
        if row["midpoint"] is not None:
            shape = -1 - row[CODED]
            theirs = right_slices(plan, row["midpoint"], row["key_hash"], row["salt"], shape)
            assert sorted(placed.pop(("right", row["id"]), [])) == theirs
    assert not placed


def test_many_slices_are_planned_in_seconds(spark: SparkSession) -> None:
    """Thousands of cuts must not make thousands of expressions."""
    cuts = np.arange(-(10**6), 10**6, 1000)
    whole = np.ones(cuts.size + 1, np.int64)
    plan = SlicePlan(cuts, 1, whole, whole, Reach(-5, 5), 1.0)
    source = spark.range(-1000, 1000).selectExpr("id * 997 as midpoint", "0L as key_hash")
    labels = partition_labels(plan.count)
    started = time.perf_counter()
    left = label_left(source, plan, "0L", source.columns).toArrow()
    right = label_right(source, plan, "0L", source.columns).toArrow()
    assert time.perf_counter() - started < 30
    for table, shift in ((left, 0), (right, 5)):
        first = np.searchsorted(cuts, table["midpoint"].to_numpy() - shift, side="right")
        assert np.isin(labels[first], table[LABEL].to_numpy()).all()
    time_slices = np.searchsorted(cuts, left["midpoint"].to_numpy(), side="right")
    assert np.array_equal(left[LABEL].to_numpy(), labels[time_slices])
