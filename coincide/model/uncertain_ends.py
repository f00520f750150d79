"""Spans whose starts and ends are uncertain: the chance of a relation, and the bounds that follow from it.

Each end is uniform within some ticks of what is given for it, and independent of all others. A relation
that bounds differences with no end in common has the product of their chances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from coincide.model.bands import guard
from coincide.model.compiled import compiled
from coincide.model.probability import DECISION_SLACK, trapezoid_cdf
from coincide.model.span_bounds import FAR, SpanBounds


class Widths(NamedTuple):
    """By how much the ends of two spans may be off, ticks."""

    left_start: int = 0
    left_end: int = 0
    right_start: int = 0
    right_end: int = 0

    def mirrored(self) -> Widths:
        """The same of swapped sides."""
        return Widths(self.right_start, self.right_end, self.left_start, self.left_end)

    def of_differences(self) -> tuple[tuple[int, int], ...]:
        """Those of the left and the right end in each difference, in the order of `SpanBounds`."""
        return (
            (self.left_start, self.right_start), (self.left_end, self.right_end),
            (self.left_end, self.right_start), (self.left_start, self.right_end),
        )  # fmt: skip


class Difference(NamedTuple):
    """A bounded difference of a right and a left end, and by how much these may be off."""

    less_left: int  # 1: of left's start, which is before its end by the length
    less_right: int  # 1: of right's start
    lo: int
    hi: int
    left_width: int
    right_width: int


ALL = Difference(0, 0, -FAR, FAR, 0, 0)
"""A difference that may be anything."""


@dataclass(frozen=True)
class UncertainEnds:
    """By how much ends may be off, and the chance that a pair of spans must have."""

    widths: Widths
    confidence: float

    def mirrored(self) -> UncertainEnds:
        """The same of swapped sides."""
        return UncertainEnds(self.widths.mirrored(), self.confidence)

    @property
    def threshold(self) -> float:
        """The least chance that qualifies."""
        return self.confidence - DECISION_SLACK

    def where_known(self, closed: SpanBounds, ends: SpanBounds) -> SpanBounds:
        """Bounds between known ends as they are closed; uncertain ones are equal with no chance."""
        return _each(
            ends, self.widths, lambda k, widths: (ends if any(widths) else closed)[k : k + 2]
        )

    def differences(self, bounds: SpanBounds) -> tuple[Difference, Difference]:
        """The two differences that are bounded: they have no end in common."""
        ends = ((1, 1), (0, 0), (0, 1), (1, 0))
        found = [
            Difference(*of, bounds[2 * k], bounds[2 * k + 1], *widths)
            for k, (of, widths) in enumerate(zip(ends, self.widths.of_differences(), strict=True))
            if bounds[2 * k] > -FAR or bounds[2 * k + 1] < FAR
        ]
        first, second = (*found, ALL)[:2]
        return first, second

    def possible(self, bounds: SpanBounds) -> SpanBounds:
        """Bounds on what is given for the ends, outside which no pair qualifies."""
        # No chance is above that of one end.
        return self._with_chance(bounds, self.threshold - self._doubt)

    def sure(self, bounds: SpanBounds) -> SpanBounds:
        """Bounds on what is given for the ends, within which each pair qualifies."""
        # Some ends together have at least what is left when the chances that each is missed are added.
        count = sum(abs(bound) < FAR for bound in bounds[:8])
        missed = max(1.0 - self.threshold - self._doubt, 0.0) / max(count, 1)
        return self._with_chance(bounds, 1.0 - missed)

    @property
    def _doubt(self) -> float:
        """More than the error of a product of chances."""
        longest = 2 * max(self.widths)
        return 4.0 * float(guard(longest, longest))

    def _with_chance(self, bounds: SpanBounds, chance: float) -> SpanBounds:
        def moved(k: int, widths: tuple[int, int]) -> tuple[int, int]:
            lo, hi = bounds[k], bounds[k + 1]
            left, right = widths
            if lo > -FAR:
                lo += left - right + _least(2 * right, 2 * left, chance)
            if hi < FAR:
                hi += left - right - _least(2 * left, 2 * right, chance)
            return lo, hi

        return _each(bounds, self.widths, moved)


def _each(
    bounds: SpanBounds, widths: Widths, of: Callable[[int, tuple[int, int]], tuple[int, ...]]
) -> SpanBounds:
    """Bounds with those on the four differences made anew."""
    found = [end for k, each in enumerate(widths.of_differences()) for end in of(2 * k, each)]
    return SpanBounds._make((*found, *bounds[8:]))


def _least(l1: int, l2: int, chance: float) -> int:
    """The least z at which `trapezoid_cdf` is that much, of lengths 0 none but 0."""
    if chance >= 1.0:
        return l1
    return int(_least_z(l1, l2, chance)) if l1 or l2 else 0


@compiled
def _least_z(l1: int, l2: int, chance: float) -> int:
    below, above = -l2, l1
    while above - below > 1:
        z = below + ((above - below) >> 1)
        if trapezoid_cdf(z, l1, l2) >= chance:
            above = z
        else:
            below = z
    return above


@compiled(forceinline=True)
def chance_of(difference: Difference, s: int, left: int, right: int) -> float:
    """P(lo <= D <= hi) of a difference D, given right's end less left's and both lengths."""
    lo, hi = difference.lo, difference.hi
    own, other = difference.left_width, difference.right_width
    x = s + difference.less_left * left - difference.less_right * right
    if own == 0 and other == 0:
        return 1.0 if lo <= x <= hi else 0.0
    p = 1.0
    if hi < FAR:
        p = trapezoid_cdf(hi - x + (own - other), 2 * own, 2 * other)
    if lo > -FAR:
        # From the other side, so that swapped sides have the same chance to the bit.
        above = trapezoid_cdf(x - lo + (other - own), 2 * other, 2 * own)
        p = above if hi >= FAR else max(p + above - 1.0, 0.0)
    return p
