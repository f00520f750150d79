"""A small side and one without a planning job: when it is so, and what is counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
    correlate,
    correlate_tables,
    within,
)
from coincide.engine.events.invalid_rows import SideCounts
from coincide.model.errors import DataError
from spark_plugin.frames import estimates
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.plain_reads import plan_of
from spark_plugin.frames.stage import Stage
from spark_plugin.frames.statistics import measure
from spark_plugin.ways import choosing, planning_job
from spark_plugin.ways.broadcast.join import BroadcastPlan
from spark_plugin.ways.correlation import Correlation
from tests.helpers.joins import plan_correlation
from tests.helpers.planning import set_limits
from tests.helpers.spark_cases import frame, jobs

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-40, 60), 0.5)


@pytest.fixture(autouse=True)
def _any_side_may_be_small(monkeypatch: pytest.MonkeyPatch, _sides_pass_for_large: None) -> None:
    set_limits(monkeypatch, small_bytes=1 << 20, far_larger=1, least_large=0)


def stream(seed: int, n: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 10**6, n)
    return pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 5, 30, 200], n), "id": np.arange(n),
        "word": [f"w{i % 7}" for i in range(n)],
    })  # fmt: skip


LARGE, SMALL = stream(1, 3000), stream(2, 200)
SIDES = {"left": (SMALL, LARGE), "right": (LARGE, SMALL)}


def planned(
    left: DataFrame, right: DataFrame, small: str, seen: str | None = None, **arguments: Any
) -> Correlation:
    """A broadcast of the small side, which the plan may see as the other one."""
    condition = arguments.pop("condition", CONDITION)
    found = plan_correlation(left, right, condition, observe=True, **arguments)
    assert (found.plan.way, getattr(found.plan, "small", None)) == ("broadcast", seen or small)
    # Nothing is known yet about the side that streams.
    assert [found.left is None, found.right is None] == [small == "right", small == "left"]
    return found


def test_nobody_looks_at_the_large_side(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One job when it is planned, of the small side, and one that reads the large one."""
    left, right = (frame(spark, table) for table in SIDES["right"])
    left.write.parquet(str(tmp_path / "left"))
    read = spark.read.parquet(str(tmp_path / "left")).where("id >= 0")
    with jobs(spark, "planning") as run, caplog.at_level(logging.INFO, "coincide"):
        found = correlate(read, right, CONDITION, emit="counts")
    assert len(run) == 1
    assert caplog.messages[0].endswith(", no planning job for left")
    assert found.count() == correlate_tables(*SIDES["right"], CONDITION, emit="counts").num_rows


def test_more_rows_than_a_chunk_are_looked_at(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_limits(monkeypatch, small_rows=150)
    left, right = (frame(spark, table) for table in SIDES["right"])
    with caplog.at_level(logging.INFO, "coincide"):
        assert plan_correlation(left, right, CONDITION).left is not None
    told, planned = caplog.messages[:2]
    assert told.startswith("correlate: right was collected without use: ")
    assert "more than 150 rows a side or " in told
    assert "no planning job" not in planned


@pytest.mark.parametrize(
    "remade",
    [lambda made: made, lambda made: made.join(made.select("id"), "id")],
    ids=["as is", "joined"],
)
def test_rows_of_a_program_are_not_taken_for_many(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, remade: Callable[[DataFrame], DataFrame]
) -> None:
    """Spark takes such a side for the largest there is, and the other one would be collected for it."""
    left, right = (frame(spark, table) for table in SIDES["right"])
    rows = [tuple(row.values()) for row in SIDES["right"][1].to_pylist()]
    made = remade(spark.createDataFrame(rows, right.schema))
    with caplog.at_level(logging.INFO, "coincide"):
        correlate(left, made, CONDITION)
    assert not any(
        "collected without use" in told or "no planning job for right" in told
        for told in caplog.messages
    )


def test_what_is_counted(spark: SparkSession) -> None:
    """Rows of the large side are counted while they pass, those that match nothing among them."""
    nothing = pa.table(
        {"min_time": [None, 3], "max_time": [4, None], "id": [-1, -2], "word": ["", ""]}
    )
    large = pa.concat_tables([LARGE, nothing.cast(LARGE.schema)])
    report, told = JoinReport(), JoinReport()
    found = correlate(frame(spark, large), frame(spark, SMALL), CONDITION, report=report)
    pairs = found.count()
    expected = correlate_tables(large, SMALL, CONDITION, report=told)
    assert pairs == expected.num_rows > 0
    summary, tables = report.summary(), told.summary()
    assert (summary.left, summary.right) == (tables.left, tables.right)
    assert summary.counters is not None
    assert summary.counters.pairs == pairs


NOTHING: dict[str, dict[str, Any]] = {
    "several best": {"emit": "best", "k": 2, "how": "left"},
    "mutual": {"matching": "mutual"},
    "mutual, all of left": {"matching": "mutual", "how": "left"},
}  # fmt: skip


@pytest.mark.parametrize("asked", NOTHING)
def test_what_is_counted_where_nothing_is_found(spark: SparkSession, asked: str) -> None:
    """Adaptive execution leaves out what finds nothing, and would what was counted there."""
    small = "right" if asked == "mutual, all of left" else "left"
    left, right = (frame(spark, table) for table in SIDES[small])
    far = TimingCondition(within(10**9, 10**9 + 5), 0.5)
    join = planned(left, right, small, condition=far, **NOTHING[asked])
    join.dataframe.collect()
    summary = join.summary()
    of_large = summary.left if small == "right" else summary.right
    # A window 5 wide has no match longer than 10.
    too_long = LARGE.filter(
        pc.greater(pc.subtract(LARGE["max_time"], LARGE["min_time"]), 10)
    ).num_rows
    assert of_large == SideCounts(LARGE.num_rows, 0, {}, 0.0, too_long, 10)
    assert summary.counters is not None
    assert summary.counters.pairs == 0


def test_invalid_rows(spark: SparkSession) -> None:
    """Those of the small side are found at once, the others by the job that meets them."""
    wrong = pa.table({"min_time": [5], "max_time": [4], "id": [-1], "word": [""]})
    large, small = (pa.concat_tables([each, wrong]) for each in (LARGE, SMALL))
    with pytest.raises(DataError, match=r"in 1 row .found min_time=5, max_time=4"):
        correlate(frame(spark, LARGE), frame(spark, small), CONDITION)
    found = correlate(frame(spark, large), frame(spark, SMALL), CONDITION)
    with pytest.raises(
        PySparkException, match=r"of a row .found min_time=5, max_time=4, id=-1\). Fix"
    ):
        found.collect()
    dropped = correlate(
        frame(spark, large),
        frame(spark, SMALL),
        CONDITION,
        options=CorrelateOptions(invalid="drop"),
    )
    assert dropped.count() == correlate_tables(LARGE, SMALL, CONDITION).num_rows


@pytest.mark.parametrize("longest", [None, 1_000])
def test_accidental_pairs_look_for_themselves(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, longest: int | None
) -> None:
    looks = []

    def looked(*asked: Any) -> Any:
        looks.append(asked)
        return measure(*asked)

    monkeypatch.setattr(planning_job, "measure", looked)
    options = CorrelateOptions(left_longest=longest, right_longest=longest)
    found = accidental_pairs(
        frame(spark, LARGE), frame(spark, SMALL), CONDITION, shifts=[1000, -1000], options=options
    )
    assert found == accidental_pair_tables(LARGE, SMALL, CONDITION, shifts=[1000, -1000])
    assert len(looks) == 1


def streamed(
    monkeypatch: pytest.MonkeyPatch, left: DataFrame, right: DataFrame, ct: float = 0.5, **more: Any
) -> int:
    """How many rows of the large side Python would get."""
    rows: list[DataFrame] = []
    run = Stage.run

    def recorded(stage: Stage, frame: DataFrame, *arguments: Any, **words: Any) -> DataFrame:
        rows.append(frame)
        return run(stage, frame, *arguments, **words)

    with monkeypatch.context() as patched:
        patched.setattr(Stage, "run", recorded)
        correlate(left, right, TimingCondition(CONDITION.predicate, ct), **more)
    assert len(rows) == 1
    return rows[0].count()


@pytest.mark.parametrize("small", SIDES)
def test_rows_near_no_event_stay_in_the_jvm(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, small: str
) -> None:
    left, right = (frame(spark, table) for table in SIDES[small])
    near = streamed(monkeypatch, left, right, how="semi")
    assert near < LARGE.num_rows / 3
    kept = streamed(monkeypatch, left, right, how="anti")
    assert kept == (LARGE.num_rows if small == "right" else near)


def test_a_declared_length_or_a_confidence_of_a_half_spares_long_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    instants = SMALL.set_column(1, "max_time", SMALL["min_time"])
    left, right = frame(spark, LARGE), frame(spark, instants)
    declared = CorrelateOptions(left_longest=200)
    undeclared = streamed(monkeypatch, left, right, 0.4)
    assert 3 * streamed(monkeypatch, left, right, 0.4, options=declared) < undeclared
    assert 3 * streamed(monkeypatch, left, right, 0.5) < undeclared


class Chosen(Exception):
    """Ends planning: what would have run."""


def chosen(
    monkeypatch: pytest.MonkeyPatch, left: DataFrame, right: DataFrame, ct: float = 0.5, **more: Any
) -> str:
    """The side that would be collected, with its bounds, or "look"."""

    def collected(sides: list[EventFrame], _spec: Any, most: tuple[int, int]) -> None:
        (side,) = sides
        raise Chosen(f"{side.side} up to {most[0]}, {most[1]} rows")

    def looked(*_: Any) -> None:
        raise Chosen("look")

    monkeypatch.setattr(choosing, "collected_sides", collected)
    monkeypatch.setattr(choosing, "plan_after_job", looked)
    with pytest.raises(Chosen) as found:
        correlate(left, right, TimingCondition(CONDITION.predicate, ct), **more)
    return str(found.value)


DEFAULT = CorrelateOptions().broadcast_bytes
LENGTHS: dict[str, Any] = {"left_longest": 200, "right_longest": 200}
CHOICES: dict[str, tuple[str, dict[str, Any], str]] = {
    "right": ("right", {}, f"right up to {DEFAULT}, 262144 rows"),
    "left": ("left", {}, f"left up to {DEFAULT}, 262144 rows"),
    "fewer bytes": ("right", {"broadcast_bytes": 100_000}, "right up to 100000, 262144 rows"),
    "fewer bytes of a slice": ("right", {"slice_bytes": 90_000}, "right up to 90000, 262144 rows"),
    "fewer rows": ("right", {"slice_rows": 300}, f"right up to {DEFAULT}, 300 rows"),
    "too few bytes": ("right", {"broadcast_bytes": 1}, "look"),
    "slices": ("right", {"slices": 3}, "look"),
    "exchange": ("right", {"way": "exchange"}, "look"),
    "dropped": ("right", {"invalid": "drop"}, "look"),
}


@pytest.mark.parametrize("case", CHOICES)
def test_options(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    small, options, expected = CHOICES[case]
    left, right = (frame(spark, table) for table in SIDES[small])
    assert chosen(monkeypatch, left, right, options=CorrelateOptions(**options)) == expected


def joined(spark: SparkSession) -> DataFrame:
    """A few rows; Spark's estimate is the product of the inputs that they are joined from."""
    others = spark.range(300).withColumnRenamed("id", "other")
    return frame(spark, SMALL).join(others, F.col("id") == F.col("other"), "inner")


def test_a_join_that_may_have_few_rows_is_computed_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no reason to collect left; a planning job comes first where that alone tells how far
    pairs reach."""
    left, right = frame(spark, LARGE), joined(spark)
    sizes = [estimates.estimated_bytes(event_frame(each)) for each in (left, right)]
    assert sizes[1] > 4 * sizes[0]  # type: ignore[operator]
    assert chosen(monkeypatch, left, right) == f"right up to {DEFAULT}, 262144 rows"
    assert chosen(monkeypatch, left, right, ct=0.4) == "look"


def test_a_cache_is_seen_though_its_dataframe_was_used_before(spark: SparkSession) -> None:
    few = joined(spark)
    assert few.count() == SMALL.num_rows
    before = estimates.estimated_bytes(event_frame(few))
    few.cache()
    try:
        assert few.count() == SMALL.num_rows
        after = estimates.estimated_bytes(event_frame(few))
    finally:
        few.unpersist()
    assert 10 * after < before  # type: ignore[operator]


def event_frame(source: DataFrame) -> Any:
    return SimpleNamespace(
        spark=source.sparkSession, source=source, plain=source, optimized=plan_of(source)
    )


def test_one_stream_is_looked_at(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, frame(spark, SMALL), None) == "look"  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["inner", "semi"])
def test_of_a_few_rows_of_the_result_nothing_is_known(
    spark: SparkSession, recwarn: pytest.WarningsRecorder, how: Any
) -> None:
    """Tasks that are stopped early have told nothing: not that there is no pair."""
    report = JoinReport()
    few = correlate(
        frame(spark, LARGE), frame(spark, SMALL), CONDITION, how=how, report=report
    ).limit(2)
    assert len(few.collect()) == 2
    assert report.summary().counters is None
    assert not [each for each in recwarn if issubclass(each.category, NoPairsWarning)]


def test_a_report_does_not_keep_what_was_sent(spark: SparkSession) -> None:
    found = planned(frame(spark, LARGE), frame(spark, SMALL), "right")
    assert isinstance(found.plan, BroadcastPlan)
    assert found.plan.events is None


def test_rows_beside_an_empty_side_are_counted(spark: SparkSession) -> None:
    report = JoinReport()
    found = correlate(
        frame(spark, LARGE), frame(spark, SMALL.slice(0, 0)), CONDITION, report=report
    )
    assert not found.collect()
    summary = report.summary()
    assert summary.left is not None
    assert summary.left.rows == LARGE.num_rows
