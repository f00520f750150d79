"""The satisfaction probability against exact arithmetic, and the decision on it."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.hunt.intervals import CONFIDENCES, LIMIT
from coincide.model.probability import (
    one_sided_probability,
    qualifies,
    trapezoid_cdf,
    window_probability,
)
from cpu_fallback.reference import decision as reference
from tests.helpers.comparison import HUGE_TOLERANCE, PROBABILITY_TOLERANCE, probability_is_right


class Pair(NamedTuple):
    """Arguments of `window_probability`."""

    s: int
    l1: int
    l2: int
    lo: int
    hi: int


def exact(pair: Pair) -> Fraction:
    s, l1, l2, lo, hi = pair
    return reference.satisfaction_probability(-l1, 0, s - l2, s, lo, hi)


def random_pairs(seed: int, n: int, bits: int) -> list[Pair]:
    """Pairs whose window meets their differences, of lengths below 2**bits."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(n):
        l1, l2 = (int(x) for x in rng.integers(0, 2 ** rng.integers(0, bits + 1, 2)))
        reach = l1 + l2 + 2
        s, a, b = (int(x) for x in rng.integers(-reach, reach + 1, 3))
        pairs.append(Pair(s, l1, l2, min(a, b), max(a, b)))
    return pairs


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        # two exact instants
        (Pair(5, 0, 0, 5, 5), 1.0),
        (Pair(6, 0, 0, -5, 5), 0.0),
        # an instant against an interval
        (Pair(10, 0, 10, 0, 5), 0.5),
        (Pair(0, 10, 0, 0, 5), 0.5),
        # equal intervals: a triangle
        (Pair(0, 10, 10, 0, 99), 0.5),
        (Pair(0, 10, 10, -99, 0), 0.5),
        (Pair(0, 10, 10, -5, 5), 0.75),
        (Pair(3, 10, 10, -5, 5), 0.66),
        # disjoint, touching
        (Pair(20, 10, 10, 0, 0), 0.0),
        (Pair(20, 10, 10, 0, 30), 1.0),
    ],
)
def test_hand_worked(pair: Pair, expected: float) -> None:
    assert float(exact(pair)) == expected
    assert abs(window_probability(*pair) - expected) <= PROBABILITY_TOLERANCE


@pytest.mark.parametrize(
    ("bits", "tolerance"),
    [
        (3, PROBABILITY_TOLERANCE),
        (10, PROBABILITY_TOLERANCE),
        (26, PROBABILITY_TOLERANCE),
        (45, PROBABILITY_TOLERANCE),
        (59, HUGE_TOLERANCE),
    ],
)
def test_against_the_reference(bits: int, tolerance: float) -> None:
    for pair in random_pairs(bits, 2500, bits):
        probability = window_probability(*pair)
        assert 0.0 <= probability <= 1.0
        assert probability_is_right(probability, exact(pair), tolerance), pair


def test_small_pairs_exhaustively() -> None:
    lengths, windows = range(5), [(-3, -1), (-2, 2), (0, 0), (0, 1), (-7, 9)]
    for l1, l2, s in ((a, b, s) for a in lengths for b in lengths for s in range(-12, 13)):
        for lo, hi in windows:
            pair = Pair(s, l1, l2, lo, hi)
            p = exact(pair)
            assert probability_is_right(window_probability(*pair), p, PROBABILITY_TOLERANCE)
            for ct in (1.0, 0.5, 0.75, 0.8, 0.1, 1 / 3, 1e-12):
                assert qualifies(*pair, ct) == reference.qualifies(p, ct), (pair, ct)


times = st.integers(-LIMIT, LIMIT)
intervals = st.tuples(times, times).map(sorted)


@given(intervals, intervals, intervals, st.sampled_from(CONFIDENCES))
def test_times_of_any_size(
    left: list[int], right: list[int], window: list[int], confidence: float
) -> None:
    p = reference.satisfaction_probability(*left, *right, *window)
    pair = Pair(right[1] - left[1], left[1] - left[0], right[1] - right[0], *window)
    assert probability_is_right(window_probability(*pair), p, HUGE_TOLERANCE)
    if reference.decision_is_clear(p, confidence):
        assert qualifies(*pair, confidence) == reference.qualifies(p, confidence)


def test_decisions_at_ties_and_next_to_them() -> None:
    decided = 0
    for pair in random_pairs(11, 3000, 12):
        p = exact(pair)
        nearest = float(p)
        for ct in (nearest, np.nextafter(nearest, 1), nearest + 2.0**-48, nearest - 2.0**-48):
            if 1e-12 < ct <= 1 and reference.decision_is_clear(p, ct):
                decided += 1
                assert qualifies(*pair, ct) == reference.qualifies(p, ct), (pair, ct)
    assert decided > 5000


def test_ties_qualify() -> None:
    ties = [pair for pair in random_pairs(12, 3000, 8) if exact(pair) > 0]
    assert len(ties) > 1000
    assert all(qualifies(*pair, float(exact(pair))) for pair in ties)


def test_impossible_and_certain_pairs_are_exactly_so() -> None:
    """Else the smallest confidences would let impossible pairs in."""
    seen = {0: 0, 1: 0}
    for pair in random_pairs(13, 6000, 40):
        p = exact(pair)
        if p in seen:
            seen[int(p)] += 1
            assert window_probability(*pair) == p, pair
    assert min(seen.values()) > 100


def test_compiled_code_contracts_nothing() -> None:
    """Python cannot fuse a multiplication and an addition: equal bits mean that Numba did not."""
    for s, l1, l2, lo, _ in random_pairs(14, 4000, 40):
        if l1 or l2:
            assert trapezoid_cdf(lo - s, l1, l2) == trapezoid_cdf.py_func(lo - s, l1, l2)


def test_the_cdf_rises_from_0_to_1() -> None:
    for l1, l2 in ((0, 7), (7, 0), (7, 7), (1, 9), (10, 3)):
        values = [trapezoid_cdf(z, l1, l2) for z in range(-l2 - 2, l1 + 3)]
        assert values == sorted(values)
        assert (values[0], values[-1]) == (0.0, 1.0)


def test_one_sided() -> None:
    for pair in random_pairs(15, 2000, 20):
        deadline = Pair(pair.s, pair.l1, pair.l2, -(2**40), pair.hi)
        found = one_sided_probability(pair.s, pair.l1, pair.l2, pair.hi)
        assert probability_is_right(found, exact(deadline), PROBABILITY_TOLERANCE)


def test_epoch_nanoseconds_lose_nothing() -> None:
    now = 1_700_000_000 * 10**9
    p = window_probability((now + 1) - now, 0, 0, 1, 1)
    assert p == 1.0
    pair = Pair((now + 13) - (now + 10), 10, 10, -5, 5)
    assert probability_is_right(window_probability(*pair), Fraction(33, 50), PROBABILITY_TOLERANCE)
