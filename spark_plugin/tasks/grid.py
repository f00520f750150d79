"""Slices of time without end: which of them an event goes to, and when each is closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coincide.model.ordering import stable_order
from coincide.model.units import TIME_LIMIT
from spark_plugin.tasks.labels import labels_of_cells
from spark_plugin.tasks.packing import runs_of
from spark_plugin.tasks.samples import Reach, shifted
from spark_plugin.tasks.slice_plan import Places, within_runs

_HALF_MILLISECOND = 2_000_000
"""Half ticks times the nanoseconds of a tick that are a millisecond."""
_NEVER = 1 << 62
TOGETHER = 32
"""Slices with one label, at most: each label costs the state several calls. Checkpoints depend on it."""


class Slices(NamedTuple):
    """Slices that some events of a side go to, from `first` to `last`; None: these wait for nothing."""

    label: int
    first: int | None = None
    last: int | None = None
    due_first: int | None = None  # if this slice is closed, some of the events are late,
    due_last: int | None = None  # and all of them if this one is
    is_own: bool = True  # whether the rows of these events come out here, not under another label
    seen: int = 0  # how far the side has come, microseconds
    is_ahead: bool = False  # whether the events are set aside, too far ahead of the others


@dataclass(frozen=True)
class Grid:
    """A plan of slices of one length, each with buckets of keys; some that follow share a label."""

    length: int  # half ticks
    beyond: int  # half ticks from the end of a slice until nothing more can come to it
    buckets: int
    reach: Reach
    useful: tuple[int, int]  # the largest shapes that a left and a right event of a pair can have
    nanoseconds: int  # a tick has this many
    keeps_right: bool  # whether right events without a match come out
    is_one_stream: bool
    is_lasting: bool = False  # a bucket has one label, which all of its slices share
    delay: int = 0  # half ticks that the watermark is behind
    together: int = 1  # slices with one label, which are the work of one task

    def closes(self, number: int) -> int:
        """When a slice is closed, milliseconds."""
        half_ticks = (number + 1) * self.length + self.beyond
        return min(_NEVER, -(-half_ticks * self.nanoseconds // _HALF_MILLISECOND))

    def last_closed(self, milliseconds: int) -> int:
        """The last slice that is closed at a time."""
        half_ticks = milliseconds * _HALF_MILLISECOND // self.nanoseconds - self.beyond
        return half_ticks // self.length - 1

    def begin_after(self, number: int) -> int:
        """Ticks before which no event begins whose slice is a later one."""
        # Where a clock is ahead of all times, so is the watermark.
        return min(TIME_LIMIT, ((number + 1) * self.length - self.beyond) // 2)

    def first_beyond(self, ticks: int) -> int:
        """The first slice after which events begin that are later than some ticks."""
        return -(-(2 * (ticks + 1) + self.beyond) // self.length) - 1

    @property
    def ticks(self) -> str:
        """How long a slice is, exactly."""
        return f"{self.length // 2}{'.5' * (self.length % 2)}"

    def slices_of(self, places: Places, *, is_left: bool) -> Iterator[tuple[Slices, np.ndarray]]:
        """Where the events of a chunk go to, and which: int64 arrays."""
        idle = places.shapes > self.useful[0 if is_left else 1]
        if places.matchable is not None:
            idle |= ~places.matchable
        if not idle.any():
            yield from self._timed(places, places.by_time, is_left)
            return
        if is_left or self.keeps_right:
            yield Slices(0), np.flatnonzero(idle)
        rows = places.by_time
        yield from self._timed(places, rows[~idle[rows]], is_left)

    def parted(
        self, midpoints: np.ndarray, number: int, until: int, *, is_left: bool
    ) -> tuple[np.ndarray, list[tuple[int, int, np.ndarray]]]:
        """Numbers in a pack that has a slice's rows: the rows up to another, and all later ones by slice.

        A row is in the pieces of all slices in which it is to be met; a piece has its first and last slice.
        """
        first, last = self._runs(midpoints, number // self.together, is_left)
        later = np.flatnonzero(last > until)
        later = later[stable_order(last[later])]
        pieces = [
            (int(first[rows].min()), int(last[rows[0]]), rows)
            for rows in (later[run] for run in runs_of(last[later]))
        ]
        return np.flatnonzero(first <= until), pieces

    def due(self, midpoints: np.ndarray, *, is_left: bool) -> np.ndarray:
        """The slice of each event that makes it late if it is closed: int64 array, shape as theirs."""
        home = midpoints // self.length
        first, _ = self._visited(midpoints, is_left)
        if self.is_one_stream:  # an event is late as left and as right
            return np.minimum(home, shifted(midpoints, -self.reach.last) // self.length)
        if self.keeps_right:
            return np.minimum(home, first)
        return home if is_left else first

    def _timed(
        self, places: Places, rows: np.ndarray, is_left: bool
    ) -> Iterator[tuple[Slices, np.ndarray]]:
        """The same of events that may have matches."""
        if not rows.size:
            return
        midpoints = places.midpoints[rows]
        events, blocks, is_own = self._copies(midpoints, is_left)
        first, last = self._runs(midpoints[events], blocks, is_left)
        due, rows = self.due(midpoints, is_left=is_left)[events], rows[events]
        bucket = places.hashes[rows] % self.buckets if self.buckets > 1 else np.zeros_like(blocks)
        cells = bucket if self.is_lasting else blocks * self.buckets + bucket
        # What the watermark closes once it knows of these events is packed together.
        closing = (int(midpoints.max()) - self.beyond - self.delay) // self.length - 1
        ends = _ranks(last if self.is_lasting else np.maximum(last, closing))
        code = (_ranks(cells) * 2 + is_own) * (ends.max() + 1) + ends
        order = stable_order(code)
        runs = list(runs_of(code[order]))
        starts = [run.start for run in runs]
        extremes = [
            (np.minimum if i % 2 == 0 else np.maximum).reduceat(each[order], starts).tolist()
            for i, each in enumerate((first, last, due, due))
        ]
        labels = labels_of_cells(cells[order[starts]], self.buckets).tolist()
        owns = is_own[order[starts]].tolist()
        for run, label, own, *bounds in zip(runs, labels, owns, *extremes, strict=True):
            yield Slices._make((label, *bounds, own, 0, False)), rows[order[run]]

    def _visited(self, midpoints: np.ndarray, is_left: bool) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last slice in which each event may have matches: int64 arrays."""
        ends = (self.reach.first, self.reach.last)
        first, last = (
            shifted(midpoints, end) // self.length
            for end in (ends if is_left else (-ends[1], -ends[0]))
        )
        return first, last

    def _copies(
        self, midpoints: np.ndarray, is_left: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Events once a block of slices: which, the block, whether it is its own."""
        events, home = np.arange(midpoints.size), midpoints // self.length
        if is_left and not self.keeps_right:
            return events, home // self.together, np.ones(home.size, np.bool_)
        first, last = self._visited(midpoints, is_left)
        begin = first // self.together
        counts = last // self.together - begin + 1
        visitors = np.repeat(events, counts)
        visited = begin[visitors] + within_runs(counts)
        if self.keeps_right:
            away = visited != home[visitors] // self.together
            visitors = np.concatenate([events, visitors[away]])
            visited = np.concatenate([home // self.together, visited[away]])
            is_own = np.arange(visitors.size) < events.size
        else:
            is_own = (visited == begin[visitors]) & (not self.is_one_stream)
        return visitors, visited, is_own

    def _runs(
        self, midpoints: np.ndarray, blocks: np.ndarray | int, is_left: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last slice of a block in which each event is to be met: int64 arrays."""
        if self.keeps_right:  # a block is a slice
            whole = np.broadcast_to(np.asarray(blocks, np.int64), midpoints.shape)
            return whole, whole
        if is_left:
            home = midpoints // self.length
            return home, home
        first, last = self._visited(midpoints, is_left)
        start = blocks * self.together
        return np.maximum(first, start), np.minimum(last, start + self.together - 1)


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value among all that differ: int64 array, shape as theirs."""
    if (values[1:] >= values[:-1]).all():
        return np.cumsum(np.diff(values, prepend=values[0]) != 0)
    return np.unique(values, return_inverse=True)[1]
