"""Room for pairs: slices of large arrays that are used again once nobody holds them."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from coincide.streams.results import NO_MATCHES, Matches

_FEWEST = 256
_SMALLEST_SLAB = 1 << 13
_LARGEST_SLAB = 1 << 21
_RESULTS_PER_SLAB = 8
_MOST_SLABS = 3
_SPARSE = 4


class _Slab(NamedTuple):
    """Left and right numbers of several results, one after the other."""

    left: np.ndarray
    right: np.ndarray


class PairRoom:
    """Hands out room for the pairs of one result after the other.

    Fresh memory costs more than filling it. So results are consecutive slices of a slab, which is used
    again once all of them have been dropped; a caller who keeps them keeps the slab, and the next
    results go to a new one.
    """

    def __init__(self) -> None:
        self._slabs: list[_Slab] = [_new_slab(0)]
        self._used = 0
        self._expected = _FEWEST

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """Room for the left and the right numbers of about as many pairs as came last."""
        if self._slabs[-1].left.size - self._used < self._expected:
            self._change_slab()
        left, right = self._slabs[-1]
        return left[self._used :], right[self._used :]

    def give(self, count: int, left: np.ndarray, right: np.ndarray) -> Matches:
        """The result, once a kernel has filled its room, or made itself larger room."""
        self._expected = max(_FEWEST, count + count // 4, self._expected * 3 // 4)
        if count == 0:
            return NO_MATCHES
        slab = self._slabs[-1]
        if left.size == slab.left.size - self._used:
            left, right = slab.left[self._used :], slab.right[self._used :]
            self._used += count
        elif _SPARSE * count < left.size:
            # The kernel's own room is as large as its candidates were many, and a slice would keep all
            # of it for as long as the caller keeps the pairs.
            return Matches(count, left[:count].copy(), right[:count].copy())
        return Matches(count, left[:count], right[:count])

    def _change_slab(self) -> None:
        # Somewhat more than expected, or the next result but one would need yet another slab.
        size = self._expected + self._expected // 4
        size = max(_SMALLEST_SLAB, size, min(_RESULTS_PER_SLAB * size, _LARGEST_SLAB))
        self._used = 0
        for i, slab in enumerate(self._slabs):
            if self._expected <= slab.left.size <= 2 * size and _is_free(slab):
                self._slabs.append(self._slabs.pop(i))
                return
        self._slabs = [*self._slabs[1 - _MOST_SLABS :], _new_slab(size)]


def _new_slab(size: int) -> _Slab:
    return _Slab(np.empty(size, np.int64), np.empty(size, np.int64))


def _is_free(slab: _Slab) -> bool:
    """Whether no result is left in a slab: a slice holds a reference to the array that it is of."""
    # The slab's own reference and that of the call.
    return sys.getrefcount(slab.left) <= 2 and sys.getrefcount(slab.right) <= 2
