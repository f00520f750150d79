"""Adversarial causality joins: events, predicates, and what the reference makes of both.

In a plane all numbers are small and dyadic, so that every step of the product is exact and ties on bounds
are decided as by fractions. On a sphere pairs that lie on a bound are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from coincide import Ellipsoidal, Plane, Propagation, Spatial, SpeedRange, Sphere, Temporal
from coincide.model.causality.spaces import PlacedEvents
from cpu_fallback.reference import causality as reference

Event = reference.Event
Pairs = list[tuple[int, int]]
EARTH = 6371.0


class Case(NamedTuple):
    """Events of both sides, predicates for the product and for the reference, and the space."""

    causes: list[Event]
    effects: list[Event]
    predicates: list[Any]
    exact: list[reference.Predicate]
    space: Plane | Sphere


def _temporal(draw: Any) -> tuple[Any, reference.Predicate]:
    lo = draw(st.integers(-8, 12))
    hi, strict = lo + draw(st.integers(2, 30)), draw(st.booleans())
    return Temporal(lo, hi, strict), reference.temporal(lo, hi, strict)


def _one_sided(draw: Any) -> tuple[Any, reference.Predicate]:
    end, strict = draw(st.integers(-8, 12)), draw(st.booleans())
    lo, hi = draw(st.sampled_from([(end, None), (None, end)]))
    return Temporal(lo, hi, strict), reference.temporal(lo, hi, strict)


def _spatial(draw: Any) -> tuple[Any, reference.Predicate]:
    strict = draw(st.booleans())
    radius = draw(st.integers(int(strict), 14)) / 2
    return Spatial(radius, strict), reference.spatial(radius, strict)


def _propagation(draw: Any) -> tuple[Any, reference.Predicate]:
    tolerance, strict = draw(st.integers(0, 12)), draw(st.booleans())
    if draw(st.booleans()):
        time = draw(st.integers(0, 6))
        tolerance += 2 * strict
        predicate = Propagation(tolerance, time=time, strict=strict)
        return predicate, reference.propagation(tolerance, time, strict)
    speed = draw(st.integers(1, 8)) / 4
    predicate = Propagation(tolerance, speed=speed, per=None, strict=strict)
    return predicate, reference.speed_range(speed, speed, 0, tolerance, strict)


def _speeds(draw: Any) -> tuple[Any, reference.Predicate]:
    slack, strict = draw(st.integers(0, 5)), draw(st.booleans())
    slowest = draw(st.sampled_from([None, 0, *(k / 4 for k in range(1, 9))]))
    fastest = draw(st.sampled_from([None, *((slowest or 0.25) + k / 4 for k in range(9))]))
    if not (slowest or fastest):
        fastest = 1.0
    words = {None: draw(st.sampled_from([None, "any"]))}
    predicate = SpeedRange(
        words.get(slowest, slowest), words.get(fastest, fastest), slack, per=None, strict=strict
    )
    return predicate, reference.speed_range(slowest, fastest, slack, slack, strict)


def _ellipsoid(draw: Any) -> tuple[Any, reference.Predicate]:
    radius, duration = draw(st.integers(1, 14)) / 2, draw(st.integers(1, 20))
    strict = draw(st.booleans())
    predicate = Ellipsoidal(radius, duration, strict)
    return predicate, reference.ellipsoidal(radius, duration, strict)


KINDS: tuple[Callable[[Any], tuple[Any, reference.Predicate]], ...] = (
    *(_temporal, _spatial, _propagation, _speeds, _ellipsoid, _one_sided),
)


def _conjunction(draw: Any) -> tuple[list[Any], list[reference.Predicate]]:
    # At most two of each: a condition holds no more.
    kinds = draw(st.lists(st.sampled_from(KINDS * 2), min_size=1, max_size=3))
    found = [kind(draw) for kind in kinds if kinds.count(kind) <= 2]
    return [p for p, _ in found] or [Temporal(0, 9)], [r for _, r in found] or [
        reference.temporal(0, 9)
    ]


def _event(draw: Any, place: Callable[[], tuple[float, ...]]) -> Event:
    rare = draw(st.integers(0, 40))
    time = None if rare == 40 else draw(st.integers(-10, 40))
    where = None if rare == 39 else place()
    key = None if rare == 38 else draw(st.sampled_from("aaab"))
    return time, where, key


def _events(draw: Any, place: Callable[[], tuple[float, ...]], most: int) -> list[Event]:
    events = [_event(draw, place) for _ in range(draw(st.integers(0, most)))]
    if events and draw(st.booleans()):
        events += events[:2]
    return events


@st.composite
def plane_cases(draw: Any, most: int = 10) -> Case:
    """Cases in one to three dimensions, on a coarse grid or with few places."""
    dimensions, few = draw(st.integers(1, 3)), draw(st.booleans())
    coordinate = st.integers(-1, 1) if few else st.integers(-24, 24)

    def place() -> tuple[float, ...]:
        return tuple(draw(coordinate) / 2 for _ in range(dimensions))

    predicates, exact = _conjunction(draw)
    causes, effects = _events(draw, place, most), _events(draw, place, most)
    return Case(causes, effects, predicates, exact, Plane())


DEGREES = (0.0, 0.001, 0.02, -0.03, 1.0, -2.0, 44.99, 45.0, 60.0)


@st.composite
def sphere_cases(draw: Any, most: int = 5) -> Case:
    """Cases near a pole, across the date line, at antipodes and elsewhere, with and without heights."""
    heights = draw(st.booleans())
    centre = draw(st.sampled_from([(90, 0), (-90, 17), (0, 180), (42, -180), (0, 0), (42.8, 13.1)]))

    def place() -> tuple[float, ...]:
        latitude = centre[0] + draw(st.sampled_from(DEGREES)) * draw(st.sampled_from([1, -1]))
        longitude = centre[1] + draw(st.sampled_from(DEGREES)) * draw(st.sampled_from([1, -1, 3]))
        latitude = 180 - latitude if latitude > 90 else max(-180 - latitude, latitude)
        if draw(st.integers(0, 9)) == 9:
            # The antipode, within the 360 degrees that a longitude may have.
            latitude, longitude = -latitude, longitude - math.copysign(180, longitude)
        return (latitude, longitude, float(draw(st.integers(-3, 9))))[: 3 if heights else 2]

    scale = draw(st.sampled_from([1, 100, 8000]))
    radius, slowest = draw(st.integers(0, 9)) * scale * 0.97, draw(st.integers(1, 9)) * scale / 7
    kinds = [
        (Spatial(radius), reference.spatial(radius)),
        (
            SpeedRange(slowest, 2 * slowest, 2, per=None),
            reference.speed_range(slowest, 2 * slowest, 2, 2),
        ),
        (Ellipsoidal(radius + 1, 20), reference.ellipsoidal(radius + 1, 20)),
    ]
    chosen = draw(st.lists(st.sampled_from(kinds), max_size=2, unique_by=id))
    chosen.append((Temporal(-5, 30), reference.temporal(-5, 30)))
    predicates, exact = ([each[k] for each in chosen] for k in range(2))
    causes, effects = _events(draw, place, most), _events(draw, place, most)
    return Case(causes, effects, predicates, exact, Sphere(EARTH))


def sides_of(case: Case) -> tuple[PlacedEvents, PlacedEvents]:
    """Both sides of a case as arrays; what matches nothing has no group."""
    keys = sorted({event[2] for event in (*case.causes, *case.effects) if event[2] is not None})
    places = [e[1] for e in (*case.causes, *case.effects) if e[1] is not None]
    dimensions = len(places[0]) if places else case.space.dimensions[0]
    own, others = (_side(events, case, keys, dimensions) for events in (case.causes, case.effects))
    return own, others


def _side(events: list[Event], case: Case, keys: Sequence[str], dimensions: int) -> PlacedEvents:
    whole = [None not in event for event in events]
    times = np.array([time or 0 for time, _, _ in events], np.int64)
    columns = [
        np.array([where[d] if where else np.nan for _, where, _ in events], np.float64)
        for d in range(dimensions)
    ]
    group = [keys.index(e[2]) if ok else -1 for e, ok in zip(events, whole, strict=True)]
    points = case.space.points(columns)
    return PlacedEvents(times, points, None, np.array(group, np.int64), max(1, len(keys)))


def has_heights(case: Case) -> bool:
    """Whether places of a case on a sphere have three coordinates."""
    return any(e[1] is not None and len(e[1]) == 3 for e in (*case.causes, *case.effects))


def exact_pairs(case: Case) -> Pairs:
    """What the reference finds in a plane."""
    return reference.causality(case.causes, case.effects, case.exact, reference.plane_distance2)


def clear_pairs(case: Case) -> tuple[Pairs, Pairs]:
    """What must be found on a sphere, and what may be: pairs on a bound are in the second alone."""
    distance2 = reference.sphere_distance2(EARTH)

    def squared(factor: int) -> Callable[[Any, Any], Decimal]:
        def of(a: Any, b: Any) -> Decimal:
            distance = distance2(a, b).sqrt()
            if distance < Decimal("1e-20"):
                return Decimal(0)
            error = distance * Decimal("1e-12") + Decimal("1e-8")
            return max(Decimal(0), distance + factor * error) ** 2

        return of

    found = [
        set(reference.causality(case.causes, case.effects, case.exact, squared(factor)))
        for factor in (-1, 0, 1)
    ]
    return sorted(set.intersection(*found)), sorted(set.union(*found))
