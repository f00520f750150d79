"""The way of any DataFrames: one exchange brings the events of a slice together."""

from __future__ import annotations

from pyspark.sql import DataFrame

from spark_plugin import dataframes as frames
from spark_plugin.emission import JoinSpec
from spark_plugin.events import EventFrame
from spark_plugin.output_columns import ResultColumns
from spark_plugin.slice_columns import LABEL, label_left, label_right
from spark_plugin.slice_task import SliceTask
from spark_plugin.slices import SlicePlan
from spark_plugin.stage import Stage
from spark_plugin.wire import CODED, TIME, WireLayout
from spark_plugin.wire_rows import wire_rows


def exchange_join(
    sides: tuple[EventFrame, EventFrame],
    spec: JoinSpec,
    result: ResultColumns,
    plan: SlicePlan,
    stage: Stage,
) -> DataFrame:
    """The result in wire types, not yet computed."""
    rows = _exchanged(sides, spec, result.layout, plan, stage.raise_invalid)
    task = SliceTask(spec, result.layout, result.names, stage.metrics)
    return stage.run(rows, task, result.wire_schema)


def _exchanged(
    sides: tuple[EventFrame, EventFrame],
    spec: JoinSpec,
    layout: WireLayout,
    plan: SlicePlan,
    raise_invalid: bool,
) -> DataFrame:
    """Events of both sides on the wire, each slice in a partition of its own."""
    left, right = (wire_rows(side, layout, spec.keeps_unmatched, raise_invalid) for side in sides)
    columns = [LABEL, *layout.columns]
    left = label_left(left, plan, _salt(sides[0], layout)).select(*columns)
    rows = left.unionAll(label_right(right, plan).select(*columns))
    return rows.repartition(plan.count, LABEL).select(*layout.columns)


def _salt(left: EventFrame, layout: WireLayout) -> str:
    """SQL that tells left events of one instant apart, to deal them to several slices."""
    kinds = [frames.field_of(left.source, "left", name).dataType for name in left.payload]
    hashable = [
        wire for wire, kind in zip(layout.left, kinds, strict=True) if frames.can_be_hashed(kind)
    ]
    return f"xxhash64({', '.join([TIME, CODED, *layout.keys, *hashable])})"
