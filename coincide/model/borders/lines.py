"""Straight moves from one reading to the next: when they meet a border, and whether they meet a range.

Both are decided exactly: in floats where these are far enough from a tie, else in rational arithmetic.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from coincide.model.borders.crossings import IN
from coincide.model.borders.index import CLOSED_ABOVE, OPEN_BELOW, half_open

_UNSURE = 2.0**-49
"""Relative error, amply, of three differences, a quotient and a product."""

_SHORT = 1 << 46
"""Ticks of a span, in whose products with a share errors are far below a tick."""

_SANE = 2.0**300
_SPLIT = 2.0**27 + 1


def crossing_offsets(
    before: np.ndarray,
    after: np.ndarray,
    span: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    closed: np.ndarray,
    events: np.ndarray,
) -> np.ndarray:
    """How long after the first reading a straight move crosses a query's border, rounded down to ticks."""
    # A range is entered when the last dimension enters it, and left when the first one leaves it.
    entering = (events == IN)[:, np.newaxis]
    end = np.where(entering, before, after)
    first, stop = half_open(lower, upper, closed)
    is_below = end < first
    crosses = is_below | (end >= stop)
    # The border on the side of the end that is outside.
    border = np.where(is_below, lower, upper)
    offsets = np.where(entering, np.int64(0), np.broadcast_to(span[:, np.newaxis], end.shape))
    rows, columns = np.nonzero(crosses)
    offsets[rows, columns] = _offsets(
        border[rows, columns], before[rows, columns], after[rows, columns], span[rows]
    )
    return np.where(entering[:, 0], offsets.max(axis=1), offsets.min(axis=1))


def _offsets(
    border: np.ndarray, before: np.ndarray, after: np.ndarray, span: np.ndarray
) -> np.ndarray:
    """floor(span * (border - before) / (after - before)), all of one shape (n,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        estimate = (border - before) / (after - before) * span
        unsure = ~(np.abs(estimate - np.rint(estimate)) > np.abs(span * _UNSURE))
    offsets = np.floor(np.where(unsure, 0.0, estimate)).astype(np.int64)
    near = np.flatnonzero(unsure)
    sure, offsets[near] = _near_ticks(
        *(each[near] for each in (border, before, after, span, estimate))
    )
    for k in near[~sure].tolist():
        share = _share(float(border[k]), float(before[k]), float(after[k]))
        offsets[k] = share * int(span[k]) // 1
    return offsets


def _near_ticks(
    border: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    span: np.ndarray,
    estimate: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Where that is exact, and the offsets of crossings near a tick."""
    with np.errstate(all="ignore"):
        tick = np.rint(estimate)
        done, whole = border - before, after - before
        exact = (np.abs(tick) <= span) & (span < _SHORT)
        for end, part in ((border, done), (after, whole)):
            exact &= (part == 0.0) | ((np.abs(part) > 1 / _SANE) & (np.abs(part) < _SANE))
            exact &= np.isfinite(end) & _is_exact_difference(end, before, part)
        # done * span >= tick * whole, each as a float and what it is rounded by.
        (p, e), (q, f) = _product(done, span.astype(np.float64)), _product(tick, whole)
        above, below = (p > q) | ((p == q) & (e >= f)), (p < q) | ((p == q) & (e <= f))
    reached = np.where(whole > 0.0, above, below)
    return exact, np.where(exact, tick, 0.0).astype(np.int64) - (exact & ~reached)


def _is_exact_difference(a: np.ndarray, b: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Whether a - b is what it was rounded to: Knuth's two-sum leaves nothing."""
    b_part = a - difference
    a_part = difference + b_part
    return ((a - a_part) + (b_part - b)) == 0.0


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b, and what it was rounded by: Dekker (1971)."""
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    product = a * b
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = a * _SPLIT
    high = scaled - (scaled - a)
    return high, a - high


def _share(border: float, before: float, after: float) -> Fraction:
    """The part of a move before a border."""
    return (Fraction(border) - Fraction(before)) / (Fraction(after) - Fraction(before))


def meets(
    before: np.ndarray,
    after: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    closed: np.ndarray,
) -> np.ndarray:
    """Whether straight moves meet ranges that hold neither of their ends."""
    rises, falls = after > before, after < before
    near, far = np.where(rises, lower, upper), np.where(rises, upper, lower)
    with np.errstate(all="ignore"):
        # A dimension in which nothing moves holds the range all along.
        enters = np.where(rises | falls, (near - before) / (after - before), -np.inf)
        leaves = np.where(rises | falls, (far - before) / (after - before), np.inf)
        # So does one whose border is infinite, or that begins or ends within.
        enters = np.where(np.isnan(enters), 0.0, enters).max(axis=1)
        leaves = np.where(np.isnan(leaves), 1.0, leaves).min(axis=1)
        unsure = ~(np.abs(leaves - enters) > _UNSURE)
        unsure |= ~np.isfinite(after - before).all(axis=1)
    met = enters < leaves
    for k in np.flatnonzero(unsure).tolist():
        a, b, low, high = (each[k].tolist() for each in (before, after, lower, upper))
        met[k] = _meets(a, b, low, high, int(closed[k]))
    return met


def _meets(
    before: list[float], after: list[float], lower: list[float], upper: list[float], closed: int
) -> bool:
    """As `meets`, of one move, in rational arithmetic."""
    # A value is in the range from the border that it meets first, or just after it, until the
    # border that it meets last, or just before it: at a border where the range holds that.
    holds_lower, holds_upper = not closed & OPEN_BELOW, bool(closed & CLOSED_ABOVE)
    enters, leaves = (Fraction(0), 0), (Fraction(1), 1)
    for a, b, low, high in zip(before, after, lower, upper, strict=True):
        if a == b:
            continue
        ends = (low, holds_lower), (high, holds_upper)
        (near, holds_near), (far, holds_far) = ends if a < b else ends[::-1]
        # Just after an instant is (instant, 1), just before it (instant, -1), and 0 is the instant.
        if np.isfinite(near):
            enters = max(enters, (_share(near, a, b), 0 if holds_near else 1))
        if np.isfinite(far):
            leaves = min(leaves, (_share(far, a, b), 0 if holds_far else -1))
    # Between just after an instant and just before a later one lie instants.
    return enters <= leaves
