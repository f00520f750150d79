"""Slices of row groups: each left row is in one slice, each slice reads the right rows it can reach.

Unlike slices of an exchange these are cut between rows of the files, not between times: so no row is
in two slices, whatever the order, and disorder costs reading, never correctness. A slice learns from
its left rows when they are, and so which right row groups matter.

The plan is a few arrays, with one entry a row group or a slice, and goes whole to every task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from coincide.engine.events.sides import Side
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.files.footers import ONLY_NULLS, Footer, Range, Stored, range_ticks
from coincide.model.condition import Window
from coincide.model.errors import several
from coincide.model.remembered import remembered
from coincide.model.units import TIME_LIMIT

_ENDLESS = 2 * TIME_LIMIT
NEVER = 2**62
"""First time of what has no events; the last one is its negative. Beyond every time and window."""


@dataclass(frozen=True, eq=False)
class Spans:
    """No event begins before `first` or ends after `last`: ticks, int64 arrays of one shape."""

    first: np.ndarray
    last: np.ndarray

    def take(self, index: np.ndarray) -> Spans:
        """Some of them."""
        return Spans(self.first[index], self.last[index])

    @property
    def are_timed(self) -> np.ndarray:
        """Whether there are events: bool array."""
        return self.first < NEVER


@dataclass(frozen=True, eq=False)
class Places:
    """Where row groups are, and their rows."""

    file: np.ndarray
    index: np.ndarray
    rows: np.ndarray

    def __len__(self) -> int:
        return self.rows.size

    def take(self, index: np.ndarray | slice) -> Places:
        """Some of them."""
        return Places(self.file[index], self.index[index], self.rows[index])


def places_of(footers: Sequence[Footer]) -> Places:
    """The places of all row groups that have rows, in order of files."""
    counts = [footer.rows.size for footer in footers]
    return Places(
        np.repeat(np.arange(len(footers), dtype=np.int32), counts),
        _together([footer.index for footer in footers]).astype(np.int32),
        _together([footer.rows for footer in footers]),
    )


@dataclass(frozen=True, eq=False)
class RowGroups:
    """All row groups of a side that have rows."""

    places: Places
    spans: Spans
    likely: Spans
    is_known: np.ndarray
    is_open: np.ndarray

    @remembered
    def in_time(self) -> np.ndarray:
        """Their order in time, those without events last: int64 array."""
        return np.lexsort((self.likely.last, self.likely.first))


def row_groups(
    footers: Sequence[Footer], times: TimestampColumns, longest: int = _ENDLESS
) -> RowGroups:
    """All row groups of a side."""
    places = places_of(footers)
    lower, upper = (_Column.of(footers, scale) for scale in times.scales)
    assert times.beyond is not None  # such times are not planned with
    return _timed(places, lower, upper, times.beyond, longest)


@dataclass(frozen=True, eq=False)
class _Column:
    """A time column in all row groups: its ends in ticks, and what is known. Arrays, shape (groups,)."""

    low: np.ndarray
    high: np.ndarray
    is_known: np.ndarray
    is_null: np.ndarray

    @classmethod
    def of(cls, footers: Sequence[Footer], scale: TimeScale) -> _Column:
        found = [footer.ranges[scale.column.name] for footer in footers]
        # Mostly all files are stored alike, and are one run.
        runs = [
            (stored if _fits(stored, scale) else None, [one for _, told in run for one in told])
            for stored, run in groupby(found, key=lambda told: told[0])
        ]
        ends = [_tick_ends(stored, ranges, scale) for stored, ranges in runs]
        told = [(stored is not None, one) for stored, ranges in runs for one in ranges]
        return cls(
            _together([low for low, _ in ends]),
            _together([high for _, high in ends]),
            np.array([fits and one is not None for fits, one in told], bool),
            np.array([fits and one is ONLY_NULLS for fits, one in told], bool),
        )


def _fits(stored: Stored | None, scale: TimeScale) -> bool:
    """Whether what is stored is what the column is read as."""
    if (
        stored is None
        or stored.family == "text"
        or (stored.family == "float") != (scale.column.family == "float")
    ):
        return False
    # Parquet has no durations: Arrow stores their numbers.
    is_number = scale.column.nanoseconds is None or scale.column.family == "duration"
    return (stored.nanoseconds is None) == is_number


def _tick_ends(
    stored: Stored | None, found: Sequence[Range | None], scale: TimeScale
) -> tuple[np.ndarray, np.ndarray]:
    if stored is not None:
        return range_ticks(stored, found, scale)
    return np.full(len(found), -TIME_LIMIT), np.full(len(found), TIME_LIMIT)


def _timed(
    places: Places, lower: _Column, upper: _Column, beyond: tuple[int, int], longest: int
) -> RowGroups:
    # Where one end of every interval is null or out of range, nothing can match.
    none = lower.is_null | upper.is_null | (lower.low >= TIME_LIMIT) | (upper.high <= -TIME_LIMIT)
    # A single long interval ends far from where all others do, but begins where they begin.
    first, last = upper.low - longest, lower.high + longest
    early, late = lower.low <= -TIME_LIMIT, upper.high >= TIME_LIMIT
    return RowGroups(
        places,
        _spans(
            none, np.maximum(lower.low, first) + beyond[0], np.minimum(upper.high, last) + beyond[1]
        ),
        _spans(none, *_likely(lower, upper, beyond, (first, last))),
        (lower.is_known & upper.is_known) | lower.is_null | upper.is_null,
        (early | late) & ~none,
    )


def _likely(
    lower: _Column,
    upper: _Column,
    beyond: tuple[int, int],
    farthest: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Ends; one out of range gives way to the next that the statistics have."""
    limit = TIME_LIMIT
    first = np.select([lower.low > -limit, upper.low > -limit], [lower.low, upper.low], lower.high)
    last = np.select([upper.high < limit, lower.high < limit], [upper.high, lower.high], first)
    first, last = np.maximum(first, farthest[0]), np.minimum(last, farthest[1])
    return np.minimum(first, last) + beyond[0], last + beyond[1]


def _spans(none: np.ndarray, first: np.ndarray, last: np.ndarray) -> Spans:
    none = none | (first > last)
    return Spans(np.where(none, NEVER, first), np.where(none, -NEVER, last))


def _together(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int64), *arrays])


_SMALLEST_SLICE_ROWS = 100_000
"""Below this many rows a task of its own does not pay."""
_SNAP = 0.25
"""A cut moves to the end of a row group that is so near, in parts of a slice: groups are read whole."""
_LEAST_POINTS = 16
_POINTS = 1 << 16
"""Points in time that stand for the rows of right row groups: this many each, and in all."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows start ... stop of each of some row groups: int64 arrays, shape as that of `places`."""

    places: Places
    start: np.ndarray
    stop: np.ndarray

    @classmethod
    def whole(cls, places: Places) -> Parts:
        """All their rows."""
        return cls(places, np.zeros(len(places), np.int64), places.rows)

    def take(self, index: np.ndarray) -> Parts:
        """Some of them."""
        return Parts(self.places.take(index), self.start[index], self.stop[index])

    def in_runs(self, rows: int) -> Iterator[Parts]:
        """Runs of them, each of row groups of about as many rows, or of one."""
        ends = np.cumsum(self.places.rows)
        edges = np.flatnonzero(np.diff(ends // rows)) + 1
        return (self.take(run) for run in np.split(np.arange(ends.size), edges) if run.size)

    @property
    def are_whole(self) -> bool:
        """Whether no row is left out."""
        return bool(np.all(self.stop - self.start == self.places.rows))


@dataclass(frozen=True, eq=False)
class DirectSlice:
    """What one task joins."""

    left: Parts
    accounts_for: np.ndarray


@dataclass(frozen=True, eq=False)
class Slices(Sequence[DirectSlice]):
    """All slices."""

    left: Places
    cuts: np.ndarray
    owned: np.ndarray

    def __len__(self) -> int:
        return self.cuts.size - 1

    def __getitem__(self, number: int) -> DirectSlice:  # type: ignore[override]
        """What a slice joins."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        start, stop = self.cuts[number : number + 2].tolist()
        ends = _ends(self.left)
        first, last = (int(edge[0]) for edge in _touched(ends, self.cuts[number : number + 2]))
        places, begins = self.left.take(slice(first, last)), ends[first:last]
        parts = Parts(places, np.maximum(start - begins, 0), np.minimum(stop - begins, places.rows))
        return DirectSlice(parts, np.arange(*self.owned[number : number + 2]))


@dataclass(frozen=True, eq=False)
class DirectPlan:
    """What all tasks do."""

    slices: Slices
    right: Places
    spans: Spans
    reads: float

    def describe(self) -> str:
        """The plan in one line."""
        return f"{several(len(self.slices), 'slice')} of row groups, each row read {self.reads:.2f} times"


def direct_plan(
    left: RowGroups,
    right: RowGroups,
    window: Window,
    *,
    parallelism: int,
    slices: int | None,
    slice_rows: int,
) -> DirectPlan:
    """Cut the left row groups into slices of about equal work, in order of time."""
    (plan,) = direct_plans(
        left, [(right, window)], parallelism=parallelism, slices=slices, slice_rows=slice_rows
    )
    return plan


def direct_plans(
    left: RowGroups,
    rights: Sequence[tuple[RowGroups, Window]],
    *,
    parallelism: int,
    slices: int | None,
    slice_rows: int,
) -> list[DirectPlan]:
    """The same slices for several right streams, by the window of each; a plan for each of these."""
    # Time and memory grow with the number of row groups and of slices, not with their product.
    rows = int(left.places.rows.sum() + sum(right.places.rows.sum() for right, _ in rights))
    places, spans = left.places.take(left.in_time), left.likely.take(left.in_time)
    work = places.rows + sum(_rows_near(spans, *each) for each in rights)
    cuts = _cut(places, work, slices or _slices_for(rows, parallelism, slice_rows))
    first, last = _touched(_ends(places), cuts)
    spans, ends = _spans_of(spans, first, last), _ends(places)
    decoded, found = int((ends[last] - ends[first]).sum()), []
    for right, window in rights:
        owners, readers = _readers(spans, right.spans, window)
        order = np.argsort(owners, kind="stable")
        owned = np.searchsorted(owners[order], np.arange(cuts.size))
        decoded += int(np.maximum(readers, 1) @ right.places.rows)
        found.append(
            (Slices(places, cuts, owned), right.places.take(order), right.spans.take(order))
        )
    return [DirectPlan(*each, decoded / max(rows, 1)) for each in found]


def needed_groups(spans: Spans, left: Side, window: Window) -> np.ndarray:
    """Which right row groups can hold matches of some of these left events, by their very times."""
    # A pair of positive probability has lo <= T_right - T_left <= hi for some times in its
    # intervals.
    low, high = left.min_time, left.max_time
    if left.matchable is not None:
        low, high = low[left.matchable], high[left.matchable]
    if not low.size:
        return np.empty(0, np.int64)
    order = np.argsort(low, kind="stable")
    # The latest end decides, among events that begin early enough for a row group.
    latest = np.maximum.accumulate(high[order])
    begun = np.searchsorted(low[order], spans.last - window.lo, side="right")
    meets = (begun > 0) & (latest[begun - 1] + window.hi >= spans.first)
    return np.flatnonzero(meets & spans.are_timed)


def _slices_for(rows: int, parallelism: int, slice_rows: int) -> int:
    slices = max(1, -(-rows // slice_rows), min(parallelism, rows // _SMALLEST_SLICE_ROWS))
    # Whole waves of tasks, so that no core idles in the last one.
    return -(-slices // parallelism) * parallelism if slices > parallelism else slices


def _ends(places: Places) -> np.ndarray:
    """First row of each row group among all, and at the end their number."""
    return np.concatenate([[0], np.cumsum(places.rows)]).astype(np.int64)


def _touched(ends: np.ndarray, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First row group of which a slice has rows, and the one after the last: arrays over the slices."""
    first = np.searchsorted(ends, cuts[:-1], side="right") - 1
    return first, np.searchsorted(ends, cuts[1:], side="left")


def _cut(places: Places, work: np.ndarray, slices: int) -> np.ndarray:
    """Where runs of rows of about equal work begin, cut near; one empty run if there are no rows."""
    ends = _ends(places)
    done = np.concatenate([[0.0], np.cumsum(work)])
    total = int(ends[-1])
    slices = max(1, min(slices, total))
    even = done[-1] * np.arange(1, slices) / slices
    above = np.clip(np.searchsorted(done, even), 1, max(done.size - 1, 1))
    below, above = (done[np.minimum(place, done.size - 1)] for place in (above - 1, above))
    nearest = np.where(even - below <= above - even, below, above)
    near = np.abs(nearest - even) <= _SNAP * done[-1] / slices
    rows = np.interp(np.where(near, nearest, even), done, ends).astype(np.int64)
    return np.concatenate([[0], np.unique(rows[(rows > 0) & (rows < total)]), [total]])


def _spans_of(spans: Spans, first: np.ndarray, last: np.ndarray) -> Spans:
    """When the left row groups of each slice are: those from `first` up to `last`."""
    edges = np.column_stack([first, last]).ravel()
    # One more, since a slice may end with the last row group; and no slice may have none.
    earliest = np.minimum.reduceat(np.append(spans.first, NEVER), edges)[::2]
    latest = np.maximum.reduceat(np.append(spans.last, -NEVER), edges)[::2]
    return Spans(earliest, latest)


def _readers(slices: Spans, right: Spans, window: Window) -> tuple[np.ndarray, np.ndarray]:
    """A slice that accounts for each right row group, and how many read it, by the footers."""
    timed = slices.take(np.flatnonzero(slices.are_timed))
    begin, end = timed.first + window.lo, timed.last + window.hi
    # Slices are in order of their first times, the timed ones before the others.
    first = np.searchsorted(np.maximum.accumulate(end), right.first)
    begun = np.searchsorted(begin, right.last, side="right")
    readers = np.maximum(begun - np.searchsorted(np.sort(end), right.first), 0)
    place = np.arange(right.first.size)
    # Those that read a row group take turns in accounting for it; the others' are dealt out.
    turn = first + place % np.maximum(readers, 1)
    return np.where(readers > 0, turn, place % slices.first.size), readers


def _rows_near(left: Spans, right: RowGroups, window: Window) -> np.ndarray:
    """Right rows that the events of each left row group can reach, if rows are spread evenly."""
    timed = np.flatnonzero(right.likely.are_timed)
    spans, rows = right.likely.take(timed), right.places.rows[timed]
    count = max(_LEAST_POINTS, _POINTS // max(timed.size, 1))
    lengths = (spans.last - spans.first).astype(np.float64)
    parts = (np.arange(count) + 0.5) / count
    points = (spans.first[:, None] + (lengths[:, None] * parts).astype(np.int64)).ravel()
    order = np.argsort(points, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(np.repeat(rows / count, count)[order])])
    points = points[order]
    above = np.searchsorted(points, left.last + window.hi, side="right")
    below = np.searchsorted(points, left.first + window.lo, side="left")
    return np.where(left.are_timed, np.maximum(before[above] - before[below], 0.0), 0.0)
