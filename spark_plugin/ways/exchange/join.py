"""The way of any DataFrames: one exchange brings the events of a slice together."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from coincide.options import CorrelateOptions
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.named_fields import field_of
from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.stage import Stage
from spark_plugin.ways.broadcast.join import broadcast_join
from spark_plugin.ways.broadcast.plan import BroadcastPlan
from spark_plugin.ways.exchange.cells import CellPlan
from spark_plugin.ways.exchange.dealt_results import DealtResult
from spark_plugin.ways.exchange.packs import packed_events, takes_packs
from spark_plugin.ways.exchange.partition_labels import partition_labels
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.ways.exchange.rows import event_rows
from spark_plugin.ways.exchange.sides import ExchangedSides
from spark_plugin.ways.exchange.worker.dealt_slices import DealtSliceTask, needs_adding_up
from spark_plugin.ways.exchange.worker.dividing import Room
from spark_plugin.ways.exchange.worker.task import SliceTask, SliceWire
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.wire.columns import (
    CODED,
    HASHES,
    TIME,
    WireLayout,
)
from spark_plugin.worker.wire.shipment import Shipment

_ROOM = 2
"""How many times what a slice should hold one is joined whole that nobody has foreseen."""


def exchange_join(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    result: ResultColumns,
    plan: SlicePlan | CellPlan,
    options: CorrelateOptions,
    stage: Stage,
) -> tuple[DataFrame, Shipment | None]:
    """The result in wire types, not yet computed, and what it needs: left events that are planned apart.

    Each left event is on one of both ways, with all of its partners: so what both give is together final.
    """
    if isinstance(plan, CellPlan) or plan.apart is None:
        return _sliced(sides, spec, result, plan, options, stage), None
    left, right = sides
    usual = replace(left, up_to=plan.apart), right
    long = replace(left, longer_than=plan.apart), right
    few = BroadcastPlan("left", "longer than nearly all others")
    others = replace(stage, observation=stage.apart)
    found, shipment = broadcast_join(long, spec, result, few, options, others)
    return _sliced(usual, spec, result, plan, options, stage).unionAll(found), shipment


def _sliced(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    result: ResultColumns,
    plan: SlicePlan | CellPlan,
    options: CorrelateOptions,
    stage: Stage,
) -> DataFrame:
    shapes = plan.reach.left, plan.reach.right
    adds_up = plan.deals_right and needs_adding_up(spec)
    if adds_up and spec.pairs_once and spec.emit == "pairs":
        return _with_alone(sides, spec, result, plan, options, stage)
    layout = result.layout.with_hashes() if adds_up else result.layout
    salts = _salts(sides, spec, result.layout, plan)
    events = ExchangedSides(
        sides, result.layout, layout, plan, salts, spec.keeps_unmatched, stage.raise_invalid
    )
    rows, wire = _crossing(events, options)
    if not adds_up:
        task = SliceTask(spec, layout, result.names, stage.metrics, wire=wire, shapes=shapes)
        return stage.run(rows, task, result.wire_schema)
    assert isinstance(plan, SlicePlan)  # which alone deals right events
    dealt = DealtResult(spec, result)
    schema = dealt.found_schema
    task = DealtSliceTask(
        dealt.partial, layout, tuple(schema.names), stage.metrics, wire=wire, shapes=shapes,
        first_labels=partition_labels(plan.count)[plan.first_parts],
    )  # fmt: skip
    return dealt.combined(stage.run(rows, task, schema))


def _with_alone(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    result: ResultColumns,
    plan: SlicePlan | CellPlan,
    options: CorrelateOptions,
    stage: Stage,
) -> DataFrame:
    """The pairs of one stream, each once, and by a join of their own the events that have no other."""
    pairs = _sliced(sides, spec.but(how="inner"), result, plan, options, stage)
    left, right = (replace(side, observation=None) for side in sides)
    bare, alone = (left, replace(right, payload=[])), spec.but(how="anti", pairs_once=False)
    own, silent = ResultColumns(bare, alone), replace(stage, metrics=None, observation=None)
    events = _sliced(bare, alone, own, plan, options, silent)
    nulls = [
        F.lit(None).cast(column.wire_kind).alias(column.name)
        for column in result.columns[len(own.columns) :]
    ]
    return pairs.unionAll(events.select(*map(frames.quoted, own.names), *nulls))


def _crossing(events: ExchangedSides, options: CorrelateOptions) -> tuple[DataFrame, SliceWire]:
    """Events in the partitions of their slices, and how a task reads them."""
    if isinstance(events.plan, CellPlan):
        most = _ROOM * options.slice_rows, _ROOM * options.slice_bytes
        return packed_events(events, Room(events.plan, *most))
    return packed_events(events) if takes_packs(events.sides) else event_rows(events)


def _salts(
    sides: tuple[EventFrame, EventFrame], spec: AnySpec, own: WireLayout, plan: SlicePlan | CellPlan
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
