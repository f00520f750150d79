"""The satisfaction probability of two interval timestamps and the decision on it.

Lee & Lee (2010), Theorem 1, for a window on delta = T_right - T_left. All differences are taken in
int64 before any float is made, and no step multiplies and adds inexactly, so that neither epoch-scale
times nor fused multiply-add can change a bit of the result. Squares are halved, since compilers for GPUs
write a doubled product as a sum and fuse it.
"""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled

DECISION_SLACK = 2.0**-50
"""A pair qualifies when P >= ct - DECISION_SLACK, so that exact ties always do.

The formula's error, about 2e-16 at usual lengths, is less than this."""


@compiled(forceinline=True)
def trapezoid_cdf(z: int, l1: int, l2: int) -> float:
    """P((T_right - max_right) - (T_left - max_left) <= z)."""
    # The difference of two uniforms on [-l2, 0] and [-l1, 0]: a trapezoid on [-l2, l1]. Not for two
    # exact instants (l1 = l2 = 0).
    # Compared before u is formed: z + l2 could overflow far outside the support.
    if z <= -l2:
        return 0.0
    if z >= l1:
        return 1.0
    u = z + l2
    shorter = min(l1, l2)
    longer = max(l1, l2)
    if u <= shorter:
        return 0.5 * (float(u) * float(u)) / (float(l1) * float(l2))
    if u <= longer:
        return float(2 * u - shorter) / (2.0 * float(longer))
    v = l1 - z
    return 1.0 - 0.5 * (float(v) * float(v)) / (float(l1) * float(l2))


@compiled(forceinline=True)
def window_probability(s: int, l1: int, l2: int, lo: int, hi: int) -> float:
    """P(lo <= T_right - T_left <= hi)."""
    if l1 == 0 and l2 == 0:
        return 1.0 if lo <= s <= hi else 0.0
    return trapezoid_cdf(hi - s, l1, l2) - trapezoid_cdf(lo - s, l1, l2)


def highest_probability(l1: int, l2: int, width: int) -> float:
    """The probability of a window for two timestamps whose midpoints differ by just its middle."""
    # No pair of these lengths reaches more, nor does one of longer timestamps.
    shorter, longer = sorted((l1, l2))
    # How far the window's end is from the trapezoid's foot: what is beyond it is lost, on both sides.
    foot = (l1 + l2 - width) / 2
    if foot <= 0:
        return 1.0
    if foot <= shorter:
        return 1.0 - foot * foot / (float(l1) * float(l2))
    return 1.0 - (2 * foot - shorter) / longer


@compiled(forceinline=True)
def distance_from_middle(difference: int, lo: int, hi: int) -> np.uint64:
    """How far a difference of two doubled midpoints, right less left, is from a window's doubled middle."""
    apart, middle = np.int64(difference), np.int64(lo + hi)
    if apart >= middle:
        return np.uint64(apart) - np.uint64(middle)
    return np.uint64(middle) - np.uint64(apart)


@compiled
def one_sided_probability(s: int, l1: int, l2: int, hi: int) -> float:
    """P(T_right - T_left <= hi), the deadline predicate. Arguments as `window_probability`."""
    if l1 == 0 and l2 == 0:
        return 1.0 if s <= hi else 0.0
    return trapezoid_cdf(hi - s, l1, l2)


@compiled
def qualifies(s: int, l1: int, l2: int, lo: int, hi: int, confidence: float) -> bool:
    """Whether a pair meets the timing condition: P >= ct - 2**-50."""
    return window_probability(s, l1, l2, lo, hi) >= confidence - DECISION_SLACK
