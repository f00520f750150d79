"""The oracle of causality joins: every pair, in exact arithmetic.

Follows Kwon & Li (2009), "Causality Join Query Processing for Data Streams via a Spatiotemporal
Sliding Window", sections 3.1 and 4. An event is a tuple (time, place, key): ticks (int),
coordinates (a tuple of numbers) and anything; None for a time, a place, one coordinate or a key
matches nothing. Squared distances are Fractions; on a sphere they are Decimals of 60 digits, good to 40.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

from cpu_fallback.reference.decision import qualifies, satisfaction_probability
from cpu_fallback.reference.histograms import Histogram, histogram_probability

Number = Any
Place = Sequence[Number]
Event = tuple[Any, Any, Any]
Predicate = Callable[[int, Any], bool]
"""From delta, in ticks, and the squared distance, to whether they meet it."""

_DIGITS = 60
_ENOUGH = Decimal(10) ** -50


def temporal(lo: int | None, hi: int | None, strict: bool = False) -> Predicate:
    """lo <= delta <= hi, or strictly between: section 4.1."""
    return lambda delta, _: (
        (lo is None or _above(delta, lo, strict)) and (hi is None or _above(hi, delta, strict))
    )


def spatial(radius: Number, strict: bool = False) -> Predicate:
    """distance <= radius, or below it: section 4.2."""
    return lambda _, distance2: _above(_like(distance2, radius) ** 2, distance2, strict)


def propagation(tolerance: int, time: int, strict: bool = False) -> Predicate:
    """t_p <= delta <= t_p + tolerance, or strictly between, of a constant t_p: section 4.3."""
    return temporal(time, time + tolerance, strict)


def speed_range(
    v_min: Number, v_max: Number, early: int, late: int, strict: bool = False
) -> Predicate:
    """distance / v_max - early <= delta <= distance / v_min + late, or strictly between.

    Speeds are distances per tick. Section 4.3 with t_p = distance / v has v_min = v_max = v, early = 0 and
    late = tolerance. A None for v_max is a speed without bound; a None or 0 for v_min leaves out what is
    asked of the latest delta, at distance 0 as well.
    """

    def holds(delta: int, distance2: Number) -> bool:
        after, before = delta + early, delta - late
        if v_max is None:
            behind = _above(after, 0, strict)
        else:
            # distance / v_max <= after, of which the left is at least 0.
            behind = after >= 0 and _above(
                (_like(distance2, v_max) * after) ** 2, distance2, strict
            )
        if before < 0 or not v_min:
            return behind
        return behind and _above(distance2, (_like(distance2, v_min) * before) ** 2, strict)

    return holds


def ellipsoidal(radius: Number, duration: int, strict: bool = False) -> Predicate:
    """(distance / radius)² + (delta / duration)² <= 1, or below 1."""

    def holds(delta: int, distance2: Number) -> bool:
        r, d = _like(distance2, radius), _like(distance2, duration)
        return _above(
            _like(distance2, 1), distance2 / r**2 + (_like(distance2, delta) / d) ** 2, strict
        )

    return holds


def causality(
    causes: Sequence[Event],
    effects: Sequence[Event],
    predicates: Sequence[Predicate],
    distance2: Callable[[Place, Place], Number],
) -> list[tuple[int, int]]:
    """Rows of all pairs (cause, effect) that meet every predicate: Definition 1 over all data.

    Parameters
    ----------
    causes, effects : sequences of events
    predicates : sequence of predicates
    distance2 : callable
        Squared distance of two places: `plane_distance2`, or made by `sphere_distance2`.
    """
    return [
        (i, j)
        for i, cause in enumerate(causes)
        for j, effect in enumerate(effects)
        if _pairable(cause, effect) and _meets(cause, effect, predicates, distance2)
    ]


def causality_in_one(
    events: Sequence[Event],
    predicates: Sequence[Predicate],
    distance2: Callable[[Place, Place], Number],
) -> list[tuple[int, int]]:
    """As `causality`, of one stream: every event is a cause, and every other one may be its effect."""
    return [(i, j) for i, j in causality(events, events, predicates, distance2) if i != j]


def each_once(
    pairs: Sequence[tuple[int, int]], order: Callable[[int], Any]
) -> list[tuple[int, int]]:
    """Pairs of one stream in one order: of both that of the earlier event, by an order of rows."""
    known = set(pairs)
    return [(i, j) for i, j in pairs if order(i) < order(j) or (j, i) not in known]


def uncertain_causality(
    causes: Sequence[tuple[int, int, Place]],
    effects: Sequence[tuple[int, int, Place]],
    predicates: Sequence[Predicate],
    confidence: float,
    deltas: range,
) -> list[tuple[int, int]]:
    """Rows of all pairs of interval timestamps that qualify, in a plane.

    A pair's window is from the first to the last tick that the predicates admit at its distance. The pair
    qualifies when delta lies in it with enough probability.

    Parameters
    ----------
    causes, effects : sequences of (min_time, max_time, place)
        Uniform on intervals, ticks.
    predicates : sequence of predicates
        Of one interval of deltas at each distance.
    confidence : float
    deltas : range
        All that can be admitted.
    """
    found = []
    for i, (low, high, place) in enumerate(causes):
        for j, (first, last, where) in enumerate(effects):
            squared = plane_distance2(place, where)
            window = [d for d in deltas if all(each(d, squared) for each in predicates)]
            if window:
                p = satisfaction_probability(low, high, first, last, window[0], window[-1])
                if qualifies(p, confidence):
                    found.append((i, j))
    return found


def histogram_causality(
    causes: Sequence[tuple[Histogram, Place]],
    effects: Sequence[tuple[Histogram, Place]],
    predicates: Sequence[Predicate],
    confidence: float,
    deltas: range,
) -> list[tuple[int, int]]:
    """As `uncertain_causality`, of histogram timestamps: by the sum over pairs of buckets."""
    found = []
    for i, (cause, place) in enumerate(causes):
        for j, (effect, where) in enumerate(effects):
            squared = plane_distance2(place, where)
            window = [d for d in deltas if all(each(d, squared) for each in predicates)]
            if window:
                p = histogram_probability(cause, effect, window[0], window[-1])
                if qualifies(p, confidence):
                    found.append((i, j))
    return found


def clusters(n: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Of n rows the smallest row that each is connected to, by pairs."""
    label = list(range(n))
    changed = True
    while changed:
        changed = False
        for i, j in pairs:
            smaller = min(label[i], label[j])
            changed |= label[i] != smaller or label[j] != smaller
            label[i] = label[j] = smaller
    return label


def plane_distance2(a: Place, b: Place) -> Fraction:
    """Squared straight distance, exactly."""
    return sum(((Fraction(p) - Fraction(q)) ** 2 for p, q in zip(a, b, strict=True)), Fraction(0))


def sphere_distance2(radius: Number) -> Callable[[Place, Place], Decimal]:
    """Squared distance on a sphere: great circle² + (difference of heights)², if there are heights.

    Places are latitude and longitude in degrees, and perhaps a height.
    """

    def squared(a: Place, b: Place) -> Decimal:
        with localcontext() as context:
            context.prec = _DIGITS
            arc = Decimal(radius) * _arc(a[:2], b[:2])
            heights = Decimal(b[2]) - Decimal(a[2]) if len(a) == 3 else Decimal(0)
            return arc**2 + heights**2

    return squared


def _pairable(cause: Event, effect: Event) -> bool:
    whole = all(
        event[0] is not None and event[2] is not None and not _is_missing(event[1])
        for event in (cause, effect)
    )
    return whole and bool(cause[2] == effect[2])


def _is_missing(place: Place | None) -> bool:
    return place is None or any(each is None for each in place)


def _meets(
    cause: Event, effect: Event, predicates: Sequence[Predicate], distance2: Callable[..., Number]
) -> bool:
    delta, squared = effect[0] - cause[0], distance2(cause[1], effect[1])
    with localcontext() as context:
        context.prec = _DIGITS
        return all(predicate(delta, squared) for predicate in predicates)


def _above(a: Number, b: Number, strict: bool) -> bool:
    return bool(a > b) if strict else bool(a >= b)


def _like(model: Number, value: Number) -> Number:
    """A number of the kind that distances are."""
    if not isinstance(model, Decimal):
        return Fraction(value)
    if isinstance(value, Fraction):
        return Decimal(value.numerator) / Decimal(value.denominator)
    return Decimal(value)


def _arc(a: Place, b: Place) -> Decimal:
    """The angle between two directions, radians: by twice the arc sine of half the chord."""
    x, y = _direction(tuple(a)), _direction(tuple(b))
    half_chord2 = sum(((p - q) ** 2 for p, q in zip(x, y, strict=True)), Decimal(0)) / 4
    half_sum2 = max(Decimal(0), 1 - half_chord2)
    return 2 * _arc_tangent2(half_chord2.sqrt(), half_sum2.sqrt())


@cache
def _direction(place: Place) -> tuple[Decimal, Decimal, Decimal]:
    latitude, longitude = (Decimal(each) * pi() / 180 for each in place)
    sine, cosine = _sine(latitude), _sine(latitude + pi() / 2)
    return cosine * _sine(longitude + pi() / 2), cosine * _sine(longitude), sine


def _sine(angle: Decimal) -> Decimal:
    """By its power series."""
    term = total = angle
    n = 1
    while abs(term) > _ENOUGH:
        term *= -angle * angle / ((n + 1) * (n + 2))
        total += term
        n += 2
    return total


def _arc_tangent2(y: Decimal, x: Decimal) -> Decimal:
    """The angle of a point in the first quadrant, by halving it until its power series is short."""
    if y > x:
        return pi() / 2 - _arc_tangent2(x, y)
    if x == 0:
        return Decimal(0)
    ratio, doublings = y / x, 0
    while ratio > Decimal("0.05"):
        ratio = ratio / (1 + (1 + ratio**2).sqrt())
        doublings += 1
    term, total, n = ratio, ratio, 1
    while abs(term) > _ENOUGH:
        term *= -(ratio**2)
        n += 2
        total += term / n
    return total * 2**doublings


@cache
def pi() -> Decimal:
    """By Machin's formula, in the current precision."""
    return 16 * _inverse_tangent(5) - 4 * _inverse_tangent(239)


def _inverse_tangent(n: int) -> Decimal:
    """The arc tangent of 1 / n."""
    power = total = Decimal(1) / n
    k = 1
    while abs(power) > _ENOUGH:
        power /= -(n * n)
        k += 2
        total += power / k
    return total
