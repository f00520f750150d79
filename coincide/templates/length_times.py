"""Tables of lengths of intervals beside templates: what one slice has solved serves the next."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

import numpy as np

from coincide.sides import LEFT
from coincide.templates.satisfaction_times import SatisfactionTimes

Solve = Callable[[np.ndarray], SatisfactionTimes]


class KnownLengths(NamedTuple):
    """Lengths and their table: one object, so that no exception can leave a part of it behind.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
        By number, ticks.
    ordered, numbers : int64 arrays, shape (n,)
        Ascending lengths, and their numbers.
    times : SatisfactionTimes
        By number.
    """

    lengths: np.ndarray
    ordered: np.ndarray
    numbers: np.ndarray
    times: SatisfactionTimes

    @classmethod
    def of(cls, lengths: np.ndarray, times: SatisfactionTimes) -> KnownLengths:
        """Different lengths and their table, both by number."""
        order = np.argsort(lengths, kind="stable")
        return cls(lengths, lengths[order], order, times)

    def has_all(self, lengths: np.ndarray) -> bool:
        """Whether all of some lengths are known."""
        if not self.ordered.size:
            return not lengths.size
        places = np.minimum(np.searchsorted(self.ordered, lengths), self.ordered.size - 1)
        return bool((self.ordered[places] == lengths).all())

    def numbered(self, lengths: np.ndarray) -> np.ndarray:
        """The numbers of lengths that are known."""
        return self.numbers[np.searchsorted(self.ordered, lengths)]


class LengthTimes:
    """The table of the lengths that have come, of one condition and one table of templates.

    Parameters
    ----------
    side : int
        Of the intervals.
    most : int
        Lengths to keep. One more, and only those that are asked for stay.
    most_bytes : int
        Of a table that is kept.
    solve : callable
        The table of some lengths, an int64 array of ticks.
    """

    def __init__(self, side: int, most: int, most_bytes: int, solve: Solve) -> None:
        self._axis, self._most, self._most_bytes, self._solve = side, most, most_bytes, solve
        self._lock = Lock()
        self._known: KnownLengths | None = None

    def of(self, lengths: np.ndarray) -> SatisfactionTimes:
        """The table of some lengths, in their order: an int64 array, ticks."""
        if lengths.size > self._most:
            return self._solve(lengths)
        known = self._known
        if known is None or not known.has_all(lengths):
            with self._lock:  # who waits finds its lengths solved
                known = self._with(lengths)
                self._keep(known, lengths)
        return taken(known.times, known.numbered(lengths), self._axis)

    def _with(self, lengths: np.ndarray) -> KnownLengths:
        known = self._known
        new = lengths if known is None else np.setdiff1d(lengths, known.ordered)
        if known is None or known.lengths.size + new.size > self._most:
            lengths = np.unique(lengths)
            return KnownLengths.of(lengths, self._solve(lengths))
        if not new.size:
            return known
        times = beside(known.times, self._solve(new), self._axis)
        return KnownLengths.of(np.concatenate([known.lengths, new]), times)

    def _keep(self, known: KnownLengths, lengths: np.ndarray) -> None:
        if known.times.nbytes > self._most_bytes:  # gaps count beyond pairs
            only = np.unique(lengths)
            known = KnownLengths.of(only, taken(known.times, known.numbered(only), self._axis))
        if known.times.nbytes <= self._most_bytes:
            self._known = known


def taken(times: SatisfactionTimes, places: np.ndarray, axis: int) -> SatisfactionTimes:
    """Some left (axis 0) or right (axis 1) templates of a table, in the order of their places."""
    if np.array_equal(places, np.arange(times.first.shape[axis])):
        return times
    first, last = (
        np.ascontiguousarray(each.take(places, axis)) for each in (times.first, times.last)
    )
    if not times.gap_starts.size:
        return SatisfactionTimes(first, last, times.gap_starts, times.gap_first, times.gap_last)
    pairs = np.arange(times.first.size).reshape(times.first.shape).take(places, axis).reshape(-1)
    counts = np.diff(times.gap_starts)[pairs]
    starts = np.concatenate([[0], np.cumsum(counts)])
    gaps = np.repeat(times.gap_starts[pairs] - starts[:-1], counts) + np.arange(starts[-1])
    return SatisfactionTimes(first, last, starts, times.gap_first[gaps], times.gap_last[gaps])


def beside(old: SatisfactionTimes, new: SatisfactionTimes, axis: int) -> SatisfactionTimes:
    """Two tables as one, of more left (axis 0) or right (axis 1) templates."""
    first, last, gap_first, gap_last = (
        np.concatenate([getattr(each, name) for each in (old, new)], at)
        for name, at in (("first", axis), ("last", axis), ("gap_first", 0), ("gap_last", 0))
    )
    columns = first.shape[1]
    pairs = np.concatenate(
        [
            _pairs_of_gaps(old, axis, 0, columns),
            _pairs_of_gaps(new, axis, old.first.shape[axis], columns),
        ]
    )
    order = np.argsort(pairs, kind="stable")
    starts = np.zeros(first.size + 1 if pairs.size else 0, np.int64)
    starts[1:] = np.cumsum(np.bincount(pairs, minlength=first.size)) if pairs.size else 0
    return SatisfactionTimes(first, last, starts, gap_first[order], gap_last[order])


def _pairs_of_gaps(times: SatisfactionTimes, axis: int, shift: int, columns: int) -> np.ndarray:
    """The pair of each gap, in a table of so many columns in which this one is moved along an axis."""
    counts = np.diff(times.gap_starts)
    rows, column = np.divmod(
        np.repeat(np.arange(counts.size), counts), max(1, times.first.shape[1])
    )
    return (
        (rows + (shift if axis == LEFT else 0)) * columns + column + (shift if axis != LEFT else 0)
    )
