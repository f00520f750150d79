"""Probabilities of pairs of templates as one integer over another: an oracle for a great many of them.

If X has buckets a = [low, high] of mass m, P(lo <= Y - X <= hi) is the sum over a of m times the
mean, over x in a, of F(x + hi) - F(x + lo), where F is Y's distribution function; its integral is a
sum over Y's buckets. `cpu_fallback.reference.join` says the same by areas of rectangles, with
fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cpu_fallback.reference.join import Bucket

SLACK_BITS = 50


class Whole(NamedTuple):
    """A histogram in integers.

    Parameters
    ----------
    buckets : tuple of (int, int, int)
        Low, high, mass over `total`.
    total : int
    length : int
        Which every bucket's length divides.
    """

    buckets: tuple[tuple[int, int, int], ...]
    total: int
    length: int


def whole(histogram: Sequence[Bucket]) -> Whole:
    ratios = [mass.as_integer_ratio() for _, _, mass in histogram]
    scale = max(below for _, below in ratios)  # powers of two
    masses = [above * (scale // below) for above, below in ratios]
    length = math.lcm(*(high - low or 1 for low, high, _ in histogram))
    ends = [(low, high) for low, high, _ in histogram]
    buckets = tuple((*end, mass) for end, mass in zip(ends, masses, strict=True) if mass)
    return Whole(buckets, sum(masses), length)


def probability(x: Whole, y: Whole, lo: int, hi: int) -> tuple[int, int]:
    """P(lo <= Y - X <= hi) as a fraction that is not reduced."""
    found = 0
    for low, high, mass in x.buckets:
        if low == high:
            part = _upto(y, low + hi, closed=True) - _upto(y, low + lo, closed=False)
            found += 2 * mass * x.length * part
        else:
            part = _integral(y, high + hi) - _integral(y, low + hi)
            part -= _integral(y, high + lo) - _integral(y, low + lo)
            found += mass * (x.length // (high - low)) * part
    return found, 2 * x.length * x.total * y.length * y.total


def reaches(p: tuple[int, int], confidence: float) -> bool:
    """Whether a probability is at least a confidence less 2**-50."""
    above, below = confidence.as_integer_ratio()
    return (p[0] * below << SLACK_BITS) >= ((above << SLACK_BITS) - below) * p[1]


def _upto(y: Whole, t: int, *, closed: bool) -> int:
    """P(Y <= t), or P(Y < t), times the length and the total of Y."""
    found = 0
    for low, high, mass in y.buckets:
        if t > high or (closed and t == high):
            found += mass * y.length
        elif t > low:
            found += mass * (y.length // (high - low)) * (t - low)
    return found


def _integral(y: Whole, t: int) -> int:
    """Twice the integral of P(Y <= u) over u up to t, times the length and the total of Y."""
    found = 0
    for low, high, mass in y.buckets:
        if t >= high:
            found += mass * y.length * (2 * t - low - high)
        elif t > low:
            found += mass * (y.length // (high - low)) * (t - low) ** 2
    return found
