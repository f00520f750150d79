"""Whether a dwell time is over a limit, when the two crossings that bound it are intervals.

A crossing leaves a region after it was entered, so a dwell time Δ = T_second − T_first is never
negative: where the two intervals overlap, probabilities are those given Δ ≥ 0. Where they do not,
as with the crossings of successive readings, Δ ≥ 0 is certain and nothing is divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.compiled import compiled
from coincide.condition import Window
from coincide.probability import (
    DECISION_SLACK,
    one_sided_probability,
    trapezoid_cdf,
    window_probability,
)


class DwellRule(NamedTuple):
    """The decision on a dwell time.

    Parameters
    ----------
    within : int
        The longest dwell time of a transition, ticks.
    threshold : float
        The least probability that qualifies: ct − 2⁻⁵⁰.
    """

    within: int
    threshold: float

    @classmethod
    def of(cls, window: Window) -> DwellRule:
        """The rule of a timing condition within(0, t)."""
        return cls(window.hi, window.confidence - DECISION_SLACK)


@compiled
def dwell_probabilities(s: int, l1: int, l2: int, within: int) -> tuple[float, float]:
    """P(Δ <= within) and P(Δ > within), given Δ >= 0.

    Parameters
    ----------
    s : int64
        max_second - max_first, ticks. The midpoint of the second event is not before that of the
        first, so that Δ >= 0 has a probability of at least 1/2.
    l1, l2 : int64
        Lengths of the first and the second timestamp, ticks, >= 0.
    within : int64
        Ticks, >= 0.

    Returns
    -------
    (float64, float64)
        They sum to 1, up to rounding. The error of each is below 5e-16, less than the decision's slack.
    """
    soon = window_probability(s, l1, l2, 0, within)
    late = 1.0 - one_sided_probability(s, l1, l2, within)
    if s >= l2:
        return soon, late
    in_order = 1.0 - trapezoid_cdf(-s, l1, l2)
    return soon / in_order, late / in_order


@compiled(allocates=True)
def decide_dwells(
    first_min: np.ndarray,
    first_max: np.ndarray,
    second_min: np.ndarray,
    second_max: np.ndarray,
    within: int,
    threshold: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Which of n pairs of successive events have a dwell time up to a limit, and which one above it.

    Parameters
    ----------
    first_min, first_max, second_min, second_max : int64 arrays, shape (n,)
        Ends of the timestamps, ticks.
    within, threshold
        As `DwellRule`.

    Returns
    -------
    (bool array, bool array), shape (n,)
        P(Δ <= within) and P(Δ > within) reach the threshold.
    """
    short = np.empty(first_min.size, np.bool_)
    long = np.empty(first_min.size, np.bool_)
    for i in range(first_min.size):
        soon, late = dwell_probabilities(
            second_max[i] - first_max[i],
            first_max[i] - first_min[i],
            second_max[i] - second_min[i],
            within,
        )
        short[i] = soon >= threshold
        long[i] = late >= threshold
    return short, long


@compiled(allocates=True)
def decide_waits(
    first_min: np.ndarray, first_max: np.ndarray, until: int, within: int, threshold: float
) -> np.ndarray:
    """Which of n events lie further back than a limit: P(T_first + within < until) qualifies.

    Parameters
    ----------
    first_min, first_max : int64 arrays, shape (n,)
        Ends of the timestamps, ticks.
    until : int64
        An exact instant, ticks, |until| < 2**61.
    within, threshold
        As `DwellRule`.

    Returns
    -------
    bool array, shape (n,)
    """
    passed = np.empty(first_min.size, np.bool_)
    for i in range(first_min.size):
        length = first_max[i] - first_min[i]
        late = 1.0 - one_sided_probability(until - first_max[i], length, 0, within)
        passed[i] = late >= threshold
    return passed
