"""The decision on a pair of events, and the window on delta that a distance leaves."""

from __future__ import annotations

import math
from typing import NamedTuple

from coincide.model.causality.limits import (
    AHEAD,
    NOWHERE,
    STRICT,
    Ellipsoid,
    Front,
    Limits,
)
from coincide.model.causality.spaces import Space, Sphere, squared_arc, squared_chord
from coincide.model.compiled import compiled, product
from coincide.model.probability import DECISION_SLACK, window_probability
from coincide.model.units import UNBOUNDED

_MERITS = 2.0**40
_SPREAD = 2.0**-40
"""How far off a root may be, relatively, from where a front's comparison changes: far more than it is."""


@compiled(forceinline=True)
def squared_gap(dx, dy, dz):
    """|x - y|² of two points, from the differences of their coordinates."""
    return product(dx, dx) + product(dy, dy) + product(dz, dz)


@compiled(forceinline=True)
def squared_distance(curvature, gap, dh):
    """The squared distance of two places: `coincide.model.causality.spaces`."""
    if curvature == 0.0:
        return gap
    return product(curvature, squared_arc(gap)) + product(dh, dh)


@compiled
def distance_between(curvature, gap, dh):
    """The distance of two places: the root of `squared_distance`."""
    return math.sqrt(squared_distance(curvature, gap, dh))


@compiled(forceinline=True)
def front_holds(front, distance2, delta):
    """Whether the effect lies where a front wants it: behind it, or not yet; True of no front."""
    if front.kind == NOWHERE:
        return True
    ticks = delta + front.shift
    travelled = front.speed * float(ticks)
    travelled, ahead = travelled * travelled, product(distance2, front.per2)
    strict = front.kind & STRICT
    if front.kind < AHEAD:
        return ticks >= strict and (travelled > ahead or (travelled == ahead and strict == 0))
    if ticks <= 0:
        return ticks < 0 or strict == 0 or ahead > 0.0
    return travelled < ahead or (travelled == ahead and strict == 0)


@compiled(forceinline=True)
def is_inside(ellipsoid, distance2, delta):
    """Whether a pair lies in an ellipsoid; True of none."""
    if ellipsoid.duration2 < 0.0:
        return True
    time = float(delta)
    own = product(distance2, ellipsoid.duration2) + product(time * time, ellipsoid.radius2)
    return own < ellipsoid.both or (own == ellipsoid.both and not ellipsoid.strict)


@compiled(forceinline=True)
def accepts(rule, gap, dh, delta):
    """Whether a pair of exact instants qualifies."""
    if delta < rule.lo or delta > rule.hi or not gap <= rule.near:
        return False
    if not rule.measured:
        return True
    distance2 = squared_distance(rule.curvature, gap, dh)
    if not distance2 <= rule.bound:
        return False
    # One by one: a loop over the tuple would keep it in memory.
    return (
        front_holds(rule.behind, distance2, delta)
        and front_holds(rule.ahead, distance2, delta)
        and is_inside(rule.ellipsoid, distance2, delta)
        and front_holds(rule.also_behind, distance2, delta)
        and front_holds(rule.also_ahead, distance2, delta)
        and is_inside(rule.also_ellipsoid, distance2, delta)
    )


@compiled
def probability_of(rule, gap, dh, s, l1, l2):
    """The probability that a pair of interval timestamps qualifies."""
    if l1 == 0 and l2 == 0:
        return 1.0 if accepts(rule, gap, dh, s) else 0.0
    lo, hi = window_of(rule, gap, dh)
    if lo > hi:
        return 0.0
    return window_probability(s, l1, l2, lo, hi)


@compiled
def window_of(rule, gap, dh):
    """The window on delta of a pair of places, ticks, inclusive; lo > hi if it is empty."""
    if not gap <= rule.near:
        return 0, -1
    distance2 = squared_distance(rule.curvature, gap, dh)
    if not distance2 <= rule.bound:
        return 0, -1
    return window_between(rule, distance2, distance2)


@compiled(forceinline=True)
def comparable(probability):
    """A probability by which pairs are compared: to one part in 2**40, so that what is equal stays so."""
    return math.floor(product(probability, _MERITS) + 0.5) / _MERITS


@compiled
def window_between(rule, nearest, farthest):
    """The window on delta of pairs whose squared distance is from `nearest` to `farthest`."""
    # With one distance it is exact: the deltas from lo to hi are those that `accepts` accepts.
    # One by one: a loop over the tuple would keep it in memory.
    lo = max(rule.lo, _first_behind(rule.behind, nearest), _first_behind(rule.also_behind, nearest))
    hi = min(rule.hi, _last_ahead(rule.ahead, farthest), _last_ahead(rule.also_ahead, farthest))
    half = min(_half_axis(rule.ellipsoid, nearest), _half_axis(rule.also_ellipsoid, nearest))
    return max(lo, -half), min(hi, half)


@compiled
def _first_behind(front, distance2):
    """The first delta at which the effect is behind a front; `UNBOUNDED` for none that is."""
    if front.kind == NOWHERE:
        return -UNBOUNDED
    _, high = _arrival(front, distance2, False)
    return UNBOUNDED if high == UNBOUNDED else high - front.shift


@compiled
def _last_ahead(front, distance2):
    """The last delta at which the effect is not behind a front; `UNBOUNDED` for no last one."""
    if front.kind == NOWHERE:
        return UNBOUNDED
    low, high = _arrival(front, distance2, True)
    return UNBOUNDED if high == UNBOUNDED else low - front.shift


@compiled(forceinline=True)
def _arrival(front, distance2, is_ahead):
    """The last ticks of travel after which the front has not reached the effect, and the first ones."""
    ticks = math.sqrt(distance2 * front.per2) / front.speed
    if not ticks < UNBOUNDED:
        return UNBOUNDED - 1, UNBOUNDED
    spread = product(ticks, _SPREAD)
    low, high = int(ticks - spread) - 2, int(ticks + spread) + 2
    low = max(low, -1)  # before the front left nothing is behind it
    while high - low > 1:
        middle = low + (high - low) // 2
        if front_holds(front, distance2, middle - front.shift) == is_ahead:
            low = middle
        else:
            high = middle
    return low, high


@compiled
def _half_axis(ellipsoid, distance2):
    """The last delta inside an ellipsoid at a distance; -1 for none, which makes a window empty."""
    if ellipsoid.duration2 < 0.0:
        return UNBOUNDED
    if not is_inside(ellipsoid, distance2, 0):
        return -1
    low, high = 0, int(math.sqrt(ellipsoid.duration2)) + 2
    while high - low > 1:
        middle = low + (high - low) // 2
        if is_inside(ellipsoid, distance2, middle):
            low = middle
        else:
            high = middle
    return low


_GUARD = 1e-9


class PairRule(NamedTuple):
    """Decides pairs: `coincide.model.causality.deciding`."""

    lo: int  # The window on delta whatever the distance, ticks, inclusive
    hi: int  # The window on delta whatever the distance, ticks, inclusive
    near: float
    measured: bool  # Whether anything else depends on the distance
    bound: float  # The largest squared distance
    curvature: float  # Squared radius of the sphere; 0 of a plane
    behind: Front  # That the effect lies behind
    also_behind: Front  # That the effect lies behind
    ahead: Front  # That it does not lie behind
    also_ahead: Front  # That it does not lie behind
    ellipsoid: Ellipsoid
    also_ellipsoid: Ellipsoid
    threshold: float  # The least probability that qualifies, where timestamps are intervals

    @property
    def is_temporal(self) -> bool:
        """Whether no pair is too far for any delta."""
        return not self.measured and math.isinf(self.near)

    def meets(self, gap, dh, s, left, right):
        """Whether a pair qualifies."""
        if left == 0 and right == 0:
            return accepts(self, gap, dh, s)
        return probability_of(self, gap, dh, s, left, right) >= self.threshold

    def chance(self, gap, dh, s, left, right):
        """The probability of a pair that qualifies, for best effects: `comparable`."""
        if left == 0 and right == 0:
            return 1.0
        return comparable(probability_of(self, gap, dh, s, left, right))

    def apart(self, s, left, right):
        """Twice the difference of a pair's middles, half ticks; parameters as in `meets`."""
        return 2 * s - right + left

    def window_at(self, distance2):
        """The window on delta of a squared distance, ticks, inclusive."""
        return window_between(self, distance2, distance2)

    def distance2_of(self, gap, dh):
        """The squared distance of a pair; parameters as in `meets`."""
        return squared_distance(self.curvature, gap, dh)

    def distance_of(self, gap, dh):
        """The distance of a pair; parameters as in `meets`."""
        return distance_between(self.curvature, gap, dh)


def pair_rule(limits: Limits, space: Space, heights: bool, confidence: float) -> PairRule:
    """The rule of limits in a space."""
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
