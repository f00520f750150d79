"""The worker of the exchange: joins the slices of a partition, and holds the plan against their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from coincide.sides import LEFT, RIGHT, SIDES
from spark_plugin.ways.exchange.worker.blobs import unpacked
from spark_plugin.ways.exchange.worker.dividing import Packed, Room, divided
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.wire.columns import CODED, LABEL, UNMATCHED, LabelCode, is_left
from spark_plugin.worker.wire.sides import read_side
from spark_plugin.worker.wire.task import WireTask

CHANGED = (
    "the source has changed since the join was planned, or gives other rows each time it is computed, as"
    " current_timestamp() and rand() do. Compute it once before: df.localCheckpoint(), df.cache(), or write"
    " it to files"
)


class SliceWire(Protocol):
    """How slices cross the exchange."""

    def slices(
        self, batches: Iterable[pa.RecordBatch], task: SliceTask
    ) -> Iterator[tuple[Side, Side, int | None]]:
        """Left and right events of each slice of a partition, with its label; None: that match nothing."""


@dataclass(frozen=True)
class Rows:
    """Slices that cross as rows of both sides.

    Parameters
    ----------
    code : LabelCode
        How rows say which slice they are of.
    """

    code: LabelCode

    def slices(
        self, batches: Iterable[pa.RecordBatch], task: SliceTask
    ) -> Iterator[tuple[Side, Side, int | None]]:
        """As of `SliceWire`."""
        gathered = list(batches)
        if not gathered:
            return
        table = pa.Table.from_batches(gathered)
        del gathered
        table, labels = self._decoded(table)
        matchable = table.column(CODED).to_numpy() != UNMATCHED
        found = np.unique(labels[matchable]).tolist()
        if not found or (len(found) == 1 and (matchable.all() or task.keeps_whole(found[0]))):
            yield *_sides(table, task), found[0] if found else None
            return
        # Spark promises that rows of one label meet, not that those of two are kept apart.
        for label in found:
            yield *_sides(_rows(table, matchable & (labels == label)), task), label
        if not matchable.all():
            yield *_sides(_rows(table, ~matchable), task), None

    def _decoded(self, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """The columns of the layout, and the label of each row: int64 array."""
        coded, labels = self.code.decoded(table.column(CODED).to_numpy())
        if self.code.bits == 0:
            labels = table.column(LABEL).to_numpy()
        place = table.schema.get_field_index(CODED)
        return table.set_column(place, CODED, pa.array(coded)), labels


@dataclass(frozen=True)
class Packs:
    """Slices that cross as what a `PackTask` makes of them.

    Parameters
    ----------
    schemas : (pa.Schema, pa.Schema)
        Of the events of each side, for slices that have none.
    room : Room or None
        What a slice may hold; None: as much as there is.
    """

    schemas: tuple[pa.Schema, pa.Schema]
    room: Room | None = None

    def slices(
        self, batches: Iterable[pa.RecordBatch], task: SliceTask
    ) -> Iterator[tuple[Side, Side, int | None]]:
        """As of `SliceWire`."""
        of_slices: dict[int, Packed] = {}
        for batch in batches:
            for label, is_of_left, blob in zip(*batch.columns, strict=True):
                packs = of_slices.setdefault(label.as_py(), ([], []))
                packs[LEFT if is_of_left.as_py() else RIGHT].append(blob.as_buffer())
        for label in sorted(of_slices):
            for part in self._parts(of_slices.pop(label), task):
                left, right = (
                    read_side(
                        unpacked(packs) if packs else schema.empty_table(),
                        task.layout.only(name),
                        name,
                        model,
                    )
                    for name, model, schema, packs in zip(
                        SIDES, task.spec.models, self.schemas, part, strict=True
                    )
                )
                yield left, right, label

    def _parts(self, packs: Packed, task: SliceTask) -> Iterable[Packed]:
        """A slice, in parts that can be joined one after the other if it is too large."""
        count = 1 if self.room is None else self.room.parts(packs)
        if self.room is None or count == 1:
            return [packs]
        return divided(packs, self.room.plan.finer(count), self.schemas, task.spec.models)


@dataclass(frozen=True, kw_only=True)
class SliceTask(WireTask):
    """Gathers the slices of a partition, mostly one, and joins each.

    Parameters
    ----------
    wire : SliceWire
    shapes : ((int, int), (int, int))
        Smallest and largest shape of the events of each side, as the slices were cut for.
    """

    wire: SliceWire
    shapes: tuple[tuple[int, int], tuple[int, int]]

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """The joins of the partition."""
        for left, right, label in self.wire.slices(batches, self):
            for name, side, planned in zip(SIDES, (left, right), self.shapes, strict=True):
                _check_shapes(name, side, *planned)
            yield self.joined_slice(left, right, label)

    def keeps_whole(self, label: int) -> bool:
        """Whether left events that match nothing may stand with those of a slice."""
        return True

    def joined_slice(self, left: Side, right: Side, label: int | None) -> Emission:
        """The join of one slice; without a label of events that match nothing."""
        return self.joined(left, right)


def _sides(table: pa.Table, task: SliceTask) -> tuple[Side, Side]:
    is_base = is_left(table.column(CODED).to_numpy())
    left, right = (
        read_side(table, task.layout, name, model, np.flatnonzero(is_own))
        for name, model, is_own in zip(SIDES, task.spec.models, (is_base, ~is_base), strict=True)
    )
    return left, right


def _rows(table: pa.Table, chosen: np.ndarray) -> pa.Table:
    return table.take(pa.array(np.flatnonzero(chosen)))


def _check_shapes(name: str, side: Side, smallest: int, largest: int) -> None:
    """Refuse events that may have partners in slices to which the plan has not brought them.

    Raises
    ------
    DataError
    """
    shapes = side.shapes
    if side.matchable is not None:
        shapes = shapes[side.matchable]
    if not shapes.size or (shapes.min() >= smallest and shapes.max() <= largest):
        return
    what = f"longer than {largest}" if shapes.max() > largest else f"shorter than {smallest}"
    raise DataError(
        f"{name}: a timestamp is {what} ticks, which none was when the join was planned: {CHANGED}."
        f" Or declare the longest length, {name}_longest, which the plan then counts on"
    )
