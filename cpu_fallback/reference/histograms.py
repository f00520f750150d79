"""The oracle for histogram timestamps: a sum over all pairs of buckets, in exact arithmetic.

Follows Mok, Woo & Lee (2006), "Probabilistic Timing Join over Uncertain Event Streams", Equation 2:
the probability of a pair is the sum over its pairs of buckets, each of which is a pair of intervals. A
histogram is a list of buckets (low, high, mass) in integer ticks; masses are divided by their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cpu_fallback.reference.join import qualifies, satisfaction_probability

Bucket = tuple[int, int, float]
Histogram = Sequence[Bucket]


def placed(edges: Sequence[int], masses: Sequence[float], max_time: int) -> list[Bucket]:
    """The histogram of an event: its template, moved so that the last edge is at `max_time`."""
    shift = max_time - edges[-1]
    return [(edges[k] + shift, edges[k + 1] + shift, masses[k]) for k in range(len(masses))]


def histogram_probability(left: Histogram, right: Histogram, lo: int, hi: int) -> Fraction:
    """Probability that lo <= T_right - T_left <= hi for independent histogram timestamps."""
    total = Fraction(0)
    for low_l, high_l, mass_l in left:
        for low_r, high_r, mass_r in right:
            part = satisfaction_probability(low_l, high_l, low_r, high_r, lo, hi)
            total += Fraction(mass_l) * Fraction(mass_r) * part
    return total / (_total(left) * _total(right))


def histogram_pairs(
    left: Sequence[Histogram], right: Sequence[Histogram], lo: int, hi: int, confidence: float
) -> list[tuple[int, int]]:
    """Positions of all pairs that qualify."""
    return [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if qualifies(histogram_probability(a, b, lo, hi), confidence)
    ]


def _total(histogram: Histogram) -> Fraction:
    return sum((Fraction(mass) for _, _, mass in histogram), Fraction(0))
