"""The worker before the exchange: cuts its rows into slices, and packs what it has of each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.engine.events.timestamps import SideModel
from coincide.model.options import SideName
from spark_plugin.tasks.blobs import column_of, packed
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.slices import CellPlan, Places, SlicePlan
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
"""Columns beside `LABEL` of what crosses the exchange: the side, and the packed events."""
_ROWS, _BYTES = 1 << 20, 64 << 20
"""What is cut at once."""
_COPIES = 4 << 20
"""Of events that stand in memory at once, besides."""
_BATCH_BYTES = 4 << 20
"""Of packs that are handed on at once."""


@dataclass(frozen=True)
class PackTask:
    """Packs rows of one side on the wire."""

    side: SideName
    schema: pa.Schema
    model: SideModel
    plan: SlicePlan | CellPlan
    labels: np.ndarray
    as_numbers: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through one partition, a bounded part after the other."""
        batches = begin_task(batches)
        gathered: list[tuple[int, pa.Buffer]] = []
        size = 0
        for number, events in self.packs(batches):
            gathered.append((number, events))
            size += events.size
            if size >= _BATCH_BYTES:
                yield self._batch(gathered)
                gathered, size = [], 0
        if gathered:
            yield self._batch(gathered)

    def packs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Buffer]]:
        """Packs of rows, each with the number of its slice."""
        for table in chunks(batches, _ROWS, _BYTES):
            for number, events in self._slices(table):
                for pack in packed(events):
                    yield number, pack

    def _batch(self, packs: list[tuple[int, pa.Buffer]]) -> pa.RecordBatch:
        numbers, events = zip(*packs, strict=True)
        columns = [
            pa.array(self.labels[list(numbers)]),
            pa.array(np.full(len(packs), self.side == "left")),
            column_of(events, as_numbers=self.as_numbers),
        ]
        return pa.RecordBatch.from_arrays(columns, names=[LABEL, IS_LEFT, EVENTS])

    def _slices(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The slices that the rows are in, and those of each."""
        is_left = self.side == "left"
        table = table.combine_chunks()
        # What a session calls its texts and instants in Arrow has no say in what is joined.
        events, places = table.select(self.schema.names).cast(self.schema), self._places(table)
        copies = self.plan.copies_of(places, is_left=is_left)
        for rows in _bounded(copies, _COPIES):
            order, slices = self.plan.slices_of(places.part(rows), is_left=is_left)
            part = events.slice(rows.start, rows.stop - rows.start)
            for run in _runs(slices):
                yield int(slices[run.start]), _taken(part, order[run])

    def _places(self, table: pa.Table) -> Places:
        def column(name: str) -> np.ndarray:
            has_it = name in table.column_names
            return table.column(name).to_numpy() if has_it else np.empty(0, np.int64)

        shapes, matchable = shapes_of(table.column(CODED), self.side)
        midpoints = 2 * table.column(TIME).to_numpy() - self.model.leans(shapes)
        return Places(midpoints, matchable, column(KEY_HASH), column(SALT), shapes)


def _bounded(copies: np.ndarray, most: int) -> Iterator[slice]:
    """Runs of rows whose copies are about `most` in all, or one row."""
    total = np.cumsum(copies)
    start = 0
    while start < copies.size:
        before = int(total[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(total, before + most, side="right")))
        yield slice(start, stop)
        start = stop


def _runs(slices: np.ndarray) -> Iterator[slice]:
    """Where each slice stands among the rows, if there are any."""
    if not slices.size:
        return
    edges = [0, *(np.flatnonzero(np.diff(slices)) + 1).tolist(), slices.size]
    yield from itertools.starmap(slice, itertools.pairwise(edges))


def _taken(events: pa.Table, rows: np.ndarray) -> pa.Table:
    first = int(rows[0])
    if np.array_equal(rows, np.arange(first, first + rows.size)):
        return events.slice(first, rows.size)
    return events.take(pa.array(rows))
