"""`correlate` on Spark: one answer whatever slices, batches and partitions are, and when it is computed."""

from __future__ import annotations

import logging
import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from coincide import CorrelateOptions, TimingCondition, correlate, within
from spark_plugin.ways.exchange import planning
from tests.helpers.comparison import HUGE_TOLERANCE, assert_answer
from tests.helpers.example_streams import CONDITION, LEFT, RIGHT, declared, expected_pairs
from tests.helpers.joins import plan_correlation, table_join
from tests.helpers.spark_cases import frame, jobs, pair_ids, rows_of, settings
from tests.helpers.strategies import JoinCase

pytestmark = pytest.mark.spark

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


# --- far times ---


def test_the_farthest_times_in_several_slices(spark: SparkSession) -> None:
    far = 2**61 - 1
    times = [(-far, -far), (-far, far), (0, 0), (far, far), (-far, 0), (0, far)]
    rows = [{"min_time": a, "max_time": b, "id": i} for i, (a, b) in enumerate(times)]
    source = frame(spark, pa.Table.from_pylist(rows))
    for lo, hi in ((-far, far), (far, far), (-far, 1 - far)):
        case = JoinCase(rows, rows, lo, hi, 0.25, ())
        condition = TimingCondition(within(lo, hi), 0.25)
        found = correlate(source, source, condition, options=CorrelateOptions(slices=3))
        assert_answer(rows_of(found), case, "inner", "pairs", False, HUGE_TOLERANCE)


# --- identities ---


@pytest.mark.parametrize("slices", [1, 2, 7, 30])
def test_any_number_of_slices(spark: SparkSession, slices: int) -> None:
    planned = plan_correlation(
        frame(spark, LEFT), frame(spark, RIGHT), CONDITION, options=CorrelateOptions(slices=slices)
    )
    expected = expected_pairs()
    assert len(expected) > 1000
    assert pair_ids(planned.dataframe) == expected
    assert 0.7 * slices <= planned.plan.count <= slices + 5
    assert planned.dataframe.rdd.getNumPartitions() == planned.plan.count
    assert planned.plan.replication >= 1


@pytest.mark.parametrize(("slices", "most"), [(2, 1.0), (7, 1.0), (4, 64.0)])
@pytest.mark.usefixtures("small_slices")
def test_buckets_and_splits(
    spark: SparkSession, slices: int, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window longer than the data, so that keys and splits must share the work."""
    condition = TimingCondition(within(-(10**5), 10**5), 0.5)
    options = CorrelateOptions(slices=slices, slice_rows=1)
    monkeypatch.setattr(planning, "MOST_COPIES", most)
    for by in ([], ["key"]):
        planned = plan_correlation(
            frame(spark, LEFT), frame(spark, RIGHT), condition, by=by, emit="counts",
            options=options, left_columns=["id", "key"],
        )  # fmt: skip
        found = planned.dataframe.toArrow()
        assert found.num_rows == 300
        sizes = RIGHT["key"].value_counts().to_pylist() if by else [{"values": None, "counts": 300}]
        size = {entry["values"]: entry["counts"] for entry in sizes}
        for row in found.to_pylist():
            assert row["matches"] == size[row["left_key"] if by else None]
        if most > 1:
            assert planned.plan.count >= slices
        if by and most == 1.0:
            assert planned.plan.buckets == slices
            assert planned.plan.replication == 1


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_any_batching(spark: SparkSession, rows: int) -> None:
    with settings(spark, {BATCH_ROWS: rows}):
        left, right = frame(spark, LEFT), frame(spark, RIGHT)
        found = correlate(left, right, CONDITION, by="key", options=declared(batch_pairs=11))
        assert pair_ids(found) == expected_pairs(by="key")


def test_swapped_sides_mirror_the_window(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    back = correlate(right, left, CONDITION.mirrored(), options=CorrelateOptions(slices=3))
    assert sorted((a, b) for b, a in pair_ids(back)) == expected_pairs()


def test_any_partitioning_of_the_input(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    for one, other in (
        (left.coalesce(1), right.repartition(5)),
        (left.orderBy(F.desc("id")), right.repartition(3, "key")),
        (left.sortWithinPartitions("key").union(left.limit(0)), right.filter("id > 0")),
    ):
        assert pair_ids(correlate(one, other, CONDITION)) == expected_pairs()


def test_a_frame_with_itself(spark: SparkSession) -> None:
    left = frame(spark, LEFT)
    found = correlate(
        left, left, TimingCondition(within(0, 0), 1.0), left_time="id", right_time="id"
    )
    assert pair_ids(found) == [(i, i) for i in LEFT["id"].to_pylist()]


def test_results_are_frames_like_any_other(spark: SparkSession) -> None:
    """A result can be filtered, joined, counted and correlated again."""
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    pairs = correlate(left, right, CONDITION, options=declared())
    expected = expected_pairs()
    assert pairs.count() == len(expected)
    assert pairs.filter("left_id < 10 and right_id > 3").count() == sum(
        a < 10 and b > 3 for a, b in expected
    )
    assert len(pairs.limit(7).collect()) == 7
    again = correlate(
        pairs, right, TimingCondition(within(0, 0), 1.0), left_time="right_id", right_time="id",
        left_columns=["left_id", "right_id"],
    )  # fmt: skip
    assert again.count() == len(expected)


# --- when things happen ---


def test_the_join_waits_for_an_action(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    with jobs(spark, "measured") as ran:
        found = correlate(left, right, CONDITION, options=CorrelateOptions(slices=4))
        assert found.columns == ["left_id", "right_id"]
    assert 1 <= len(ran) <= 4
    with jobs(spark, "action") as ran:
        assert found.count() == len(expected_pairs())
    assert ran


def test_slices_are_logged(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="coincide"):
        planned = plan_correlation(
            frame(spark, LEFT), frame(spark, RIGHT), CONDITION, options=CorrelateOptions(slices=4)
        )
    told = [r.getMessage() for r in caplog.records if r.name == "coincide"]
    assert [message for message in told if re.search(rf"\b{planned.plan.count} slices", message)]


@pytest.mark.parametrize("emit", ["pairs", "lists", "counts", "best"])
def test_counters(spark: SparkSession, emit: str) -> None:
    arguments: dict[str, Any] = {"by": "key", "emit": emit, "how": "left"}
    job = table_join(LEFT, RIGHT, CONDITION, **arguments)
    list(job.batches())
    planned = plan_correlation(
        frame(spark, LEFT), frame(spark, RIGHT), CONDITION, **arguments, observe=True,
        options=CorrelateOptions(slices=3, classes=1),
    )  # fmt: skip
    found = planned.dataframe.toArrow()
    counters = planned.counters()
    assert counters.pairs == job.summary.counters.pairs == len(expected_pairs(by="key"))
    assert counters.candidates >= max(counters.pairs, counters.probed)
    assert counters.probed > 0
    assert (
        planned.dataframe.columns
        == correlate(
            frame(spark, LEFT), frame(spark, RIGHT), CONDITION, **arguments, options=declared()
        ).columns
    )
    if emit != "pairs":
        assert found.num_rows == LEFT.num_rows
    assert (planned.left.rows, planned.right.rows) == (300, 300)


def test_counters_of_nothing(spark: SparkSession) -> None:
    left = frame(spark, LEFT)
    none = left.filter("id < 0")
    planned = plan_correlation(none, left, CONDITION, observe=True)
    assert planned.dataframe.collect() == []
    assert (planned.counters().candidates, planned.counters().pairs) == (0, 0)
    with pytest.raises(RuntimeError, match="observe=True"):
        plan_correlation(none, left, CONDITION, options=declared()).counters()
