"""The decision on a pair, as kernels take it: numbers alone."""

from __future__ import annotations

import math
from typing import NamedTuple

from coincide.cause_and_effect.deciding import (
    accepts,
    distance_between,
    probability_of,
    squared_distance,
    told_apart,
    window_between,
)
from coincide.cause_and_effect.limits import Ellipsoid, Front, Limits
from coincide.cause_and_effect.spaces import Space, Sphere
from coincide.cause_and_effect.sphere import squared_chord
from coincide.probability import DECISION_SLACK

_GUARD = 1e-9


class PairRule(NamedTuple):
    """Decides pairs: `coincide.cause_and_effect.deciding`.

    Parameters
    ----------
    lo, hi : int
        The window on delta whatever the distance, ticks, inclusive.
    near : float
        The largest |x - y|²: in a plane the largest squared distance, on a sphere a squared chord.
    measured : bool
        Whether anything else depends on the distance.
    bound : float
        The largest squared distance.
    curvature : float
        Squared radius of the sphere; 0 of a plane.
    behind, also_behind : Front
        That the effect lies behind.
    ahead, also_ahead : Front
        That it does not lie behind.
    ellipsoid, also_ellipsoid : Ellipsoid
    threshold : float
        The least probability that qualifies, where timestamps are intervals.
    """

    lo: int
    hi: int
    near: float
    measured: bool
    bound: float
    curvature: float
    behind: Front
    also_behind: Front
    ahead: Front
    also_ahead: Front
    ellipsoid: Ellipsoid
    also_ellipsoid: Ellipsoid
    threshold: float

    @property
    def is_temporal(self) -> bool:
        """Whether no pair is too far for any delta."""
        return not self.measured and math.isinf(self.near)

    def meets(self, gap, dh, s, left, right):
        """Whether a pair qualifies.

        Parameters
        ----------
        gap : float64
            |x - y|².
        dh : float64
            Difference of heights over a sphere.
        s : int64
            max_effect - max_cause, ticks.
        left, right : int64
            Lengths of the cause's and of the effect's timestamp, ticks: of instants 0.
        """
        if left == 0 and right == 0:
            return accepts(self, gap, dh, s)
        return probability_of(self, gap, dh, s, left, right) >= self.threshold

    def chance(self, gap, dh, s, left, right):
        """The probability of a pair that qualifies, for best effects: `told_apart`."""
        if left == 0 and right == 0:
            return 1.0
        return told_apart(probability_of(self, gap, dh, s, left, right))

    def apart(self, s, left, right):
        """Twice the difference of a pair's middles, half ticks; parameters as of `meets`."""
        return 2 * s - right + left

    def window_at(self, distance2):
        """The window on delta of a squared distance, ticks, inclusive."""
        return window_between(self, distance2, distance2)

    def distance2_of(self, gap, dh):
        """The squared distance of a pair; parameters as of `meets`."""
        return squared_distance(self.curvature, gap, dh)

    def distance_of(self, gap, dh):
        """The distance of a pair; parameters as of `meets`."""
        return distance_between(self.curvature, gap, dh)


def pair_rule(limits: Limits, space: Space, heights: bool, confidence: float) -> PairRule:
    """The rule of limits in a space.

    Parameters
    ----------
    limits : Limits
    space : Space
    heights : bool
        Whether places on a sphere have heights: then the arc alone does not say how far they are.
    confidence : float
    """
    near, bound = limits.bound, math.inf
    if isinstance(space, Sphere):
        near = _largest_chord(limits, space)
        if heights:
            near, bound = near * (1 + _GUARD), limits.bound
    measured = bool(limits.fronts or limits.ellipsoids or bound < math.inf)
    behind, also_behind, *_ = [*(f for f in limits.fronts if not f.is_ahead), Front(), Front()]
    ahead, also_ahead, *_ = [*(f for f in limits.fronts if f.is_ahead), Front(), Front()]
    ellipsoid, also_ellipsoid, *_ = [*limits.ellipsoids, Ellipsoid(), Ellipsoid()]
    return PairRule(
        limits.lo, limits.hi, near, measured, bound, space.curvature,
        behind, also_behind, ahead, also_ahead, ellipsoid, also_ellipsoid, confidence - DECISION_SLACK,
    )  # fmt: skip


def _largest_chord(limits: Limits, space: Sphere) -> float:
    """The largest squared chord of the unit sphere: 4 sin²(radius / 2R)."""
    arc = limits.radius / space.radius
    if arc > math.pi:
        return math.inf
    chord: float = squared_chord(arc)
    return math.nextafter(chord, -math.inf) if limits.strict else chord
