"""Monitors of one stream: rows become packs, packs wait for the watermark, monitors take closed slices."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from coincide.engine.events.ticks import length_words
from coincide.model.errors import ConditionError, argument, several
from coincide.model.units import Duration, Tick
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.keyed_rows import must_be_frame
from spark_plugin.frames.output_columns import OutputColumn, decoded, wire_schema
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.monitors import FoundTask, Monitors
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.streaming import StreamPackTask
from spark_plugin.ways.streaming.arguments import (
    check_clock,
    check_first_state,
    check_name_and_buckets,
    check_session,
    check_tick,
    ticks,
    ticks_ahead,
)
from spark_plugin.ways.streaming.buffer import MonitorBuffer
from spark_plugin.ways.streaming.packs import (
    behind_watermark,
    counted_output,
    let_out,
    packed,
    ticking,
)
from spark_plugin.ways.streaming.planning import key_buckets
from spark_plugin.ways.streaming.settings import as_bytes
from spark_plugin.ways.streaming.watching import Watched, watch

_log = logging.getLogger("coincide")
_LEAST = 10**9
"""Nanoseconds of the default slice at least: each costs a row of the state."""
_ANY = 1 << 62


@dataclass(frozen=True, kw_only=True)
class MonitorArguments:
    """How a stream is watched: the arguments that operators on DataFrames have not."""

    operator: str
    side: str
    delay: Duration
    ahead: Duration | None
    clock: DataFrame | None
    slice_length: Duration | None
    key_buckets: int | None
    name: str

    def __post_init__(self) -> None:
        check_name_and_buckets(self.name, self.key_buckets)

    def check(self, stream: Any, tables: str, static: str) -> None:
        """Refuse what is no stream, or a session that cannot keep its state."""
        must_be_frame(stream, self.side, tables)
        if not stream.isStreaming:
            raise ConditionError(
                f"{self.side} are a static DataFrame, and {self.operator} takes a stream. Use"
                f" {static}."
            )
        check_first_state(self.side, stream)
        if self.clock is not None:
            check_clock("clock", self.clock)
        check_session(self.operator, stream.sparkSession)
        check_workers(stream.sparkSession)

    def grid(self, spark: SparkSession, tick: Tick, *, beyond: int, has_keys: bool) -> Grid:
        """Slices, with buckets of keys that last; `beyond`: half ticks from midpoints to max_times."""
        nanoseconds = check_tick(tick)
        millisecond = -(-(10**6) // nanoseconds)
        if self.slice_length is None:
            delay = ticks("delay", self.delay, tick)
            length = max(delay, -(-_LEAST // nanoseconds))
        else:
            length = ticks("slice_length", self.slice_length, tick)
            if length < millisecond:
                raise ConditionError(
                    f"{argument('slice_length', self.slice_length)} is too short: slices must have"
                    f" at least 1 ms. Give at least {several(millisecond, 'tick')}."
                )
        buckets = key_buckets(spark, self.key_buckets) if has_keys else 1
        return Grid(
            length=2 * length, beyond=beyond, buckets=buckets, reach=Reach(0, 0),
            useful=(_ANY, _ANY), nanoseconds=nanoseconds, keeps_right=False, is_one_stream=False,
            is_lasting=True,
        )  # fmt: skip

    def settings(self, grid: Grid, tick: Tick, own: Mapping[str, Any]) -> bytes:
        """All that the state depends on, by names that users know."""
        settings = {
            "operator": self.operator,
            "slice_length": f"{grid.ticks} {tick.unit}",
            "slice_end": grid.beyond,
            "key_buckets": grid.buckets,
            **own,
        }
        return as_bytes(settings)

    def monitored(
        self,
        rows: DataFrame,
        task: StreamPackTask,
        new_monitors: Callable[[tuple[str, ...]], Monitors],
        made: Sequence[tuple[str, T.DataType]],
        words: Mapping[str, Sequence[str]],
        tick: Tick,
    ) -> DataFrame:
        """What monitors find in rows on the wire that a task packs: columns, and of numbers the words."""
        delay = ticks("delay", self.delay, tick)
        length, latest = (
            length_words(Fraction(half, 2), tick, 15)
            for half in (task.grid.length, task.grid.length + task.grid.beyond + 2 * delay)
        )
        _log.info(
            "%s: slices of %s, %s; rows come out %s after their time at most",
            self.operator, length, several(task.grid.buckets, "key bucket"), latest,
        )  # fmt: skip
        watched = Watched(self.operator, {self.side: "delay"}, {self.side: "ahead"})
        watch(rows.sparkSession, self.name, watched)
        task = replace(task, ahead=ticks_ahead("ahead", self.ahead, tick))
        packs = packed(rows, task, f"{self.name}_{self.side}")
        if self.clock is not None:
            packs = packs.unionAll(ticking(self.clock, task.settings))
        packs = behind_watermark(packs, delay, task.grid.nanoseconds)
        columns = [OutputColumn(name, kind, words=words.get(name, ())) for name, kind in made]
        schema = wire_schema(columns)
        buffer = MonitorBuffer(new_monitors(tuple(schema.names)), task)
        found = let_out(packs, buffer, self.name, [self.side])
        made_known = found.mapInArrow(FoundTask(arrow_schema(schema)), schema)
        return counted_output(decoded(made_known, columns), self.name)
