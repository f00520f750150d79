"""The worker of the exchange: joins the slices of a partition, and holds the plan against their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pyarrow as pa

from coincide.engine.events.sides import Side
from coincide.engine.join.emission import Emission
from coincide.model.errors import DataError, argument
from coincide.model.options import SideName
from coincide.model.sides import LEFT, RIGHT, SIDES
from spark_plugin.tasks.blobs import blob_of, rows_of, unpacked
from spark_plugin.tasks.joins import WireTask
from spark_plugin.tasks.packed_files import FilePackTask
from spark_plugin.tasks.packing import Packing, PackTask
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.tasks.wire import (
    CODED,
    SALT,
    is_left,
    read_side,
)

CHANGED = (
    "The source has changed since the join was planned, or gives other rows each time, like"
    " current_timestamp() and rand() do. Compute it once before, with df.localCheckpoint(), df.cache(),"
    " or by writing it to files."
)


@dataclass(frozen=True, kw_only=True)
class StretchTask(WireTask):
    """Joins rows of both sides that have all of their matches in the same partition."""

    shapes: tuple[tuple[int, int], tuple[int, int]]

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """The join of the partition."""
        gathered = list(batches)
        if not gathered:
            return
        table = pa.Table.from_batches(gathered)
        is_base = is_left(table.column(CODED).to_numpy())
        left, right = (
            read_side(table, self.layout, name, model, np.flatnonzero(is_own))
            for name, model, is_own in zip(
                SIDES, self.spec.models, (is_base, ~is_base), strict=True
            )
        )
        _check_shapes((left, right), self.shapes)
        yield self.joined(left, right)


@dataclass(frozen=True, kw_only=True)
class SliceTask(WireTask):
    """Gathers the packs of each slice of a partition, mostly one, and joins them."""

    schemas: tuple[pa.Schema, pa.Schema]
    shapes: tuple[tuple[int, int], tuple[int, int]]
    room: Room | None = None
    files: tuple[FilePackTask | None, FilePackTask | None] = (None, None)

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """The joins of the partition."""
        for left, right, _ in self.slices(batches):
            _check_shapes((left, right), self.shapes)
            yield self.joined(left, right)

    def slices(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Side, Side, int]]:
        """Left and right events of each slice, or of a part of one, with its label."""
        of_slices: dict[int, Packed] = {}
        for batch in batches:
            for label, is_of_left, blob in zip(*batch.columns, strict=True):
                packs = of_slices.setdefault(label.as_py(), ([], []))
                packs[LEFT if is_of_left.as_py() else RIGHT].append(blob_of(blob))
        for label in sorted(of_slices):
            for left, right in self.sides(of_slices.pop(label)):
                yield left, right, label

    def sides(self, packs: Packed) -> Iterator[tuple[Side, Side]]:
        """Left and right events of a slice, or of its parts."""
        for left, right in self._parts(packs):
            yield self.side(LEFT, left), self.side(RIGHT, right)

    def side(self, side: int, packs: list[pa.Buffer]) -> Side:
        """The events of a side in some packs, or in none."""
        name = SIDES[side]
        schema, reader = self.schemas[side], self.files[side]
        tables: list[pa.Table] = []
        if reader is not None:
            packs, tables = reader.with_events(packs)
        rows = unpacked(packs) if packs else schema.empty_table()
        if tables:
            rows = pa.concat_tables([rows.cast(schema), *tables]).combine_chunks()
        return read_side(rows, self.layout.only(name), name, self.spec.models[side])

    def _parts(self, packs: Packed) -> Iterable[Packed]:
        """A slice, in parts that can be joined one after the other if it is too large."""
        count = 1 if self.room is None else self.room.parts(packs)
        if self.room is None or count == 1:
            return [packs]
        finer = self.room.plan.finer(count)
        tasks = [
            PackTask(side, self.schemas[i], self.spec.models[i], finer, np.arange(count))
            for i, side in enumerate(get_args(SideName))
        ]
        return ((left, right) for left, right in divided(packs, tasks, count))


def _check_shapes(
    sides: tuple[Side, Side], planned: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    """Refuse events that may have matches in slices to which the plan has not brought them."""
    for name, side, shapes in zip(SIDES, sides, planned, strict=True):
        cure = f" Or declare the longest length with {argument(f'{name}_longest')}."
        check_shapes(name, side, shapes, cure)


def check_shapes(name: str, side: Side, planned: tuple[int, int], cure: str = "") -> None:
    """The same of one side; `cure` is what else may help."""
    smallest, largest = planned
    shapes = side.shapes if side.matchable is None else side.shapes[side.matchable]
    if not shapes.size or (shapes.min() >= smallest and shapes.max() <= largest):
        return
    what = f"longer than {largest}" if shapes.max() > largest else f"shorter than {smallest}"
    raise DataError(
        f"{name}: a timestamp is {what} ticks, and none was when the join was planned."
        f" {CHANGED}{cure}"
    )


Packed = tuple[list[pa.Buffer], list[pa.Buffer]]
"""Packs of both sides."""


@dataclass(frozen=True)
class Room:
    """What a worker may join at once."""

    plan: CellPlan
    rows: int
    bytes: int

    def parts(self, packs: Sequence[list[pa.Buffer]]) -> int:
        """Into how many parts a slice is to be divided."""
        both = [pack for of_side in packs for pack in of_side]
        rows, size = sum(map(rows_of, both)), sum(pack.size for pack in both)
        return max(1, -(-rows // self.rows), -(-size // self.bytes))


def divided(
    packs: Sequence[list[pa.Buffer]], tasks: Sequence[Packing[int]], count: int
) -> Iterator[list[list[pa.Buffer]]]:
    """The parts of a slice, each with all that its tasks bring together; takes the packs away."""
    parts: list[list[list[pa.Buffer]]] = [[[] for _ in tasks] for _ in range(count)]
    for i, task in enumerate(tasks):
        for number, blob in task.packs(_unpacked_rows(packs[i])):
            parts[number][i].append(blob)
    parts.reverse()
    while parts:
        yield parts.pop()


def _unpacked_rows(packs: list[pa.Buffer]) -> Iterator[pa.RecordBatch]:
    """Events of all packs, with salts for those that match nothing: they are not cut another time."""
    while packs:
        rows = unpacked([packs.pop()])
        yield from rows.append_column(SALT, pa.array(np.arange(rows.num_rows))).to_batches()
