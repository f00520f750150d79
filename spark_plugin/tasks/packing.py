"""The worker before the exchange: cuts its rows into slices, and packs what it has of each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from coincide.engine.events.timestamps import SideModel
from coincide.model.options import SideName
from spark_plugin.tasks.blobs import binaries, packed
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.wire import (
    CODED,
    KEY_HASH,
    LABEL,
    SALT,
    TIME,
    UNMATCHED,
    chunks,
    right_shapes,
)

if TYPE_CHECKING:
    from spark_plugin.tasks.slices import SlicePlan


IS_LEFT, EVENTS = "is_left", "events"
"""Columns beside `LABEL` of what crosses the exchange: the side, and the packed events."""
_ROWS, _BYTES = 1 << 20, 64 << 20
"""What is cut at once."""
_COPIES = 4 << 20
"""Of events that stand in memory at once, besides."""
_BATCH_BYTES = 4 << 20
"""Of packs that are handed on at once."""


class Placing(Protocol):
    """A plan that says where events go: `SlicePlan`, `CellPlan`."""

    def copies_of(self, places: Places, *, is_left: bool) -> np.ndarray:
        """In how many slices events are, at most: int64 array, shape (n,)."""

    def slices_of(self, places: Places, *, is_left: bool) -> tuple[np.ndarray, np.ndarray]:
        """The rows in each slice, and the slices: int64 arrays, ascending by slice, then midpoint."""


@dataclass(frozen=True)
class PackTask:
    """Packs rows of one side on the wire."""

    side: SideName
    schema: pa.Schema
    model: SideModel
    plan: Placing
    labels: np.ndarray

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
            binaries(events),
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

        coded, latest = table.column(CODED).to_numpy(), table.column(TIME).to_numpy()
        matchable = None
        if self.side == "right":
            coded = right_shapes(coded)
        elif coded.size and coded.min() == UNMATCHED:
            matchable = coded != UNMATCHED
            coded = np.where(matchable, coded, 0)
        midpoints = 2 * latest - self.model.leans(coded)
        return Places(midpoints, matchable, column(KEY_HASH), column(SALT), coded)


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


_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Places:
    """What says which slices events are in."""

    midpoints: np.ndarray
    matchable: np.ndarray | None = None
    hashes: np.ndarray = field(default_factory=lambda: _NONE)
    salts: np.ndarray = field(default_factory=lambda: _NONE)
    shapes: np.ndarray = field(default_factory=lambda: _NONE)

    def part(self, rows: slice) -> Places:
        """Some of the events, in a run."""
        matchable = None if self.matchable is None else self.matchable[rows]
        columns = (each[rows] for each in (self.hashes, self.salts, self.shapes))
        return Places(self.midpoints[rows], matchable, *columns)

    @property
    def by_time(self) -> np.ndarray:
        """The order by midpoint: int64 array."""
        if (self.midpoints[1:] >= self.midpoints[:-1]).all():
            return np.arange(self.midpoints.size)
        return np.argsort(self.midpoints)


def copies_of_left(places: Places, plan: SlicePlan) -> np.ndarray:
    """In how many slices left events are, at most: int64 array, shape (n,)."""
    return np.full(places.midpoints.size, plan.right_parts.max())


def copies_of_right(places: Places, plan: SlicePlan) -> np.ndarray:
    """In how many slices right events are, at most: int64 array, shape (n,)."""
    first, last = _reached(places.midpoints, places.shapes, plan)
    return np.maximum(last - first + 1, 0) * plan.left_parts.max()


def slices_of_left(places: Places, plan: SlicePlan) -> tuple[np.ndarray, np.ndarray]:
    """The slices of left events, mostly one each."""
    rows = places.by_time
    cells = np.searchsorted(plan.cuts, places.midpoints[rows], side="right")
    cells = _in_buckets(cells, places, plan, rows)
    slices, copies = plan.first_slices[cells], plan.right_parts[cells]
    if plan.is_split:
        slices = slices + places.salts[rows] % plan.left_parts[cells] * copies
    if places.matchable is not None:
        idle, first_parts = ~places.matchable[rows], plan.first_parts
        slices = np.where(idle, first_parts[places.salts[rows] % first_parts.size], slices)
        copies = np.where(idle, 1, copies)
    if plan.deals_right:
        rows, slices = np.repeat(rows, copies), np.repeat(slices, copies) + _within(copies)
    return _grouped(rows, slices, plan)


def slices_of_right(places: Places, plan: SlicePlan) -> tuple[np.ndarray, np.ndarray]:
    """The slices that right events can reach; as `slices_of_left`."""
    rows = places.by_time
    shapes = places.shapes[rows] if plan.reach.steps else places.shapes
    cells, last = _reached(places.midpoints[rows], shapes, plan)
    copies = np.maximum(last - cells + 1, 0)
    if (copies != 1).any():
        rows, cells = np.repeat(rows, copies), np.repeat(cells, copies) + _within(copies)
    cells = _in_buckets(cells, places, plan, rows)
    slices = plan.first_slices[cells]
    if plan.is_split:
        steps, copies = plan.right_parts[cells], plan.left_parts[cells]
        slices = slices + places.salts[rows] % steps
        rows = np.repeat(rows, copies)
        slices = np.repeat(slices, copies) + _within(copies) * np.repeat(steps, copies)
    return _grouped(rows, slices, plan)


def _reached(
    midpoints: np.ndarray, shapes: np.ndarray, plan: SlicePlan
) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last time slice that right events reach, if any."""
    if plan.reach.steps:
        ends = plan.reach.of_right(midpoints, shapes)
        first, last = (np.searchsorted(plan.cuts, end, side="right") for end in ends)
    else:
        first, last = (np.searchsorted(cuts, midpoints, side="right") for cuts in plan.seen_cuts)
    return first, last


def _in_buckets(
    time_slices: np.ndarray, places: Places, plan: SlicePlan, rows: np.ndarray
) -> np.ndarray:
    if plan.buckets == 1:
        return time_slices
    return time_slices * plan.buckets + places.hashes[rows] % plan.buckets


def _within(copies: np.ndarray) -> np.ndarray:
    """The how-many-eth of its run each is, of runs so long."""
    return np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)


def _grouped(
    rows: np.ndarray, slices: np.ndarray, plan: SlicePlan
) -> tuple[np.ndarray, np.ndarray]:
    if (slices[1:] >= slices[:-1]).all():
        return rows, slices
    order = stable_order(slices)
    return rows[order], slices[order]


def stable_order(slices: np.ndarray) -> np.ndarray:
    """The order of events by slice, and as they are within: int64 array."""
    # Of 16 bits NumPy sorts by counting.
    narrow = slices.astype(np.uint16) if slices.max(initial=0) < 1 << 16 else slices
    return np.argsort(narrow, kind="stable")
