"""The way of any DataFrames: one exchange brings the events of a slice together."""

from __future__ import annotations

from pyspark.sql import DataFrame

from coincide.options import CorrelateOptions
from spark_plugin.cluster.accelerator import is_accelerated
from spark_plugin.cluster.batch_size import bounds_batch_bytes
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.named_fields import field_of
from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.row_sizes import are_narrow
from spark_plugin.dataframes.stage import Stage
from spark_plugin.ways.exchange.dealt_results import DealtResult
from spark_plugin.ways.exchange.packs import packed_events
from spark_plugin.ways.exchange.partition_labels import partition_labels
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.ways.exchange.rows import event_rows
from spark_plugin.ways.exchange.sides import ExchangedSides
from spark_plugin.ways.exchange.worker.dealt_slices import DealtSliceTask, needs_adding_up
from spark_plugin.ways.exchange.worker.task import SliceTask
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.wire.columns import (
    CODED,
    HASHES,
    TIME,
    WireLayout,
)


def exchange_join(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    result: ResultColumns,
    plan: SlicePlan,
    options: CorrelateOptions,
    stage: Stage,
) -> tuple[DataFrame, None]:
    """The result in wire types, not yet computed; it needs nothing else."""
    labels = partition_labels(plan.count)
    shapes = plan.reach.left, plan.reach.right
    adds_up = plan.deals_right and needs_adding_up(spec)
    layout = result.layout.with_hashes() if adds_up else result.layout
    salts = _salts(sides, spec, result.layout, plan)
    events = ExchangedSides(
        sides, result.layout, layout, plan, salts, spec.keeps_unmatched, stage.raise_invalid
    )
    crossing = packed_events if _takes_packs(sides) else event_rows
    rows, wire = crossing(events)
    if not adds_up:
        task = SliceTask(spec, layout, result.names, stage.metrics, wire=wire, shapes=shapes)
        return stage.run(rows, task, result.wire_schema), None
    dealt = DealtResult(spec, result)
    schema = dealt.found_schema
    task = DealtSliceTask(
        dealt.partial, layout, tuple(schema.names), stage.metrics, wire=wire, shapes=shapes,
        first_labels=labels[plan.first_parts],
    )  # fmt: skip
    return dealt.combined(stage.run(rows, task, schema)), None


def _takes_packs(sides: tuple[EventFrame, EventFrame]) -> bool:
    """Whether packs may cross: the RAPIDS Accelerator takes no binaries into Python.

    And who packs holds a batch, whose bytes have to be bounded.
    """
    spark = sides[0].source.sparkSession
    if is_accelerated(spark):
        return False
    return are_narrow(sides) or bounds_batch_bytes(spark)


def _salts(
    sides: tuple[EventFrame, EventFrame], spec: AnySpec, own: WireLayout, plan: SlicePlan
) -> list[str]:
    """SQL that tells events of one instant apart, left and right, to deal them to several slices.

    Columns that nobody asked for are read only where events must be told apart in all, or cannot be
    told apart otherwise.
    """
    if own.identity:
        # Events of equal identity stay together, on both sides.
        return [own.identity[0]] * 2
    in_all = needs_adding_up(spec)
    if not plan.deals_right:
        return [_salt(sides[0], own), "0L"]
    return [
        HASHES[0] if in_all or not own.payload(side.side) else _salt(side, own) for side in sides
    ]


def _salt(side: EventFrame, layout: WireLayout) -> str:
    kinds = [field_of(side.source, side.called, name).dataType for name in side.payload]
    hashable = [
        wire
        for wire, kind in zip(layout.payload(side.side), kinds, strict=True)
        if frames.can_be_hashed(kind)
    ]
    return f"xxhash64({', '.join([TIME, CODED, *layout.keys, *hashable])})"
