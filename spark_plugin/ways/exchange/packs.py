"""Events packed before they are exchanged: few rows cross, and slices are cut by NumPy."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from spark_plugin.cluster.accelerator import is_accelerated
from spark_plugin.cluster.at_once import at_once
from spark_plugin.cluster.batch_size import bounds_batch_bytes
from spark_plugin.dataframes.arrow_types import arrow_schema
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.row_sizes import are_narrow
from spark_plugin.ways.exchange.partition_labels import partition_labels
from spark_plugin.ways.exchange.sides import ExchangedSides
from spark_plugin.ways.exchange.worker.dividing import Room
from spark_plugin.ways.exchange.worker.packing import EVENTS, IS_LEFT, PackTask
from spark_plugin.ways.exchange.worker.task import Packs
from spark_plugin.worker.wire.columns import KEY_HASH, LABEL, SALT

_PACKED = f"{LABEL} bigint, {IS_LEFT} boolean, {EVENTS} binary"


def takes_packs(sides: tuple[EventFrame, EventFrame]) -> bool:
    """Whether packs may cross: the RAPIDS Accelerator takes no binaries into Python.

    And who packs holds a batch, whose bytes have to be bounded.
    """
    spark = sides[0].source.sparkSession
    if is_accelerated(spark):
        return False
    return are_narrow(sides) or bounds_batch_bytes(spark)


def packed_events(events: ExchangedSides, room: Room | None = None) -> tuple[DataFrame, Packs]:
    """Events of both sides in packs, each slice in a partition of its own.

    Parameters
    ----------
    events : ExchangedSides
    room : Room or None
        What a slice may hold, where that was not foreseen.

    Returns
    -------
    DataFrame, Packs
        What to hand to a `SliceTask`, and how that reads it.
    """
    plan = events.plan
    is_salted = plan.is_split or events.keeps_unmatched, plan.is_split
    (left, of_left), (right, of_right) = at_once(
        events.sides[0].source.sparkSession,
        [
            partial(_packed, events, side, salt if is_needed else None)
            for side, salt, is_needed in zip(events.sides, events.salts, is_salted, strict=True)
        ],
    )
    rows = left.unionAll(right).repartition(plan.count, LABEL)
    return rows, Packs((of_left, of_right), room)


def _packed(
    events: ExchangedSides, side: EventFrame, salt: str | None
) -> tuple[DataFrame, pa.Schema]:
    """The packs of one side, and the schema of the events in them."""
    own, layout = (each.only(side.side) for each in (events.own, events.layout))
    needed, plan = [KEY_HASH] if events.plan.needs_keys else [], events.plan
    rows = events.rows(side, own, needed)
    needed += [] if salt is None else [f"{salt} AS {SALT}"]
    rows = rows.selectExpr(*layout.columns, *needed)
    fields = rows.schema.fields[: len(layout.columns)]
    schema = arrow_schema(T.StructType(fields))
    task = PackTask(side.side, schema, side.times.model, plan, partition_labels(plan.count))
    return rows.mapInArrow(task, _PACKED), schema
