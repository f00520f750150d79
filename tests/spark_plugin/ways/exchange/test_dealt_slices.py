"""Bursts that no worker shall hold whole: both sides are dealt, and what slices find is added up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, TimingCondition, correlate, correlate_tables, within
from coincide.engine.events.sides import Side
from coincide.engine.join.emission import Emission
from spark_plugin.tasks.exchange import SliceTask
from spark_plugin.ways.exchange import join as exchange_way
from tests.helpers.comparison import SHAPES
from tests.helpers.joins import plan_correlation
from tests.helpers.spark_cases import frame, pack, rows_of

pytestmark = pytest.mark.spark
CONDITION = TimingCondition(within(-40, 60), 0.5)


SEEDS = (300, 301, 102, 103, 104, 305, 6, 307, 308, 9, 10, 311, 12, 13, 114, 315, 316, 17, 318)
"""Of packs that need a deal for slices of 8 rows: what reaches little is cut in time."""


@pytest.mark.parametrize(("number", "seed"), list(enumerate(SEEDS)))
def test_dealt_joins_equal_the_reference(
    spark: SparkSession, small_slices: None, no_copies: None, number: int, seed: int
) -> None:
    how, emit, probability = SHAPES[number]
    cases = pack(seed, 6, keys=("station",) if number % 2 else ())
    left, right = (frame(spark, table) for table in cases.tables())
    planned = plan_correlation(
        left, right, cases.condition, by=cases.by, how=how, emit=emit, probability=probability,
        options=CorrelateOptions(slice_rows=8, way="exchange"), observe=True,
    )  # fmt: skip
    assert planned.plan.deals_right
    cases.check(rows_of(planned.dataframe), how, emit, probability, 3e-16)


ROOM = 200


def weighing() -> type[SliceTask]:
    """A task that holds no more rows than it should; workers have no tests to import it from."""

    class Weighing(SliceTask):
        def joined_slice(self, left: Side, right: Side, label: int) -> Emission:
            rows = len(left) + len(right)
            assert rows <= 320, f"a slice of {rows} rows"
            return super().joined_slice(left, right, label)

    return Weighing


@pytest.mark.parametrize(("left_n", "keyed"), [(2, False), (240, True)])
def test_a_burst_on_the_right_goes_whole_to_nobody(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, left_n: int, keyed: bool
) -> None:
    monkeypatch.setattr(exchange_way, "SliceTask", weighing())
    left, right = (
        pa.table({"min_time": np.full(n, 50), "id": np.arange(n), "key": np.arange(n) // n})
        for n in (left_n, 1200)
    )
    found = correlate(
        frame(spark, left), frame(spark, right), CONDITION, left_time="min_time",
        right_time="min_time", by=["key"] if keyed else [],
        options=CorrelateOptions(slice_rows=ROOM, way="exchange"),
    )  # fmt: skip
    assert found.count() == left_n * 1200


def test_times_tell_events_apart_that_share_all_other_columns(spark: SparkSession) -> None:
    """Columns whose names differ in case alone cannot be named, hence not hashed, but for times."""
    rng = np.random.default_rng(5)
    times, others = rng.integers(0, 4, 100), rng.choice([0, 4, 7, -4], 100)
    left = pa.table({"min_time": times, "MIN_TIME": np.zeros(100, np.int64)})
    right = pa.table({"min_time": others, "id": range(100)})
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        planned = plan_correlation(
            frame(spark, left).repartition(4), frame(spark, right).repartition(3),
            TimingCondition(within(-5, 5), 0.5), left_time="min_time", right_time="min_time",
            left_columns="min_time", emit="counts",
            options=CorrelateOptions(slice_rows=40, way="exchange"),
        )  # fmt: skip
        assert planned.plan.deals_right
        found = {(row["left_min_time"], row["matches"]) for row in rows_of(planned.dataframe)}
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert found == {(t, int((abs(others - t) <= 5).sum())) for t in set(times.tolist())}


def test_a_left_event_with_a_burst_of_matches_is_no_row_of_lists(spark: SparkSession) -> None:
    """Pairs of a left join stay pairs on their way: no row holds all matches of an event."""
    left, right = (
        pa.table({"min_time": [50] * n, "max_time": [50] * n, "id": range(n)}) for n in (2, 60)
    )
    planned = plan_correlation(
        frame(spark, left), frame(spark, right), CONDITION, how="left",
        options=CorrelateOptions(slice_rows=10, way="exchange"),
    )  # fmt: skip
    assert planned.plan.deals_right
    text = planned.dataframe._jdf.queryExecution().toString()
    assert "collect_list" not in text
    assert "Window" in text
    assert planned.dataframe.count() == 120


@pytest.mark.parametrize("emit", ["lists", "counts"])
def test_events_alike_in_all_are_told_apart(spark: SparkSession, emit: Any) -> None:
    """Each of them is a row of the result, and has all matches."""
    left = pa.table({"min_time": [50] * 4, "max_time": [50] * 4, "id": [7, 7, 7, 8]})
    right = pa.table({"min_time": [50] * 60, "max_time": [50] * 60, "id": range(60)})
    nulls = pa.table({"min_time": [None, None], "max_time": [1, 1], "id": [9, 9]}, left.schema)
    left = pa.concat_tables([left, nulls])
    options = CorrelateOptions(slice_rows=10, way="exchange")
    given: dict[str, Any] = {"how": "left", "emit": emit}
    planned = plan_correlation(
        frame(spark, left), frame(spark, right), CONDITION, options=options, **given
    )
    assert planned.plan.deals_right
    rows = rows_of(planned.dataframe)
    expected = correlate_tables(left, right, CONDITION, **given).to_pylist()
    for row in (*rows, *expected):
        if emit == "lists":
            row["right_id"].sort()
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert len(rows) == 6
