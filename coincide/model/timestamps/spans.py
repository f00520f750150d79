"""Spans: events that last. The shape of an event is its length, and whole ticks decide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from coincide.model.class_choice import Population, choose_classes
from coincide.model.classes import ShapeClasses
from coincide.model.compiled import compiled
from coincide.model.sides import LEFT
from coincide.model.span_bounds import FAR, EndBounds, SpanBounds
from coincide.model.timestamps.intervals import IntervalEvents
from coincide.model.timestamps.protocol import Events, PairModel
from coincide.model.uncertain_ends import Difference, UncertainEnds, chance_of

_BEYOND = 2**63 - 2
_PRODUCT = 2.0**62
"""Products below it do not overflow."""


class SpanRule(NamedTuple):
    """The decision on two spans: `coincide.model.timestamps.protocol.Rule`."""

    bounds: SpanBounds

    def lean(self, side, shape):  # noqa: D102
        return shape

    def qualifies(self, s, left, right):  # noqa: D102
        bounds = self.bounds
        starts, after, before = s + left - right, s - right, s + left
        # Without branches, which processors would predict wrongly near a bound.
        return (
            (bounds.starts_lo <= starts) & (starts <= bounds.starts_hi)
            & (bounds.ends_lo <= s) & (s <= bounds.ends_hi)
            & (bounds.after_lo <= after) & (after <= bounds.after_hi)
            & (bounds.before_lo <= before) & (before <= bounds.before_hi)
            & (left >= bounds.left_shortest) & (right >= bounds.right_shortest)
            & has_shares(bounds, overlap(s, left, right), left, right)
        )  # fmt: skip

    def probability(self, s, left, right):
        """As `merit`, whatever the pair."""
        return ordered(max(overlap(s, left, right), 0))

    def merit(self, s, left, right):
        """The overlap as the bits of a float; of spans that are apart `distance` tells more."""
        return self.probability(s, left, right) if self.qualifies(s, left, right) else -1.0

    def distance(self, s, left, right):
        """Twice the gap between the two."""
        return np.uint64(2 * max(-overlap(s, left, right), 0))


class UncertainSpanRule(NamedTuple):
    """The decision on two spans whose ends are uncertain: as `SpanRule`."""

    first: Difference
    second: Difference
    left_shortest: int
    right_shortest: int
    threshold: float  # The least probability that qualifies

    def lean(self, side, shape):  # noqa: D102
        return shape

    def qualifies(self, s, left, right):  # noqa: D102
        return self.merit(s, left, right) >= 0.0

    def probability(self, s, left, right):  # noqa: D102
        return chance_of(self.first, s, left, right) * chance_of(self.second, s, left, right)

    def merit(self, s, left, right):  # noqa: D102
        p = self.probability(s, left, right)
        has_time = (left >= self.left_shortest) & (right >= self.right_shortest)
        return p if has_time & (p >= self.threshold) else -1.0

    def distance(self, s, left, right):
        """The less the more time the two have in common, or the less is between them."""
        return np.uint64(FAR - overlap(s, left, right))


@compiled(forceinline=True)
def overlap(s: int, left: int, right: int) -> int:
    """The time that two spans have in common, ticks; of spans that are apart the gap, below 0."""
    return min(min(left, right), min(right - s, s + left))


@compiled(forceinline=True)
def has_shares(bounds: SpanBounds, common: int, left: int, right: int) -> bool:
    """Whether an overlap is as large a part of both spans as shares ask for."""
    has_both = True
    if bounds.left_share > 0:
        has_both &= has_part(common, left, bounds.left_share, bounds.left_parts)
    if bounds.right_share > 0:
        has_both &= has_part(common, right, bounds.right_share, bounds.right_parts)
    return has_both


@compiled(forceinline=True)
def has_part(common: int, length: int, share: int, parts: int) -> bool:
    """Whether an overlap is at least the given parts of a length."""
    if np.float64(length) * np.float64(parts) < _PRODUCT:  # products are faster than divisions
        return max(common, -1) * parts >= length * share
    return common >= part_of(length, share, parts)


@compiled(forceinline=True)
def part_of(length: int, share: int, parts: int) -> int:
    """The given parts of a length, rounded up, ticks."""
    whole = length // parts
    rest = length - whole * parts
    return whole * share + (rest * share + (parts - 1)) // parts


@compiled(forceinline=True)
def ordered(ticks: int) -> float:
    """A float that is ordered among others as whole numbers of at least 0 are: their bits."""
    # A double has 53 bits for a number, and overlaps may have 62.
    return np.int64(ticks).view(np.float64)


@dataclass(frozen=True)
class SpanPairs:
    """Spans on both sides: `coincide.model.timestamps.protocol.PairModel`."""

    rule: SpanRule | UncertainSpanRule
    possible: SpanBounds  # Outside them no pair qualifies
    sure: SpanBounds  # Within them each pair does

    @classmethod
    def of(cls, bounds: SpanBounds, ends: UncertainEnds | None) -> Self:
        """Spans of a relation; `ends` tells how uncertain they are, None that they are known."""
        if ends is None:
            return cls(SpanRule(bounds), bounds, bounds)
        shortest = bounds.left_shortest, bounds.right_shortest
        rule = UncertainSpanRule(*ends.differences(bounds), *shortest, ends.threshold)
        return cls(rule, ends.possible(bounds), ends.sure(bounds))

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:
        """As `PairModel`, like all that follow."""
        return self, left, right

    def end_bounds(self, left: IntervalEvents, right: IntervalEvents) -> EndBounds | None:
        """As `coincide.model.timestamps.protocol.DecidedByEnds`."""
        if self.possible is not self.sure:
            return None
        bounds = self.sure.by_ends(left_instants=False, right_instants=False)
        if bounds is not None:
            return bounds
        left_instants, right_instants = (
            np.array_equal(each.min_time, each.max_time) for each in (left, right)
        )
        return self.sure.by_ends(left_instants=left_instants, right_instants=right_instants)

    def choose_classes(  # noqa: D102
        self, left: Population, right: Population, groups: int, classes: int | None
    ) -> tuple[ShapeClasses, ShapeClasses]:
        bands = partial(self.bands, LEFT)
        return choose_classes(left, right, groups, self.possible.reach, bands, classes)

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:  # noqa: D102
        return span_bands(*self._seen_from(base_side), own, other)

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:  # noqa: D102
        lo, hi = self._seen_from(base_side)[0].reach
        return lo - int(own.highest[-1]), hi + int(other.highest[-1])

    def _seen_from(self, base_side: int) -> tuple[SpanBounds, SpanBounds]:
        if base_side == LEFT:
            return self.possible, self.sure
        return self.possible.mirrored(), self.sure.mirrored()


def span_bands(
    bounds: SpanBounds, sure: SpanBounds, own: ShapeClasses, other: ShapeClasses
) -> np.ndarray:
    """As `coincide.model.bands.band_table`, of bounds on differences of ends.

    With D the difference of doubled midpoints, twice the difference of starts is D + l1 - l2, that of ends
    is D - l1 + l2. From left's end to right's start it is D - l1 - l2, from left's start to right's end
    D + l1 + l2.
    """
    # Python's integers, which do not overflow.
    a1, b1 = (part.astype(object)[:, None] for part in (own.lowest, own.highest))
    a2, b2 = (part.astype(object)[None, :] for part in (other.lowest, other.highest))
    # The overlap that shares ask for grows with lengths.
    least, most = (
        np.maximum(
            _parts(ends[0], bounds.left_share, bounds.left_parts),
            _parts(ends[1], bounds.right_share, bounds.right_parts),
        )
        for ends in ((a1, a2), (b1, b2))
    )
    outer = _range_of_d(bounds, (a1, b1), (a2, b2), least, is_sure=False)
    inner = _range_of_d(sure, (a1, b1), (a2, b2), most, is_sure=True)
    none = (b1 < np.maximum(least, bounds.left_shortest)) | (outer[0] > outer[1])
    none |= b2 < np.maximum(least, bounds.right_shortest)
    unsure = none | (a1 < np.maximum(most, bounds.left_shortest)) | (inner[0] > inner[1])
    unsure |= a2 < np.maximum(most, bounds.right_shortest)
    outer_lo, outer_hi = np.where(none, 0, outer[0]), np.where(none, -1, outer[1])
    inner_lo = np.where(unsure, outer_lo, inner[0])
    inner_hi = np.where(unsure, outer_lo - 1, inner[1])
    table = np.stack([outer_lo, inner_lo, inner_hi, outer_hi], axis=-1)
    return np.clip(table, -_BEYOND, _BEYOND).astype(np.int64)


def _parts(lengths: np.ndarray, share: int, parts: int) -> np.ndarray:
    """The given parts of lengths, rounded up; far below 0 without a share."""
    return -(-lengths * share // parts) if share else 0 * lengths - 2 * FAR


def _range_of_d(
    bounds: SpanBounds,
    own: tuple[np.ndarray, np.ndarray],
    other: tuple[np.ndarray, np.ndarray],
    least_overlap: np.ndarray,
    *,
    is_sure: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Between which D pairs of two classes can qualify, or surely do."""
    lowest, highest = 0 * least_overlap - _BEYOND, 0 * least_overlap + _BEYOND
    sides = zip(bounds[0:8:2], bounds[1:8:2], ((1, -1), (-1, 1), (-1, -1), (1, 1)), strict=True)
    for name, (lo, hi, (sign, other_sign)) in zip(
        ("starts", "ends", "after", "before"), sides, strict=True
    ):
        low, high = lo, hi
        if name == "after":
            high = np.minimum(hi, -least_overlap)
        if name == "before":
            low = np.maximum(lo, least_overlap)
        # 2 lo <= D + sign l1 + other_sign l2 <= 2 hi
        ends = [sign * own[0], sign * own[1]], [other_sign * other[0], other_sign * other[1]]
        small = np.minimum(*ends[0]) + np.minimum(*ends[1])
        large = np.maximum(*ends[0]) + np.maximum(*ends[1])
        lowest = np.maximum(lowest, 2 * low - (small if is_sure else large))
        highest = np.minimum(highest, 2 * high - (large if is_sure else small))
    return lowest, highest
