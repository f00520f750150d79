"""The oracle against answers worked by hand and against two other ways to find an area."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.hunt.intervals import LIMIT
from cpu_fallback.reference.decision import (
    decision_is_clear,
    qualifies,
    satisfaction_probability,
)
from tests.helpers.strategies import Interval

T = 1_700_000_000 * 10**9  # ns since 1970

HAND_WORKED: dict[str, tuple[Interval, Interval, Interval, Fraction]] = {
    # name: left, right, window, probability
    "points inside": ((5, 5), (8, 8), (0, 4), Fraction(1)),
    "points outside": ((5, 5), (8, 8), (4, 9), Fraction(0)),
    "points on the lower end": ((5, 5), (8, 8), (3, 9), Fraction(1)),
    "points on the upper end": ((5, 5), (8, 8), (-9, 3), Fraction(1)),
    "points in a window of width 0": ((5, 5), (8, 8), (3, 3), Fraction(1)),
    # y in [2, 7] of [0, 10]
    "point, interval": ((0, 0), (0, 10), (2, 7), Fraction(1, 2)),
    "point, interval touching": ((0, 0), (5, 15), (0, 5), Fraction(0)),
    "point, interval filling the window": ((0, 0), (5, 15), (5, 15), Fraction(1)),
    # x in [6, 10] of [0, 10]
    "interval, point": ((0, 10), (10, 10), (0, 4), Fraction(2, 5)),
    "interval, point in a window of width 0": ((0, 10), (5, 5), (0, 0), Fraction(0)),
    "equal, window covers": ((0, 10), (0, 10), (-10, 10), Fraction(1)),
    "equal, one-sided": ((0, 10), (0, 10), (-10, 0), Fraction(1, 2)),
    # 100 less two corners of 5 * 5 / 2
    "equal, narrow": ((0, 10), (0, 10), (-5, 5), Fraction(3, 4)),
    # the triangle y >= x of 50 less the corner of 12.5
    "equal, narrow and one-sided": ((0, 10), (0, 10), (0, 5), Fraction(3, 8)),
    "equal, window of width 0": ((0, 10), (0, 10), (0, 0), Fraction(0)),
    # E[y] / 10 with y in [4, 6]
    "nested right": ((0, 10), (4, 6), (0, 100), Fraction(1, 2)),
    # for each y the 2 ticks [y - 3, y - 1] of 10
    "nested right, narrow": ((0, 10), (4, 6), (1, 3), Fraction(1, 5)),
    "nested left": ((4, 6), (0, 10), (-3, -1), Fraction(1, 5)),
    # x >= y - 8: 2 of 4 ticks at y = 10, falling to 0 at y = 12
    "apart": ((0, 4), (10, 12), (0, 8), Fraction(1, 4)),
    "apart, touching the window's upper end": ((0, 4), (10, 12), (0, 6), Fraction(0)),
    "apart, one tick over the end": ((0, 4), (10, 12), (0, 7), Fraction(1, 16)),
    "apart, touching the window's lower end": ((0, 4), (10, 12), (12, 99), Fraction(0)),
    "apart, wholly inside": ((0, 4), (10, 12), (6, 12), Fraction(1)),
    # y - x = 3 + D, D in [-8, 2] of a triangle on [-10, 10]: 1 - 64/200 - 4/200
    "epoch ns": ((T, T + 10), (T + 3, T + 13), (-5, 5), Fraction(33, 50)),
    "epoch ns, points 1 ns apart": ((T, T), (T + 1, T + 1), (0, 0), Fraction(0)),
    "before 1970": ((-T, 10 - T), (3 - T, 13 - T), (-5, 5), Fraction(33, 50)),
    # ct 0.8 as a float lies above 4/5
    "tie at 4/5": ((0, 10), (8, 8), (0, 8), Fraction(4, 5)),
    "tie at 1/10": ((0, 0), (0, 10), (9, 99), Fraction(1, 10)),
    # y - x <= 0 is all but the corner of 1 * 1 / 2 in 1 * 5
    "tie at 9/10": ((4, 5), (0, 5), (-5, 0), Fraction(9, 10)),
    "the largest times": ((-LIMIT, LIMIT), (-LIMIT, LIMIT), (0, LIMIT), Fraction(3, 8)),
}


@pytest.mark.parametrize("name", HAND_WORKED)
def test_hand_worked(name: str) -> None:
    left, right, window, expected = HAND_WORKED[name]
    assert satisfaction_probability(*left, *right, *window) == expected


def test_a_tick_decides_at_the_largest_times() -> None:
    assert satisfaction_probability(-LIMIT, -LIMIT, LIMIT - 1, LIMIT, -LIMIT, LIMIT) == 0
    assert satisfaction_probability(0, 0, LIMIT - 1, LIMIT, -LIMIT, LIMIT) == 1
    assert satisfaction_probability(0, 0, LIMIT - 2, LIMIT, -LIMIT, LIMIT - 1) == Fraction(1, 2)


def test_numpy_integers_do_not_overflow() -> None:
    big: Any = np.int64(2**61 - 1)
    assert satisfaction_probability(-big, big, -big, big, big - big, big) == Fraction(3, 8)


def test_floats_are_refused() -> None:
    with pytest.raises(TypeError):
        satisfaction_probability(0, 1.5, 0, 1, 0, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("args", [(1, 0, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0), (0, 0, 0, 0, 1, 0)])
def test_ends_the_wrong_way_round_are_refused(args: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="lower end"):
        satisfaction_probability(*args)


# --- other ways to the same area ---


def cell_counting(left: Interval, right: Interval, lo: int, hi: int) -> Fraction:
    """The probability from counting unit cells: whole, or cut in half by y - x = bound."""

    def doubled_below(bound: int) -> int:
        xs, ys = np.arange(*left), np.arange(*right)
        offset = ys[None, :] - xs[:, None]
        return 2 * int((offset < bound).sum()) + int((offset == bound).sum())

    cells = (left[1] - left[0]) * (right[1] - right[0])
    return Fraction(doubled_below(hi) - doubled_below(lo), 2 * cells)


def intervals(min_length: int = 0) -> st.SearchStrategy[Interval]:
    return st.tuples(st.integers(-15, 15), st.integers(min_length, 12)).map(
        lambda start_length: (start_length[0], start_length[0] + start_length[1])
    )


small_windows = st.tuples(st.integers(-30, 30), st.integers(0, 40)).map(
    lambda low_width: (low_width[0], low_width[0] + low_width[1])
)


@given(intervals(1), intervals(1), small_windows)
def test_equals_counting_of_cells(left: Interval, right: Interval, window: Interval) -> None:
    assert satisfaction_probability(*left, *right, *window) == cell_counting(left, right, *window)


@given(intervals(), intervals(), small_windows)
def test_zero_lengths_are_the_limit_of_short_ones(
    left: Interval, right: Interval, window: Interval
) -> None:
    """With ends off the grid of times nothing touches, so the limit exists."""
    fine = 10**6
    lo, hi = window[0] * fine - fine // 2, window[1] * fine + fine // 2
    a, b, c, d = (t * fine for t in (*left, *right))
    exact = satisfaction_probability(a, b, c, d, lo, hi)
    short = satisfaction_probability(a, b + 2, c, d + 2, lo, hi)
    assert abs(exact - short) <= Fraction(8, fine)


@pytest.mark.parametrize(
    ("left", "right", "window"),
    [
        ((0, 1000), (250, 900), (-100, 77)),
        ((0, 7), (-3, 50_000), (1, 20_000)),
        ((-400, 600), (-100, 2000), (-50, 3000)),
        ((0, 333), (100, 300), (-10, 10)),
    ],
)
def test_equals_a_riemann_sum(left: Interval, right: Interval, window: Interval) -> None:
    n = 1500
    middles = (np.arange(n) + 0.5) / n
    x = left[0] + middles * (left[1] - left[0])
    y = right[0] + middles * (right[1] - right[0])
    delta = y[None, :] - x[:, None]
    share = float(((window[0] <= delta) & (delta <= window[1])).mean())
    assert float(satisfaction_probability(*left, *right, *window)) == pytest.approx(
        share, abs=4 / n
    )


def test_equals_sampling() -> None:
    rng = np.random.default_rng(20101)
    n = 200_000
    x, y = rng.uniform(0, 50, n), rng.uniform(20, 120, n)
    share = float(((y - x >= 10) & (y - x <= 60)).mean())
    exact = float(satisfaction_probability(0, 50, 20, 120, 10, 60))
    assert exact == pytest.approx(share, abs=5 * 0.5 / n**0.5)


# --- the paper's statements ---


@given(intervals(1), intervals(1), st.integers(0, 40))
def test_theorem_1(left: Interval, right: Interval, d: int) -> None:
    """The integral of Theorem 1, whose integrand bends at integers only: trapezoids are exact."""
    heights = [
        min(max(x + d - right[0], 0), right[1] - right[0]) for x in range(left[0], left[1] + 1)
    ]
    doubled = sum(a + b for a, b in pairwise(heights))
    expected = Fraction(doubled, 2 * (left[1] - left[0]) * (right[1] - right[0]))
    assert satisfaction_probability(*left, *right, -1000, d) == expected


@given(intervals(), intervals(), st.integers(0, 20))
def test_corollary_1_mutual_deadline_is_a_deadline(
    left: Interval, right: Interval, slack: int
) -> None:
    left, right = sorted((left, right))  # the one that starts first goes left
    d = max(left[1] - left[0], right[1] - right[0]) + slack
    mutual = satisfaction_probability(*left, *right, -d, d)
    assert mutual == satisfaction_probability(*left, *right, -1000, d)


@given(intervals(), intervals(), st.integers(0, 9), st.integers(0, 9), st.integers(0, 40))
def test_corollary_2_later_targets_are_less_probable(
    left: Interval, right: Interval, later_min: int, later_max: int, d: int
) -> None:
    later = (right[0] + later_min, max(right[0] + later_min, right[1] + later_max))
    near = satisfaction_probability(*left, *right, -1000, d)
    assert satisfaction_probability(*left, *later, -1000, d) <= near


@given(intervals(), st.data())
def test_corollary_3_a_covered_interval_is_certain(outer: Interval, data: st.DataObject) -> None:
    start = data.draw(st.integers(*outer))
    inner = (start, data.draw(st.integers(start, outer[1])))
    d = outer[1] - outer[0] + data.draw(st.integers(0, 5))
    assert satisfaction_probability(*outer, *inner, -d, d) == 1
    assert satisfaction_probability(*inner, *outer, -d, d) == 1


# --- identities ---


@given(intervals(), intervals(), small_windows)
def test_swapping_sides_mirrors_the_window(
    left: Interval, right: Interval, window: Interval
) -> None:
    swapped = satisfaction_probability(*right, *left, -window[1], -window[0])
    assert satisfaction_probability(*left, *right, *window) == swapped


@given(intervals(), intervals(), small_windows, st.integers(-T, T), st.integers(1, 10**9))
def test_shift_and_unit_do_not_matter(
    left: Interval, right: Interval, window: Interval, shift: int, unit: int
) -> None:
    left_moved = (left[0] * unit + shift, left[1] * unit + shift)
    right_moved = (right[0] * unit + shift, right[1] * unit + shift)
    scaled = satisfaction_probability(*left_moved, *right_moved, window[0] * unit, window[1] * unit)
    assert satisfaction_probability(*left, *right, *window) == scaled


# --- the decision ---


@pytest.mark.parametrize(
    ("probability", "confidence"),
    [
        (Fraction(4, 5), 0.8),
        (Fraction(1, 10), 0.1),
        (Fraction(9, 10), 0.9),
        (Fraction(1, 3), 1 / 3),
        (Fraction(1), 1.0),
    ],
)
def test_exact_ties_qualify(probability: Fraction, confidence: float) -> None:
    assert qualifies(probability, confidence)
    assert not qualifies(probability - Fraction(1, 2**49), confidence)


def test_some_ties_need_the_guard() -> None:
    assert Fraction(4, 5) < Fraction(0.8)
    assert Fraction(1, 10) < Fraction(0.1)


def test_the_guard_is_exact_and_inclusive() -> None:
    edge = Fraction(1, 2) - Fraction(1, 2**50)
    assert qualifies(edge, 0.5)
    assert not qualifies(edge - Fraction(1, 2**100), 0.5)


def test_ties_are_clear_and_the_edge_is_not() -> None:
    edge = Fraction(1, 2) - Fraction(1, 2**50)
    assert decision_is_clear(Fraction(1, 2), 0.5)
    assert decision_is_clear(Fraction(4, 5), 0.8)
    assert not decision_is_clear(edge, 0.5)
    assert not decision_is_clear(edge + Fraction(1, 2**51), 0.5)
