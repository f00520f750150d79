"""The way of any DataFrames: events are packed by slice, and an exchange brings a slice together."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from spark_plugin.cluster.jobs import at_once
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.exchange import Room, SliceTask
from spark_plugin.tasks.labels import partition_labels
from spark_plugin.tasks.packed_files import FilePackTask
from spark_plugin.tasks.packing import EVENTS, IS_LEFT, PackTask
from spark_plugin.tasks.slice_plan import CellPlan, SlicePlan
from spark_plugin.tasks.wire import CODED, KEY_HASH, LABEL, SALT, TIME, Shipment, WireLayout
from spark_plugin.ways.broadcast.join import BroadcastPlan, broadcast_join
from spark_plugin.ways.exchange.packed_files import file_sides, pack_task, packs_by
from spark_plugin.ways.join_sides import Job

ROOM = 2
"""A slice that was not foreseen is joined whole up to this many times what it should hold."""


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
    rows, schemas, readers = _packed(job, plan)
    room = None
    if isinstance(plan, CellPlan):
        room = Room(plan, ROOM * options.slice_rows, ROOM * options.slice_bytes)
    task = SliceTask(
        spec,
        result.layout,
        result.names,
        stage.metrics,
        schemas=schemas,
        shapes=shapes,
        room=room,
        files=readers,
    )
    return stage.run(rows, task, result.wire_schema)


Readers = tuple[FilePackTask | None, FilePackTask | None]
"""What reads row groups of both sides that stayed where they lie."""


def _packed(
    job: Job, plan: SlicePlan | CellPlan
) -> tuple[DataFrame, tuple[pa.Schema, pa.Schema], Readers]:
    """Packs of both sides, each slice in a partition, schemas of their events, and readers."""
    sides, spec, layout = job.sides, job.spec, job.result.layout
    is_salted = plan.is_split or spec.keeps_unmatched
    spark = sides[0].spark
    keys = (KEY_HASH,) if plan.needs_keys else ()
    files = [None, None] if job.arguments is None else file_sides(sides, job.arguments)

    def packs(i: int) -> tuple[DataFrame, pa.Schema, FilePackTask | None]:
        side, of_side = sides[i], layout.only(sides[i].side)
        salted, given = is_salted and side.side == "left", files[i]
        # Rows that tasks read themselves are counted there.
        rows = wire_rows(
            side if given is None else replace(side, observation=None),
            of_side, spec.keeps_unmatched, job.stage.raise_invalid, place=keys,
        )  # fmt: skip
        salt = [f"{salt_of(side, layout)} AS {SALT}"] if salted else []
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
        columns = f"{LABEL} bigint, {IS_LEFT} boolean, {EVENTS} {kind}"
        if given is None:
            return rows.mapInArrow(task, columns), schema, None
        keeps = spec.keeps_unmatched and side.side == "left"
        of_files = pack_task(
            spark, side, given, task, of_side, keeps_unmatched=keeps, has_salt=salted
        )
        reader = None if of_files.stays is None else of_files.reader
        return packs_by(of_files, side, columns), schema, reader

    both = at_once(spark, [partial(packs, 0), partial(packs, 1)])
    (left, right), (own, others), (reader, other) = zip(*both, strict=True)
    return left.unionAll(right).repartition(plan.count, LABEL), (own, others), (reader, other)


def salt_of(side: EventFrame, layout: WireLayout) -> str:
    """SQL that tells left events of one instant apart, to deal them to several slices."""
    if layout.identity:
        # Events of equal identity stay together.
        return layout.identity[0]
    hashable = [
        wire
        for wire, name in zip(layout.payload(side.side), side.payload, strict=True)
        if frames.can_be_hashed(side.kind_of(name))
    ]
    return f"xxhash64({', '.join([TIME, CODED, *layout.keys, *hashable])})"
