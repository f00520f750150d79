"""A plan of slices: how the time axis is cut, and which slices an event goes to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from coincide.model.errors import several
from coincide.model.ordering import stable_order
from coincide.model.remembered import remembered
from spark_plugin.tasks.samples import Reach, shifted

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


@dataclass(frozen=True, eq=False)
class SlicePlan:
    """Which slice an event goes to."""

    cuts: np.ndarray
    buckets: int
    left_parts: np.ndarray
    reach: Reach
    replication: float
    fill: float = 0.0
    apart: int | None = None
    way: ClassVar[str] = "exchange"

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.left_parts.size

    @remembered
    def first_slices(self) -> np.ndarray:
        """First slice of each cell: int64 array, shape (T * B,)."""
        return np.cumsum(self.left_parts) - self.left_parts

    @property
    def count(self) -> int:
        """Number of slices."""
        return int(self.left_parts.sum())

    @property
    def needs_keys(self) -> bool:
        """Whether the hash of an event's keys has a say."""
        return self.buckets > 1

    @property
    def is_split(self) -> bool:
        """Whether some cell is shared by several slices."""
        return bool((self.left_parts > 1).any())

    @property
    def seen_cuts(self) -> tuple[np.ndarray, np.ndarray]:
        """The cuts as right events see them, from and up to which they reach: shape (T - 1,) each."""
        # The cuts move rather than midpoints: no sum can overflow.
        return shifted(self.cuts, self.reach.last), shifted(self.cuts, self.reach.first)

    def copies_of(self, places: Places, *, is_left: bool) -> np.ndarray:
        """In how many slices matchable events are: int64 array, shape (n,)."""
        if is_left:
            return np.ones(places.midpoints.size, np.int64)
        first, last = self._reached(places.midpoints, places.shapes)
        end = np.maximum(last + 1, first)
        if not self.is_split:
            return end - first
        bucket = places.hashes % self.buckets if self.needs_keys else np.int64(0)
        return self._parts_before[end, bucket] - self._parts_before[first, bucket]

    @remembered
    def _parts_before(self) -> np.ndarray:
        """Parts of the cells of each bucket before each time slice: int64 array, shape (T + 1, B)."""
        parts = np.cumsum(self.left_parts.reshape(-1, self.buckets), axis=0)
        return np.concatenate([np.zeros((1, self.buckets), np.int64), parts])

    def slices_of(self, places: Places, *, is_left: bool) -> tuple[np.ndarray, np.ndarray]:
        """The rows in each slice, and the slices: int64 arrays, ascending by slice, then midpoint."""
        rows, slices = self._of_left(places) if is_left else self._of_right(places)
        if (slices[1:] >= slices[:-1]).all():
            return rows, slices
        order = stable_order(slices)
        return rows[order], slices[order]

    def _of_left(self, places: Places) -> tuple[np.ndarray, np.ndarray]:
        """The slice of each left event."""
        rows = places.by_time
        cells = np.searchsorted(self.cuts, places.midpoints[rows], side="right")
        cells = self._in_buckets(cells, places, rows)
        slices = self.first_slices[cells]
        if self.is_split:
            slices = slices + places.salts[rows] % self.left_parts[cells]
        if places.matchable is not None:
            slices = np.where(places.matchable[rows], slices, places.salts[rows] % self.count)
        return rows, slices

    def _of_right(self, places: Places) -> tuple[np.ndarray, np.ndarray]:
        """The slices that right events can reach."""
        rows = places.by_time
        shapes = places.shapes[rows] if self.reach.steps else places.shapes
        cells, last = self._reached(places.midpoints[rows], shapes)
        copies = np.maximum(last - cells + 1, 0)
        if (copies != 1).any():
            rows, cells = np.repeat(rows, copies), np.repeat(cells, copies) + within_runs(copies)
        cells = self._in_buckets(cells, places, rows)
        slices = self.first_slices[cells]
        if self.is_split:
            copies = self.left_parts[cells]
            rows, slices = np.repeat(rows, copies), np.repeat(slices, copies) + within_runs(copies)
        return rows, slices

    def _reached(self, midpoints: np.ndarray, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last time slice that right events reach, if any."""
        if self.reach.steps:
            cuts, ends = (self.cuts, self.cuts), self.reach.of_right(midpoints, shapes)
        else:
            cuts, ends = self.seen_cuts, (midpoints, midpoints)
        first, last = (
            np.searchsorted(cut, end, side="right") for cut, end in zip(cuts, ends, strict=True)
        )
        return first, last

    def _in_buckets(self, time_slices: np.ndarray, places: Places, rows: np.ndarray) -> np.ndarray:
        if self.buckets == 1:
            return time_slices
        return time_slices * self.buckets + places.hashes[rows] % self.buckets

    def slices_between(
        self, first: np.ndarray, last: np.ndarray, *, is_left: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last slice of events with midpoints from `first` to `last`: int64 arrays."""
        if not is_left:
            steps = [(step.first, step.last) for step in self.reach.own]
            moves = np.array([(self.reach.first, self.reach.last), *steps])
            first = shifted(first, -int(moves.max()))
            last = shifted(last, -int(moves.min()))
        times = (np.searchsorted(self.cuts, ends, side="right") for ends in (first, last))
        begin, end = (cell * self.buckets for cell in times)
        end = end + self.buckets - 1
        return self.first_slices[begin], self.first_slices[end] + self.left_parts[end] - 1

    def describe(self) -> str:
        """The plan in one line, for the log."""
        parts = [several(self.count, "slice"), f"{self.cuts.size + 1} in time"]
        if self.buckets > 1:
            parts.append(several(self.buckets, "key bucket"))
        if self.is_split:
            heavy = int((self.left_parts > 1).sum())
            parts.append(f"{several(heavy, 'heavy cell')} split")
        told = f"{', '.join(parts)}, {self.replication:.2f} copies of a right event"
        return told if self.apart is None else f"{told}, left ones over {self.apart:,} ticks apart"


def within_runs(copies: np.ndarray) -> np.ndarray:
    """The position of each in its run, given the lengths of runs."""
    return np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)


_REACHES, _REACHES_OF_KEYS = 8, 16
"""A cell is at least this many times as long as pairs reach: one right event in as many is in two.

A cell has fewer events where keys do not share a cell out, so that a short day has cells enough.
"""
_FINE_REACHES = 2
_LONGEST = 62
"""Binary logarithm of the longest cell, half ticks: two of them are all of time."""
_FARTHEST = 1 << _LONGEST
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class CellPlan:
    """Which slices an event goes to."""

    count: int
    reach: Reach
    needs_keys: bool
    level: int = 0
    span: int | None = None  # how far the widest of several streams reaches, which share the cells
    way: ClassVar[str] = "exchange"
    is_split: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """Binary logarithm of a cell, half ticks."""
        span = max(1, self.reach.last - self.reach.first if self.span is None else self.span)
        reaches = _REACHES_OF_KEYS if self.needs_keys else _REACHES
        return min(((_FINE_REACHES if self.level else reaches) * span - 1).bit_length(), _LONGEST)

    @property
    def replication(self) -> float:
        """Expected copies per right event, at most."""
        return 1.0 + min(1.0, max(0, self.reach.last - self.reach.first) / 2**self.width)

    def describe(self) -> str:
        """The plan in one line, for the log."""
        return f"{several(self.count, 'slice')} of cells in time, no planning job"

    def finer(self, count: int) -> CellPlan:
        """A plan that divides the events of a slice again."""
        return replace(self, count=count, needs_keys=False, level=self.level + 1)

    def copies_of(self, places: Places, *, is_left: bool) -> np.ndarray:
        """In how many slices events are, at most: int64 array, shape (n,)."""
        return np.full(places.midpoints.size, 1 if is_left else 2)

    def slices_of(self, places: Places, *, is_left: bool) -> tuple[np.ndarray, np.ndarray]:
        """The rows in each slice, and the slices, as in `SlicePlan`."""
        order = places.by_time
        cells = self._cells(places, order, is_left)
        keys = [places.hashes[order]] if self.needs_keys else []
        starts = _starts(*cells, *keys)
        first, last = (self._slices(*(part[starts] for part in (each, *keys))) for each in cells)
        runs, slices = _by_slice(first, last)
        lengths = np.diff(starts, append=order.size)[runs]
        begins = np.cumsum(lengths) - lengths
        rows = np.repeat(starts[runs] - begins, lengths) + np.arange(lengths.sum())
        return order[rows], np.repeat(slices, lengths)

    def _cells(
        self, places: Places, order: np.ndarray, is_left: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last cell that each event is in, or reaches; at most one apart."""
        midpoints = places.midpoints[order]
        if not is_left:
            # Beyond the ends of time there is no left event.
            first, last = (
                np.clip(shifted(midpoints, -end), -_FARTHEST, _FARTHEST - 1) >> self.width
                for end in (self.reach.last, self.reach.first)
            )
            return first, last
        cells = midpoints >> self.width
        if places.matchable is not None:  # what has no match may be anywhere
            cells = np.where(places.matchable[order], cells, places.salts[order])
        return cells, cells

    def _slices(self, cells: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
        """The slice of each cell, or of a key in it: int64 array, shape as theirs."""
        blocks = cells // self.count
        bits = blocks.view(np.uint64) * np.uint64(_ODD[0]) + np.uint64(_ODD[self.level % 3])
        if keys is not None:
            bits += keys.view(np.uint64)
        for odd in _ODD[1:]:
            bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(odd)
        # Cells that follow each other are one in each slice, beginning with any: few are even, too.
        turn = ((bits >> np.uint64(32)) * np.uint64(self.count)) >> np.uint64(32)
        return (cells - blocks * self.count + turn.view(np.int64)) % self.count


def _starts(*columns: np.ndarray) -> np.ndarray:
    """Where rows differ from the one before, the first row among them: int64 array."""
    differs = np.zeros(columns[0].size - 1, bool)
    for column in columns:
        differs |= column[1:] != column[:-1]
    return np.concatenate([[0], np.flatnonzero(differs) + 1])


def _by_slice(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs of events by slice, in their order within, and those of two slices in both."""
    copies = 1 + (first != last)
    runs = np.repeat(np.arange(first.size), copies)
    slices = first[runs]
    slices[np.cumsum(copies) - 1] = last
    by_slice = stable_order(slices)
    return runs[by_slice], slices[by_slice]
