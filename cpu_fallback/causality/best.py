"""The best effect of each cause, among pairs that are found: for pairs of any backend, one order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coincide.model.causality.buckets import gap_between, height_between
from coincide.model.causality.deciding import PairRule
from coincide.model.causality.spaces import PlacedEvents, no_points
from coincide.model.causality.template_rule import TemplateRule
from coincide.model.compiled import compiled
from coincide.model.probability import distance_from_middle
from coincide.model.units import UNBOUNDED
from cpu_fallback.join.filtering import is_better

_NO_LENGTHS = np.empty(0, np.int64)


class Merits:
    """What pairs of two sides are ordered by: probability, nearness to the window's middle, distance."""

    def __init__(
        self,
        causes: PlacedEvents,
        effects: PlacedEvents | None,
        rule: PairRule | TemplateRule,
    ) -> None:
        self._rule = rule
        sides = causes, causes if effects is None else effects
        self._columns = [column for side in sides for column in _columns(side)]

    def best(
        self, offsets: np.ndarray, own: np.ndarray, others: np.ndarray, ranks: np.ndarray
    ) -> np.ndarray:
        """The number of each cause's best pair, -1 of none: int64 array, shape (causes,)."""
        out = np.empty(offsets.size - 1, np.int64)
        _best(self._rule, *self._columns, offsets, own, others, ranks, out)
        return out

    def of(self, own: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities, float64, and how far from the middle, uint64 half ticks, of pairs of rows."""
        probability, apart = np.empty(own.size), np.empty(own.size, np.uint64)
        _all(self._rule, *self._columns, own, others, probability, apart)
        return probability, apart

    def meet(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Which pairs of rows qualify: bool array."""
        out = np.empty(own.size, np.bool_)
        _meet(self._rule, *self._columns, own, others, out)
        return out


def _columns(side: PlacedEvents) -> Sequence[np.ndarray]:
    lengths = _NO_LENGTHS if side.lengths is None else side.lengths
    return side.times, lengths, no_points() if side.points is None else side.points


@compiled
def _merits(rule, gap, dh, s, left, right):
    """Probability, half ticks from the middle of the pair's window, and the distance of the output."""
    distance2 = rule.distance2_of(gap, dh)
    distance = math.sqrt(distance2)
    lo, hi = rule.window_at(distance2)
    probability, apart = rule.chance(gap, dh, s, left, right), rule.apart(s, left, right)
    if lo <= -UNBOUNDED and hi >= UNBOUNDED:
        return probability, np.uint64(0), distance
    if lo <= -UNBOUNDED:
        lo = hi
    elif hi >= UNBOUNDED:
        hi = lo
    return probability, distance_from_middle(apart, lo, hi), distance


@compiled(forceinline=True)
def _apart(points, points2, i, j):
    """The squared gap of the places of a pair, and the difference of heights; 0 without places."""
    if points.shape[0] == 0:
        return 0.0, 0.0
    return gap_between(points, i, points2, j), height_between(points, i, points2, j)


@compiled(allocates=True)
def _meet(rule, times, lengths, points, times2, lengths2, points2, own, others, out):
    """Whether each pair qualifies."""
    for k in range(own.size):
        i, j = own[k], others[k]
        gap, dh = _apart(points, points2, i, j)
        left, right = lengths[i] if lengths.size else 0, lengths2[j] if lengths2.size else 0
        out[k] = rule.meets(gap, dh, times2[j] - times[i], left, right)


@compiled(allocates=True)
def _merits_of(rule, times, lengths, points, times2, lengths2, points2, i, j):
    """`_merits` of the pair of rows i and j."""
    gap, dh = _apart(points, points2, i, j)
    left, right = lengths[i] if lengths.size else 0, lengths2[j] if lengths2.size else 0
    return _merits(rule, gap, dh, times2[j] - times[i], left, right)


@compiled(allocates=True)
def _best(
    rule, times, lengths, points, times2, lengths2, points2,
    offsets, own, others, ranks, out,
):  # fmt: skip
    """The best of each cause; parameters are those of `Merits.best`."""
    for cause in range(out.size):
        best = np.int64(-1)
        most, least = 0.0, (np.uint64(0), 0.0, np.int64(0))
        for k in range(offsets[cause], offsets[cause + 1]):
            probability, apart, distance = _merits_of(
                rule, times, lengths, points, times2, lengths2, points2, own[k], others[k]
            )
            place = apart, distance, ranks[others[k]]
            if best < 0 or is_better(probability, place, most, least):
                best, most, least = np.int64(k), probability, place
        out[cause] = best


@compiled(allocates=True)
def _all(
    rule, times, lengths, points, times2, lengths2, points2,
    own, others, probability, apart,
):  # fmt: skip
    """Probability and distance from the middle of each pair."""
    for k in range(own.size):
        probability[k], apart[k], _ = _merits_of(
            rule, times, lengths, points, times2, lengths2, points2, own[k], others[k]
        )
