"""The oracle of relations of spans: sets of points of the real line, for times of few ticks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple


class Span(NamedTuple):
    """An event that lasts."""

    start: int
    end: int
    closed: str = "both"

    @property
    def points(self) -> frozenset[int]:
        """Whole ticks as even numbers, and for all that is between two of them the odd one."""
        inner = set(range(2 * self.start + 1, 2 * self.end))
        is_instant = self.start == self.end
        if self.closed == "both" or (self.closed == "left" and not is_instant):
            inner.add(2 * self.start)
        if self.closed == "both" or (self.closed == "right" and not is_instant):
            inner.add(2 * self.end)
        return frozenset(inner)


def overlap(left: Span, right: Span) -> int:
    """Ticks in common; of spans that are apart, or touch, less the ticks between them."""
    return sum(point % 2 for point in left.points & right.points) or -_apart(left, right)


def _apart(left: Span, right: Span) -> int:
    """Ticks between the nearest points of the two, ends that do not belong to them included."""
    return min(
        abs(own - other)
        for own in range(left.start, left.end + 1)
        for other in range(right.start, right.end + 1)
    )


def is_overlapping(
    left: Span,
    right: Span,
    min_overlap: int | None = None,
    gap: int | None = None,
    shares: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0)),
) -> bool:
    """As `coincide.overlapping`."""
    if not (left.points and right.points):
        return False
    if gap is not None:
        return _apart(left, right) <= gap
    common = overlap(left, right)
    is_met = bool(left.points & right.points)
    return (is_met if min_overlap is None else common >= min_overlap) and all(
        not share or Fraction(common) >= share * (span.end - span.start)
        for span, share in zip((left, right), shares, strict=True)
    )


def is_containing(left: Span, right: Span) -> bool:
    """As `coincide.containing`."""
    return bool(right.points) and right.points <= left.points


def is_following(left: Span, right: Span, within: int) -> bool:
    """As `coincide.following`."""
    return bool(left.points and right.points) and right.start in range(
        left.end, left.end + within + 1
    )


def united(spans: Sequence[Span], gap: int | None = None) -> list[tuple[int, int, int]]:
    """As `coincide.merged`: start, end and number of each set of spans that chains connect."""
    parts: list[list[Span]] = []
    for span in spans:
        if not span.points:
            continue
        near = [part for part in parts if any(_is_one(span, other, gap) for other in part)]
        parts = [part for part in parts if part not in near]
        parts.append([span, *(other for part in near for other in part)])
    return sorted(
        (min(s.start for s in part), max(s.end for s in part), len(part)) for part in parts
    )


def _is_one(left: Span, right: Span, gap: int | None) -> bool:
    """Whether no moment is missing between the two, or no more time than the gap."""
    if gap is not None:
        return _apart(left, right) <= gap
    points = left.points | right.points
    return points == frozenset(range(min(points), max(points) + 1))


def depths(spans: Sequence[Span]) -> Counter[int]:
    """As `coincide.coverage`: how many spans hold between one tick and the next, by the first."""
    return Counter(point // 2 for span in spans for point in span.points if point % 2)


def allen(left: Span, right: Span) -> str:
    """The one of Allen's thirteen relations that holds."""
    for name, inverse, holds in _ALLEN:
        if holds(left, right):
            return name
        if holds(right, left):
            return inverse
    raise AssertionError((left, right))


_ALLEN: Sequence[tuple[str, str, Callable[[Span, Span], bool]]] = (
    ("equals", "equals", lambda a, b: (a.start, a.end) == (b.start, b.end)),
    ("starts", "started-by", lambda a, b: a.start == b.start and a.end < b.end),
    ("finishes", "finished-by", lambda a, b: a.end == b.end and a.start > b.start),
    ("during", "contains", lambda a, b: a.start > b.start and a.end < b.end),
    ("meets", "met-by", lambda a, b: a.end == b.start),
    ("before", "after", lambda a, b: a.end < b.start),
    ("overlaps", "overlapped-by", lambda a, b: a.start < b.start < a.end < b.end),
)
