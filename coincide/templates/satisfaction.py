"""The decision of a timing condition on templates: a table of integers, one entry per pair of them.

Of each pair of templates the table holds the integers s = max_right - max_left that qualify: Mok, Woo &
Lee (2006), Theorem 2 with Equations 8 and 9, for windows of any width. It is solved with floats whose error
is known; where they cannot tell an integer, exact arithmetic does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from coincide.condition import Window
from coincide.errors import MemoryBudgetError
from coincide.probability import DECISION_SLACK
from coincide.sides import LEFT, RIGHT
from coincide.templates.exact import allowance, exact_of
from coincide.templates.exact_ranges import least_beyond_exactly, with_undecided
from coincide.templates.kept_results import KeptResults
from coincide.templates.length_times import LengthTimes
from coincide.templates.narrow import narrow_rows
from coincide.templates.quantiles import Guess, least_beyond
from coincide.templates.satisfaction_times import SatisfactionTimes
from coincide.templates.table import TemplateTable

MOST_PAIRS = 1 << 26
"""Of templates: 1 GiB of table, and as much again while it is solved."""

_MOST_KEPT = 1 << 21
"""Pairs of templates of a table that may be kept."""

_MOST_BYTES = 1 << 25
"""Of a table that is kept: `_MOST_KEPT` pairs without a gap."""

_MOST_QUANTILE_BYTES = 1 << 23
"""Of the quantiles that are kept, of one pair of tables: 724 templates a side."""

_FEW_PAIRS = 4096
"""For so few a second thread is not worth its start."""

_BLOCKS_PER_THREAD = 4


def satisfaction_times(
    left: TemplateTable, right: TemplateTable, window: Window
) -> SatisfactionTimes:
    """The table of a timing condition. The last ones are kept, for the next task of a process.

    Another window costs a subtraction per pair, as long as it is not narrow and the tables are the last
    ones and not large; another confidence solves the pairs anew.

    Raises
    ------
    MemoryBudgetError
        If there are more than 2**26 pairs of templates.
    """
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
    """As `satisfaction_times`, of which nothing is kept."""
    quantiles = _kept_quantiles if _is_kept(left, right) else tail_quantiles
    above, below = quantiles(left, right, window.confidence)
    first, last = window.lo + below, window.hi - above
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
    """Where the tails of the difference of each pair fall to what a confidence allows outside.

    Parameters
    ----------
    left, right : TemplateTable
    confidence : float

    Returns
    -------
    two int64 arrays, shape (left templates, right templates)
        Of X and Y, the left and the right time, each relative to its max: the least z with
        P(Y - X > z) <= 1 - ct, and the least with P(X - Y > z) <= 1 - ct, but for the decision's slack.
    """
    if len(left) * len(right) > MOST_PAIRS:
        raise MemoryBudgetError(
            f"{len(left):,} times {len(right):,} templates make a table of more than {MOST_PAIRS:,}"
            " entries; join fewer templates at once, or round lengths of intervals, each of which counts"
            " as a template, to fewer different ones"
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
    threads = _threads() if pairs > _FEW_PAIRS else 1
    blocks = max(1, min(rows, threads * _BLOCKS_PER_THREAD if threads > 1 else 1))
    edges = [rows * k // blocks for k in range(blocks + 1)]
    ends = pairwise(edges)
    if threads == 1:
        return [run(a, b) for a, b in ends]
    with ThreadPoolExecutor(threads) as pool:
        return [f.result() for f in [pool.submit(run, a, b) for a, b in ends]]


def _threads() -> int:
    """Cores of this process; in Spark's workers those of a task, which Spark tells in OMP_NUM_THREADS."""
    cores, told = len(os.sched_getaffinity(0)), os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(told))) if told.isdigit() else cores
