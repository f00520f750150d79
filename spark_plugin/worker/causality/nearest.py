"""The pair that comes nearest to a condition which no pair of exact times meets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from coincide.cause_and_effect.points import PlacedEvents
from coincide.cause_and_effect.rule import PairRule
from coincide.cause_and_effect.widest import ends_at
from spark_plugin.worker.reports.nearest import Instants, nearest_delta


class NearMiss(NamedTuple):
    """A pair: its delta, what its distance allows, ticks, and its distance where that was looked at."""

    delta: int
    lo: float
    hi: float
    distance: float | None = None
    is_in_reach: bool = True

    @property
    def by(self) -> float:
        """Ticks by which delta is too short, or too long."""
        return max(self.lo - self.delta, self.delta - self.hi)


def nearest_miss_in_time(
    causes: PlacedEvents, effects: PlacedEvents | None, lo: int, hi: int
) -> NearMiss | None:
    """Of pairs of which none has a delta of lo to hi, the one that is nearest to that; None of no pair."""
    own, others = (
        None if side is None else Instants(side.codes[side.codes >= 0], side.times[side.codes >= 0])
        for side in (causes, effects)
    )
    assert own is not None
    delta = nearest_delta(own, others, lo, hi)
    return None if delta is None else NearMiss(delta, lo, hi)


def nearest_in_space(
    runs: Iterable[tuple[np.ndarray, np.ndarray]], rule: PairRule, reach: float
) -> NearMiss | None:
    """Of some pairs, none of which qualifies, the nearest in time within reach, else in space.

    Parameters
    ----------
    runs : iterable of (int64 array, float64 array)
        Deltas and distances of pairs.
    rule : PairRule
    reach : float
    """
    best: NearMiss | None = None
    for delta, distance in runs:
        lo, hi = ends_at(rule, distance)
        by = np.maximum(np.maximum(lo - delta, delta - hi), 0.0)
        order = np.lexsort((by, np.maximum(distance, reach)))  # within reach by time
        k = int(order[0])
        bounds, apart = (float(lo[k]), float(hi[k])), float(distance[k])
        miss = NearMiss(int(delta[k]), *bounds, apart, apart <= reach)
        if best is None or _rank(miss) < _rank(best):
            best = miss
    return best


def _rank(miss: NearMiss) -> tuple[bool, float]:
    return not miss.is_in_reach, miss.by if miss.is_in_reach else miss.distance or 0.0
