"""The way of any DataFrames: events are packed by slice, and an exchange brings a slice together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.join.spec import AnySpec
from spark_plugin.cluster.jobs import at_once
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.exchange import DealtSliceTask, Room, SliceTask
from spark_plugin.tasks.labels import partition_labels
from spark_plugin.tasks.packing import EVENTS, IS_LEFT, PackTask
from spark_plugin.tasks.slice_plan import CellPlan, SlicePlan
from spark_plugin.tasks.wire import CODED, HASHES, KEY_HASH, LABEL, SALT, TIME, Shipment, WireLayout
from spark_plugin.ways.broadcast.join import BroadcastPlan, broadcast_join
from spark_plugin.ways.join_sides import Job
from spark_plugin.ways.partial_results import PartialResult

ROOM = 2
"""A slice that was not foreseen is joined whole up to this many times what it should hold."""
_EVENT = (*HASHES, "occurrence")
"""What tells left events apart, with a number among those that are alike in all."""


def exchange_join(job: Job, plan: SlicePlan | CellPlan) -> tuple[DataFrame, Shipment | None]:
    """The result in wire types, not yet computed, and what it needs: left events that are planned apart."""
    # Each left event is on one of both ways, with all of its matches: what both give is together final.
    if isinstance(plan, CellPlan) or plan.apart is None:
        return _sliced(job, plan), None
    left, right = job.sides
    usual = replace(left, up_to=plan.apart), right
    long = replace(left, longer_than=plan.apart), right
    few = BroadcastPlan("left", "longer than nearly all others")
    stage = replace(job.stage, observation=job.stage.apart)
    found, shipment = broadcast_join(replace(job, sides=long, stage=stage), few)
    return _sliced(replace(job, sides=usual), plan).unionAll(found), shipment


def _sliced(job: Job, plan: SlicePlan | CellPlan) -> DataFrame:
    spec, result, stage, options = job.spec, job.result, job.stage, job.options
    shapes = plan.reach.left, plan.reach.right
    adds_up = plan.deals_right and not spec.is_pairs_alone
    if adds_up and spec.pairs_once and spec.row.is_a_pair:
        return _with_alone(job, plan)
    layout = result.layout.with_hashes() if adds_up else result.layout
    rows, schemas = _packed(job, layout, plan)
    if not adds_up:
        room = None
        if isinstance(plan, CellPlan):
            room = Room(plan, ROOM * options.slice_rows, ROOM * options.slice_bytes)
        task = SliceTask(
            spec, layout, result.names, stage.metrics, schemas=schemas, shapes=shapes, room=room
        )
        return stage.run(rows, task, result.wire_schema)
    assert isinstance(plan, SlicePlan)  # which alone deals right events
    dealt = PartialResult(spec, result, _EVENT, tells_events=True)
    task = DealtSliceTask(
        dealt.spec, layout, tuple(dealt.found_schema.names), stage.metrics, schemas=schemas,
        shapes=shapes, first_labels=partition_labels(plan.count)[plan.first_parts],
    )  # fmt: skip
    return dealt.combined(stage.run(rows, task, dealt.found_schema))


def _with_alone(job: Job, plan: SlicePlan | CellPlan) -> DataFrame:
    """The pairs of one stream, each once, and by a join of their own the events that have no other."""
    pairs = _sliced(replace(job, spec=job.spec.but(how="inner")), plan)
    left, right = (replace(side, observation=None) for side in job.sides)
    bare, alone = (left, replace(right, payload=[])), job.spec.but(how="anti", pairs_once=False)
    own, silent = ResultColumns(bare, alone), replace(job.stage, metrics=None, observation=None)
    events = _sliced(Job(bare, alone, own, job.options, silent), plan)
    nulls = [
        F.lit(None).cast(column.wire_kind).alias(column.name)
        for column in job.result.columns[len(own.columns) :]
    ]
    return pairs.unionAll(events.select(*map(frames.quoted, own.names), *nulls))


def _packed(
    job: Job, layout: WireLayout, plan: SlicePlan | CellPlan
) -> tuple[DataFrame, tuple[pa.Schema, pa.Schema]]:
    """Packs of both sides, each slice in a partition of its own, and the schemas of events in them."""
    sides, spec, own = job.sides, job.spec, job.result.layout
    is_salted = plan.is_split or spec.keeps_unmatched, plan.is_split
    salts = _salts(sides, spec, own, plan)
    spark = sides[0].spark
    hashes = HASHES if plan.deals_right else ()
    keys = (KEY_HASH,) if plan.needs_keys else ()

    def packs(i: int) -> tuple[DataFrame, pa.Schema]:
        side, of_side = sides[i], layout.only(sides[i].side)
        rows = wire_rows(
            side, own.only(side.side), spec.keeps_unmatched, job.stage.raise_invalid,
            place=(*keys, *hashes),
        )  # fmt: skip
        salt = [f"{salts[i]} AS {SALT}"] if is_salted[i] else []
        rows = rows.selectExpr(*of_side.columns, *keys, *salt)
        fields = rows.schema.fields[: len(of_side.columns)]
        schema = arrow_schema(T.StructType(fields))
        # The RAPIDS Accelerator takes no binaries into Python.
        as_numbers = is_accelerated(spark)
        task = PackTask(
            side.side, schema, side.times.model, plan, partition_labels(plan.count),
            as_numbers=as_numbers,
        )  # fmt: skip
        kind = "array<bigint>" if as_numbers else "binary"
        return rows.mapInArrow(task, f"{LABEL} bigint, {IS_LEFT} boolean, {EVENTS} {kind}"), schema

    (left, of_left), (right, of_right) = at_once(spark, [partial(packs, 0), partial(packs, 1)])
    return left.unionAll(right).repartition(plan.count, LABEL), (of_left, of_right)


def _salts(
    sides: tuple[EventFrame, EventFrame], spec: AnySpec, own: WireLayout, plan: SlicePlan | CellPlan
) -> Sequence[str]:
    """SQL that tells events of one instant apart, left and right, to deal them to several slices."""
    # Columns without a use in the result are read only to tell events apart in all.
    if own.identity:
        # Events of equal identity stay together, on both sides.
        return [own.identity[0]] * 2
    in_all = not spec.is_pairs_alone
    if not plan.deals_right:
        return [_salt(sides[0], own), "0L"]
    return [
        HASHES[0] if in_all or not own.payload(side.side) else _salt(side, own) for side in sides
    ]


def _salt(side: EventFrame, layout: WireLayout) -> str:
    hashable = [
        wire
        for wire, name in zip(layout.payload(side.side), side.payload, strict=True)
        if frames.can_be_hashed(side.kind_of(name))
    ]
    return f"xxhash64({', '.join([TIME, CODED, *layout.keys, *hashable])})"
