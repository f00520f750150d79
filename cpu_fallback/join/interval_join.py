"""The join of interval timestamps on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coincide.condition import Window
from coincide.timestamps import IntervalEvents, IntervalPairs
from cpu_fallback.join.event_join import EventJoin, event_probabilities


class IntervalJoin(EventJoin):
    """An `EventJoin` of intervals.

    Parameters
    ----------
    left, right : IntervalEvents
    window : Window
        The timing condition, ticks.
    classes, threads, empty
        As `EventJoin`.
    """

    def __init__(
        self,
        left: IntervalEvents,
        right: IntervalEvents,
        window: Window,
        *,
        classes: int | None = None,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        model = IntervalPairs(window)
        super().__init__(left, right, model, classes=classes, threads=threads, empty=empty)


def pair_probabilities(
    left: IntervalEvents,
    left_rows: np.ndarray,
    right: IntervalEvents,
    right_rows: np.ndarray,
    window: Window,
) -> np.ndarray:
    """Satisfaction probabilities of given pairs: float64 array, shape (n,)."""
    return event_probabilities(left, left_rows, right, right_rows, IntervalPairs(window))
