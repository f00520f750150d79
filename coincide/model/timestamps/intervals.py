"""Interval timestamps: uniform on closed intervals. The shape of an event is its interval's length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coincide.model.bands import band_table
from coincide.model.class_choice import Population, choose_classes
from coincide.model.classes import ShapeClasses
from coincide.model.compiled import Int64s, compiled, read_only
from coincide.model.condition import Window
from coincide.model.probability import DECISION_SLACK, distance_from_middle, window_probability
from coincide.model.sides import LEFT
from coincide.model.timestamps.protocol import Events, PairModel
from coincide.model.units import TIME_LIMIT


class IntervalTimes(NamedTuple):
    """Intervals of one side: `coincide.model.timestamps.protocol.Times`. Keys are doubled midpoints."""

    min_time: Int64s  # int64, shape (n,): ticks
    max_time: Int64s  # int64, shape (n,): ticks

    def key_at(self, row):  # noqa: D102
        return self.min_time[row] + self.max_time[row]

    def shape_at(self, row):  # noqa: D102
        return self.max_time[row] - self.min_time[row]

    def keys(self) -> Any:  # noqa: D102
        return self.min_time + self.max_time

    def shapes(self) -> Any:  # noqa: D102
        return self.max_time - self.min_time

    def of(self, rows: np.ndarray) -> IntervalTimes:  # noqa: D102
        return IntervalTimes(self.min_time[rows], self.max_time[rows])


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

    @property
    def times(self) -> IntervalTimes:
        """The intervals, for a join."""
        low = read_only(self.min_time)  # one array of instants stays one
        return IntervalTimes(
            low, low if self.max_time is self.min_time else read_only(self.max_time)
        )


class IntervalRule(NamedTuple):
    """The decision on two intervals: `coincide.model.timestamps.protocol.Rule`."""

    lo: int  # The window on T_right - T_left, ticks
    hi: int  # The window on T_right - T_left, ticks
    threshold: float  # The least probability that qualifies

    @classmethod
    def of(cls, window: Window) -> IntervalRule:
        """The rule of a timing condition."""
        return cls(window.lo, window.hi, window.confidence - DECISION_SLACK)

    def lean(self, side, shape):  # noqa: D102
        return shape

    def qualifies(self, s, left, right):  # noqa: D102
        return window_probability(s, left, right, self.lo, self.hi) >= self.threshold

    def probability(self, s, left, right):  # noqa: D102
        return window_probability(s, left, right, self.lo, self.hi)

    def merit(self, s, left, right):  # noqa: D102
        p = window_probability(s, left, right, self.lo, self.hi)
        return p if p >= self.threshold else -1.0

    def distance(self, s, left, right):  # noqa: D102
        # The difference of doubled midpoints; no step of it can overflow.
        return distance_from_middle(2 * s + (left - right), self.lo, self.hi)


@dataclass(frozen=True)
class IntervalPairs:
    """Intervals on both sides: `coincide.model.timestamps.protocol.PairModel`."""

    window: Window  # The timing condition, ticks
    sought: Window | None = None

    @property
    def rule(self) -> IntervalRule:
        """As `PairModel`, like all that follow."""
        return IntervalRule.of(self.window)

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:  # noqa: D102
        return self, left, right

    def choose_classes(  # noqa: D102
        self, left: Population, right: Population, groups: int, classes: int | None
    ) -> tuple[ShapeClasses, ShapeClasses]:
        window, bands = self._window_from(LEFT), partial(self.bands, LEFT)
        return choose_classes(left, right, groups, (window.lo, window.hi), bands, classes)

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:  # noqa: D102
        return band_table(own, other, self._window_from(base_side))

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:  # noqa: D102
        window = self._window_from(base_side)
        return window.lo - int(own.highest[-1]), window.hi + int(other.highest[-1])

    def _window_from(self, base_side: int) -> Window:
        """The window on T_target - T_base."""
        window = self.sought or self.window
        return window if base_side == LEFT else window.mirrored()


@compiled
def are_valid_times(min_time, max_time, longest):
    """Whether all intervals are in order, within the limits of time, and not too long: in one pass."""
    wrong = False
    for i in range(min_time.size):
        low, high = min_time[i], max_time[i]
        # Only the ends of time can overflow the difference, and those are wrong already.
        wrong |= (low > high) | (low <= -TIME_LIMIT) | (high >= TIME_LIMIT) | (high - low > longest)
    return not wrong


@compiled
def narrow_lengths(min_time, max_time, out):
    """Write max_time - min_time as int32; returns whether all fit: in one pass."""
    bits = np.int64(0)
    for i in range(out.size):
        length = max_time[i] - min_time[i]
        out[i] = length
        bits |= length
    return 0 <= bits <= np.iinfo(np.int32).max
