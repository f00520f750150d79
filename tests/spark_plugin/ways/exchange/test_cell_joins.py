"""Large sides without a planning job: each is read once, and which sides those are."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import (
    CorrelateOptions,
    JoinReport,
    NoPairsWarning,
    TimingCondition,
    accidental_pair_tables,
    accidental_pairs,
    around,
    correlate,
    correlate_tables,
    within,
)
from coincide.engine.events.invalid_rows import SideCounts
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.ways import choosing
from spark_plugin.ways.correlation import Correlation
from tests.helpers.joins import plan_correlation
from tests.helpers.planning import set_limits
from tests.helpers.rows import in_order, lists_in_order
from tests.helpers.spark_cases import frame, jobs, settings

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-40, 60), 0.5)


@pytest.fixture(autouse=True)
def _any_sides_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(
        monkeypatch, large_bytes=0, large_filtered_bytes=0, waves_of_filtered=1 << 20, far_larger=1000,
        smallest_slice_rows=10,
    )  # fmt: skip


def stream(seed: int, n: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 10**5, n)
    return pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 5, 30, 200, 5000], n), "id": np.arange(n),
        "word": [f"w{i % 7}" for i in range(n)],
    })  # fmt: skip


LEFT, RIGHT = stream(1, 2500), stream(2, 2000)


def planned(left: DataFrame, right: DataFrame, **arguments: Any) -> Correlation:
    condition = arguments.pop("condition", CONDITION)
    found = plan_correlation(left, right, condition, observe=True, **arguments)
    assert isinstance(found.plan, CellPlan)
    assert found.plan.way == "exchange"
    assert (found.left, found.right) == (None, None)
    return found


ASKED: dict[str, dict[str, Any]] = {
    "where": {"where": "left_word = right_word", "emit": "counts"},
    "several best": {"emit": "best", "k": 3, "prefer": "nearest", "how": "left"},
    "mutual": {"matching": "mutual"},
    "mutual, all of left": {"matching": "mutual", "how": "left"},
    "texts": {"left_columns": ["id", "word"], "right_columns": ["word"], "by": "word", "emit": "lists"},
    "around": {"left_time": around("min_time", 40), "right_time": around("max_time", 30),
               "confidence": 0.2},
    "short declared": {"options": CorrelateOptions(left_longest=5000, right_longest=5000),
                       "confidence": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("asked", ASKED)
def test_as_tables(spark: SparkSession, asked: str) -> None:
    words = dict(ASKED[asked])
    confidence = words.pop("confidence", 0.5)
    if words.get("by"):
        words["left_columns"] = words["right_columns"] = ["id"]
    condition = TimingCondition(CONDITION.predicate, confidence)
    expected = correlate_tables(LEFT, RIGHT, condition, **words)
    assert expected.num_rows > 100
    found = planned(frame(spark, LEFT), frame(spark, RIGHT), condition=condition, **words).dataframe
    assert found.columns == expected.column_names
    assert lists_in_order(found.toArrow()) == lists_in_order(expected)


def test_each_side_is_read_once(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No job when it is planned, and each row of both passes once after."""
    read = []
    for name, table in (("left", LEFT), ("right", RIGHT)):
        frame(spark, table).write.parquet(str(tmp_path / name))
        events = spark.read.parquet(str(tmp_path / name))
        read.append(events.withColumn("word", F.upper("word")))
    seen = spark.sparkContext.accumulator(0)

    def counted(word: str) -> str:
        seen.add(1)
        return word

    count = F.udf(counted, "string")
    left, right = (events.withColumn("word", count("word")) for events in read)
    words = {"left_columns": ["id", "word"], "right_columns": ["id", "word"]}
    with jobs(spark, "planning") as run, caplog.at_level(logging.INFO, "coincide"):
        found = correlate(left, right, CONDITION, **words)
    assert not run
    assert caplog.messages[0].endswith("slices of cells in time, no planning job")
    assert found.toArrow().num_rows == correlate_tables(LEFT, RIGHT, CONDITION).num_rows
    assert seen.value == LEFT.num_rows + RIGHT.num_rows


def test_what_is_counted(spark: SparkSession) -> None:
    nothing = pa.table(
        {"min_time": [None, 3], "max_time": [4, None], "id": [-1, -2], "word": ["", ""]}
    )
    left = pa.concat_tables([LEFT, nothing.cast(LEFT.schema)])
    report, told = JoinReport(), JoinReport()
    found = correlate(frame(spark, left), frame(spark, RIGHT), CONDITION, how="left", report=report)
    rows = found.toArrow().num_rows
    expected = correlate_tables(left, RIGHT, CONDITION, how="left", report=told)
    assert rows == expected.num_rows > left.num_rows
    summary, tables = report.summary(), told.summary()
    assert (summary.left, summary.right) == (tables.left, tables.right)
    assert summary.counters is not None
    assert summary.counters.pairs == tables.counters.pairs  # type: ignore[union-attr]


def test_nothing_is_found(spark: SparkSession) -> None:
    """It is reported after an action, with why."""
    report = JoinReport()
    far = TimingCondition(within(10**9, 10**9 + 5), 0.5)
    found = correlate(frame(spark, LEFT), frame(spark, RIGHT), far, report=report)
    assert not found.collect()
    with pytest.warns(NoPairsWarning):
        summary = report.summary()
    # A window 5 wide has no match longer than 10.
    too_long = LEFT.filter(pc.greater(pc.subtract(LEFT["max_time"], LEFT["min_time"]), 10)).num_rows
    assert summary.left == SideCounts(LEFT.num_rows, 0, {}, 0.0, too_long, 10)
    assert summary.no_pairs is not None


def test_invalid_rows_fail_the_job_that_meets_them(spark: SparkSession) -> None:
    wrong = pa.table({"min_time": [5], "max_time": [4], "id": [-1], "word": [""]})
    for sides in (
        (pa.concat_tables([LEFT, wrong]), RIGHT),
        (LEFT, pa.concat_tables([RIGHT, wrong])),
    ):
        found = correlate(*(frame(spark, side) for side in sides), CONDITION)
        with pytest.raises(
            PySparkException, match=r"of a row .found min_time=5, max_time=4, id=-1\). Fix"
        ):
            found.collect()


def test_a_source_that_gives_other_rows_each_time_needs_no_copy(spark: SparkSession) -> None:
    """It is read once: lengths that were not seen before are as good as others."""
    left, right = (
        frame(spark, side).withColumn(
            "max_time", F.expr("min_time + CAST(rand() * 3000 AS BIGINT)")
        )
        for side in (LEFT, RIGHT)
    )
    for _ in range(2):
        assert correlate(left, right, CONDITION).count() > 0


class Looked(Exception):
    """Ends planning where both sides would be looked at."""


def is_unseen(
    monkeypatch: pytest.MonkeyPatch,
    left: DataFrame,
    right: DataFrame | None,
    *more: Any,
    **words: Any,
) -> bool:
    def looked(*_: Any) -> None:
        raise Looked

    with monkeypatch.context() as patched:
        patched.setattr(choosing, "plan_after_job", looked)
        try:
            correlate(left, right, *more, **words)
        except Looked:
            return False
    return True


def both(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return frame(spark, LEFT), frame(spark, RIGHT)


MADE: dict[str, tuple[Callable[[DataFrame], DataFrame], bool]] = {
    "as it is": (lambda events: events, True),
    "other columns": (lambda events: events.selectExpr("*", "id + 1 AS other"), True),
    "in order": (lambda events: events.sort("id"), True),
    "in partitions": (lambda events: events.repartition(5, "id"), True),
    "a union": (lambda events: events.unionAll(events), True),
    "an alias": (lambda events: events.alias("e"), True),
    "a checkpoint": (lambda events: events.where("id < 5").localCheckpoint(), False),
    "a cache to be computed": (lambda events: events.where("id < 6").cache(), False),
    "a filter": (lambda events: events.where("id > 5"), False),
    "distinct": (lambda events: events.distinct(), False),
    "a limit": (lambda events: events.limit(10), False),
    "a sample": (lambda events: events.sample(0.5, seed=1), True),
    "a generator": (lambda events: events.selectExpr("*", "explode(array(1, 2)) AS n"), True),
    "a join": (lambda events: events.join(events.select("id"), "id"), True),
    "an aggregate": (
        lambda events: events.groupBy("id").agg(
            F.max("min_time").alias("min_time"), F.max("max_time").alias("max_time")
        ),
        False,
    ),
}


@pytest.mark.parametrize("made", MADE)
def test_of_which_dataframes_sizes_are_known(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    """What leaves rows out may leave few, which are broadcast faster; what makes some is computed once."""
    make, expected = MADE[made]
    # Spark works out at once what becomes of rows that it has in memory.
    events = spark.range(2500).selectExpr("id", "10 * id AS min_time", "10 * id + 5 AS max_time")
    assert is_unseen(monkeypatch, make(events), events, CONDITION) == expected
    assert is_unseen(monkeypatch, events, make(events), CONDITION) == expected
    # A filter of both is taken to leave as much of either.
    expected |= made == "a filter"
    assert is_unseen(monkeypatch, make(events), make(events), CONDITION) == expected


FILTERS = {
    "none": ("id < 0", pc.field("id") < 0), "few": ("id < 20", pc.field("id") < 20),
    "all": ("id >= 0", pc.field("id") >= 0), "a partition": ("word = 'w3'", pc.field("word") == "w3"),
}  # fmt: skip
LEFT_OVER = [
    (("none", "none"), "left"), (("few", "few"), "inner"), (("all", "all"), "anti"),
    (("all", "none"), "left"), (("all", "none"), "inner"), (("few", "all"), "left"),
    (("a partition", "a partition"), "inner"), (("a partition", "a partition"), "anti"),
]  # fmt: skip


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both sides, a folder for each word."""
    folder = tmp_path_factory.mktemp("parted")
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pq.write_to_dataset(table, folder / name, partition_cols=["word"])
    return folder


@pytest.mark.parametrize(("kept", "how"), LEFT_OVER)
def test_what_filters_leave(
    spark: SparkSession, parted: Path, kept: tuple[str, str], how: str
) -> None:
    """Filters keep any part of each side. The report says as much as for other sides."""
    frames, tables = [], []
    for name, table, (text, mask) in zip(
        ("left", "right"), (LEFT, RIGHT), (FILTERS[each] for each in kept), strict=True
    ):
        frames.append(spark.read.parquet(str(parted / name)).where(text))
        tables.append(table.filter(mask))
    found = planned(*frames, how=how)
    expected = correlate_tables(*tables, CONDITION, how=how)
    assert in_order(found.dataframe.toArrow()) == in_order(expected)
    summary = found.summary()
    assert summary.left is not None
    assert summary.right is not None
    assert [summary.left.rows, summary.right.rows] == [table.num_rows for table in tables]


def test_filters_of_which_spark_has_statistics_are_looked_at(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It multiplies what each leaves, as if they had nothing to do with one another."""
    events = spark.range(2500).selectExpr("id", "10 * id AS min_time", "10 * id + 5 AS max_time")
    some = events.where("id > 5")
    for is_on in (True, False):
        with settings(spark, {"spark.sql.cbo.enabled": is_on}):
            assert is_unseen(monkeypatch, some, some, CONDITION) != is_on
            assert is_unseen(monkeypatch, events, events, CONDITION)


def test_a_cache_is_known_once_it_is_computed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, Spark takes it for as large as what it is computed from."""
    events = spark.range(3000).selectExpr("id", "10 * id AS min_time", "10 * id + 5 AS max_time")
    some = events.where("id < 2500").cache()
    try:
        assert not is_unseen(monkeypatch, some, events, CONDITION)
        assert some.count() == 2500
        assert is_unseen(monkeypatch, some, events, CONDITION)
    finally:
        some.unpersist()


def test_a_list_of_rows_has_no_known_size(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.createDataFrame(LEFT.to_pylist()[:10])
    assert not is_unseen(monkeypatch, rows, rows, CONDITION)


def test_columns_that_nobody_asks_for_are_not_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, smallest_slice_rows=1 << 40)
    narrow, wide = frame(spark, LEFT.drop_columns("word")), frame(spark, LEFT)
    wide = wide.withColumns({f"other{i}": F.lit("a text") for i in range(40)})
    options = CorrelateOptions(slice_bytes=20_000)
    plans = [planned(events, events, options=options).plan for events in (narrow, wide)]
    assert plans[0] == plans[1]
    assert plans[0].count > 4  # type: ignore[operator]


def test_of_keys_some_are_in_each_slice(spark: SparkSession) -> None:
    left, right = both(spark)
    assert [planned(left, right, by=by).plan.needs_keys for by in ((), "word")] == [False, True]  # type: ignore[union-attr]


def test_one_stream_is_looked_at(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_unseen(monkeypatch, frame(spark, LEFT), None, condition=CONDITION)


def test_accidental_pairs_need_no_cells(spark: SparkSession) -> None:
    found = accidental_pairs(*both(spark), CONDITION, shifts=[1000, -1000])
    assert found == accidental_pair_tables(LEFT, RIGHT, CONDITION, shifts=[1000, -1000])
    assert min(found.counts) > 0
