"""Tuples that arrive in disorder, for windows: for the reference, and as arrays."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from coincide import CausalityCondition, Ellipsoidal, Propagation, Spatial, SpeedRange, Temporal
from coincide.model.causality.condition import CausalityModel
from coincide.model.units import Tick
from coincide.model.windowed_causality import CAUSE, EFFECT, POLICIES, Following, WindowTerms
from cpu_fallback.reference import causality as exact
from cpu_fallback.reference import windowed_causality as reference
from cpu_fallback.windowed_causality import WindowJoin

Pairs = list[tuple[int, int]]


class WindowCase(NamedTuple):
    """Tuples, the question about pairs, and how large the window is."""

    tuples: list[reference.Tuple]
    predicates: list[Any]
    exact: list[exact.Predicate]
    own: bool
    size: int
    max_stay: int | None
    home: tuple[float, float]
    following: Following


@st.composite
def window_cases(draw: Any, most: int = 30) -> WindowCase:
    """Cases on a coarse grid, of equal times, delays and roles; all numbers are dyadic."""
    own, few = draw(st.booleans()), draw(st.booleans())
    coordinate = st.integers(-1, 1) if few else st.integers(-6, 6)
    clock, tuples = 0, []
    for _ in range(draw(st.integers(0, most))):
        clock += draw(st.integers(0, 3))
        time = clock - draw(st.sampled_from([0, 0, 1, 2, 5, 12, -1]))
        place = draw(coordinate) / 2, draw(coordinate) / 2
        role = own or draw(st.booleans())
        tuples.append(reference.Tuple(time, clock, place, role, own or not role))
    lo, length, strict = draw(st.integers(-2, 6)), draw(st.integers(2, 12)), draw(st.booleans())
    radius = draw(st.integers(1, 8)) / 2
    kind = draw(st.integers(0, 4))
    if kind == 4:
        speed, slack = draw(st.integers(1, 4)) / 2, draw(st.integers(0, 4))
        fastest = draw(st.sampled_from([speed, 2 * speed, None]))
        predicates: list[Any] = [SpeedRange(speed, fastest, slack, per=None, strict=strict)]
        rules = [exact.speed_range(speed, fastest, slack, slack, strict)]
    elif kind == 3:
        wide = draw(st.integers(1, 8)) / 2
        predicates = [Ellipsoidal(wide, length, strict)]
        rules = [exact.ellipsoidal(wide, length, strict)]
        if draw(st.booleans()):
            predicates.append(SpeedRange(radius, "any", per=None, strict=strict))
            rules.append(exact.speed_range(radius, None, 0, 0, strict))
    elif draw(st.booleans()):
        predicates = [Temporal(lo, lo + length, strict)]
        rules = [exact.temporal(lo, lo + length, strict)]
    else:
        predicates = [Propagation(length, time=max(lo, 0), strict=strict)]
        rules = [exact.propagation(length, max(lo, 0), strict)]
    predicates.append(Spatial(radius, strict))
    rules.append(exact.spatial(radius, strict))
    following = Following(
        draw(st.sampled_from([1, 2, 3, 0])), draw(st.integers(0, 6)), draw(st.sampled_from([1, 4])),
        draw(st.sampled_from([4, 1000])), draw(st.integers(1, 8)),
    )  # fmt: skip
    size, max_stay = draw(st.integers(1, 8)), draw(st.none() | st.integers(1, 9))
    home = draw(coordinate) / 2, draw(coordinate) / 2
    return WindowCase(tuples, predicates, rules, own, size, max_stay, home, following)


SIDE = 0.5
DELTAS = range(-20, 60)
"""More than any condition of a case admits."""
_QUARTERS = [Fraction(k, 4) ** 2 for k in range(40)]
SQUARES = [square + little for square in _QUARTERS for little in (0, Fraction(1, 2**40))]
"""The least distances that fronts of a case leave, and where they are strict one that is hardly more."""


def terms_of(case: WindowCase, model: CausalityModel, policy: str) -> WindowTerms:
    lo, hi = model.window
    return WindowTerms(
        model.rule, max(lo, 0) if case.own and model.is_forward else lo, hi, model.deltas[1], case.own,
        POLICIES.index(policy), case.size,  # type: ignore[arg-type]
        case.size if case.max_stay is None else case.max_stay, case.max_stay is None, SIDE,
        (*case.home, 0.0, 0.0), case.following,
    )  # fmt: skip


def model_of(case: WindowCase) -> CausalityModel:
    return CausalityCondition(case.predicates).model(Tick())


def found_by(case: WindowCase, policy: str, cuts: tuple[int, ...] = ()) -> tuple[Pairs, WindowJoin]:
    """Pairs of the product, the tuples taken in several batches."""
    join = WindowJoin(terms_of(case, model_of(case), policy))
    roles = [CAUSE * one.is_cause + EFFECT * one.is_effect for one in case.tuples]
    columns = [np.array([one[k] for one in case.tuples], np.int64) for k in range(2)]
    points = np.zeros((3, len(case.tuples)))
    for k in range(2):
        points[k] = [one.place[k] for one in case.tuples]
    pairs: Pairs = []
    edges = sorted({0, *(min(cut, len(case.tuples)) for cut in cuts), len(case.tuples)})
    for start, stop in pairwise(edges):
        part = slice(start, stop)
        for out in join.take(
            *(each[part] for each in columns), points[:, part], np.array(roles, np.int64)[part]
        ):
            pairs += zip(out.causes.tolist(), out.effects.tolist(), strict=True)
            times = columns[0]
            assert out.deltas.tolist() == (times[out.effects] - times[out.causes]).tolist()
            apart = np.hypot(*(points[:2, out.effects] - points[:2, out.causes]))
            assert np.allclose(out.distances, apart)
    return pairs, join


def expected_of(case: WindowCase, policy: str) -> reference.Seen:
    """What the reference shows."""
    hi = reference.longest_delta(case.exact, DELTAS, SQUARES)
    assume(hi is not None)
    assert hi is not None
    settings = reference.Settings(
        case.size, case.own, hi, case.max_stay, case.home, SIDE, *case.following
    )
    return reference.windowed_causality(
        case.tuples, case.exact, exact.plane_distance2, policy, settings
    )
