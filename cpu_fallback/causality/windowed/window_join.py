"""Causality through a window: arrays of tuples in, pairs of their numbers out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coincide.causal_windows.results import WindowCounts
from coincide.causal_windows.state import (
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
    WindowState,
    WindowTerms,
    new_state,
)
from cpu_fallback.causality.windowed.kernels import Arrivals, Pairs, take

_ROOM = 1 << 18
"""Pairs in one chunk, where a window does not need more."""


class WindowJoin:
    """One pass through a window of n tuples (section 3.2 of Kwon & Li, 2009).

    Parameters
    ----------
    terms : WindowTerms
    """

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
        """Take tuples in order of arrival; the pairs that they show, in chunks.

        Parameters
        ----------
        times, clocks : int64 arrays, shape (n,)
            Ticks; clocks must not go back.
        points : float64 array, shape (0 or 3 or 4, n)
            `coincide.cause_and_effect.points.Points`.
        roles : int64 array, shape (n,)

        Yields
        ------
        Pairs
            In order of the tuple that came last, and of the valid times of the others.
        """
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
