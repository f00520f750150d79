"""A join of DataFrames by broadcast, planned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.join.spec import AnySpec
from coincide.engine.join.timing import JoinSpec
from coincide.model.options import CorrelateOptions
from coincide.model.units import TIME_LIMIT
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.columns import literal
from spark_plugin.frames.estimates import estimated_bytes, is_surely_larger
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import OutputColumn, ResultColumns
from spark_plugin.frames.queries import ship, tell_query
from spark_plugin.frames.stage import Stage
from spark_plugin.frames.statistics import Looks, refuse_invalid
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.broadcast import (
    FAR_LARGER,
    SMALLEST_CHUNK,
    BroadcastPlan,
    BroadcastTask,
    PartialTask,
    described_size,
    is_two_step,
    partial_spec,
    sorted_table,
)
from spark_plugin.tasks.wire import Shipment, WireLayout, read_side
from spark_plugin.ways.adding_up import RANK, added_up, exploded, kinds_of_order
from spark_plugin.ways.broadcast.near_times import near_cells
from spark_plugin.ways.collect.collecting import collected_side, wire_table

_TOO_LARGE = "the side to broadcast", "leave way= to us"


def broadcast_join(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    result: ResultColumns,
    plan: BroadcastPlan,
    options: CorrelateOptions,
    stage: Stage,
) -> tuple[DataFrame, Shipment]:
    """The result in wire types, and what it needs. The small side is collected at once, no more."""
    small, large = sides if plan.small == "left" else sides[::-1]
    layout, spark = result.layout, small.source.sparkSession
    table = _small_table(small, layout.only(plan.small), plan, spec, stage)
    near = _near(table, small, large, layout.only(plan.small), spec)
    rows = wire_rows(
        large, layout.only(plan.large), spec.keeps_unmatched, stage.raise_invalid, near=near
    )
    plan = replace(plan, events=None)
    # Of no events Spark would leave the second step out, and what tasks count with it.
    if not is_two_step(plan.small, spec) or table.num_rows == 0:
        shipment = ship(table, spark, *_TOO_LARGE)
        task = BroadcastTask(
            spec, layout, result.names, stage.metrics, plan=plan, small=shipment,
            slice_rows=options.slice_rows, slice_bytes=options.slice_bytes,
        )  # fmt: skip
        return stage.run(rows, task, result.wire_schema), shipment
    combination = Combination(spec, result)
    schema = combination.found_schema
    # Left columns to hand out stay here.
    layout = replace(layout, left=())
    shipment = ship(table.select(layout.only("left").columns), spark, *_TOO_LARGE)
    task = PartialTask(
        partial_spec(spec), layout, tuple(schema.names), stage.metrics, plan=plan, small=shipment,
        slice_rows=options.slice_rows, slice_bytes=options.slice_bytes,
    )  # fmt: skip
    found = stage.run(rows, task, schema, is_joined=True)
    return combination.combined(combination.events(table, spark), found), shipment


def _small_table(
    small: EventFrame, layout: WireLayout, plan: BroadcastPlan, spec: AnySpec, stage: Stage
) -> pa.Table:
    """The small side on the wire, in order of time."""
    if plan.events is not None:
        table = wire_table(plan.events, small, layout)
    else:
        tell_query(f"{small.called} collected")
        table = wire_rows(small, layout, spec.keeps_unmatched, stage.raise_invalid).toArrow()
    return sorted_table(table, layout, plan.small, small.times.model)


def _near(
    table: pa.Table, small: EventFrame, large: EventFrame, layout: WireLayout, spec: AnySpec
) -> Column | None:
    """Which valid rows of the large side are to be joined; None: all."""
    spark = small.source.sparkSession
    if (spec.keeps_unmatched and large.side == "left") or large.source.isStreaming:
        return None
    if is_accelerated(spark):  # it would run the test on the CPU, and all that is below it
        return None
    events = read_side(table, layout, small.side, small.times.model)
    is_left, window = small.side == "left", spec.widest_of_rows
    own, others = spec.largest_useful if is_left else spec.largest_useful[::-1]
    cells = near_cells(
        events.up_to(own), is_left, window, large.longest, are_uniform=spec.are_uniform
    )
    near = cells.has(spark)
    if large.times.model.shape_is_length and others < 2 * TIME_LIMIT:
        near &= F.expr(f"high - low <= {literal(others)}")
    return near


_JOINS = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


class Combination:
    """From what tasks found to the result."""

    def __init__(self, spec: AnySpec, result: ResultColumns) -> None:
        self._spec, self._result = spec, result
        own = len(result.layout.keys) + len(result.layout.left)
        self._own, self._others = result.columns[:own], result.columns[own:]
        # Which of the best a partner is, tasks do not know.
        self._told = self._others[:-1] if spec.k > 1 else self._others

    @property
    def found_schema(self) -> T.StructType:
        """What a `PartialTask` yields."""
        kinds = [T.LongType(), *(column.wire_kind for column in self._told)]
        if self._spec.one_row_per_event:
            kinds.append(T.LongType())
        if self._spec.emit == "best":
            kinds += kinds_of_order(self._spec)
        return T.StructType([T.StructField(_name(i), kind) for i, kind in enumerate(kinds)])

    def events(self, table: pa.Table, spark: SparkSession) -> DataFrame:
        """The left events: their rows, keys and columns to hand out, in wire types."""
        names = [*self._result.layout.keys, *self._result.layout.left]
        columns = [pa.array(np.arange(table.num_rows)), *map(table.column, names)]
        kinds = [T.LongType(), *(column.wire_kind for column in self._own)]
        fields = [T.StructField(f"own{i}", kind) for i, kind in enumerate(kinds)]
        named = pa.table(columns, names=[field.name for field in fields])
        return spark.createDataFrame(named, T.StructType(fields))

    def combined(self, events: DataFrame, found: DataFrame) -> DataFrame:
        """The result, in wire types."""
        added_up = self._added_up(found)
        # Spark takes what Python yields to be as small as its input. Of the events it is known.
        if self._spec.how == "inner":
            events = events.hint("broadcast")
        elif self._spec.emit in ("pairs", "lists") and not self._spec.one_row_per_event:
            added_up = added_up.hint("merge")
        how = _JOINS[self._spec.how]
        joined = events.join(added_up, F.expr(f"own0 = {_name(0)}"), how)
        own = [F.col(f"own{i + 1}").alias(c.name) for i, c in enumerate(self._own)]
        names = [_name(i + 1) for i in range(len(self._others))]
        if self._spec.k > 1:
            names[-1] = RANK
        others = [
            self._if_none(F.col(name), c).alias(c.name)
            for name, c in zip(names, self._others, strict=True)
        ]
        return joined.select(*own, *others)

    def _added_up(self, found: DataFrame) -> DataFrame:
        """One row per left event that has partners; of pairs, one per pair."""
        spec, others = self._spec, [_name(i + 1) for i in range(len(self._told))]
        if spec.one_row_per_event:
            return found.select(_name(0)).distinct()
        if spec.emit == "pairs":
            return found
        by_event = found.groupBy(_name(0))
        columns = list(zip(others, self._told, strict=True))
        one = by_event.agg(*added_up(spec, self.found_schema.names[1:], columns))
        if spec.k > 1:
            return exploded(one, [_name(0)])
        return one.selectExpr(_name(0), "best.*") if spec.emit == "best" else one

    def _if_none(self, found: Column, column: OutputColumn) -> Column:
        """What an event without a partner has."""
        if self._spec.how != "left" or self._spec.emit not in ("counts", "lists"):
            return found
        nothing = F.lit(0) if self._spec.emit == "counts" else F.array()
        return F.coalesce(found, nothing.cast(column.wire_kind))


def _name(i: int) -> str:
    return f"found{i}"


MOST_BYTES = 12 << 20
"""What Spark may take the small side for."""
_LEAST_LARGE = 2 << 20
"""And for so many bytes: of less, both sides are collected faster."""


def plan_unseen(
    small: EventFrame, other: EventFrame, spec: JoinSpec, options: CorrelateOptions
) -> tuple[Looks, BroadcastPlan] | None:
    """What the rows of the small side are, and its broadcast; None if it is not as small as it seemed.

    Invalid rows of the large side fail the job that meets them. Runs eagerly.
    """
    # Of more rows each chunk of the large side would prepare more than it has itself.
    most = (
        min(options.broadcast_bytes, options.slice_bytes),
        min(SMALLEST_CHUNK, options.slice_rows),
    )
    found = collected_side(small, spec, most)
    if found is None:
        return None
    refuse_invalid([small], [found.statistics])
    statistics = found.statistics
    why = f"{described_size(statistics.own_bytes)}, no look at {other.called}"
    plan = BroadcastPlan(small.side, why, found.events)
    return ((statistics, None) if small.side == "left" else (None, statistics)), plan


def computed_and_other(
    sides: tuple[EventFrame, EventFrame], spec: JoinSpec
) -> tuple[EventFrame, EventFrame] | None:
    """The side that is computed, whose size nobody knows, and the other one; None if there is no such."""
    left, right = (side.is_computed for side in sides)
    if left == right or is_accelerated(sides[0].source.sparkSession):
        return None
    small, other = sides if left else sides[::-1]
    shuffles = is_two_step(small.side, spec) and spec.emit in ("pairs", "lists")
    return None if shuffles and not spec.one_row_per_event else (small, other)


def small_and_large(
    sides: tuple[EventFrame, EventFrame], spec: JoinSpec, options: CorrelateOptions
) -> tuple[EventFrame, EventFrame] | None:
    """The side that Spark takes for small, and the other one; None if only a look could tell more."""
    left, right = map(estimated_bytes, sides)
    # RAPIDS' plans are not observed, so that the rows of the other side could not be counted.
    if left is None or right is None or is_accelerated(sides[0].source.sparkSession):
        return None
    small, other = (sides[1], sides[0]) if right <= left else sides
    size, larger = min(left, right), max(left, right)
    least = max(FAR_LARGER * size, _LEAST_LARGE)
    if size > min(MOST_BYTES, options.broadcast_bytes) or larger < least:
        return None
    if not is_surely_larger(other, least):
        return None
    # Whether there are few pairs is not known, and these would all be shuffled.
    shuffles = is_two_step(small.side, spec) and spec.emit in ("pairs", "lists")
    return None if shuffles and not spec.one_row_per_event else (small, other)
