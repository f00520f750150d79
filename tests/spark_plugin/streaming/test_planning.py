"""How long the slices of streams are, and when they are closed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Spatial,
    Temporal,
    TimingCondition,
    corrected_clock,
    within,
)
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import PairArguments
from spark_plugin.ways.streaming.arguments import StreamArguments
from spark_plugin.ways.streaming.join import plan_streams
from spark_plugin.ways.streaming.planning import round_length

pytestmark = pytest.mark.spark
OPTIONS = CorrelateOptions(unit="ms")
NEAR = TimingCondition(within(-300, 300), 0.8)
EVEN = TimingCondition(within(-300, 300), 0.5)
CLOSE = CausalityCondition([Temporal(0, 300), Spatial(1)])


@pytest.mark.parametrize(
    ("arguments", "length", "latest"),
    [
        (JoinArguments(NEAR, left_time="t", right_time="t", options=OPTIONS), "1.5 s", "2.8 s"),
        (
            JoinArguments(NEAR, left_time=("t", "x"), right_time="t", options=OPTIONS),
            "1.5 s",
            "2.876 s",
        ),
        (
            JoinArguments(EVEN, left_time=("t", "x"), right_time=("t", "x"), options=OPTIONS),
            "2 s",
            "3.9015 s",
        ),
        (
            CausalityArguments(CLOSE, cause_time="t", cause_place=("x",), options=OPTIONS),
            "1.5 s",
            "2.8 s",
        ),
    ],
)
def test_exact_times_wait_for_the_window_and_the_delay_alone(
    spark: SparkSession, arguments: PairArguments, length: str, latest: str
) -> None:
    events = spark.createDataFrame([(1, 2, 3)], "id bigint, t bigint, x bigint")
    asked = StreamArguments(delays=(1000, 1000), name="join")
    plan = plan_streams(events, events, arguments, asked)
    assert plan.describe() == (
        f"slices of {length}, 1 key bucket; rows come out {latest} after their time at most"
    )


def test_a_checkpoint_remembers_the_clock_errors_of_causes(spark: SparkSession) -> None:
    """It refuses to start anew with other errors, like a stream of left events."""
    events = spark.createDataFrame([(1, 2, 3)], "id bigint, t bigint, x bigint")

    def settings(offset: float) -> bytes:
        line = {"status": ["found"], "start": [0], "end": [900], "offset": [offset], "drift": [0.0]}
        arguments = CausalityArguments(
            CLOSE, cause_time=corrected_clock("t", pa.table(line)), effect_time="t",
            cause_place=("x",), options=OPTIONS,
        )  # fmt: skip
        asked = StreamArguments(delays=(1000, 1000), name="causes")
        return plan_streams(events, events, arguments, asked).packers[0].settings

    assert settings(1.0) == settings(1.0)
    assert settings(1.0) != settings(2.0)


@pytest.mark.parametrize(
    ("ticks", "nanoseconds", "length"),
    [
        (1, 10**6, 1), (7, 10**6, 8), (1201, 10**6, 1500), (12_200, 10**6, 15_000),
        (55_000, 10**6, 60_000), (61_000, 10**6, 72_000), (3599, 10**9, 3600), (3601, 10**9, 4320),
        (23 * 3600, 10**9, 86_400), (9 * 86_400, 10**9, 10 * 86_400), (1_234_567, 1000, 1_500_000),
    ],
)  # fmt: skip
def test_slices_have_round_lengths(ticks: int, nanoseconds: int, length: int) -> None:
    assert round_length(ticks, nanoseconds) == length


def test_round_lengths_are_not_much_longer() -> None:
    for ticks in np.random.default_rng(5).geometric(1e-7, 2000).tolist():
        length = round_length(ticks, 1000)
        assert ticks <= length <= 1.34 * ticks + 1
        assert round_length(length, 1000) == length
