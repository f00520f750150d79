"""Relations of spans: as they are asked, and as sets of points of the real line have them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

from coincide import SpanRelation, containing, following, inside, overlapping, relation
from coincide.model.condition import Closed
from coincide.model.relations import Allen
from cpu_fallback.reference.spans import (
    Span,
    allen,
    is_containing,
    is_following,
    is_overlapping,
    overlap,
)

CLOSED = get_args(Closed)
Test = Callable[[Span, Span], bool]


def named(name: Any) -> tuple[SpanRelation, Test]:
    """A relation of Allen's."""
    bound = 4 if name in ("before", "after") else None

    def test(left: Span, right: Span) -> bool:
        if not (left.points and right.points) or allen(left, right) != name:
            return False
        return bound is None or -overlap(left, right) <= bound

    return relation(name, bound), test


def shared(own: str, other: str) -> tuple[SpanRelation, Test]:
    """Shares that two spans have in common of either."""
    shares = Fraction(own), Fraction(other)
    return (
        overlapping(share=(float(own), float(other))),
        lambda a, b: is_overlapping(a, b, shares=shares),
    )


RELATIONS: dict[str, tuple[SpanRelation, Test]] = {
    "overlapping": (overlapping(), is_overlapping),
    "touching": (overlapping(min_overlap=0), lambda a, b: is_overlapping(a, b, min_overlap=0)),
    "3 in common": (overlapping(min_overlap=3), lambda a, b: is_overlapping(a, b, min_overlap=3)),
    "no gap": (overlapping(gap=0), lambda a, b: is_overlapping(a, b, gap=0)),
    "a gap of 2": (overlapping(gap=2), lambda a, b: is_overlapping(a, b, gap=2)),
    "half of both": shared("0.5", "0.5"),
    "0.3 of left": shared("0.3", "0"),
    "all of right": shared("0", "1"),
    "containing": (containing(), is_containing),
    "inside": (inside(), lambda a, b: is_containing(b, a)),
    "containing, off by 2": (containing(2), lambda a, b: is_containing(a, b, 2)),
    "inside, as numbers": (inside(0), lambda a, b: is_containing(b, a, 0)),
    "following": (following(3), lambda a, b: is_following(a, b, 3)),
    **{name: named(name) for name in get_args(Allen)},
}


def wanted(
    left: tuple[list[Span], list[int]], right: tuple[list[Span], list[int]], test: Test
) -> list[tuple[int, int]]:
    """The pairs of numbers of two sides of spans and keys, in order."""
    return [
        (i, j)
        for i, (own, key) in enumerate(zip(*left, strict=True))
        for j, (other, other_key) in enumerate(zip(*right, strict=True))
        if key == other_key and test(own, other)
    ]
