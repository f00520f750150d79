"""Causality conditions: what they refuse, their limits in ticks, and windows that are exact."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    CausalityCondition,
    ConditionError,
    Ellipsoidal,
    Plane,
    Propagation,
    Spatial,
    SpeedRange,
    Sphere,
    Temporal,
)
from coincide.model.causality.deciding import accepts, window_between
from coincide.model.causality.spaces import largest_square
from coincide.model.units import UNBOUNDED, Tick
from cpu_fallback.reference import causality as reference
from cpu_fallback.reference.windowed_causality import longest_delta
from tests.helpers.causality_cases import KINDS

REFUSED: list[tuple[Any, str]] = [
    (lambda: Spatial(-1), "radius must be 0, or from 1e-100"),
    (lambda: Spatial(math.inf), "finite"),
    (lambda: Spatial(math.nan), "finite"),
    (lambda: Spatial("3"), "radius must be a number"),
    (lambda: Spatial(True), "radius must be a number"),
    (lambda: Spatial(3, strict=1), "strict must be True or False"),
    (lambda: SpeedRange(None, "any"), "needs a lowest or a highest speed .found neither"),
    (lambda: SpeedRange(0, math.inf), "needs a lowest or a highest speed .found neither"),
    (lambda: SpeedRange("slow", 1), 'v_min must be a number, or None or "any"'),
    (lambda: SpeedRange(False, 1), 'v_min must be a number, or None or "any"'),
    (lambda: SpeedRange(1, 0), 'v_max must be from 1e-100 .*, or None or "any"'),
    (lambda: SpeedRange(-1, 1), "v_min must be"),
    (lambda: SpeedRange(2, 1), r"v_min \(2\) is above v_max \(1\). Swap"),
    (lambda: SpeedRange(math.inf, math.inf), "v_min must be"),
    (lambda: SpeedRange(1, math.nan), "v_max must be"),
    (lambda: SpeedRange(1, 2, "-1s"), "slack must not be negative"),
    (lambda: SpeedRange(1, 2, -1), "slack must not be negative"),
    (lambda: SpeedRange(1, 2, per="fortnight"), "is unknown. Use one of"),
    (lambda: SpeedRange(1, 2, per=1), "per must be a unit of time"),
    (lambda: Propagation("1s"), "found neither"),
    (lambda: Propagation("1s", time=0, speed=1), "found both"),
    (lambda: Propagation(-1, time=0), "tolerance must not be negative"),
    (lambda: Propagation(1, speed=0), "speed must be"),
    (lambda: Ellipsoidal(0, 1), "radius must be"),
    (lambda: Ellipsoidal(1, 0), "duration must be above 0"),
    (lambda: Ellipsoidal(1, "0s"), "duration must be above 0"),
    (lambda: Temporal(None, None), "at least one bound"),
    (lambda: Temporal(0.5, 1), "a duration is an int"),
    (lambda: Plane((1, 2, 3, 4)), "one to three"),
    (lambda: Plane(("a",)), "scale must be a number"),
    (lambda: Plane(3), "scale must be a sequence"),
    (lambda: Sphere(0), "radius must be"),
    (lambda: CausalityCondition([]), "found no predicate"),
    (lambda: CausalityCondition([Spatial]), "found <class"),
    (lambda: CausalityCondition(Spatial(1), space="plane"), "space must be"),
    (lambda: CausalityCondition(Spatial(1), confidence=0), "confidence threshold must lie"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refused(make: Any, words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        make()


@pytest.mark.parametrize(
    ("predicates", "words"),
    [
        ([Temporal(5, 3)], "contains no tick. Swap"),
        ([Temporal(0, 1, strict=True)], "contains no tick. Widen"),
        ([Temporal(0, 3), Temporal(4, 9)], "no time difference meets"),
        ([Spatial(0, strict=True)], "the radius is 0 and strict"),
        ([Temporal(0, None)], "limits neither the time nor the distance between cause"),
        ([SpeedRange(1, 2, per=None)], "limits neither the time nor the distance between cause"),
        ([SpeedRange(1, 2)], "speeds are per s, but the unit of the time columns is"),
        ([Temporal("1s", "2s")], "has a unit, but the unit of the time columns is unknown"),
        ([SpeedRange(None, 2, per=None)], "limits neither the time nor the distance between cause"),
        ([SpeedRange(1, 2, per=None)] * 3 + [Spatial(1)], "at most 2 predicates on speeds"),
    ],
)
def test_refused_in_ticks(predicates: Any, words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        CausalityCondition(predicates).model(Tick())


def test_a_condition_is_a_value() -> None:
    condition = CausalityCondition([Spatial(1), Temporal(0, "1s")], Sphere())
    assert condition == CausalityCondition((Spatial(1.0), Temporal(0, "1s")), Sphere())
    assert pickle.loads(pickle.dumps(condition)) == condition
    assert hash(condition) == hash(pickle.loads(pickle.dumps(condition)))
    assert CausalityCondition(Temporal(0, 1)).predicates == (Temporal(0, 1),)
    assert condition.needs_places
    assert not CausalityCondition([Temporal(0, 1), Propagation(1, time=0)]).needs_places


@pytest.mark.parametrize(
    ("predicates", "tick", "window", "reach"),
    [
        ([Temporal(0, "2s", strict=True)], "ms", (1, 1999), math.inf),
        ([Spatial(80), SpeedRange(4, 8, "500ms")], "ms", (-500, 20_501), 80),
        ([Temporal(None, "2s"), SpeedRange(4, 8, "500ms")], "us", (-500_000, 2_000_000), 20),
        ([Ellipsoidal(3, "150ms")], "us", (-150_000, 150_000), 3),
        ([Propagation("1s", speed=2), Spatial(6)], "ms", (0, 4001), 6),
        ([Propagation("1s", time="3s")], "ms", (3000, 4000), math.inf),
        ([SpeedRange(4, 8, per="h"), Spatial(2)], "s", (0, 1801), 2),
        ([SpeedRange(4, math.inf, "1s"), Spatial(2)], "s", (-1, 2), 2),
        ([SpeedRange(1, 2, per="ms"), Spatial(2)], "s", (0, 1), 2),
    ],
)
def test_windows_and_reach(predicates: Any, tick: str, window: Any, reach: float) -> None:
    model = CausalityCondition(predicates).model(Tick(tick))
    assert model.window == window
    assert model.reach == pytest.approx(reach, rel=1e-8)


@pytest.mark.parametrize(
    ("predicates", "tick", "deltas"),
    [
        ([Spatial(80), SpeedRange(4, 8, "500ms")], "ms", (-500, 20_500)),
        ([Spatial(80, True), SpeedRange(4, 8, "500ms")], "ms", (-500, 20_499)),
        ([Spatial(80), SpeedRange(4, 8, "500ms", strict=True)], "ms", (-499, 20_499)),
        ([Propagation("1s", speed=2), Spatial(6)], "ms", (0, 4000)),
        ([Spatial(0.3), SpeedRange(0.1, 0.7)], "us", (0, 3_000_000)),
        ([Spatial(3), SpeedRange(0.07, 7, per="ms")], "s", (0, 0)),
        ([Spatial(3), SpeedRange(0.07, 7, per="h")], "s", (0, 154_285)),
        ([Ellipsoidal(3, "150ms")], "us", (-150_000, 150_000)),
        ([Ellipsoidal(3, "150ms", strict=True)], "us", (-149_999, 149_999)),
        # (delta / 10)² + (delta / 100)² <= 1 on the slowest front
        ([Ellipsoidal(10, 100), SpeedRange(1, None, per=None)], None, (0, 9)),
        ([SpeedRange(3, 5, 1, None), Propagation(2, speed=1, per=None), Spatial(9)], None, (0, 1)),
        ([Temporal(-9, -4), SpeedRange(None, 2, 6, None), Spatial(9)], None, (-6, -4)),
        ([Spatial(5), SpeedRange(None, 2, 6, None)], None, (-6, UNBOUNDED)),
        # None at all
        ([SpeedRange(1, 1, per=None, strict=True), Spatial(9)], None, (1, 0)),
        ([SpeedRange(3, 4, per=None), SpeedRange(1, 2, 1, None), Temporal(4, 9)], None, (1, 0)),
    ],
)
def test_the_longest_delta_is_exact(predicates: Any, tick: str | None, deltas: Any) -> None:
    assert CausalityCondition(predicates).model(Tick(tick)).deltas == deltas


_EIGHTHS = [Fraction(k, 8) ** 2 for k in range(52)]
_SQUARES = [square + little for square in _EIGHTHS for little in (0, Fraction(1, 2**40))]


@settings(max_examples=20, deadline=None)
@given(st.data(), st.integers(1, 12))
def test_the_longest_delta_is_the_reference_s(data: Any, radius: int) -> None:
    drawn = [data.draw(st.sampled_from(KINDS))(data.draw) for _ in range(2)]
    predicates = [*(each[0] for each in drawn), Spatial(radius / 2)]
    rules = [*(each[1] for each in drawn), reference.spatial(radius / 2)]
    try:
        lo, hi = CausalityCondition(predicates).model(Tick()).deltas
    except ConditionError:
        return
    last = longest_delta(rules, range(-30, 60), _SQUARES)
    mirrored = [lambda delta, square, rule=rule: rule(-delta, square) for rule in rules]
    first = longest_delta(mirrored, range(-60, 30), _SQUARES)
    if first is None or last is None:
        assert lo > hi
    else:
        assert (max(lo, -29), min(hi, 59)) == (-first, last)


def test_speeds_without_a_bound() -> None:
    assert SpeedRange(None, 2) == SpeedRange(0, 2) == SpeedRange("any", 2)
    assert SpeedRange(1, None) == SpeedRange(1, math.inf) == SpeedRange(1, "any")
    for speeds, own, far in (
        (SpeedRange(1, 2, 3, None), range(-3, 4), range(2, 14)),
        (SpeedRange(None, 2, 3, None), range(-3, 30), range(2, 30)),
        (SpeedRange(1, "any", 3, None), range(-3, 4), range(-3, 14)),
    ):
        rule = CausalityCondition([speeds, Spatial(10)]).model(Tick()).rule
        for distance2, admitted in ((0.0, own), (100.0, far)):
            accepted = [d for d in range(-9, 30) if accepts(rule, distance2, 0.0, d)]
            assert accepted == list(admitted)


@settings(max_examples=150)
@given(st.data(), st.integers(0, 200), st.integers(0, 2))
def test_the_window_of_a_distance_is_what_is_accepted(data: Any, d: int, small: int) -> None:
    predicates = [data.draw(st.sampled_from(KINDS))(data.draw)[0] for _ in range(2)]
    try:
        rule = CausalityCondition([Spatial(9), *predicates]).model(Tick()).rule
    except ConditionError:
        return
    distance2 = (0.01 * d) ** 2 if small else d / 8
    lo, hi = window_between(rule, distance2, distance2)
    if distance2 <= rule.near:
        accepted = [delta for delta in range(-60, 200) if accepts(rule, distance2, 0.0, delta)]
        assert accepted == list(range(max(lo, -60), min(hi, 199) + 1))


@pytest.mark.parametrize("distance", [5.0, 0.1, 1e-100, 3.3e100, 80.0, 2 / 3])
def test_largest_square(distance: float) -> None:
    exact = Fraction(distance) ** 2
    for strict in (False, True):
        found = largest_square(distance, strict)
        above = Fraction(math.nextafter(found, math.inf))
        assert Fraction(found) <= exact <= above
        assert (Fraction(found) < exact) if strict else (above > exact)


def test_ties_of_decimal_speeds_and_durations() -> None:
    # 25 km at 2.5 km/s are 10 s: squared, not one step of this is rounded.
    speeds = CausalityCondition([SpeedRange(2.5, 5), Spatial(25)]).model(Tick("us")).rule
    assert accepts(speeds, 625.0, 0.0, 10_000_000)
    assert accepts(speeds, 625.0, 0.0, 5_000_000)
    assert not accepts(speeds, 625.0, 0.0, 10_000_001)
    assert not accepts(speeds, 625.0, 0.0, 4_999_999)
    strict = (
        CausalityCondition([SpeedRange(2.5, 5, strict=True), Spatial(25)]).model(Tick("us")).rule
    )
    for delta in (5_000_000, 10_000_000):
        assert not accepts(strict, 625.0, 0.0, delta)
    for delta in (5_000_001, 9_999_999):
        assert accepts(strict, 625.0, 0.0, delta)
    ellipsoid = CausalityCondition(Ellipsoidal(5, "5ms")).model(Tick("ns")).rule
    assert accepts(ellipsoid, 9.0, 0.0, 4_000_000)
    assert not accepts(ellipsoid, 9.0, 0.0, 4_000_001)
