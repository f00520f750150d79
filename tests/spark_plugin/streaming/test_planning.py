"""How long the slices of streams are, and when they are closed."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Spatial,
    Temporal,
    TimingCondition,
    within,
)
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import PairArguments
from spark_plugin.ways.streaming.arguments import StreamArguments
from spark_plugin.ways.streaming.join import plan_streams

pytestmark = pytest.mark.spark
OPTIONS = CorrelateOptions(unit="ms")
NEAR = TimingCondition(within(-300, 300), 0.8)
EVEN = TimingCondition(within(-300, 300), 0.5)
CLOSE = CausalityCondition([Temporal(0, 300), Spatial(1)])


@pytest.mark.parametrize(
    ("arguments", "length", "latest"),
    [
        (JoinArguments(NEAR, left_time="t", right_time="t", options=OPTIONS), "1.3 s", "2.6 s"),
        (
            JoinArguments(NEAR, left_time=("t", "x"), right_time="t", options=OPTIONS),
            "1.376 s",
            "2.752 s",
        ),
        (
            JoinArguments(EVEN, left_time=("t", "x"), right_time=("t", "x"), options=OPTIONS),
            "1.902 s",  # a whole number of ticks, so that slice_length can say it
            "3.8035 s",
        ),
        (
            CausalityArguments(CLOSE, cause_time="t", cause_place=("x",), options=OPTIONS),
            "1.3 s",
            "2.6 s",
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
