"""The way of any DataFrames: one exchange brings the events of a slice together."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from coincide.engine.join.spec import AnySpec
from coincide.model.options import CorrelateOptions
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import field_of
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.stage import Stage
from spark_plugin.tasks.broadcast import BroadcastPlan
from spark_plugin.tasks.exchange import (
    DealtSliceTask,
    Room,
    Rows,
    SliceTask,
    SliceWire,
    needs_adding_up,
)
from spark_plugin.tasks.slices import CellPlan, SlicePlan
from spark_plugin.tasks.wire import (
    CODED,
    HASHES,
    KEY_HASH,
    LABEL,
    TIME,
    UNMATCHED,
    LabelCode,
    Shipment,
    WireLayout,
)
from spark_plugin.ways.broadcast.join import broadcast_join
from spark_plugin.ways.exchange.packs import DealtResult, ExchangedSides, packed_events, takes_packs
from spark_plugin.ways.exchange.slice_columns import label_left, label_right, partition_labels

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


def event_rows(events: ExchangedSides) -> tuple[DataFrame, Rows]:
    """Events of both sides in shared columns, each slice in a partition of its own."""
    plan, layout = events.plan, events.layout
    assert isinstance(plan, SlicePlan)  # cells are cut by who packs
    code = LabelCode.of(
        int(partition_labels(plan.count).max()), (plan.reach.left[1], plan.reach.right[1])
    )
    left, right = (events.rows(side, events.own, ("midpoint", KEY_HASH)) for side in events.sides)
    left = label_left(left, plan, events.salts[0], layout.columns)
    # What sets events apart is asked of left ones alone.
    columns = [f"CAST(NULL AS BIGINT) AS {c}" if c in HASHES else c for c in layout.columns]
    rows = left.unionAll(label_right(right, plan, events.salts[1], columns))
    return in_partitions(rows, plan.count, layout, code), Rows(code)


def in_partitions(rows: DataFrame, count: int, layout: WireLayout, code: LabelCode) -> DataFrame:
    """Rows with labels of slices on the wire, each slice in a partition of its own."""
    others = [name for name in layout.columns if name not in (TIME, CODED)]
    label = [] if code.bits else [LABEL]
    return rows.repartition(count, LABEL).selectExpr(
        TIME, f"{with_label(code)} AS {CODED}", *others, *label
    )


def with_label(code: LabelCode) -> str:
    """SQL of the coded shape with the label in its lowest bits, as `LabelCode.decoded` reads it."""
    left, right = (frames.literal(largest + 1) for largest in code.largest)
    label = LABEL if code.bits else "0L"
    packed = f"{{}} * {frames.literal(1 << code.bits)} + {label}"
    of_left = packed.format(f"least({CODED}, {left})")
    of_right = packed.format(f"least(-1L - {CODED}, {right})")
    return (
        f"CASE WHEN {CODED} >= 0L THEN {of_left}"
        f" WHEN {CODED} = {frames.literal(UNMATCHED)} THEN {CODED}"
        f" ELSE -1L - ({of_right}) END"
    )
