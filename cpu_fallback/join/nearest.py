"""The nearest events after each event, or before it, however far away: no other pair is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.model.counters import CountedJoin
from coincide.model.ordering import stable_order
from coincide.model.remembered import remembered
from coincide.model.timestamps.protocol import group_codes


class NearestJoin(CountedJoin):
    """Pairs of each left span with the k nearest right ones, and with all that are as near as these.

    Used like an `EventJoin`. It has not all pairs, but all that may be among the k best.
    """

    def __init__(
        self,
        left: Any,
        right: Any,
        shortest: tuple[int, int],
        k: int,
        *,
        is_backward: bool,
        beyond: int = 0,
    ) -> None:
        # More than `beyond` ticks lie between a left span and a right one, in the direction of time.
        sides = []
        for events, least in zip((left, right), shortest, strict=True):
            lasts = events.max_time - events.min_time >= least
            sides.append(np.where(lasts, group_codes(events), -1))
        # Backward, times are mirrored: what ends last is what begins first.
        times = (
            (-left.min_time, -right.max_time) if is_backward else (left.max_time, right.min_time)
        )
        times = times[0] + beyond, times[1]
        order = stable_order(times[1], sides[1] + 1)
        self.right_order: np.ndarray = order[np.searchsorted(sides[1][order], 0) :]
        self._first, self._last = _ranges(
            (sides[0], times[0]), (sides[1][self.right_order], times[1][self.right_order]), k
        )

    @remembered
    def left_order(self) -> np.ndarray:
        """As in `EventJoin`: here left rows themselves."""
        return np.arange(self._first.size)

    @remembered
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        counts = self._last - self._first
        return counts, np.array([counts.sum(), 0, 0])

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As in `EventJoin`."""
        own = np.repeat(left_values[start:stop], self.counts[start:stop])
        return own, self.matches(start, stop, right_values)

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As in `EventJoin`."""
        counts = self.counts[start:stop]
        begins = np.repeat(self._first[start:stop] - (np.cumsum(counts) - counts), counts)
        found: np.ndarray = right_values[begins + np.arange(begins.size)]
        return found


def _ranges(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first position and the end of each left event's right ones, which are in order."""
    (groups, times), (others, later) = left, right
    ticks = np.unique(later)
    # One number ascends by group, then by time.
    places = others * (ticks.size + 1) + np.searchsorted(ticks, later)
    own = groups * (ticks.size + 1)
    first = np.searchsorted(places, own + np.searchsorted(ticks, times, side="right"))
    end = np.searchsorted(places, own + ticks.size)
    last = np.minimum(first + k, end)
    has_any = (first < end) & (groups >= 0)
    if not places.size:
        return first, first
    ties = np.searchsorted(places, places[np.where(has_any, last - 1, 0)], side="right")
    return first, np.where(has_any, ties, first)
