"""The midpoint band: which differences of midpoints qualify, per pair of classes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from coincide.model.classes import ShapeClasses
from coincide.model.compiled import compiled
from coincide.model.condition import Window
from coincide.model.probability import (
    DECISION_SLACK,
    highest_probability,
    window_probability,
)
from coincide.model.units import TIME_LIMIT

OUTER_LO, INNER_LO, INNER_HI, OUTER_HI = range(4)
"""Columns of a band table. All four bounds on D are inclusive."""

GUARD = 2.0**-51
"""Distance kept from the decision's threshold: inside it, probe.

At least twice the formula's error, since the pair decided and the corner searched both err. An error
is at most 1.5 * 2**-53 where the product of the lengths is exact, 3.5 * 2**-53 where the lengths are,
7.5 * 2**-53 beyond: `guard` doubles the guard with each."""

DOUBT = Fraction(1, 2**47)
"""More than the decision's slack and the errors of its floats together."""

_EVEN = 0.5
_ERROR = 2.0 * DECISION_SLACK
"""More than the decision's slack and the error of the formula for any lengths."""
_FAR = np.int64(2**63 - 2)
_HALF_FAR = 2**62 - 2
_NONE = -1
_RELATIVE_ERROR = 1e-12
_ONE_END, _BOTH_ENDS = np.True_, np.False_
"""Values of `one_sided`. True and False of Python's own are types to Numba, which compiles for each."""


def band_table(left: ShapeClasses, right: ShapeClasses, window: Window) -> np.ndarray:
    """The bands of all pairs of length classes."""
    return _band_table(
        left.lowest,
        left.highest,
        right.lowest,
        right.highest,
        window.lo,
        window.hi,
        window.confidence,
    )


def midpoint_reach(window: Window, longest: int = 2 * TIME_LIMIT) -> tuple[int, int] | None:
    """Bounds on D that hold whatever the lengths of a pair's intervals are, if there are any."""
    # The difference of two timestamps is as likely above the difference of their midpoints as
    # below, so that a pair whose D lies outside the window is less likely than not to meet it.
    if window.confidence < _EVEN:
        return None
    # About its middle the density is at least 1 / (2 * longest).
    beyond = 0 if window.confidence > _EVEN + _ERROR else int(longest * 4 * _ERROR) + 1
    return 2 * window.lo - beyond, 2 * window.hi + beyond


def longest_useful(window: Window) -> int:
    """No interval longer than this can be of a pair that qualifies, ticks."""
    # A time is uniform on its interval, so no window holds more of it than its width over the
    # length.
    endless, least = 2 * TIME_LIMIT, Fraction(window.confidence) - DOUBT
    return endless if least <= 0 else min(endless, math.ceil(window.width / least) + 1)


def longest_match(window: Window, shortest: int = 0) -> int | None:
    """The longest interval that can be of a pair with one no shorter than `shortest`, ticks.

    None where not even an instant can.
    """
    least = window.confidence - _ERROR
    if highest_probability(shortest, 0, window.width) < least:
        return None
    inside, outside = 0, longest_useful(window) + 1
    while outside - inside > 1:
        length = (inside + outside) // 2
        if highest_probability(shortest, length, window.width) >= least:
            inside = length
        else:
            outside = length
    return inside


def mirrored(bands: np.ndarray) -> np.ndarray:
    """Bands as the other side sees them: int64 array, shape (K2, K1, 4)."""
    return np.ascontiguousarray(-bands.transpose(1, 0, 2)[:, :, ::-1])


@compiled(allocates=True)
def _band_table(low1, high1, low2, high2, lo, hi, confidence):
    table = np.empty((low1.size, low2.size, 4), np.int64)
    for i in range(low1.size):
        for j in range(low2.size):
            _fill_band(table[i, j], low1[i], high1[i], low2[j], high2[j], lo, hi, confidence)
    return table


@compiled
def _fill_band(band, a1, b1, a2, b2, lo, hi, confidence):
    middle = lo + hi
    threshold = confidence - DECISION_SLACK
    distance = guard(b1, b2)
    # Errors vanish as P nears 1, so a certain corner is certain: else nothing would be at ct = 1.
    certain = min(threshold + distance, 1.0)
    inner_lo, inner_hi = _all_qualify(a1, b1, a2, b2, lo, hi, certain)
    if hi - lo - b1 >= b2 or (a1 == b1 and a2 == b2):
        outer_lo, outer_hi = _corner_hull(a1, b1, a2, b2, lo, hi, threshold - distance, _BOTH_ENDS)
    else:
        outer_lo, outer_hi = _narrow_hull(a1, b1, a2, b2, lo, hi, threshold - distance)
    if outer_lo > outer_hi:
        outer_lo, outer_hi = middle, middle - 1
    if inner_lo > inner_hi:
        inner_lo, inner_hi = outer_lo, outer_lo - 1
    band[OUTER_LO] = outer_lo
    band[INNER_LO] = inner_lo
    band[INNER_HI] = inner_hi
    band[OUTER_HI] = outer_hi


@compiled
def guard(b1, b2):
    """`GUARD`, wider where floats do not hold the longest lengths, ticks, or their product."""
    if max(b1, b2) > 2**53:
        return 4.0 * GUARD
    return 2.0 * GUARD if float(b1) * float(b2) > 2.0**52 else GUARD


@compiled
def _all_qualify(a1, b1, a2, b2, lo, hi, threshold):
    """Range of D in which every pair of the two classes qualifies: where the four corners do."""
    lowest, highest = -_FAR, _FAR
    for l1 in (a1, b1):
        for l2 in (a2, b2):
            low, high = _qualifying_range(l1, l2, lo, hi, threshold, _BOTH_ENDS)
            lowest, highest = max(lowest, low), min(highest, high)
    return lowest, highest


@compiled
def _corner_hull(a1, b1, a2, b2, lo, hi, threshold, one_sided):
    """Range of D outside which no pair of the classes qualifies, where P is monotone in lengths."""
    lowest, highest = _FAR, -_FAR
    for l1 in (a1, b1):
        for l2 in (a2, b2):
            low, high = _qualifying_range(l1, l2, lo, hi, threshold, one_sided)
            if low <= high:
                lowest, highest = min(lowest, low), max(highest, high)
    if a1 == b1 and a2 == b2:
        return lowest, highest
    if lowest > highest:
        lowest, highest = lo + hi, lo + hi
    # Lengths inside the classes may have the other parity of D, one step further out.
    return max(lowest, -_FAR + 1) - 1, min(highest, _FAR - 1) + 1


@compiled
def _narrow_hull(a1, b1, a2, b2, lo, hi, threshold):
    """As `_corner_hull`, for windows narrower than the lengths: two valid bounds, the tighter wins."""
    low, high = _corner_hull(a1, b1, a2, b2, lo, hi, threshold, _ONE_END)
    share = 1.0
    if b1 > 0:
        share *= float(a1) / float(b1)
    if b2 > 0:
        share *= float(a2) / float(b2)
    # What floats cannot tell from 0 bounds nothing.
    scaled = threshold * share * (1.0 - _RELATIVE_ERROR) - guard(b1, b2)
    if scaled <= 0.0:
        return low, high
    # P(l1, l2) <= P(b1, b2) * (b1 * b2) / (l1 * l2): the mean over a window grown to the largest.
    scaled_low, scaled_high = _qualifying_range(b1, b2, lo, hi, scaled, _BOTH_ENDS)
    if scaled_low > scaled_high:
        scaled_low, scaled_high = lo + hi, lo + hi
    scaled_low = max(scaled_low, -_FAR + 1) - 1
    scaled_high = min(scaled_high, _FAR - 1) + 1
    return max(low, scaled_low), min(high, scaled_high)


@compiled
def _qualifying_range(l1, l2, lo, hi, threshold, one_sided):
    """First and last D whose P reaches the threshold, for exact lengths; (1, 0) if none does."""
    # Only D of the parity that such lengths can have. Symmetric about lo + hi.
    middle = lo + hi
    parity = (middle + l2 - l1) & 1
    steps = _steps_out(l1, l2, lo, hi, threshold, one_sided, (middle + parity + l2 - l1) >> 1)
    if steps == _NONE:
        return np.int64(1), np.int64(0)
    half = middle >> 1
    high = _FAR if half + steps > _HALF_FAR else middle + parity + 2 * steps
    low = -_FAR if half - steps < -_HALF_FAR else middle - parity - 2 * steps
    return low, high


@compiled
def _steps_out(l1, l2, lo, hi, threshold, one_sided, start):
    """Largest k such that P at s = start + k reaches the threshold, -1 if k = 0 does not: bisection."""
    if _probability(start, l1, l2, lo, hi, one_sided) < threshold:
        return np.int64(_NONE)
    inside = np.int64(0)
    # Halved one by one: the sum of the three could overflow.
    outside = ((hi - lo) >> 1) + (l1 >> 1) + (l2 >> 1) + 3
    while outside - inside > 1:
        k = inside + ((outside - inside) >> 1)
        if _probability(start + k, l1, l2, lo, hi, one_sided) >= threshold:
            inside = k
        else:
            outside = k
    return inside


@compiled
def _probability(s, l1, l2, lo, hi, one_sided):
    # Before s - l2 no difference can lie, so that what is taken away there is 0.
    return window_probability(s, l1, l2, s - l2 if one_sided else lo, hi)
