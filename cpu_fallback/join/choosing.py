"""The few pairs among which the best ones of an event are: for pairs of any backend."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled

_NONE = np.iinfo(np.int64).max


def least_of_each(offsets: np.ndarray, keys: np.ndarray, k: int) -> np.ndarray:
    """Which pairs are among the k least of their base event, and those that are equal to the k-th.

    Parameters
    ----------
    offsets : int64 array, shape (events + 1,)
        Where the pairs of each base event begin.
    keys : int64 array, shape (pairs,)
        By what pairs are ordered first.
    k : int

    Returns
    -------
    bool array, shape (pairs,)
    """
    chosen = np.empty(keys.size, np.bool_)
    _least_of_each(offsets, keys, np.empty(k, np.int64), chosen)
    return chosen


def least_of_targets(targets: np.ndarray, keys: np.ndarray, count: int) -> np.ndarray:
    """Which pairs are the least of their target, or equal to it.

    Parameters
    ----------
    targets : int64 array, shape (pairs,)
        From 0 to `count` - 1.
    keys : int64 array, shape (pairs,)
    count : int

    Returns
    -------
    bool array, shape (pairs,)
    """
    least = np.full(count, _NONE)
    chosen = np.empty(keys.size, np.bool_)
    _least_of_targets(targets, keys, least, chosen)
    return chosen


@compiled
def _least_of_each(offsets, keys, kept, chosen):
    """`kept` holds the least keys of an event in ascending order."""
    for event in range(offsets.size - 1):
        first, last = offsets[event], offsets[event + 1]
        held = np.int64(0)
        for pair in range(first, last):
            key = keys[pair]
            if held == kept.size and key >= kept[held - 1]:
                continue
            held = min(held + 1, kept.size)
            place = held - 1
            while place > 0 and kept[place - 1] > key:
                kept[place] = kept[place - 1]
                place -= 1
            kept[place] = key
        for pair in range(first, last):
            chosen[pair] = keys[pair] <= kept[held - 1]


@compiled
def _least_of_targets(targets, keys, least, chosen):
    for pair in range(keys.size):
        target = targets[pair]
        least[target] = min(least[target], keys[pair])
    for pair in range(keys.size):
        chosen[pair] = keys[pair] == least[targets[pair]]
