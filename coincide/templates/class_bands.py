"""Bands of classes of templates, from their table: extremes over blocks of it."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.shape_classes import ShapeClasses
from coincide.templates.satisfaction_times import SatisfactionTimes

_FAR = np.int64(2**62)


def class_bands(
    table: SatisfactionTimes,
    left: ShapeClasses,
    right: ShapeClasses,
    left_leans: np.ndarray,
    right_leans: np.ndarray,
) -> np.ndarray:
    """Bounds on the difference of keys, right less left, in half ticks, by pair of classes.

    Parameters
    ----------
    table : SatisfactionTimes
    left, right : ShapeClasses
        K1 and K2 classes of templates.
    left_leans, right_leans : int64 arrays
        By how much a key is below its doubled max_time, by template.

    Returns
    -------
    int64 array, shape (K1, K2, 4)
        As `coincide.bands.band_table`.
    """
    arrays = table.first, table.last, table.gap_starts, table.gap_first, table.gap_last
    ends = (left.lowest, left.highest), (right.lowest, right.highest)
    return _extremes(arrays, *ends, left_leans, right_leans)


def class_extremes(
    table: SatisfactionTimes, left: ShapeClasses, right: ShapeClasses
) -> tuple[int, int]:
    """The least and the largest s that qualifies with some pair of templates of the classes, ticks."""
    block = (
        slice(int(left.lowest[0]), int(left.highest[-1]) + 1),
        slice(int(right.lowest[0]), int(right.highest[-1]) + 1),
    )
    first, last = table.first[block], table.last[block]
    some = first <= last
    if not some.any():
        return 0, 0
    return int(first[some].min()), int(last[some].max())


@compiled(allocates=True)
def _extremes(table, left, right, left_leans, right_leans):
    first, last, has_gaps = table[0], table[1], table[2].size > 0
    bands = np.empty((left[0].size, right[0].size, 4), np.int64)
    for a in range(left[0].size):
        for b in range(right[0].size):
            outer_lo, outer_hi = _FAR, -_FAR
            inner_lo, inner_hi = -_FAR, _FAR
            for i in range(left[0][a], left[1][a] + 1):
                for j in range(right[0][b], right[1][b] + 1):
                    # Selections, not branches: so many pairs are looked at together.
                    low, high = first[i, j], last[i, j]
                    some, lean = low <= high, left_leans[i] - right_leans[j]
                    outer_lo = min(outer_lo, 2 * low + lean if some else _FAR)
                    outer_hi = max(outer_hi, 2 * high + lean if some else -_FAR)
                    if has_gaps:
                        low, high = _widest(table, i, j)
                    inner_lo = max(inner_lo, 2 * low + lean if some else _FAR)
                    inner_hi = min(inner_hi, 2 * high + lean if some else -_FAR)
            if outer_lo > outer_hi:
                outer_lo, outer_hi = np.int64(0), np.int64(-1)
            if inner_lo > inner_hi:
                inner_lo, inner_hi = outer_lo, outer_lo - 1
            bands[a, b, 0], bands[a, b, 1] = outer_lo, inner_lo
            bands[a, b, 2], bands[a, b, 3] = inner_hi, outer_hi
    return bands


@compiled(forceinline=True)
def _widest(table, i, j):
    """The widest range of a pair, which may be taken unseen."""
    first, last, gap_starts, gap_first, gap_last = table
    low, high = first[i, j], last[i, j]
    pair = i * first.shape[1] + j
    best_low, best_high, start = low, low - 1, low
    for gap in range(gap_starts[pair], gap_starts[pair + 1]):
        if gap_first[gap] - 1 - start > best_high - best_low:
            best_low, best_high = start, gap_first[gap] - 1
        start = gap_last[gap] + 1
    if high - start > best_high - best_low:
        best_low, best_high = start, high
    return best_low, best_high
