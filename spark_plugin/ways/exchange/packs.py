"""Events packed before they are exchanged, and what dealt slices found put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.join.spec import AnySpec
from spark_plugin.cluster.jobs import at_once, bounds_batch_bytes
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.estimates import are_narrow
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.exchange import Packs, Room, dealt_spec
from spark_plugin.tasks.packing import EVENTS, IS_LEFT, PackTask
from spark_plugin.tasks.slices import CellPlan, SlicePlan
from spark_plugin.tasks.wire import HASHES, KEY_HASH, LABEL, SALT, WireLayout
from spark_plugin.ways.adding_up import RANK, added_up, exploded, kinds_of_order, length_of_order
from spark_plugin.ways.exchange.slice_columns import partition_labels

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
    """Events of both sides in packs, each slice in a partition of its own."""
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


_EVENT = [*HASHES, "occurrence"]
"""What tells left events apart, of those that are alike in all the how-many-eth it is."""


class DealtResult:
    """The result of a join whose left events meet their partners in several slices."""

    def __init__(self, spec: AnySpec, result: ResultColumns) -> None:
        own = len(result.layout.keys) + len(result.layout.left)
        self._spec, self._own, self._others = spec, result.columns[:own], result.columns[own:]
        # Which of the best a partner is, the parts do not know.
        self._told = self._others[:-1] if spec.k > 1 else self._others
        self.partial = dealt_spec(spec)

    @property
    def found_schema(self) -> T.StructType:
        """What a `DealtSliceTask` yields."""
        fields = [T.StructField(name, T.LongType()) for name in _EVENT]
        fields += [T.StructField(_own(i), column.wire_kind) for i, column in enumerate(self._own)]
        fields += [T.StructField(_other(i), kind) for i, kind in enumerate(self._found_kinds)]
        return T.StructType(fields)

    def combined(self, found: DataFrame) -> DataFrame:
        """The result, in wire types."""
        if self.partial.emit == "pairs":
            return self._named(_pairs(found), first=1)
        own = [_own(i) for i in range(len(self._own))]
        firsts = [F.first(name, ignorenulls=True).alias(name) for name in own]
        events = found.groupBy(*_EVENT).agg(*firsts, *self._added_up())
        if self._spec.k > 1:
            events = exploded(events, own)
        elif self.partial.emit == "best":
            events = events.selectExpr(*own, "best.*")
        kept = self._kept()
        if kept is not None:
            events = events.where(kept)
        return self._named(events, first=0)

    def _named(self, events: DataFrame, first: int) -> DataFrame:
        """The columns of the result; those of partners are the found ones from `first` on."""
        others = [] if self._spec.one_row_per_event else self._others
        own = [F.col(_own(i)).alias(column.name) for i, column in enumerate(self._own)]
        names = [_other(i) for i in range(first, first + len(others))]
        if self._spec.k > 1:
            names[-1] = RANK
        found = [F.col(n).alias(column.name) for n, column in zip(names, others, strict=True)]
        return events.select(*own, *found)

    @property
    def _found_kinds(self) -> list[T.DataType]:
        if self.partial.emit == "counts":
            return [T.LongType()]
        if self.partial.emit == "best":
            return [*(c.wire_kind for c in self._told), *kinds_of_order(self._spec)]
        kinds = [c.wire_kind for c in self._others]
        return [T.LongType(), *kinds] if self.partial.emit == "pairs" else kinds

    def _added_up(self) -> list[Column]:
        names = [_other(i) for i in range(len(self._found_kinds))]
        return added_up(self.partial, names, list(zip(names, self._told, strict=False)))

    def _kept(self) -> str | None:
        """SQL of which events are in the result; None: all."""
        first = _other(0)
        if self._spec.how == "anti":
            return f"{first} = 0"
        if self._spec.how == "left":
            return None
        if self.partial.emit == "counts":
            return f"{first} > 0"
        if self.partial.emit == "lists":
            return f"size({first}) > 0"
        probability = len(self._found_kinds) - 1 - length_of_order(self._spec)
        return f"{_other(probability)} IS NOT NULL"


def _pairs(found: DataFrame) -> DataFrame:
    """All pairs, and once each left event that no slice has found a partner of."""
    event = ", ".join(_EVENT)
    told = found.selectExpr("*", f"max({_other(0)}) OVER (PARTITION BY {event}) AS has_partner")
    return told.where(f"{_other(0)} IS NOT NULL OR has_partner IS NULL")


def _own(i: int) -> str:
    return f"own{i}"


def _other(i: int) -> str:
    return f"found{i}"


@dataclass(frozen=True)
class ExchangedSides:
    """Both sides, and what decides where their events go."""

    sides: tuple[EventFrame, EventFrame]
    own: WireLayout
    layout: WireLayout
    plan: SlicePlan | CellPlan
    salts: Sequence[str]
    keeps_unmatched: bool
    raise_invalid: bool

    def rows(self, side: EventFrame, own: WireLayout, place: Sequence[str]) -> DataFrame:
        """One side on the wire, with columns that tell where its rows go."""
        if self.plan.deals_right:
            place = (*place, *HASHES)
        return wire_rows(side, own, self.keeps_unmatched, self.raise_invalid, place=place)
