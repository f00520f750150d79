"""Inputs that Spark computes anew each time: planning does so once at most, and says so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import CorrelateOptions, TimingCondition, correlate, correlate_tables, within
from tests.helpers.planning import set_limits
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import frame, jobs

pytestmark = pytest.mark.spark

SURE, UNSURE = (TimingCondition(within(-40, 60), confidence) for confidence in (0.5, 0.4))
ROWS = 300
KINDS = "id bigint, min_time bigint, max_time bigint"


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 5000, ROWS)
    high = low + rng.integers(0, 30, ROWS)
    return pa.table({"id": np.arange(ROWS), "min_time": low, "max_time": high})


class Computed(NamedTuple):
    """A DataFrame that a function makes, and how many of its rows the function has made by now."""

    frame: DataFrame
    made: Any


def computed(spark: SparkSession, rows: pa.Table) -> Computed:
    made = spark.sparkContext.accumulator(0)

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made.add(batch.num_rows)
            yield batch

    return Computed(frame(spark, rows).repartition(2).mapInArrow(counted, KINDS), made)


def found_like_tables(found: DataFrame, condition: TimingCondition) -> None:
    expected = correlate_tables(table(1), table(2), condition)
    assert in_order(found.toArrow()) == in_order(expected)


def told(caplog: pytest.LogCaptureFixture) -> str:
    """How often the log says that planning ran Spark."""
    lines = [line for line in caplog.messages if "planning ran Spark" in line]
    return lines[0].partition(": planning ran Spark ")[2] if lines else "never"


class Planned(NamedTuple):
    """What has happened when a join of computed sides was planned: rows made of each, and jobs."""

    found: DataFrame
    made: list[int]
    jobs: int


@pytest.fixture
def planned(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> Callable[[tuple[Computed | DataFrame, ...], TimingCondition], Planned]:
    def plan(sides: tuple[Any, ...], condition: TimingCondition, **options: Any) -> Planned:
        frames = [side.frame if isinstance(side, Computed) else side for side in sides]
        with caplog.at_level(logging.INFO, "coincide"), jobs(spark, "planning") as run:
            found = correlate(*frames, condition, options=CorrelateOptions(**options))
        made = [side.made.value for side in sides if isinstance(side, Computed)]
        return Planned(found, made, len(run))

    return plan


@pytest.mark.parametrize("estimate", ["small", "large"])
@pytest.mark.parametrize("condition", [SURE, UNSURE], ids=["sure", "unsure"])
def test_two_computed_sides_are_computed_once(
    spark: SparkSession, planned: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch,
    condition: TimingCondition, estimate: str,
) -> None:  # fmt: skip
    """Collected in one go, and never again; looked at once where Spark's estimate forbids that."""
    if estimate == "large":
        set_limits(monkeypatch, both_bytes=0)
    sides = computed(spark, table(1)), computed(spark, table(2))
    done = planned(sides, condition)
    assert done.made == [ROWS, ROWS]
    is_looked_at = condition is UNSURE and estimate == "large"
    expected = (
        "once: left and right looked at"
        if is_looked_at
        else "2 times: left collected, right collected"
    )
    assert told(caplog) == expected
    found_like_tables(done.found, condition)
    found_like_tables(done.found, condition)
    assert (sides[0].made.value == ROWS) != is_looked_at


def test_planning_runs_no_more_jobs_than_the_inputs_themselves(
    spark: SparkSession, planned: Any
) -> None:
    sides = computed(spark, table(1)), computed(spark, table(2))
    with jobs(spark, "inputs") as alone:
        for side in sides:
            assert side.frame.toArrow().num_rows == ROWS
    done = planned((computed(spark, table(1)), computed(spark, table(2))), SURE)
    assert done.jobs <= len(alone) + len(sides), "one more each, which brings all rows together"


def test_many_rows_are_exchanged_without_a_look(
    spark: SparkSession, planned: Any, caplog: Any
) -> None:
    """What was collected without use is all that planning computes."""
    sides = computed(spark, table(1)), computed(spark, table(2))
    done = planned(sides, SURE, slice_rows=100)
    assert max(done.made) <= ROWS
    assert "slices of cells in time, no planning job" in caplog.text
    assert told(caplog) == "2 times: left collected, right collected"
    before = [side.made.value for side in sides]
    found_like_tables(done.found, SURE)
    assert [side.made.value for side in sides] == [made + ROWS for made in before]


def test_a_computed_side_beside_a_large_one(
    spark: SparkSession, planned: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, both_bytes=0)
    side = computed(spark, table(2))
    done = planned((frame(spark, table(1)), side), SURE)
    assert done.made == [ROWS]
    assert told(caplog) == "once: right collected"
    assert "right to every worker" in caplog.text
    found_like_tables(done.found, SURE)
    assert side.made.value == ROWS
