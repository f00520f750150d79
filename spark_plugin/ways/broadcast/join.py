"""A join of DataFrames by broadcast, planned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coincide.engine.events.sides import Side
from coincide.engine.join.spec import AnySpec
from coincide.model.errors import argument
from coincide.model.options import SideName
from coincide.model.units import TIME_LIMIT
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.columns import literal
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.queries import note_query, ship
from spark_plugin.frames.stage import Stage
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.broadcast import BroadcastTask, PartialTask, is_two_step, sorted_table
from spark_plugin.tasks.wire import Shipment, WireLayout, read_side
from spark_plugin.ways.broadcast.collecting import wire_table
from spark_plugin.ways.broadcast.near_times import near_cells
from spark_plugin.ways.join_sides import Job
from spark_plugin.ways.partial_results import PartialResult

_TOO_LARGE = "the side to broadcast", f"remove {argument('way')}"


@dataclass(frozen=True)
class BroadcastPlan:
    """A join in which one side goes to every worker."""

    small: SideName
    why: str
    events: Side | None = field(default=None, compare=False, repr=False)
    way: ClassVar[str] = "broadcast"
    count: ClassVar[None] = None
    replication: ClassVar[None] = None

    def describe(self) -> str:
        """The plan in one line, for the log."""
        return f"{self.small} to every worker, {self.why}"


def broadcast_join(job: Job, plan: BroadcastPlan) -> tuple[DataFrame, Shipment]:
    """The result in wire types, and what it needs. The small side is collected at once, no more."""
    spec, result, stage, options = job.spec, job.result, job.stage, job.options
    small, large = job.sides if plan.small == "left" else job.sides[::-1]
    layout, spark = result.layout, small.spark
    table = _small_table(small, layout.only(plan.small), plan, spec, stage)
    near = _near(table, small, large, layout.only(plan.small), spec)
    rows = wire_rows(
        large, layout.only(large.side), spec.keeps_unmatched, stage.raise_invalid, near=near
    )
    # Of no events Spark would leave the second step out, and what tasks count with it.
    if not is_two_step(plan.small, spec) or table.num_rows == 0:
        shipment = ship(table, spark, *_TOO_LARGE)
        task = BroadcastTask(
            spec, layout, result.names, stage.metrics, side=plan.small, small=shipment,
            slice_rows=options.slice_rows, slice_bytes=options.slice_bytes,
        )  # fmt: skip
        return stage.run(rows, task, result.wire_schema), shipment
    parts = PartialResult(spec, result, ["left_row"], tells_events=False)
    names = [*layout.keys, *layout.left]
    columns = [pa.array(np.arange(table.num_rows)), *map(table.column, names)]
    named = pa.table(columns, names=parts.events_schema.names)
    events = spark.createDataFrame(named, parts.events_schema)
    # Left columns to hand out stay here.
    layout = replace(layout, left=())
    shipment = ship(table.select(layout.only("left").columns), spark, *_TOO_LARGE)
    task = PartialTask(
        parts.spec, layout, tuple(parts.found_schema.names), stage.metrics, side=plan.small, small=shipment,
        slice_rows=options.slice_rows, slice_bytes=options.slice_bytes,
    )  # fmt: skip
    found = stage.run(rows, task, parts.found_schema, is_joined=True)
    return parts.combined(found, events), shipment


def _small_table(
    small: EventFrame, layout: WireLayout, plan: BroadcastPlan, spec: AnySpec, stage: Stage
) -> pa.Table:
    """The small side on the wire, in order of time."""
    if plan.events is not None:
        table = wire_table(plan.events, small, layout)
    else:
        note_query(f"{small.called} collected")
        table = wire_rows(small, layout, spec.keeps_unmatched, stage.raise_invalid).toArrow()
    return sorted_table(table, layout, plan.small, small.times.model)


def _near(
    table: pa.Table, small: EventFrame, large: EventFrame, layout: WireLayout, spec: AnySpec
) -> Column | None:
    """Which valid rows of the large side are to be joined; None: all."""
    spark = small.spark
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
