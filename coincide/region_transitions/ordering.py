"""Events of equal keys put next to each other, in order, without comparing them."""

from __future__ import annotations

import numpy as np

_DIGIT_BITS = 16


def stable_order(keys: np.ndarray) -> np.ndarray:
    """As ``np.argsort(keys, kind="stable")``, digit by digit: NumPy sorts 16 bits by radix.

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Not negative; the smaller the largest, the fewer digits.

    Returns
    -------
    int64 array, shape (n,)
    """
    order = np.arange(keys.size)
    if _ascends(keys):
        return order
    largest = int(keys.max())
    for shift in range(0, largest.bit_length(), _DIGIT_BITS):
        digit = (keys[order] >> shift).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order


def time_order(midpoints: np.ndarray) -> np.ndarray | None:
    """A stable order by doubled midpoints: int64 array; None where they are in order."""
    return None if _ascends(midpoints) else np.argsort(midpoints, kind="stable")


def behind_their_group(keys: np.ndarray, midpoints: np.ndarray) -> np.ndarray:
    """How far events lie behind the latest one of their key before them.

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Equal ones next to each other.
    midpoints : int64 array, shape (n,)
        Of the events, in the order in which they came.

    Returns
    -------
    int64 array, shape (n,)
        0 for an event that comes after no later one; else in the unit of the midpoints.
    """
    same = keys[1:] == keys[:-1]
    behind = np.zeros(keys.size, np.int64)
    if not (same & (midpoints[1:] < midpoints[:-1])).any():
        return behind
    # The running maximum starts anew with each group: ranks, lifted above all of the groups before.
    known, ranks = np.unique(midpoints, return_inverse=True)
    lifts = keys.size * np.concatenate(([0], np.cumsum(~same)))
    latest = np.maximum.accumulate(ranks.astype(np.int64) + lifts) - lifts
    return known[latest] - midpoints


def _ascends(values: np.ndarray) -> bool:
    return bool((values[1:] >= values[:-1]).all())
