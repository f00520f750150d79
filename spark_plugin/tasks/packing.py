"""The worker before the exchange: cuts its rows into slices, and packs what it has of each."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from coincide.engine.events.timestamps import SideModel
from coincide.model.options import SideName
from spark_plugin.tasks.blobs import column_of, packed
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.slice_plan import CellPlan, Places, SlicePlan
from spark_plugin.tasks.wire import (
    CODED,
    KEY_HASH,
    LABEL,
    SALT,
    TIME,
    chunks,
    shapes_of,
)

IS_LEFT, EVENTS = "is_left", "events"
"""Columns next to `LABEL` of what crosses the exchange: the side, and the packed events."""
STREAM = "stream"
"""Column of the number of the stream, where there may be more than two; of two sides, left is the first."""
_ROWS, _BYTES = 1 << 20, 64 << 20
"""What is cut at once."""
_COPIES = 4 << 20
"""Most copies of events that are in memory at once, too."""
_BATCH_BYTES = 4 << 20
"""Bytes of packs that are handed on at once."""


def bounded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Rows in parts that are cut at once."""
    return chunks(batches, _ROWS, _BYTES)


G = TypeVar("G")
"""What tells a group of rows from others."""


def at_once(packs: Iterable[tuple[G, pa.Buffer]]) -> Iterator[list[tuple[G, pa.Buffer]]]:
    """Packs, each with its group, that are handed on at once."""
    gathered: list[tuple[G, pa.Buffer]] = []
    size = 0
    for group, events in packs:
        gathered.append((group, events))
        size += events.size
        if size >= _BATCH_BYTES:
            yield gathered
            gathered, size = [], 0
    if gathered:
        yield gathered


@dataclass(frozen=True)
class Packing(ABC, Generic[G]):
    """Packs rows of one side on the wire, each group of rows by itself."""

    side: SideName
    schema: pa.Schema
    model: SideModel
    as_numbers: bool = field(default=False, kw_only=True)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through one partition, a bounded part after the other."""
        yield from self.batches(bounded(begin_task(batches)))

    def batches(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """The packs of some tables, each with what tells its group."""
        yield from map(self.batch_of, at_once(self._packs_of_all(tables)))

    def packs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[G, pa.Buffer]]:
        """Packs of rows, each with its group."""
        return self._packs_of_all(bounded(batches))

    def _packs_of_all(self, tables: Iterable[pa.Table]) -> Iterator[tuple[G, pa.Buffer]]:
        for table in tables:
            yield from self.packs_of(table.combine_chunks())

    def packs_of(self, table: pa.Table) -> Iterator[tuple[G, pa.Buffer]]:
        """Packs of a chunk's rows."""
        # What a session calls its texts and instants in Arrow has no say in what is joined.
        events = table.select(self.schema.names).cast(self.schema)
        for group, rows in self.groups(events, self.places_of(table)):
            for pack in packed(rows):
                yield group, pack

    @abstractmethod
    def groups(self, events: pa.Table, places: Places) -> Iterator[tuple[G, pa.Table]]:
        """The groups of a chunk's events, and the events of each."""

    @abstractmethod
    def told(self, groups: Sequence[G]) -> dict[str, pa.Array]:
        """Columns that tell the groups of packs."""

    def batch_of(self, packs: Sequence[tuple[G, pa.Buffer]]) -> pa.RecordBatch:
        """At least one pack, with what tells its group."""
        groups, events = zip(*packs, strict=True)
        own = {EVENTS: column_of(events, as_numbers=self.as_numbers)}
        return pa.RecordBatch.from_pydict({**self.told(groups), **self.origin(len(packs)), **own})

    def batch_of_none(self) -> pa.RecordBatch:
        """What is handed on where there is no pack."""
        nothing = {EVENTS: column_of([pa.py_buffer(b"")], as_numbers=self.as_numbers).slice(0, 0)}
        return pa.RecordBatch.from_pydict({**self.told([]), **self.origin(0), **nothing})

    def origin(self, packs: int) -> dict[str, pa.Array]:
        """Columns that tell where packs are from."""
        return {IS_LEFT: pa.array(np.full(packs, self.side == "left"))}

    def places_of(self, table: pa.Table) -> Places:
        """What says where the events of a table are."""

        def column(name: str) -> np.ndarray:
            has_it = name in table.column_names
            return table.column(name).to_numpy() if has_it else np.empty(0, np.int64)

        shapes, matchable = shapes_of(table.column(CODED), self.side)
        midpoints = 2 * table.column(TIME).to_numpy() - self.model.leans(shapes)
        return Places(midpoints, matchable, column(KEY_HASH), column(SALT), shapes)


@dataclass(frozen=True)
class PackTask(Packing[int]):
    """Packs the rows of each slice of a plan."""

    plan: SlicePlan | CellPlan
    labels: np.ndarray

    def groups(self, events: pa.Table, places: Places) -> Iterator[tuple[int, pa.Table]]:
        """The slices that the rows are in, by number."""
        is_left = self.side == "left"
        copies = self.plan.copies_of(places, is_left=is_left)
        for rows in _bounded(copies, _COPIES):
            order, slices = self.plan.slices_of(places.part(rows), is_left=is_left)
            part = events.slice(rows.start, rows.stop - rows.start)
            for run in runs_of(slices):
                yield int(slices[run.start]), taken(part, order[run])

    def told(self, groups: Sequence[int]) -> dict[str, pa.Array]:
        """The labels of slices."""
        return {LABEL: pa.array(self.labels[np.array(groups, np.int64)])}


def _bounded(copies: np.ndarray, most: int) -> Iterator[slice]:
    """Runs of rows whose copies are about `most` in all, or one row."""
    total = np.cumsum(copies)
    start = 0
    while start < copies.size:
        before = int(total[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(total, before + most, side="right")))
        yield slice(start, stop)
        start = stop


def runs_of(slices: np.ndarray) -> Iterator[slice]:
    """Where each slice is among the rows, if there are any."""
    if not slices.size:
        return
    edges = [0, *(np.flatnonzero(np.diff(slices)) + 1).tolist(), slices.size]
    yield from itertools.starmap(slice, itertools.pairwise(edges))


def taken(events: pa.Table, rows: np.ndarray) -> pa.Table:
    """Some rows, without a copy if they are a run."""
    first = int(rows[0])
    if np.array_equal(rows, np.arange(first, first + rows.size)):
        return events.slice(first, rows.size)
    return events.take(pa.array(rows))
