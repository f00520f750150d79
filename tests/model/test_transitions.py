"""Decisions on dwell times, ties and large times among them, and the order of events."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from coincide.model.condition import Window
from coincide.model.probability import DECISION_SLACK, qualifies
from coincide.model.transitions import (
    DwellRule,
    decide_dwells,
    decide_waits,
    dwell_probabilities,
    time_order,
)
from cpu_fallback.reference.decision import satisfaction_probability

FAR = 2**70


def dwells(rng: np.random.Generator, n: int, scale: int) -> list[tuple[int, int, int, int, int]]:
    """Ends of two timestamps, the midpoint of the second not before that of the first, and a limit."""
    found = []
    origin = 1_700_000_000 * 10**9
    while len(found) < n:
        l1, l2, gap, within = (int(v) * scale for v in rng.integers(0, 9, 4))
        low = origin + gap - 4 * scale
        if 2 * low + l2 >= 2 * origin + l1:
            found.append((origin, origin + l1, low, low + l2, within))
    return found


def exact(a: int, b: int, c: int, d: int, within: int) -> tuple[Fraction, Fraction]:
    in_order = satisfaction_probability(a, b, c, d, 0, FAR)
    soon = satisfaction_probability(a, b, c, d, 0, within) / in_order
    return soon, 1 - soon


def pair(case: tuple[int, int, int, int, int]) -> list[np.ndarray]:
    return [np.array([time], np.int64) for time in case[:4]]


@pytest.mark.parametrize("scale", [1, 7, 999_983, 10**9])
def test_every_tie_qualifies(scale: int) -> None:
    for case in dwells(np.random.default_rng(scale), 400, scale):
        for tie in exact(*case):
            for confidence in (float(tie), float(tie) + 1e-12, float(tie) - 1e-12):
                if not 1e-9 < confidence <= 1:
                    continue
                wanted = [p >= Fraction(confidence) - Fraction(1, 2**50) for p in exact(*case)]
                rule = DwellRule.of(Window(0, case[4], confidence))
                assert [bool(d[0]) for d in decide_dwells(*pair(case), *rule)] == wanted


def test_the_two_probabilities_are_right() -> None:
    for a, b, c, d, within in dwells(np.random.default_rng(5), 500, 1000):
        found = dwell_probabilities(d - b, b - a, d - c, within)
        assert found == pytest.approx([float(p) for p in exact(a, b, c, d, within)], abs=4e-16)


def test_timestamps_in_order_are_decided_as_in_a_join() -> None:
    rng = np.random.default_rng(3)
    for _ in range(500):
        l1, gap, l2, within = (int(v) for v in rng.integers(0, 8, 4))
        confidence = float(rng.integers(1, 33)) / 32
        ends = [np.array([time]) for time in (0, l1, l1 + gap, l1 + gap + l2)]
        short, _ = decide_dwells(*ends, *DwellRule.of(Window(0, within, confidence)))
        assert short[0] == qualifies(gap + l2, l1, l2, 0, within, confidence)


def test_instants_are_over_a_limit_only_when_later() -> None:
    first, at, later = (np.array([time]) for time in (0, 10, 11))
    for confidence in (1e-6, 1.0):
        threshold = confidence - DECISION_SLACK
        assert [bool(d[0]) for d in decide_dwells(first, first, at, at, 10, threshold)] == [1, 0]
        assert [bool(d[0]) for d in decide_dwells(first, first, later, later, 10, threshold)] == [
            0,
            1,
        ]
        assert not decide_waits(first, first, 10, 10, threshold)[0]
        assert decide_waits(first, first, 11, 10, threshold)[0]


def test_waits_over_the_whole_range_of_times() -> None:
    far = 2**61 - 1
    first = np.array([-far, far])
    assert decide_waits(first, first, far, far, 1.0).tolist() == [True, False]


def test_time_order_keeps_what_is_in_order() -> None:
    assert time_order(np.array([1, 1, 3])) is None
    order = time_order(np.array([3, 1, 3, 1]))
    assert order is not None
    assert order.tolist() == [1, 3, 0, 2]
