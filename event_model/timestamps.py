"""Interval timestamps: the events of one side as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from event_model.errors import DataError
from event_model.units import TIME_LIMIT


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


def check_intervals(events: IntervalEvents, side: str) -> None:
    """Refuse intervals that a kernel would get wrong.

    Raises
    ------
    DataError
        If a time reaches 2**61 ticks or a min_time is above its max_time.
    """
    if len(events) == 0:
        return
    # Of ordered intervals only the outer ends can be out of range.
    if events.min_time.min() <= -TIME_LIMIT or events.max_time.max() >= TIME_LIMIT:
        raise DataError(f"{side}: a time reaches 2^61 ticks; use a coarser unit")
    if np.any(events.min_time > events.max_time):
        raise DataError(f"{side}: an event has min_time above max_time")
