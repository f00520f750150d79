"""The pair that comes nearest to a condition which no pair of exact times meets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from coincide.cause_and_effect.points import PlacedEvents
from coincide.cause_and_effect.rule import PairRule
from coincide.cause_and_effect.widest import ends_at

Rows = tuple[np.ndarray, np.ndarray]


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


def nearest_delta(
    causes: PlacedEvents, effects: PlacedEvents | None, lo: int, hi: int
) -> NearMiss | None:
    """Of pairs of which none has a delta of lo to hi, the one that is nearest to that; None of no pair."""
    others = causes if effects is None else effects
    late = _first_after(causes, others, hi)
    early = _first_after(_mirrored(causes), _mirrored(others), -lo)
    found = [
        NearMiss(delta, lo, hi)
        for sign, (rows, partners) in ((1, late), (-1, early))
        for delta in _nearest(causes, others, rows, partners, sign, effects is None)
    ]
    return min(found, key=lambda miss: miss.by, default=None)


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


def _mirrored(events: PlacedEvents) -> PlacedEvents:
    """The same events with time running back."""
    return PlacedEvents(-events.times, None, None, events.group, events.groups)


def _first_after(causes: PlacedEvents, effects: PlacedEvents, hi: int) -> Rows:
    """Rows of causes, and of the first effect of each that is more than hi after it."""
    own, others = (np.flatnonzero(side.codes >= 0) for side in (causes, effects))
    times = np.concatenate([causes.times[own] + hi, effects.times[others]])
    groups = np.concatenate([causes.codes[own], effects.codes[others]])
    is_effect = np.arange(times.size) >= own.size
    # An effect that is as late as a cause allows comes before it in this order.
    order = np.lexsort((~is_effect, times, groups))
    places = np.where(is_effect[order], np.arange(order.size), order.size)
    following = np.minimum.accumulate(places[::-1])[::-1]
    asked = np.flatnonzero(~is_effect[order] & (following < order.size))
    found = order[following[asked]]
    same = groups[found] == groups[order[asked]]
    return own[order[asked[same]]], others[found[same] - own.size]


def _nearest(
    causes: PlacedEvents,
    effects: PlacedEvents,
    rows: np.ndarray,
    partners: np.ndarray,
    sign: int,
    is_one_stream: bool,
) -> list[int]:
    """The least delta of these pairs, or the greatest; none of no pair, nor of an event with itself."""
    if is_one_stream:
        kept = rows != partners
        rows, partners = rows[kept], partners[kept]
    if not rows.size:
        return []
    deltas = effects.times[partners] - causes.times[rows]
    return [int(deltas.min() if sign > 0 else deltas.max())]
