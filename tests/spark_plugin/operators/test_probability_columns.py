"""The satisfaction probability as columns of Spark, against `coincide.model.probability` to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import (
    ConditionError,
    IntervalEvents,
    SchemaError,
    TimingCondition,
    deadline,
    qualifies,
    satisfaction_probability,
    within,
)
from coincide.model.condition import Window
from coincide.model.probability import DECISION_SLACK
from coincide.model.timestamps.intervals import IntervalPairs
from coincide.model.units import TIME_LIMIT
from cpu_fallback.join.event_join import event_probabilities

pytestmark = pytest.mark.spark

NAMES = ("a0", "a1", "b0", "b1")
SIDES = NAMES[:2], NAMES[2:]
EPOCH_NS = 1_767_225_600_000_000_000
WINDOWS = ((-5, 5), (0, 0), (3, 900), (-250_000_000, 250_000_000), (-(2**40), 2**41))
"""Narrow ones, usual ones, and one beyond many lengths, in ticks."""
SMALL = pa.table(
    {"a0": [0, 0, None, 0], "a1": [10, 0, 10, 0], "b0": [5, 5, 5, None], "b1": [5, 5, 5, 9]}
)


def random_events(rows: int, seed: int) -> pa.Table:
    """Intervals of lengths of all sizes, 0 among them, near each other, at an epoch and far from it."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 44, (4, rows))
    one, two, shift, jitter = (rng.integers(0, 2**bits) * (bits > 0)).astype(np.int64)
    two = np.where(rng.random(rows) < 0.2, one, two)
    anchor = rng.choice([0, EPOCH_NS, 2**60, -(2**60)], rows)
    return pa.table(
        {
            "a0": anchor,
            "a1": anchor + one,
            "b0": anchor + shift - jitter,
            "b1": anchor + shift - jitter + two,
        }
    )


def expected(table: pa.Table, lo: int, hi: int) -> np.ndarray:
    a0, a1, b0, b1 = (table[name].to_numpy() for name in NAMES)
    rows = np.arange(table.num_rows)
    pairs = IntervalPairs(Window(lo, hi, 0.5))
    return event_probabilities(IntervalEvents(a0, a1), rows, IntervalEvents(b0, b1), rows, pairs)


def check_bits(spark: SparkSession, path: Path, rows: int, seed: int) -> None:
    """Every row and window: from a file, since what is in memory Spark would fold into literals."""
    table = random_events(rows, seed)
    pq.write_table(table, str(path))
    frame = spark.read.parquet(str(path))
    columns = [
        satisfaction_probability(*SIDES, within(*w)).alias(f"p{i}") for i, w in enumerate(WINDOWS)
    ]
    decided = qualifies(*SIDES, TimingCondition(within(*WINDOWS[3]), 0.75)).alias("is_met")
    found = frame.select(*NAMES, *columns, decided).toArrow()
    sharp = 0
    for i, window in enumerate(WINDOWS):
        wanted = expected(found, *window)
        assert found[f"p{i}"].to_numpy().tobytes() == wanted.tobytes()
        sharp += np.count_nonzero((wanted > 0) & (wanted < 1))
    assert sharp > rows // 4
    met = found["p3"].to_numpy() >= 0.75 - DECISION_SLACK
    assert np.array_equal(found["is_met"].to_numpy(zero_copy_only=False), met)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_bits_interpreted(spark: SparkSession, tmp_path: Path, ansi: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    check_bits(spark, tmp_path / "events.parquet", 2_000, 1)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_bits_compiled(compiled_spark: SparkSession, tmp_path: Path, ansi: str) -> None:
    compiled_spark.conf.set("spark.sql.ansi.enabled", ansi)
    check_bits(compiled_spark, tmp_path / "events.parquet", 10_000, 2)


@pytest.mark.slow
def test_bits_of_many_rows(compiled_spark: SparkSession, tmp_path: Path) -> None:
    check_bits(compiled_spark, tmp_path / "events.parquet", 250_000, 3)


def test_folded_into_literals(compiled_spark: SparkSession) -> None:
    """Where Spark knows all values when it plans, it divides by no zero either."""
    for times, wanted in ((("0", "0", "0", "0"), 1.0), (("0", "0", "0", "10"), 0.5)):
        ends = [F.expr(f"{time}L") for time in times]
        column = satisfaction_probability(ends[:2], ends[2:], within(-5, 5))
        assert compiled_spark.range(1).select(column).first()[0] == wanted


def test_nulls_instants_and_integers_of_any_width(spark: SparkSession) -> None:
    frame = spark.createDataFrame(SMALL)
    narrow = [F.col(name).cast("int") for name in NAMES]
    found = frame.select(
        satisfaction_probability(narrow[:2], narrow[2:], within(0, 5)).alias("p"),
        satisfaction_probability("a1", "b1", within(0, 5)).alias("of_instants"),
        qualifies(*SIDES, TimingCondition(within(0, 5), 0.5)).alias("is_met"),
    ).collect()
    assert [tuple(row) for row in found] == [
        (0.5, 0.0, True), (1.0, 1.0, True), (None, 0.0, None), (None, 0.0, None)
    ]  # fmt: skip


def test_timestamps(spark: SparkSession) -> None:
    """By unix_micros, in whatever zone, over a change of the clocks."""
    frame = spark.sql(
        "SELECT TIMESTAMP '2026-03-29 00:59:59.9Z' AS a, TIMESTAMP '2026-03-29 01:00:00.1Z' AS b"
    )
    micros = F.unix_micros("a"), F.unix_micros("b")
    assert [
        frame.select(satisfaction_probability(*micros, within(lo, "200ms"), unit="us")).first()[0]
        for lo in ("0ms", "200ms")
    ] == [1.0, 1.0]
    whole = (micros, F.unix_micros("b"))
    assert (
        frame.select(satisfaction_probability(*whole, within("0s", "50ms"), unit="us")).first()[0]
        == 0.25
    )


@pytest.mark.parametrize(
    "times",
    [
        (5, 4, 0, 0),
        (0, 0, 5, 4),
        (-TIME_LIMIT, 0, 0, 0),
        (0, 0, 0, TIME_LIMIT),
        (-(2**63), 2**63 - 1, 0, 0),
    ],
)
def test_what_is_no_timestamp_fails(spark: SparkSession, times: tuple[int, ...]) -> None:
    frame = spark.createDataFrame([times], " bigint, ".join(NAMES) + " bigint")
    with pytest.raises(
        PySparkException, match="satisfaction_probability: a timestamp has its min above"
    ):
        frame.select(satisfaction_probability(*SIDES, within(-5, 5))).collect()


@pytest.mark.parametrize("kind", ["timestamp", "double", "date"])
def test_columns_that_are_no_integers_are_refused(spark: SparkSession, kind: str) -> None:
    frame = spark.createDataFrame([], f"a {kind}, b bigint")
    with pytest.raises(PySparkException, match="DATATYPE_MISMATCH"):
        frame.select(satisfaction_probability("a", "b", within(-5, 5)))


def test_arguments_that_cannot_be(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="left_time must be a column, or two"):
        satisfaction_probability(("a", "b", "c"), "b", within(0, 1))
    with pytest.raises(SchemaError, match="right_time must be a column, or two"):
        qualifies("a", (1, 2), TimingCondition(within(0, 1), 0.5))  # type: ignore[arg-type]
    with pytest.raises(
        ConditionError, match=r"has one. Use within\(lo, hi\), for example within\(0, '5s'\)"
    ):
        satisfaction_probability("a", "b", deadline(5))
    with pytest.raises(ConditionError, match="unit of the time columns is unknown"):
        satisfaction_probability("a", "b", within("0s", "1s"))
    with pytest.raises(ConditionError, match="made by within"):
        satisfaction_probability("a", "b", (0, 1))  # type: ignore[arg-type]
    with pytest.raises(ConditionError, match="must be a TimingCondition"):
        qualifies("a", "b", within(0, 1))  # type: ignore[arg-type]


def test_joins_by_the_decision(spark: SparkSession) -> None:
    left = spark.createDataFrame([(0, 10), (100, 110)], "a0 bigint, a1 bigint")
    right = spark.createDataFrame([(5, 5), (104, 120)], "b0 bigint, b1 bigint")
    met: DataFrame = left.join(right, qualifies(*SIDES, TimingCondition(within(0, 5), 0.5)))
    assert [tuple(row) for row in met.collect()] == [(0, 10, 5, 5)]


def test_names_and_use_of_unnamed_columns(spark: SparkSession) -> None:
    table = spark.createDataFrame(SMALL)
    window = within(0, 4)
    p = satisfaction_probability(*SIDES, window)
    decision = qualifies(*SIDES, TimingCondition(window, 0.4))
    assert table.select(p, decision).columns == ["probability", "qualifies"]
    for test in (p > 0.3, decision, ~decision):
        assert table.where(test).count() == 1
    assert table.select((p * 2).alias("twice"), p.alias("p")).columns == ["twice", "p"]
    left, right = table.select("a0", "a1").dropna(), table.select("b0", "b1").dropna()
    assert left.join(right, decision).count() == 3


def test_advice_is_on_its_own_arguments() -> None:
    for make in (
        lambda: satisfaction_probability(*SIDES, within("1s", "2s")),
        lambda: qualifies(*SIDES, TimingCondition(within("1s", "2s"), 0.5)),
    ):
        with pytest.raises(
            ConditionError,
            match=r"has a unit, but the unit of the time columns is unknown, as they hold plain",
        ) as refused:
            make()
        assert "options" not in str(refused.value)
