"""Events packed before they are exchanged: few rows cross, and slices are cut by NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from spark_plugin.dataframes.arrow_types import arrow_schema
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.wire_rows import wire_rows
from spark_plugin.ways.exchange.partition_labels import partition_labels
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.ways.exchange.worker.packing import EVENTS, IS_LEFT, PackTask
from spark_plugin.ways.exchange.worker.task import Packs
from spark_plugin.worker.wire.columns import HASHES, KEY_HASH, LABEL, SALT, WireLayout

_PACKED = f"{LABEL} bigint, {IS_LEFT} boolean, {EVENTS} binary"


def packed_events(
    sides: tuple[EventFrame, EventFrame],
    layouts: tuple[WireLayout, WireLayout],
    plan: SlicePlan,
    salts: Sequence[str],
    keeps_unmatched: bool,
    raise_invalid: bool,
) -> tuple[DataFrame, Packs]:
    """Events of both sides in packs, each slice in a partition of its own.

    Parameters
    ----------
    sides : (EventFrame, EventFrame)
    layouts : (WireLayout, WireLayout)
        With the columns of the result, and of what crosses: with `HASHES` besides, or the same.
    plan : SlicePlan
    salts : sequence of str
        SQL of bigints that deal the events of a cell, left and right.
    keeps_unmatched, raise_invalid : bool
        As of `wire_rows`.

    Returns
    -------
    DataFrame, Packs
        What to hand to a `SliceTask`, and how that reads it.
    """
    is_salted = plan.is_split or keeps_unmatched, plan.is_split
    packs, schemas = zip(
        *(
            _packed(
                side, layouts, plan, salt if is_needed else None, keeps_unmatched, raise_invalid
            )
            for side, salt, is_needed in zip(sides, salts, is_salted, strict=True)
        ),
        strict=True,
    )
    rows = packs[0].unionAll(packs[1]).repartition(plan.count, LABEL)
    return rows, Packs((schemas[0], schemas[1]))


def _packed(
    side: EventFrame,
    layouts: tuple[WireLayout, WireLayout],
    plan: SlicePlan,
    salt: str | None,
    keeps_unmatched: bool,
    raise_invalid: bool,
) -> tuple[DataFrame, pa.Schema]:
    """The packs of one side, and the schema of the events in them."""
    own, layout = (each.only(side.side) for each in layouts)
    needed = [KEY_HASH] if plan.buckets > 1 else []
    place = [*needed, *(HASHES if plan.deals_right else ())]
    rows = wire_rows(side, own, keeps_unmatched, raise_invalid, place=place)
    needed += [] if salt is None else [f"{salt} AS {SALT}"]
    rows = rows.selectExpr(*layout.columns, *needed)
    fields = rows.schema.fields[: len(layout.columns)]
    schema = arrow_schema(T.StructType(fields))
    task = PackTask(side.side, schema, side.times.model, plan, partition_labels(plan.count))
    return rows.mapInArrow(task, _PACKED), schema
