"""Delays of pairs by time of day: counts on a grid that is fixed before any pair is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.probability import DECISION_SLACK
from coincide.units import NANOSECONDS_PER_UNIT, Tick
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.time_columns import TimeScale
from spark_plugin.worker.arrow.time_words import time_words
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.exploration.candidates import Pairs

PARTS = 24
_MOST_BINS = 50
_SHORTEST_DAY = 6
"""Hours; a shorter recording has too few hours of the day to compare."""


@dataclass(frozen=True)
class DayParts:
    """Into which of 24 parts a left event falls.

    Parameters
    ----------
    size : int
        Of a part, ticks.
    origin : int
        Where part 0 begins, ticks.
    is_hours : bool
        Whether parts are hours of the day, of any day; else they divide the time range.
    """

    size: int
    origin: int
    is_hours: bool

    @classmethod
    def of(cls, side: Side, tick: Tick) -> DayParts:
        """Hours of the day, or of times without a unit or of few hours parts of their range."""
        middles = _middles(side)
        first, last = (int(middles.min()), int(middles.max())) if middles.size else (0, 0)
        hour = tick.nanoseconds and NANOSECONDS_PER_UNIT["h"] / tick.nanoseconds
        if hour and hour == int(hour) and last - first >= _SHORTEST_DAY * hour:
            return cls(int(hour), 0, True)
        return cls((last - first) // PARTS + 1, first, False)

    def parts(self, side: Side) -> np.ndarray:
        """The part of each event: int64 array, shape (n,)."""
        parts = (_all_middles(side) - self.origin) // self.size
        return parts % PARTS if self.is_hours else np.clip(parts, 0, PARTS - 1)

    def begin(self, part: int, scale: TimeScale) -> str:
        """Where a part begins, in words."""
        if self.is_hours:
            return f"{part:02}:00"
        words = time_words(self.origin + part * self.size, scale)
        is_date = scale.column.family.startswith("timestamp")
        if is_date and self.size >= scale.tick.count("1s"):
            whole, point, _ = words.partition(".")
            return whole + "Z" * (bool(point) and words.endswith("Z"))
        return words

    def title(self, scale: TimeScale, own: str = "left") -> str:
        """What the parts are, for an axis; `own` is what the left event is called."""
        if not self.is_hours:
            return f"time of the {own} event, in 24 equal parts"
        zone = {"timestamp": "UTC", "timestamp_ntz": "as its clock shows it"}
        return (
            f"hour of the day of the {own} event, {zone.get(scale.column.family, 'counted from 0')}"
        )


@dataclass(frozen=True)
class DelayGrid:
    """Bins of delays, and what is needed to put pairs into them.

    Parameters
    ----------
    step : int
        Width of a bin, ticks: 1, 2 or 5 times a power of ten. A bin lies around a multiple of it, so that
        delays on a grid of clocks fall into its middle.
    first, last : int
        Numbers of the first and the last bin.
    least : float
        Pairs of a lower probability are left out.
    parts : int64 array, shape (n_left,)
        Part of the day of each left event.
    left, right : int64 arrays
        Doubled midpoints of the events, half ticks.
    """

    step: int
    first: int
    last: int
    least: float
    parts: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, left: Side, right: Side, spec: JoinSpec, parts: np.ndarray) -> DelayGrid:
        """Bins for the window, and for as much beyond it as midpoints of such pairs may lie."""
        window = spec.window
        beyond = 0
        if spec.has_histograms or window.confidence < 0.5:
            longest = [int(side.lengths.max(initial=0)) for side in (left, right)]
            beyond = (sum(longest) + 1) // 2
            beyond = min(beyond, window.width) if window.width else beyond
        lo, hi = window.lo - beyond, window.hi + beyond
        step = _round_up(max(1, -((lo - hi) // (_MOST_BINS - 1))))
        return cls(
            step, _bin(2 * lo, step), _bin(2 * hi, step), window.confidence - DECISION_SLACK, parts,
            _doubled(left), _doubled(right),
        )  # fmt: skip

    @property
    def bins(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    def counts(self, pairs: Pairs) -> np.ndarray:
        """Pairs in each part of the day and bin, and last those of which the delay is in none.

        Returns
        -------
        int64 array, shape (24 * bins + 1,)
        """
        enough = pairs.probability >= self.least
        left, right = pairs.left[enough], pairs.right[enough]
        bins = _bin(self.right[right] - self.left[left], self.step) - self.first
        cells = self.parts[left] * self.bins + bins
        outside = PARTS * self.bins
        cells[(bins < 0) | (bins >= self.bins)] = outside
        return np.bincount(cells, minlength=outside + 1)

    def table(self, counts: np.ndarray) -> pa.Table:
        """The cells that hold pairs.

        Parameters
        ----------
        counts : int64 array
            From `counts`.

        Returns
        -------
        pa.Table
            Columns ``part`` (of the day, int64), ``delay`` (the middle of the bin, ticks, int64) and
            ``pairs`` (int64).
        """
        cells = np.flatnonzero(counts[:-1])
        delay = (cells % self.bins + self.first) * self.step
        return pa.table({"part": cells // self.bins, "delay": delay, "pairs": counts[cells]})


def _round_up(size: int) -> int:
    """To 1, 2 or 5 times a power of ten."""
    power = 10 ** (len(str(size)) - 1)
    return next(n * power for n in (1, 2, 5, 10) if n * power >= size)


def _bin(doubled: Any, step: int) -> Any:
    """Number of the bin of a doubled delay: it reaches from half a step below a multiple to above it."""
    return (doubled + step) // (2 * step)


def _doubled(side: Side) -> np.ndarray:
    return side.max_time + side.min_time


def _all_middles(side: Side) -> np.ndarray:
    return _doubled(side) >> 1


def _middles(side: Side) -> np.ndarray:
    """Of the events that can match."""
    middles = _all_middles(side)
    return middles if side.matchable is None else middles[side.matchable]
