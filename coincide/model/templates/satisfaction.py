"""The decision of a timing condition on templates: a table of integers, one entry per pair of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from threading import Lock
from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.condition import Window
from coincide.model.errors import MemoryBudgetError
from coincide.model.probability import DECISION_SLACK
from coincide.model.sides import LEFT, RIGHT
from coincide.model.templates.narrow import (
    allowance,
    exact_of,
    least_beyond_exactly,
    narrow_rows,
    with_undecided,
)
from coincide.model.templates.tails import (
    UNIT,
    KeptResults,
    SatisfactionTimes,
    relative_error,
    tail,
)
from coincide.model.templates.template import TemplateTable
from coincide.model.threads import cores
from coincide.model.units import TIME_LIMIT

MOST_PAIRS = 1 << 26
"""Most pairs of templates: 1 GiB of table, and as much again while it is solved."""

_MOST_KEPT = 1 << 21
"""Pairs of templates of a table that may be kept."""

_MOST_BYTES = 1 << 25
"""Most bytes of a table that is kept: `_MOST_KEPT` pairs without a gap."""

_MOST_QUANTILE_BYTES = 1 << 23
"""Most bytes of the quantiles that are kept for one pair of tables: 724 templates a side."""

_FARTHEST = 2 * (TIME_LIMIT - 1)
"""Ticks from the earliest to the latest time that an event may have."""

_FEW_PAIRS = 4096
"""For so few a second thread is not worth its start."""

_BLOCKS_PER_THREAD = 4


def satisfaction_times(
    left: TemplateTable, right: TemplateTable, window: Window
) -> SatisfactionTimes:
    """The table of a timing condition. The last ones are kept, for the next task of a process."""
    # Another window costs a subtraction per pair, as long as it is not narrow and the tables are
    # the last ones and not large; another confidence solves the pairs anew.
    if _is_kept(left, right):
        return _kept_times(left, right, window)
    if bool(left.ids) == bool(right.ids):
        return solved_times(left, right, window)
    if left.ids:
        return _length_times(left, RIGHT, window).of(right.lengths)
    return _length_times(right, LEFT, window).of(left.lengths)


def forget() -> None:
    """Let go of the tables that are kept."""
    _kept_times.clear()
    _kept_quantiles.clear()
    _length_times.cache_clear()


def _is_kept(left: TemplateTable, right: TemplateTable) -> bool:
    """Whether a table may be asked for again, and is not large: not those of lengths, without names."""
    return bool(left.ids and right.ids) and len(left) * len(right) <= _MOST_KEPT


@lru_cache(maxsize=4)
def _length_times(table: TemplateTable, side: int, window: Window) -> LengthTimes:
    """The lengths of intervals on a side that have met templates on the other one."""

    def solve(lengths: np.ndarray) -> SatisfactionTimes:
        own = TemplateTable.of_lengths(lengths)
        return solved_times(*(own, table) if side == LEFT else (table, own), window)

    return LengthTimes(side, _MOST_KEPT // len(table), _MOST_BYTES, solve)


def solved_times(left: TemplateTable, right: TemplateTable, window: Window) -> SatisfactionTimes:
    """As `satisfaction_times`, but nothing is kept."""
    quantiles = _kept_quantiles if _is_kept(left, right) else tail_quantiles
    above, below = quantiles(left, right, window.confidence)
    # No event begins or ends beyond the limit of times. So no sum of two of these, or of one and an edge,
    # leaves 64 bits.
    first = np.maximum(window.lo + below, right.lengths - _FARTHEST)
    last = np.minimum(window.hi - above, _FARTHEST - left.lengths[:, np.newaxis])
    gaps = _narrow(left, right, window, first, last)
    none = first > last
    first[none], last[none] = 1, 0
    if not len(gaps):
        nothing = np.empty(0, np.int64)
        return SatisfactionTimes(first, last, nothing, nothing, nothing)
    gaps = gaps[np.lexsort((gaps[:, 1], gaps[:, 0]))]
    counts = np.bincount(gaps[:, 0], minlength=first.size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return SatisfactionTimes(first, last, starts, gaps[:, 1].copy(), gaps[:, 2].copy())


def tail_quantiles(
    left: TemplateTable, right: TemplateTable, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Where the tails of the difference of each pair fall to what a confidence allows outside."""
    if len(left) * len(right) > MOST_PAIRS:
        raise MemoryBudgetError(
            f"{len(left):,} times {len(right):,} templates make a table of more than"
            f" {MOST_PAIRS:,} entries. Join fewer templates at once, or round lengths of"
            " intervals: each length counts as a template."
        )
    below = _least_beyond(right, left, confidence)
    return _least_beyond(left, right, confidence), np.ascontiguousarray(below.T)


_kept_times = KeptResults(solved_times, 4, lambda times: times.nbytes <= _MOST_BYTES)
_kept_quantiles = KeptResults(
    tail_quantiles, 1, lambda both: sum(each.nbytes for each in both) <= _MOST_QUANTILE_BYTES
)


def _least_beyond(x: TemplateTable, y: TemplateTable, confidence: float) -> np.ndarray:
    least, unsure = (np.empty((len(x), len(y)), np.int64) for _ in range(2))
    bound = 1.0 - confidence + DECISION_SLACK
    deviates = NormalDist().inv_cdf(min(max(1.0 - bound, 1e-9), 1.0 - 1e-9))
    (x_means, x_deviations), (y_means, y_deviations) = x.moments, y.moments
    guess = Guess(x_means, x_deviations**2, y_means, y_deviations**2, deviates)
    given = x.buckets, y.buckets, bound, guess
    _in_blocks(len(x), least.size, lambda a, b: least_beyond(*given, a, b, least, unsure))
    exactly = allowance(confidence)
    for i, j in np.argwhere(unsure).tolist():
        high = int(least[i, j])
        low = high - 1 - int(unsure[i, j])
        least[i, j] = least_beyond_exactly(exact_of(x, i), exact_of(y, j), exactly, low, high)
    return least


def _narrow(
    left: TemplateTable, right: TemplateTable, window: Window, first: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Bring the pairs into order for which the window is narrow; their gaps: int64 array, shape (G, 3)."""
    none = np.empty((0, 3), np.int64)
    longest = [int(table.lengths.max(initial=0)) for table in (left, right)]
    if window.width >= sum(longest):
        return none
    bound = 1.0 - window.confidence + DECISION_SLACK
    given = left.buckets, right.buckets, window.lo, window.hi, bound
    parts = _in_blocks(len(left), first.size, lambda a, b: narrow_rows(*given, a, b, first, last))
    gaps = np.concatenate([none, *(rows for rows, _ in parts)])
    pieces = np.concatenate([rest for _, rest in parts])
    if not len(pieces):
        return gaps
    exact = []
    # A pair's follow one another.
    places, starts = np.unique(pieces[:, 0], return_index=True)
    for place, own in zip(places.tolist(), np.split(pieces[:, 1:], starts[1:]), strict=True):
        i, j = divmod(place, len(right))
        found = with_undecided(exact_of(left, i), exact_of(right, j), window, own.tolist())
        first[i, j], last[i, j] = (found[0][0], found[-1][1]) if found else (1, 0)
        exact += [(place, a[1] + 1, b[0] - 1) for a, b in pairwise(found)]
    return np.concatenate([gaps, np.array(exact, np.int64).reshape(-1, 3)])


def _in_blocks(rows: int, pairs: int, run: Callable[[int, int], object]) -> list:
    """Run a function on blocks of rows, on all cores where there is much to do."""
    threads = cores() if pairs > _FEW_PAIRS else 1
    blocks = max(1, min(rows, threads * _BLOCKS_PER_THREAD if threads > 1 else 1))
    edges = [rows * k // blocks for k in range(blocks + 1)]
    ends = pairwise(edges)
    if threads == 1:
        return [run(a, b) for a, b in ends]
    with ThreadPoolExecutor(threads) as pool:
        return [f.result() for f in [pool.submit(run, a, b) for a, b in ends]]


_STEPS_BEFORE_HALVING = 8


class Guess(NamedTuple):
    """Where to begin: as if times were normal."""

    x_means: np.ndarray  # float64: means and variances of templates
    x_squares: np.ndarray  # float64: means and variances of templates
    y_means: np.ndarray  # float64: means and variances of templates
    y_squares: np.ndarray  # float64: means and variances of templates
    deviates: float  # Where a normal variable's tail is the bound, in standard deviations


@compiled
def least_beyond(x, y, bound, guess, first, last, least, unsure):
    """The least z with P(Y - X > z) <= bound, for some templates of X and all of Y."""
    for i in range(first, last):
        for j in range(y.starts.size - 1):
            start = (
                guess.y_means[j]
                - guess.x_means[i]
                + guess.deviates * math.sqrt(guess.x_squares[i] + guess.y_squares[j])
            )
            low, high = _bracketed(x, i, y, j, bound, start)
            least[i, j] = high
            unsure[i, j] = high - low - 1


@compiled
def _bracketed(x, i, y, j, bound, start):
    """Two integers between which floats see no more: the tail is above the bound at the first only."""
    # They are neighbours, unless the tail at some integer between cannot be told from the bound.
    low = y.edges[y.starts[j]] - 1
    high = -x.edges[x.starts[i]]
    doubt = 2.0 * relative_error(x, i, y, j) + 2.0 * UNIT
    z = _within(start, low, high)
    steps = 0
    while high - low > 1:
        value, density = tail(x, i, y, j, z)
        if value <= bound * (1.0 - doubt):
            high = z
        elif value > bound * (1.0 + doubt):
            low = z
        else:
            return _narrowed(x, i, y, j, bound, doubt, low, high, z)
        steps += 1
        aim = (low + high) >> 1
        if density > 0.0 and steps % _STEPS_BEFORE_HALVING:
            step = (value - bound) / density
            if abs(step) < high - low:
                aim = z + math.ceil(step)
        z = _within(aim, low, high)
    return low, high


@compiled(forceinline=True)
def _within(z, low, high):
    return min(max(int(z), low + 1), high - 1)


@compiled
def _narrowed(x, i, y, j, bound, doubt, low, high, unclear):
    """The bracket, made as narrow as floats can, around an integer that they cannot decide."""
    below, above = unclear, unclear
    while below - low > 1:
        z = (low + below) >> 1
        if tail(x, i, y, j, z)[0] > bound * (1.0 + doubt):
            low = z
        else:
            below = z
    while high - above > 1:
        z = (above + high) >> 1
        if tail(x, i, y, j, z)[0] <= bound * (1.0 - doubt):
            high = z
        else:
            above = z
    return low, high


Solve = Callable[[np.ndarray], SatisfactionTimes]


class KnownLengths(NamedTuple):
    """Lengths and their table: one object, so that no exception can leave a part of it behind."""

    lengths: np.ndarray  # int64, shape (n,): by number, ticks
    ordered: np.ndarray  # int64, shape (n,): ascending lengths, and their numbers
    numbers: np.ndarray  # int64, shape (n,): ascending lengths, and their numbers
    times: SatisfactionTimes  # By number

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
    """The table of the lengths that have come, of one condition and one table of templates."""

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
    """The pair of each gap, in a table of this many columns in which this one is moved along an axis."""
    counts = np.diff(times.gap_starts)
    rows, column = np.divmod(
        np.repeat(np.arange(counts.size), counts), max(1, times.first.shape[1])
    )
    return (
        (rows + (shift if axis == LEFT else 0)) * columns + column + (shift if axis != LEFT else 0)
    )
