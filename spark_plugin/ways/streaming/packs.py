"""Packs on their way through Spark: behind a watermark, into the state, and out of it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_plugin.frames.columns import encode, quoted, text
from spark_plugin.frames.events import LAST_SECOND
from spark_plugin.tasks.packing import EVENTS, STREAM
from spark_plugin.tasks.streaming import (
    AHEAD_ROWS,
    BOUNDS,
    EARLIEST,
    IS_AHEAD,
    IS_OWN,
    ROWS,
    SEEN,
    SETTINGS,
    OneStreamPackTask,
    StreamPackTask,
)
from spark_plugin.tasks.wire import LABEL
from spark_plugin.ways.streaming.buffer import BUFFERED, Buffer

PACKED = (
    f"{LABEL} bigint, {', '.join(f'{name} bigint' for name in BOUNDS)}, {SEEN} bigint,"
    f" {IS_OWN} boolean, {IS_AHEAD} boolean, {STREAM} bigint, {EVENTS} binary"
)
"""The columns of packs on their way to the state."""
CLOCK = "_clock"
"""Ending of the name of a side's clock in Spark's progress, where rows can be set aside."""
AHEAD = "_ahead"
"""Ending of what the count of rows of a side is called that are set aside."""


def behind_watermark(packs: DataFrame, delay: int, nanoseconds: int) -> DataFrame:
    """Packs whose watermark is some ticks behind, without its times: by these Spark drops late ones."""
    milliseconds = -(-delay * nanoseconds // 10**6)
    packs = packs.withColumn(SEEN, F.expr(f"timestamp_micros({SEEN})"))
    return packs.withWatermark(SEEN, f"{milliseconds} milliseconds").drop(SEEN)


def packed(
    rows: DataFrame, task: StreamPackTask | OneStreamPackTask, name: str | None = None
) -> DataFrame:
    """What a task packs; a name is that of its side in Spark's progress, which tells its clock there.

    Rows that are set aside move no clock. So of these tasks the clock is not the latest time of
    all rows, and they see a micro-batch in one partition, to compare rows with its median.
    """
    if task.ahead is None:
        return rows.mapInArrow(task, PACKED)
    packs = rows.coalesce(1).mapInArrow(task, PACKED)
    if name is None:
        return packs
    latest = f"least(coalesce(max({SEEN}), {EARLIEST}L), {LAST_SECOND * 10**6}L)"
    time = f"timestamp_micros(nullif({latest}, {EARLIEST}L))"
    return packs.observe(f"{name}{CLOCK}", F.expr(time).alias("latest"))


def let_out(packs: DataFrame, buffer: Buffer, name: str, sides: Sequence[str]) -> DataFrame:
    """What comes out of the state; of sides, in their order, rows that take no part are counted."""
    found = packs.groupBy(LABEL).transformWithState(buffer, BUFFERED, "append", "EventTime")
    totals = (
        F.expr(f"coalesce(sum(IF({STREAM} = {number}, {rows}, 0L)), 0L)").alias(f"{side}{ending}")
        for rows, ending in ((ROWS, ""), (AHEAD_ROWS, AHEAD))
        for number, side in enumerate(sides)
    )
    return found.observe(f"{name}_late", *totals)


def counted_output(rows: DataFrame, name: str) -> DataFrame:
    """Rows that come out, whose number Spark's progress tells under a name."""
    return rows.observe(f"{name}_output", F.count(F.lit(1)).alias("rows"))


def ticking(clock: DataFrame, settings: bytes) -> DataFrame:
    """Rows of settings in which a clock says how far its side has come."""
    (field,) = clock.schema.fields
    time = f"greatest({EARLIEST}L, {encode(quoted(field.name), field.dataType)})"
    return clock.selectExpr(
        f"CAST({text(str(SETTINGS))} AS BIGINT) AS {LABEL}",
        *(f"CAST(NULL AS BIGINT) AS {name}" for name in BOUNDS),
        f"coalesce({time}, {EARLIEST}L) AS {SEEN}",
        *(f"false AS {name}" for name in (IS_OWN, IS_AHEAD)),
        f"0L AS {STREAM}",
        f"X'{settings.hex()}' AS {EVENTS}",
    )  # fmt: skip
