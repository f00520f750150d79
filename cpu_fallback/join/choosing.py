"""The few pairs among which the best ones of an event are: for pairs of any backend."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled

_NONE = np.iinfo(np.int64).max
NEAREST, EARLIEST, LATEST = 0, 1, 2
"""Which delay is the best: the one nearest to 0, the least, the greatest."""

Keys = tuple[np.ndarray, np.ndarray]
"""By what pairs are ordered, first and then: int64 arrays, shape (pairs,)."""


def ordered_delays(
    left: np.ndarray, right: np.ndarray, rows: tuple[np.ndarray, np.ndarray], best: int
) -> np.ndarray:
    """Delays of pairs as numbers of which the least is best: int64 array, shape (pairs,).

    Parameters
    ----------
    left, right : int64 arrays
        Times of the events of both sides.
    rows : (int64 array, int64 array), shape (pairs,)
        Of the pairs, in both sides.
    best : int
        `NEAREST`, `EARLIEST` or `LATEST`.
    """
    out = np.empty(rows[0].size, np.int64)
    _ordered_delays(left, right, rows[0], rows[1], best, out)
    return out


def least_of_each(offsets: np.ndarray, keys: Keys, k: int) -> np.ndarray:
    """Which pairs are among the k least of their base event, and those that are equal to the k-th.

    Parameters
    ----------
    offsets : int64 array, shape (events + 1,)
        Where the pairs of each base event begin.
    keys : (int64 array, int64 array)
    k : int

    Returns
    -------
    bool array, shape (pairs,)
    """
    chosen = np.empty(keys[0].size, np.bool_)
    _least_of_each(offsets, keys[0], keys[1], np.empty(k, np.int64), np.empty(k, np.int64), chosen)
    return chosen


def least_of_targets(targets: np.ndarray, keys: Keys, count: int) -> np.ndarray:
    """Which pairs are the least of their target, or equal to it.

    Parameters
    ----------
    targets : int64 array, shape (pairs,)
        From 0 to `count` - 1.
    keys : (int64 array, int64 array)
    count : int

    Returns
    -------
    bool array, shape (pairs,)
    """
    chosen = np.empty(targets.size, np.bool_)
    _least_of_targets(targets, keys[0], keys[1], *np.full((2, count), _NONE), chosen)
    return chosen


@compiled
def _ordered_delays(left, right, left_rows, right_rows, best, out):
    for pair in range(out.size):
        delay = right[right_rows[pair]] - left[left_rows[pair]]
        if best == LATEST or (best == NEAREST and delay < 0):
            delay = -delay
        out[pair] = delay


@compiled
def _least_of_each(offsets, keys, seconds, kept, kept_seconds, chosen):
    """`kept` and `kept_seconds` hold the least of an event as a heap, the greatest of them on top."""
    k = kept.size
    for event in range(offsets.size - 1):
        first, stop = offsets[event], offsets[event + 1]
        if stop - first <= k:
            chosen[first:stop] = True
            continue
        for place in range(k):
            kept[place] = keys[first + place]
            kept_seconds[place] = seconds[first + place]
        for place in range(k // 2 - 1, -1, -1):
            _sift(kept, kept_seconds, place, kept[place], kept_seconds[place])
        for pair in range(first + k, stop):
            key, second = keys[pair], seconds[pair]
            if key < kept[0] or (key == kept[0] and second < kept_seconds[0]):
                _sift(kept, kept_seconds, np.int64(0), key, second)
        for pair in range(first, stop):
            is_kept = keys[pair] == kept[0] and seconds[pair] <= kept_seconds[0]
            chosen[pair] = is_kept or keys[pair] < kept[0]


@compiled
def _sift(kept, kept_seconds, place, key, second):
    """Put a pair into a heap where there is room for it, or below, in place of those that are greater."""
    child = 2 * place + 1
    while child < kept.size:
        other = child + 1
        if other < kept.size and (
            kept[other] > kept[child]
            or (kept[other] == kept[child] and kept_seconds[other] > kept_seconds[child])
        ):
            child = other
        if key > kept[child] or (key == kept[child] and second >= kept_seconds[child]):
            break
        kept[place] = kept[child]
        kept_seconds[place] = kept_seconds[child]
        place, child = child, 2 * child + 1
    kept[place] = key
    kept_seconds[place] = second


@compiled
def _least_of_targets(targets, keys, seconds, least, least_seconds, chosen):
    for pair in range(keys.size):
        target = targets[pair]
        if keys[pair] < least[target]:
            least[target] = keys[pair]
            least_seconds[target] = seconds[pair]
        elif keys[pair] == least[target]:
            least_seconds[target] = min(least_seconds[target], seconds[pair])
    for pair in range(keys.size):
        target = targets[pair]
        is_least = keys[pair] == least[target]
        chosen[pair] = is_least and seconds[pair] == least_seconds[target]
