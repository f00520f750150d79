"""Two small sides that are collected: in one task or several, each read once, and when they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Temporal,
    TimingCondition,
    Window,
    causality,
    correlate,
    correlate_tables,
    within,
)
from coincide.engine.join.timing import JoinSpec
from coincide.model.errors import ConditionError
from spark_plugin.tasks.samples import Reach, Sample
from spark_plugin.ways import choosing
from spark_plugin.ways.broadcast import both, collecting
from spark_plugin.ways.broadcast.both import BothPlan
from spark_plugin.ways.correlation import Correlation
from tests.helpers.joins import plan_correlation
from tests.helpers.planning import set_limits
from tests.helpers.spark_cases import frame, jobs, pair_ids

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-40, 60), 0.5)


def stream(seed: int, n: int = 700) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6000, n)
    return pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 5, 30, 200], n), "id": np.arange(n),
        "word": [f"w{i % 7}" for i in range(n)], "nested": [[i] for i in range(n)],
        "is_odd": np.arange(n) % 2 == 1, "day": pa.array(np.arange(n) % 9, pa.int32()).cast(pa.date32()),
    })  # fmt: skip


LEFT, RIGHT = stream(1), stream(2, 500)


@pytest.fixture
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(both, "_SMALLEST_WORK", 1.0)


def planned(left: DataFrame, right: DataFrame | None, **arguments: Any) -> Correlation:
    condition = arguments.pop("condition", CONDITION)
    found = plan_correlation(left, right, condition, observe=True, **arguments)
    assert (found.plan.way, found.plan.count, found.plan.replication) == (
        "broadcast-both",
        None,
        None,
    )
    return found


def test_work_is_dealt_to_tasks(spark: SparkSession, many_tasks: None) -> None:
    join = planned(frame(spark, LEFT), frame(spark, RIGHT))
    assert isinstance(join.plan, BothPlan)
    tasks = (
        join.dataframe.rdd.getNumPartitions() - 2
    )  # those around them tell that none is left out
    assert len(join.plan.bounds) - 1 == tasks > 1
    expected = correlate_tables(LEFT, RIGHT, CONDITION)
    ids = zip(expected["left_id"].to_pylist(), expected["right_id"].to_pylist(), strict=True)
    assert pair_ids(join.dataframe) == sorted(ids)


def test_each_side_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    """One job a side; the result of it stays right when the files are gone."""
    left, right = (frame(spark, table) for table in (LEFT, RIGHT))
    left.write.parquet(str(tmp_path / "left"))
    read = spark.read.parquet(str(tmp_path / "left")).where("id >= 0")
    expected = pair_ids(correlate(left, right, CONDITION))
    with jobs(spark, "collecting") as run:
        found = correlate(read, right, CONDITION)
    assert len(run) == 2
    for part in (tmp_path / "left").iterdir():
        part.unlink()
    assert pair_ids(found) == pair_ids(found) == expected


LIMITS: dict[str, dict[str, Any]] = {
    "rows of a worker": {"slice_rows": 699},
    "bytes of a worker": {"slice_bytes": 8000},
    "bytes to broadcast": {"broadcast_bytes": 8000},
    "slices": {"slices": 3},
    "a way": {"way": "exchange"},
}


@pytest.mark.parametrize("limit", LIMITS)
def test_what_options_do_not_allow_is_not_collected(spark: SparkSession, limit: str) -> None:
    options = CorrelateOptions(**LIMITS[limit])
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    assert plan_correlation(left, right, CONDITION, options=options).plan.way != "broadcast-both"


def test_what_is_larger_than_spark_takes_it_for_is_not_collected(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    set_limits(monkeypatch, both_rows=700)
    assert plan_correlation(left, right, CONDITION).plan.way == "broadcast-both"
    set_limits(monkeypatch, both_rows=699)
    assert plan_correlation(left, right, CONDITION).plan.way != "broadcast-both"
    assert plan_correlation(right, left, CONDITION).plan.way != "broadcast-both"


def test_of_small_sides_no_more_is_asked(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What their needed columns are takes a plan more a side, which a small join would feel."""

    def asked(side: object) -> None:
        raise AssertionError

    monkeypatch.setattr(choosing, "estimate_of_rows", asked)
    assert (
        plan_correlation(frame(spark, LEFT), frame(spark, RIGHT), CONDITION).plan.way
        == "broadcast-both"
    )


def test_what_the_driver_does_not_take_goes_another_way(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise Py4JError("results are bigger than spark.driver.maxResultSize (1024.0 MiB)")

    monkeypatch.setattr(collecting, "collected_rows", refused)
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    assert plan_correlation(left, right, CONDITION).plan.way != "broadcast-both"
    with pytest.raises(Py4JError, match="maxResultSize"):
        plan_correlation(left, right, CONDITION, options=CorrelateOptions(way="broadcast-both"))


def test_causality_is_not_collected(spark: SparkSession) -> None:
    events = frame(spark, LEFT)
    condition = CausalityCondition([Temporal(0, 10)])
    with pytest.raises(ConditionError, match="way='broadcast-both' works for correlate only"):
        causality(
            events,
            events,
            condition,
            cause_time="id",
            effect_time="id",
            options=CorrelateOptions(way="broadcast-both"),
        )


def test_cuts_fall_where_the_work_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst at the end: half of the left events there are most of the work."""
    times = np.concatenate([np.arange(0, 500_000, 1000), np.full(500, 500_000)])
    sample = Sample(times, np.ones(times.size), np.zeros(times.size, np.int64), times.size)
    given = sample, sample, Reach(-10, 10), JoinSpec(Window(-40, 60, 0.5)), 1000, 4
    assert both._bounds(*given) == (0, 1000)
    monkeypatch.setattr(both, "_SMALLEST_WORK", 100.0)
    bounds = both._bounds(*given)
    assert bounds[0] == 0
    assert bounds[-1] == 1000
    assert all(500 < cut < 1000 for cut in bounds[1:-1])
    assert len(bounds) == 5
