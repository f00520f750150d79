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
from spark_plugin.tasks.slices import Places, within_runs

_HALF_MILLISECOND = 2_000_000
"""Half ticks times the nanoseconds of a tick that are a millisecond."""
_NEVER = 1 << 62


class Slice(NamedTuple):
    """Where some events of a side go to; None in place of both times: they wait for nothing."""

    label: int
    closes: int | None = None  # when it is closed, milliseconds
    due: int | None = None  # from when on these events are late
    is_own: bool = True  # whether the rows of these events come out here, not in another slice
    seen: int = 0  # how far the side has come, microseconds


@dataclass(frozen=True)
class Grid:
    """A plan of slices of one length, each with buckets of keys."""

    length: int  # half ticks
    beyond: int  # half ticks from the end of a slice until nothing more can come to it
    buckets: int
    reach: Reach
    useful: tuple[int, int]  # the largest shapes that a left and a right event of a pair can have
    nanoseconds: int  # of a tick
    keeps_right: bool  # whether right events without a match come out
    is_one_stream: bool
    is_lasting: bool = False  # a bucket has one label, which all of its slices share

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

    def slices_of(self, places: Places, *, is_left: bool) -> Iterator[tuple[Slice, np.ndarray]]:
        """Where the events of a chunk go to, and which: int64 arrays."""
        idle = places.shapes > self.useful[0 if is_left else 1]
        if places.matchable is not None:
            idle |= ~places.matchable
        if not idle.any():
            yield from self._timed(places, places.by_time, is_left)
            return
        if is_left or self.keeps_right:
            yield Slice(0), np.flatnonzero(idle)
        rows = places.by_time
        yield from self._timed(places, rows[~idle[rows]], is_left)

    def _timed(
        self, places: Places, rows: np.ndarray, is_left: bool
    ) -> Iterator[tuple[Slice, np.ndarray]]:
        """The same of events that may have matches."""
        if not rows.size:
            return
        events, slices, first, is_own = self._copies(places.midpoints[rows], is_left)
        rows = rows[events]
        behind, ranks = slices - first, np.unique(slices, return_inverse=True)[1]
        has_keys = self.buckets > 1
        bucket = places.hashes[rows] % self.buckets if has_keys else np.zeros_like(slices)
        code = ((ranks * self.buckets + bucket) * 2 + is_own) * (behind.max() + 1) + behind
        order = stable_order(code)
        runs = list(runs_of(code[order]))
        heads = order[[run.start for run in runs]]
        cells = bucket[heads]
        if not self.is_lasting:
            cells = slices[heads] * self.buckets + cells
        labels = labels_of_cells(cells, self.buckets)
        for run, head, label in zip(runs, heads.tolist(), labels.tolist(), strict=True):
            number = int(slices[head])
            due = self.closes(number - int(behind[head]))
            yield Slice(label, self.closes(number), due, bool(is_own[head])), rows[order[run]]

    def _copies(
        self, midpoints: np.ndarray, is_left: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Events once for each of their slices: which, the slice, the first one, whether it is its own."""
        events, home = np.arange(midpoints.size), midpoints // self.length
        ends = (self.reach.first, self.reach.last)
        first, last = (
            shifted(midpoints, end) // self.length
            for end in (ends if is_left else (-ends[1], -ends[0]))
        )
        if is_left and not self.keeps_right:
            earliest = self._earliest_of_both(midpoints, home) if self.is_one_stream else home
            return events, home, earliest, np.ones(home.size, np.bool_)
        counts = last - first + 1
        visitors = np.repeat(events, counts)
        visited = np.repeat(first, counts) + within_runs(counts)
        if not self.keeps_right:
            earliest = self._earliest_of_both(midpoints, home) if self.is_one_stream else first
            is_own = (visited == first[visitors]) & (not self.is_one_stream)
            return visitors, visited, earliest[visitors], is_own
        away = visited != home[visitors]
        visitors, visited = visitors[away], visited[away]
        both = np.concatenate([events, visitors])
        is_own = np.arange(both.size) < events.size
        return both, np.concatenate([home, visited]), np.minimum(home, first)[both], is_own

    def _earliest_of_both(self, midpoints: np.ndarray, home: np.ndarray) -> np.ndarray:
        """Of one stream the first slice of each event as left and as right: it is late as both."""
        return np.minimum(home, shifted(midpoints, -self.reach.last) // self.length)
