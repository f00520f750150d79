"""The row groups of a side as arrays: where they are, and when their events are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.files.footers import ONLY_NULLS, Footer, Range, Stored, range_ticks
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
        """Of some."""
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
    """Of all row groups that have rows, in order of files."""
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

    @cached_property
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
        ends = [_ends(stored, ranges, scale) for stored, ranges in runs]
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


def _ends(
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
    """Ends, of which one out of range gives way to the next that the statistics tell of."""
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
