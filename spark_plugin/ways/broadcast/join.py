"""A join of DataFrames by broadcast, planned."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coincide.options import CorrelateOptions
from coincide.units import TIME_LIMIT
from spark_plugin.cluster.accelerator import is_accelerated
from spark_plugin.dataframes.columns import literal
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.queries import tell_query
from spark_plugin.dataframes.shipping import ship
from spark_plugin.dataframes.stage import Stage
from spark_plugin.dataframes.wire_rows import wire_rows
from spark_plugin.ways.broadcast.combining import Combination
from spark_plugin.ways.broadcast.near_times import near_cells
from spark_plugin.ways.broadcast.plan import BroadcastPlan, is_two_step
from spark_plugin.ways.broadcast.worker.partials import PartialTask, partial_spec
from spark_plugin.ways.broadcast.worker.small_side import sorted_table
from spark_plugin.ways.broadcast.worker.task import BroadcastTask
from spark_plugin.ways.collect.collecting import wire_table
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.wire.columns import WireLayout
from spark_plugin.worker.wire.shipment import Shipment
from spark_plugin.worker.wire.sides import read_side

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
    are_intervals = not spec.has_histograms
    own, others = spec.largest_useful if is_left else spec.largest_useful[::-1]
    cells = near_cells(
        events.up_to(own), is_left, window, large.longest, are_intervals=are_intervals
    )
    near = cells.has(spark)
    if large.times.model.table is None and others < 2 * TIME_LIMIT:
        near &= F.expr(f"high - low <= {literal(others)}")
    return near
