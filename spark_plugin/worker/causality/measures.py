"""What a pair of a cause and its effect measures: delta, between stamps or midpoints, and the distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.units import NANOSECONDS_PER_UNIT, Tick
from spark_plugin.worker.arrow.sides import Side

DELTA = "delta"
DELTA_NAMES = (DELTA, *(f"{DELTA}_{unit}" for unit in NANOSECONDS_PER_UNIT))
"""All that the column of delta may be called."""


def delta_name(tick: Tick) -> str:
    """The column of delta, which says what it counts: ``delta_us``; of bare ticks ``delta``."""
    return DELTA if tick.unit is None else f"{DELTA}_{tick.unit}"


def stamped(join: Any, causes: Side, effects: Side) -> Any:
    """A causality join whose deltas are between stamps, or midpoints; that of exact instants as it is."""
    before = [side.model.before_ends(side.shapes) for side in (causes, effects)]
    return StampedCausality(join, *before) if any(each.any() for each in before) else join


class StampedCausality:
    """A causality join whose deltas are between stamps or midpoints; used like the join.

    Parameters
    ----------
    join : CausalityJoin
        Of either backend: its deltas are between the later ends.
    own, others : int64 arrays, by row
        How far stamps are before the later ends, half ticks.
    """

    def __init__(self, join: Any, own: np.ndarray, others: np.ndarray) -> None:
        self._join, self._before = join, (own, others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._join, name)

    def measured(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Delta, of which half a tick is left off, and distance of given pairs."""
        delta, distance = self._join.measured(left_rows, right_rows)
        own, others = self._before
        doubled = 2 * delta + own[left_rows] - others[right_rows]
        return (doubled + (doubled < 0)) >> 1, distance

    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As of the join."""
        join = self._join
        positions = np.arange(join.left_order.size), np.arange(join.right_order.size)
        own, others = join.pairs(start, stop, *positions)
        measures = self.measured(join.left_order[own], join.right_order[others])
        return left_values[own], right_values[others], *measures
