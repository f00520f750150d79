"""The order of whole numbers, equal ones by row: the same on every machine, whatever the way to it."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled, read_only
from coincide.model.packed_order import Digits, packed_order

_FEW = 2048
_MANY = 1 << 19
"""Rows that are in order sooner with their numbers in one word, if they need not be put in groups."""
_FAR = 32
_DISORDERED = 256
"""With more than one row in `_DISORDERED` behind a greater one far before it, merging runs is slower."""
_DIGIT_BITS, _VALUES = 8, 256
"""So few values of a digit that all places that are written to stay in the cache."""


def stable_order(keys: np.ndarray, group: np.ndarray | None = None, threads: int = 1) -> np.ndarray:
    """As ``np.argsort(keys, kind="stable")``, of int64: int64 array, shape (n,).

    With a group, int64 from 0, as ``np.lexsort((keys, group))``.
    """
    keys = read_only(np.ascontiguousarray(keys))
    if ascends(keys):
        return np.arange(keys.size) if group is None else stable_order(group, threads=threads)
    if group is None:
        if keys.size < _FEW or _falls(keys, _FAR) * _DISORDERED < keys.size:
            return np.argsort(keys, kind="stable")
        digits = Digits.of(keys, keys[:0]) if keys.size >= _MANY else None
        return _by_digits(keys) if digits is None else packed_order(keys, keys[:0], digits, threads)
    group = read_only(np.ascontiguousarray(group))
    if (digits := Digits.of(keys, group)) is not None:
        return packed_order(keys, group, digits, threads)
    order = stable_order(keys, threads=threads)
    return order[stable_order(group[order], threads=threads)]


def _by_digits(keys: np.ndarray) -> np.ndarray:
    """Digit by digit from the last one. Each digit stays in the order of those before."""
    n, least = keys.size, keys.min()
    digits = -(-(int(keys.max()) - int(least)).bit_length() // _DIGIT_BITS)
    places = np.zeros((digits, _VALUES), np.int64)
    order, above = np.empty((2, n), np.int64), np.empty((2, n), np.uint64)
    _begin(keys, least, places, order[0], above[0])
    for digit in range(digits):
        own, other = digit & 1, 1 - (digit & 1)
        _deal(digit, places[digit], order[own], above[own], order[other], above[other])
    return order[digits & 1]


@compiled
def ascends(keys):
    """Whether no number is below the one before it."""
    for i in range(1, keys.size):  # noqa: SIM110 - a generator is not compiled
        if keys[i] < keys[i - 1]:
            return False
    return True


@compiled(allocates=True)
def latest_so_far(groups, times):
    """The latest time of each row and those before it of its group: int64 array, shape (n,)."""
    latest = times.copy()
    for i in range(1, latest.size):
        if groups[i] == groups[i - 1] and latest[i - 1] > latest[i]:
            latest[i] = latest[i - 1]
    return latest


@compiled
def _falls(keys, far):
    """How many numbers are above the one that far behind them."""
    falls = np.int64(0)
    for i in range(far, keys.size):
        falls += np.int64(keys[i] < keys[i - far])
    return falls


@compiled
def _begin(keys, least, places, order, above):
    """How far numbers are above the least; where the first of each value of each digit goes."""
    digits = places.shape[0]
    for i in range(keys.size):
        rest = np.uint64(keys[i]) - np.uint64(least)
        order[i] = i
        above[i] = rest
        for digit in range(digits):
            places[digit, rest & np.uint64(_VALUES - 1)] += 1
            rest >>= np.uint64(_DIGIT_BITS)
    for digit in range(digits):
        at = np.int64(0)
        for value in range(_VALUES):
            count = places[digit, value]
            places[digit, value] = at
            at += count


@compiled
def _deal(digit, places, order, above, order_out, above_out):
    """Put numbers in the order of one digit."""
    shift = np.uint64(digit * _DIGIT_BITS)
    for i in range(above.size):
        value = (above[i] >> shift) & np.uint64(_VALUES - 1)
        at = places[value]
        places[value] = at + 1
        order_out[at] = order[i]
        above_out[at] = above[i]
