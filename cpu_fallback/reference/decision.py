"""The oracle of decisions: satisfaction probabilities in exact arithmetic, slow and obvious.

Every operator of this project is tested against this package. So it shares no formula with
them: the satisfaction probability is an area, integrated with Python integers. It imports
nothing from the other packages.

Follows the definitions of Lee & Lee (2010), "Lazy Approaches for Interval Timing Correlation of
Sensor Data Streams", Theorem 1, with a two-sided window instead of a deadline. All times, lengths
and window bounds are integer ticks.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from operator import index

import numpy as np

# A pair qualifies at P >= ct - GUARD, so that a ct such as the float 0.8, which lies a little
# above 4/5, still accepts P = 4/5.
GUARD = Fraction(1, 2**50)

# Nearer than this to ct - GUARD, float64 cannot be asked for the exact decision. An exact tie
# lies GUARD away, so it is never that near.
UNCLEAR = Fraction(1, 2**51)


def satisfaction_probability(
    min_l: int, max_l: int, min_r: int, max_r: int, lo: int, hi: int
) -> Fraction:
    """Probability that lo <= T_right - T_left <= hi for independent uniform timestamps.

    With x the left and y the right time this is the area of
    ``{min_l <= x <= max_l, min_r <= y <= max_r, lo <= y - x <= hi}`` over the area of the
    rectangle: Theorem 1 of Lee & Lee (2010) with a window ``[lo, hi]`` for the deadline. A
    timestamp of length zero takes the area's place with a length, two of them with a point.
    """
    # Python integers from here on: a NumPy integer would overflow without a word.
    min_l, max_l, min_r, max_r = index(min_l), index(max_l), index(min_r), index(max_r)
    lo, hi = index(lo), index(hi)
    check_ends("left timestamp", min_l, max_l)
    check_ends("right timestamp", min_r, max_r)
    check_ends("window", lo, hi)

    if min_l == max_l and min_r == max_r:
        return Fraction(1 if lo <= min_r - min_l <= hi else 0)
    if min_l == max_l:
        good = _overlap(min_r, max_r, min_l + lo, min_l + hi)
        return Fraction(good, max_r - min_r)
    if min_r == max_r:
        good = _overlap(min_l, max_l, min_r - hi, min_r - lo)
        return Fraction(good, max_l - min_l)
    doubled = _doubled_area(min_l, max_l, min_r, max_r, lo, hi)
    return Fraction(doubled, 2 * (max_l - min_l) * (max_r - min_r))


def check_ends(what: str, low: int, high: int) -> None:
    """Refuse an interval whose ends are the wrong way round."""
    if low > high:
        raise ValueError(f"{what}: expected lower end <= upper end (found [{low}, {high}])")


def _overlap(a_low: int, a_high: int, b_low: int, b_high: int) -> int:
    """Length in ticks that two closed intervals have in common."""
    return max(0, min(a_high, b_high) - max(a_low, b_low))


def _doubled_area(min_l: int, max_l: int, min_r: int, max_r: int, lo: int, hi: int) -> int:
    """Twice the area, in square ticks, of the good part of the rectangle."""
    # For a fixed x the good y are the overlap of [min_r, max_r] with [x + lo, x + hi]. As a
    # function of x its length is a straight line between the points where an end of the one
    # interval passes an end of the other, so the trapezoid rule on these points is exact.
    kinks = {min_r - lo, min_r - hi, max_r - lo, max_r - hi}
    xs = sorted({min_l, max_l} | {x for x in kinks if min_l < x < max_l})
    lengths = [_overlap(min_r, max_r, x + lo, x + hi) for x in xs]
    return sum((xs[i + 1] - xs[i]) * (lengths[i] + lengths[i + 1]) for i in range(len(xs) - 1))


def qualifies(probability: Fraction, confidence: float) -> bool:
    """Whether a satisfaction probability reaches a confidence threshold."""
    return probability >= Fraction(confidence) - GUARD


def decision_is_clear(probability: Fraction, confidence: float) -> bool:
    """Whether a float64 probability, correct to 2**-51, must lead to the exact decision."""
    # Gridded times give exact ties, which are clear, but probabilities within 2**-51 of
    # ``confidence - 2**-50`` need lengths near 2**50 ticks or a rare chance. Tests of float64
    # decisions leave such pairs out.
    return abs(probability - (Fraction(confidence) - GUARD)) > UNCLEAR


MOST_PLACES = 9


def decimal_of(value: float, *, is_single: bool = False) -> Fraction:
    """The shortest decimal that reads as a float; the float itself, if that has more than nine places."""
    decimal = Decimal(str(np.float32(value)) if is_single else repr(float(value))).normalize()
    exponent = decimal.as_tuple().exponent
    has_places = isinstance(exponent, int) and -MOST_PLACES <= exponent < 0
    return Fraction(decimal) if has_places else Fraction(value)


def float_ticks(value: float, factor: Fraction, *, is_single: bool = False) -> int:
    """A float in ticks, one of which has `factor`, rounded half to even."""
    return round(decimal_of(value, is_single=is_single) * factor)
