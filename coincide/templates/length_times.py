"""Tables of lengths of intervals beside templates: what one slice has solved serves the next."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

from coincide.sides import LEFT
from coincide.templates.satisfaction_times import SatisfactionTimes

Solve = Callable[[np.ndarray], SatisfactionTimes]


class LengthTimes:
    """The table of the lengths that have come, of one condition and one table of templates.

    Parameters
    ----------
    side : int
        Of the intervals.
    most : int
        Lengths to keep. One more, and only those that are asked for stay.
    solve : callable
        The table of some lengths, an int64 array of ticks.
    """

    def __init__(self, side: int, most: int, solve: Solve) -> None:
        self._axis, self._most, self._solve = side, most, solve
        self._lock = Lock()
        self._lengths = np.empty(0, np.int64)
        self._times: SatisfactionTimes | None = None

    def of(self, lengths: np.ndarray) -> SatisfactionTimes:
        """The table of some lengths, in their order: an int64 array, ticks."""
        if lengths.size > self._most:
            return self._solve(lengths)
        with self._lock:  # who waits finds its lengths solved
            known, times = self._with(lengths)
        order = np.argsort(known, kind="stable")
        return taken(times, order[np.searchsorted(known[order], lengths)], self._axis)

    def _with(self, lengths: np.ndarray) -> tuple[np.ndarray, SatisfactionTimes]:
        new = np.setdiff1d(lengths, self._lengths)
        if self._times is None or self._lengths.size + new.size > self._most:
            self._lengths = np.unique(lengths)
            self._times = self._solve(self._lengths)
        elif new.size:
            times = beside(self._times, self._solve(new), self._axis)
            self._lengths, self._times = np.concatenate([self._lengths, new]), times
        return self._lengths, self._times


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
