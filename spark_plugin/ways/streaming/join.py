"""The join of two streams: rows become packs, packs wait for the watermark, closed slices are joined."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.engine.events.ticks import length_words
from coincide.engine.events.timestamp_names import warn_of_ends
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.spec import AnySpec, check_output_names
from coincide.model.errors import several
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from coincide.model.units import Tick
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import OutputColumn, ResultColumns, decoded, wire_schema
from spark_plugin.frames.stage import gpu_profile
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.exchange import Room
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.tasks.streaming import (
    LATE,
    ClosedSliceTask,
    OneStreamPackTask,
    StreamPackTask,
    other_names,
)
from spark_plugin.tasks.wire import KEY_HASH, WireLayout
from spark_plugin.ways.causality import event_frames
from spark_plugin.ways.correlation import BATCH_PAIRS
from spark_plugin.ways.exchange.join import ROOM
from spark_plugin.ways.join_sides import (
    Sides,
    check_payload,
    settled,
    with_filter,
    with_longest_matches,
)
from spark_plugin.ways.streaming.arguments import StreamArguments, check_join, check_session, ticks
from spark_plugin.ways.streaming.buffer import SliceBuffer
from spark_plugin.ways.streaming.packs import (
    behind_watermark,
    counted_output,
    let_out,
    packed,
    ticking,
)
from spark_plugin.ways.streaming.planning import key_buckets, plan_grid, settings_of
from spark_plugin.ways.streaming.watching import Watched, watch

_log = logging.getLogger("coincide")


def join_streams(
    given: Mapping[str, DataFrame | None], arguments: PairArguments, asked: StreamArguments
) -> DataFrame:
    """The join of two streaming DataFrames, by what they are called, or of one with itself."""
    check_join(arguments)
    asked.check_sides(given)
    left, right = given.values()
    assert left is not None
    spark = left.sparkSession
    check_session(asked.operator, spark)
    check_workers(spark)
    warn_of_ends(arguments.prefixes, arguments.times)
    plan = plan_streams(left, right, arguments, asked)
    _log.info("%s: %s", asked.operator, plan.describe())
    delays = dict(zip(asked.sides, asked.delay_names, strict=True))
    aheads = dict(zip(asked.sides, asked.ahead_names, strict=True))
    watched = Watched(asked.operator, delays, aheads, waits=not asked.has_clocks)
    watch(spark, asked.name, watched)
    return counted_output(plan.joined(plan.closed(plan.packed())), asked.name)


def plan_streams(
    left: DataFrame, right: DataFrame | None, arguments: PairArguments, asked: StreamArguments
) -> StreamPlan:
    """The plan of a join of two streams."""
    sources = left, left if right is None else right
    arguments = settled(arguments, *sources)
    sides, spec = _sides_and_spec(sources, arguments)
    check_payload(sides)
    result, grid = ResultColumns(sides, spec), plan_grid(sides, spec, arguments, asked)
    return StreamPlan(sides, spec, result, arguments, asked, grid)


def _sides_and_spec(
    sources: tuple[DataFrame, DataFrame], arguments: PairArguments
) -> tuple[Sides, AnySpec]:
    sides = event_frames(sources, arguments)
    spec = arguments.spec([side.times for side in sides], 1, BATCH_PAIRS)
    return with_longest_matches(sides, spec), with_filter(spec, sides, arguments.where)


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """A join of two streams, step by step."""

    sides: Sides
    spec: AnySpec
    result: ResultColumns
    arguments: PairArguments
    asked: StreamArguments
    grid: Grid

    @property
    def _tick(self) -> Tick:
        return self.sides[0].times.scales[0].tick

    def describe(self) -> str:
        """The plan in one line, for the log."""
        length, latest = (
            length_words(Fraction(half, 2), self._tick, 15)
            for half in (self.grid.length, self.latest)
        )
        buckets = several(self.grid.buckets, "key bucket")
        return f"slices of {length}, {buckets}; rows come out {latest} after their time at most"

    @property
    def latest(self) -> int:
        """How long after the time of an event its rows come out at most, while rows come, half ticks."""
        return self.grid.length + self.grid.beyond + 2 * max(self.asked.ticks_of_delays(self._tick))

    def packed(self) -> DataFrame:
        """Packs of both sides, behind a watermark each; those of one stream behind one."""
        if self.spec.is_one_stream:
            return self._behind_watermark(self._tasks_of_one(), LEFT)
        left, right = (self._packs_of(number) for number in (LEFT, RIGHT))
        return left.unionAll(right)

    def _packs_of(self, number: int) -> DataFrame:
        """Packs of a side, without the times of its watermark, by which Spark would drop late ones."""
        packs = self._tasks_of(number)
        if self.asked.idle_after is not None:
            lag = ticks("idle_after", self.asked.idle_after, self._tick)
            packs = packs.unionAll(self._tasks_of(1 - number, lag * self.grid.nanoseconds // 1000))
        return self._behind_watermark(packs, number)

    def _behind_watermark(self, packs: DataFrame, number: int) -> DataFrame:
        """Packs, with the times of the clock of their side, behind the watermark of the side."""
        clock = self.asked.clocks[number]
        if clock is not None:
            packs = packs.unionAll(ticking(clock, self._settings))
        delay = self.asked.ticks_of_delays(self._tick)[number]
        return behind_watermark(packs, delay, self.grid.nanoseconds)

    def _tasks_of(self, number: int, lag: int | None = None) -> DataFrame:
        """What tasks pack of a side; with a lag only how far it has come, which is read once more."""
        rows, schema = self.rows(number, is_counted=lag is None)
        name = self._observed(number) if lag is None else None
        return packed(rows, self.pack_task(number, schema, lag), name)

    def _observed(self, number: int) -> str:
        """What a side is called in Spark's progress."""
        return f"{self.asked.name}_{self.asked.sides[number]}"

    def _tasks_of_one(self) -> DataFrame:
        """What tasks pack of one stream, which is read once."""
        left, right = self.sides
        own, others = (self.result.layout.only(side.side) for side in self.sides)
        layout = replace(
            own, left=(*own.left, *other_names(others.right)),
            left_tested=(*own.left_tested, *other_names(others.right_tested)),
        )  # fmt: skip
        both = replace(
            left, payload=[*left.payload, *right.payload], tested=[*left.tested, *right.tested],
            observation=self._observed(LEFT),
        )  # fmt: skip
        task = OneStreamPackTask(*self.packers)
        return packed(self._on_the_wire(both, layout), task, self._observed(LEFT))

    @remembered
    def packers(self) -> tuple[StreamPackTask, StreamPackTask]:
        """What packs the rows of each side."""
        left, right = (self.pack_task(number, self.rows(number)[1]) for number in (LEFT, RIGHT))
        return left, right

    def pack_task(self, number: int, schema: pa.Schema, lag: int | None = None) -> StreamPackTask:
        """What packs the rows of a side."""
        side = self.sides[number]
        own = LEFT if self.spec.is_one_stream else number
        return StreamPackTask(
            side.side, schema, side.times.model, self.grid, self._settings, lag,
            ahead=self.asked.ahead(own, self._tick),
        )  # fmt: skip

    @remembered
    def _settings(self) -> bytes:
        buckets = key_buckets(self.sides[0].spark, self.asked.key_buckets)
        return settings_of(self.sides, self.spec, self.arguments, self.grid, buckets)

    def rows(self, number: int, *, is_counted: bool = False) -> tuple[DataFrame, pa.Schema]:
        """Rows of a side on the wire, and the schema of what is packed of them."""
        side = self.sides[number]
        if is_counted:
            side = replace(side, observation=self._observed(number))
        layout = self.result.layout.only(side.side)
        rows = self._on_the_wire(side, layout)
        fields = rows.schema.fields[: len(layout.columns)]
        return rows, arrow_schema(T.StructType(fields))

    def _on_the_wire(self, side: EventFrame, layout: WireLayout) -> DataFrame:
        keys = (KEY_HASH,) if self.grid.buckets > 1 else ()
        return wire_rows(
            side, layout, self.spec.keeps_unmatched, self.arguments.options.invalid == "raise",
            place=keys, keeps_right=self.arguments.keeps_right,
        ).selectExpr(*layout.columns, *keys)  # fmt: skip

    def closed(self, packs: DataFrame) -> DataFrame:
        """The packs of slices that are closed, and late ones."""
        buffer = SliceBuffer(self.packers, keeps_late=self._tells_late)
        return let_out(packs, buffer, self.asked.name, self.asked.sides)

    @property
    def _tells_late(self) -> bool:
        return self.asked.late == "rows"

    def joined(self, packs: DataFrame) -> DataFrame:
        """The result."""
        schema = wire_schema(self._columns)
        profile = gpu_profile(packs.sparkSession, self.spec.backend)
        return decoded(packs.mapInArrow(self.slice_task(), schema, profile=profile), self._columns)

    @remembered
    def _columns(self) -> list[OutputColumn]:
        """The output columns."""
        late = [OutputColumn(LATE, T.StringType())] if self._tells_late else []
        columns = [*self.result.columns, *late]
        check_output_names([column.name for column in columns])
        return columns

    def slice_task(self) -> ClosedSliceTask:
        """What joins closed slices."""
        schema, reach = wire_schema(self._columns), self.grid.reach
        left, right = self.packers
        plan, options = CellPlan(1, reach, needs_keys=False), self.arguments.options
        return ClosedSliceTask(
            self.spec, self.result.layout, tuple(schema.names), schemas=(left.schema, right.schema),
            shapes=(reach.left, reach.right), kinds=tuple(arrow_schema(schema).types),
            tells_late=self._tells_late, alone=self._alone,
            room=Room(plan, ROOM * options.slice_rows, ROOM * options.slice_bytes),
        )  # fmt: skip

    @property
    def _alone(self) -> AnySpec | None:
        """The join that finds right events without a match."""
        alone = self.arguments.alone
        if alone is None:
            return None
        left, right = (side.plain for side in self.sides)
        return _sides_and_spec((right, left), alone)[1]
