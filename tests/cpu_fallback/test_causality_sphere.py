"""Causality joins of latitudes and longitudes against decimals of sixty digits."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import CausalityCondition, Plane, Spatial, Sphere, Temporal
from coincide.model.causality.spaces import (
    MOST_LATITUDE,
    MOST_LONGITUDE,
    PlacedEvents,
    squared_arc,
    unit_vectors,
)
from coincide.model.units import Tick
from cpu_fallback.causality import CausalityJoin
from cpu_fallback.reference import causality as reference
from tests.cpu_fallback.test_causality import WAYS, pairs_of
from tests.helpers.causality_cases import (
    EARTH,
    Case,
    clear_pairs,
    has_heights,
    sides_of,
    sphere_cases,
)


def check(case: Case) -> None:
    places = [event[1] for event in (*case.causes, *case.effects) if event[1] is not None]
    # Others are refused before a join is made, and the reference knows no such bound.
    assert all(
        abs(place[0]) <= MOST_LATITUDE and abs(place[1]) <= MOST_LONGITUDE for place in places
    )
    model = CausalityCondition(case.predicates, case.space).model(Tick(), has_heights(case))
    sides, (sure, possible) = sides_of(case), clear_pairs(case)
    found = [pairs_of(CausalityJoin(*sides, model, way=way)) for way in WAYS]
    assert set(sure) <= set(found[0]) <= set(possible)
    assert all(each == found[0] for each in found)


@settings(max_examples=50)
@given(sphere_cases())
def test_every_way_finds_what_decimals_find(case: Case) -> None:
    check(case)


@pytest.mark.slow
@settings(max_examples=500)
@given(sphere_cases())
def test_every_way_finds_what_decimals_find_at_length(case: Case) -> None:
    check(case)


@settings(max_examples=40)
@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(-90, 90), st.floats(-180, 180))
def test_distances(lat: float, lon: float, lat2: float, lon2: float) -> None:
    events = [
        PlacedEvents(np.zeros(1, np.int64), Sphere(EARTH).points([np.array([a]), np.array([b])]))
        for a, b in ((lat, lon), (lat2, lon2))
    ]
    model = CausalityCondition(Spatial(1), Sphere(EARTH)).model(Tick())
    _, distance = CausalityJoin(*events, model).measured(
        np.zeros(1, np.int64), np.zeros(1, np.int64)
    )
    exact = reference.sphere_distance2(EARTH)((lat, lon), (lat2, lon2)).sqrt()
    # A chord near its longest says little of the arc: there the error is the root of that of a unit vector.
    near = min(exact, abs(Decimal(math.pi * EARTH) - exact))
    error = Decimal("1e-8") if near == exact else Decimal("3e-4")
    assert abs(Decimal(float(distance[0])) - exact) <= error


def test_antipodes_are_as_far_apart_as_can_be() -> None:
    """But for the root of what the coordinates of two unit vectors err by: 30 cm on the Earth."""
    rng = np.random.default_rng(3)
    lat, lon = rng.uniform(-90, 90, 5000), rng.uniform(-180, 0, 5000)
    sides = [
        PlacedEvents(np.zeros(5000, np.int64), Sphere(EARTH).points([a, b]))
        for a, b in ((lat, lon), (-lat, lon + 180))
    ]
    model = CausalityCondition(Temporal(0, 0), Sphere(EARTH)).model(Tick())
    _, distance = CausalityJoin(*sides, model).measured(np.arange(5000), np.arange(5000))
    assert 1e-5 < np.abs(distance - math.pi * EARTH).max() <= 3e-4


@pytest.mark.parametrize("c", [0.0, 2.0**-60, 2.0**-10, 2.0**-9, 2.0**-4, 0.07, 1.0, 2.0, 3.9, 4.0])
def test_squared_arc(c: float) -> None:
    for value in (math.nextafter(c, -1.0), c, math.nextafter(c, 9.0)):
        if 0 <= value <= 4:
            exact = (2 * math.asin(min(1.0, math.sqrt(value) / 2))) ** 2
            assert squared_arc(value) == pytest.approx(exact, rel=4e-15 if value < 3.99 else 1e-7)


def places_of(*given: tuple[float, float]) -> list[list[float]]:
    found = np.empty((3, len(given)))
    unit_vectors(*(np.array(column, np.float64) for column in zip(*given, strict=True)), found)
    places: list[list[float]] = found.T.tolist()
    return places


def test_a_place_has_one_vector() -> None:
    poles = places_of((90, 0), (90, 123.4), (90, -180))
    assert poles[0] == poles[1] == poles[2]
    line = places_of((12.3, 180), (12.3, -180))
    assert line[0] == line[1]
    turns = places_of((-7, 350), (-7, -10))
    assert turns[0] == turns[1]
    assert places_of((0, 0), (0, 90), (90, 0), (0, 180)) == [
        *([1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0]),
    ]


def random_places(n: int, extent: float, seed: int) -> PlacedEvents:
    rng = np.random.default_rng(seed)
    columns = [rng.uniform(-extent, extent, n), 180 + 2 * rng.uniform(-extent, extent, n)]
    return PlacedEvents(rng.integers(0, 50, n), Sphere().points(columns))


@pytest.mark.parametrize(("extent", "radius"), [(3.0, 40.0), (89.0, 900.0)])
def test_a_grid_on_the_sphere_tests_few_candidates(extent: float, radius: float) -> None:
    causes, effects = (random_places(3000, extent, seed) for seed in (1, 2))
    model = CausalityCondition(Spatial(radius), Sphere()).model(Tick())
    joins: list[Any] = [CausalityJoin(causes, effects, model, way=way) for way in ("grid", "time")]
    assert pairs_of(joins[0]) == pairs_of(joins[1])
    assert joins[0].way == "grid"
    assert 0 < joins[0].counters.probed <= 3 * joins[0].counters.pairs


@pytest.mark.parametrize("c", [2.0**-4, 0.06, 0.031, 0.0123, 2.0**-10, 1e-3, 9e-4, 1e-7])
def test_the_series_is_good_to_some_units(c: float) -> None:
    """arc² = Σ 2 c^n / (n² C(2n, n)), of as many terms as matter."""
    exact = sum(2 * Fraction(c) ** n / (n * n * math.comb(2 * n, n)) for n in range(1, 30))
    assert abs(Fraction(squared_arc(c)) - exact) <= 4 * Fraction(2) ** -53 * exact


def test_a_strict_radius_is_too_far() -> None:
    near, strict = (
        CausalityCondition([Spatial(100, strict=strict), Temporal(0, 9)], Sphere())
        .model(Tick())
        .rule.near
        for strict in (False, True)
    )
    assert strict == math.nextafter(near, 0)


def test_minus_zero_is_zero() -> None:
    """In a plane as on a sphere: places are told apart by their bits."""
    zero = np.array([-0.0])
    for points in (Plane().points([zero] * 3), Sphere().points([zero] * 3)):
        assert not np.signbit(points).any()
