"""Causality through a window: arrays of tuples in, pairs of numbers out; what no policy can exceed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.windowed_causality import (
    ARRIVED,
    CUT,
    EVICTED,
    FOLLOWED,
    FOUND,
    FOUND2,
    LIVE,
    LIVES,
    MATCHES,
    MATCHES2,
    MATCHES_FOUND,
    NUMBER,
    WindowCounts,
    WindowState,
    WindowTerms,
    new_state,
)
from cpu_fallback.windowed_causality.kernels import Arrivals, Pairs, take

_ROOM = 1 << 18
"""Pairs in one chunk, where a window does not need more."""


class WindowJoin:
    """One pass through a window of n tuples (section 3.2 of Kwon & Li, 2009)."""

    def __init__(self, terms: WindowTerms) -> None:
        self.terms = terms
        self._state: WindowState = new_state(terms)

    @property
    def arrived(self) -> int:
        """How many tuples have arrived: their numbers lie below."""
        return int(self._state.counts[ARRIVED])

    def take(
        self, times: np.ndarray, clocks: np.ndarray, points: np.ndarray, roles: np.ndarray
    ) -> Iterator[Pairs]:
        """Take tuples in order of arrival; the pairs that they show, in chunks."""
        placed = np.zeros((4, times.size))
        if points.size:
            placed[: points.shape[0]] = points
        arrivals = Arrivals(*map(np.ascontiguousarray, (times, clocks, placed, roles)))
        at, room = 0, max(_ROOM, 2 * self.terms.size)
        while at < times.size:
            causes, effects, deltas = (np.empty(room, np.int64) for _ in range(3))
            out = Pairs(causes, effects, deltas, np.empty(room))
            at, pairs = take(self._state, self.terms, arrivals, at, out)
            if pairs:
                yield Pairs(*(each[:pairs] for each in out))

    def kept(self) -> np.ndarray:
        """Numbers of the tuples in the window: int64 array, in order of arrival."""
        state = self._state
        found = state.slots[NUMBER, state.slots[LIVES] == 1]
        return np.sort(found)

    @property
    def counts(self) -> WindowCounts:
        """What became of the tuples so far."""
        counts = self._state.counts
        matches, found = int(counts[MATCHES]), int(counts[FOUND])
        return WindowCounts(
            self.arrived, int(counts[LIVE]), int(counts[EVICTED]), int(counts[FOLLOWED]), matches, found,
            int(counts[MATCHES2]), int(counts[MATCHES_FOUND]), int(counts[FOUND2]), int(counts[CUT]),
        )  # fmt: skip


ONE = 1 << 24
"""Prices are counted in this many parts of a match."""

_STEPS = 60
_SCALES = 24


def most_pairs(first: np.ndarray, second: np.ndarray, tuples: int, window: int) -> int:
    """An upper bound on the pairs that any policy finds with a window."""
    if not first.size:
        return 0
    order = np.lexsort((second, first))
    starts = np.searchsorted(first[order], np.arange(tuples + 1))
    later = np.ascontiguousarray(second[order])
    block = max(1, window // 4)
    blocks = -(-(tuples - 1) // block)
    capacity = np.full(blocks, window * block, np.int64)
    capacity[-1] = window * (tuples - 1 - block * (blocks - 1))
    used = np.zeros(tuples, np.int64)

    def bound_of(prices: np.ndarray) -> int:
        costs = np.concatenate([[0], np.cumsum(np.repeat(prices, block)[: tuples - 1])])
        # The sum is beyond 64 bits where streams are long.
        paid = sum(p * c for p, c in zip(prices.tolist(), capacity.tolist(), strict=True))
        return int(_best_stays(starts, later, costs, used)) + paid

    best, prices = bound_of(np.zeros(blocks, np.int64)), np.zeros(blocks, np.int64)
    for scale in range(_SCALES):  # one price for all, from a match for one arrival down
        flat = np.full(blocks, ONE >> scale, np.int64)
        found = bound_of(flat)
        if found < best:
            best, prices = found, flat
    step, current = max(1.0, prices.mean() / 2), prices.astype(np.float64)
    bound_of(prices)
    for _ in range(_STEPS):
        stays = np.cumsum(used)[: tuples - 1]
        load = np.add.reduceat(stays, np.arange(0, tuples - 1, block))
        current = np.maximum(0.0, current + step * (load / capacity - 1.0).clip(-1.0, 1.0))
        candidate = np.rint(current).astype(np.int64)
        found = bound_of(candidate)
        if found < best:
            best = found
        else:
            step *= 0.9
    return min(first.size, best // ONE)


@compiled(allocates=True)
def _best_stays(starts, later, costs, used):
    """What all stays are worth at most beyond their price, and where they begin and end."""
    total = 0
    used[:] = 0
    for i in range(starts.size - 1):
        best, end = 0, i
        for at in range(starts[i], starts[i + 1]):
            worth = (at + 1 - starts[i]) * ONE - (costs[later[at]] - costs[i])
            if worth > best:
                best, end = worth, later[at]
        total += best
        used[i] += 1
        used[end] -= 1
    return total
