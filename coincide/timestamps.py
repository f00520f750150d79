"""Interval timestamps: the events of one side as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coincide.compiled import compiled
from coincide.units import TIME_LIMIT


@dataclass(frozen=True, eq=False)
class IntervalEvents:
    """Events whose timestamps are uniform on closed intervals [min_time, max_time].

    Parameters
    ----------
    min_time, max_time : int64 arrays, shape (n,), C-contiguous
        Ends of the intervals, ticks; min_time <= max_time, |time| < 2**61. A length of 0 is an exact
        instant.
    group : int64 array, shape (n,), or None
        Dense code of the event's keys: only events of equal code are paired. Events with a negative
        code match nothing. None: one group.
    groups : int
        Number of codes, above every code.
    """

    min_time: np.ndarray
    max_time: np.ndarray
    group: np.ndarray | None = None
    groups: int = 1

    def __len__(self) -> int:
        return self.min_time.size

    @property
    def lengths(self) -> np.ndarray:
        """max_time - min_time: int64 array, shape (n,), ticks."""
        return self.max_time - self.min_time

    @property
    def midpoints(self) -> np.ndarray:
        """Doubled midpoints min_time + max_time: int64 array, shape (n,), half ticks."""
        return self.min_time + self.max_time


@compiled
def are_valid_times(min_time, max_time, longest):
    """Whether all intervals are in order, within the limits of time, and not too long: in one pass.

    Parameters
    ----------
    min_time, max_time : int64 arrays, shape (n,)
        Ticks, any.
    longest : int64
        The longest length permitted, ticks.

    Returns
    -------
    bool
    """
    wrong = False
    for i in range(min_time.size):
        low, high = min_time[i], max_time[i]
        # Only the ends of time can overflow the difference, and those are wrong already.
        wrong |= (low > high) | (low <= -TIME_LIMIT) | (high >= TIME_LIMIT) | (high - low > longest)
    return not wrong
