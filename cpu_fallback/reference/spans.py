"""The oracle of relations of spans: sets of points of the real line, for times of few ticks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from cpu_fallback.reference.decision import satisfaction_probability


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


def lasting(start: int, length: int | None, closed: str, last: int) -> Span:
    """An event that is so long, or goes on until the last time that there is."""
    return Span(start, last if length is None else start + length, closed)


def overlap(left: Span, right: Span) -> int:
    """Ticks in common; of spans that are apart, or touch, less the ticks between them."""
    return sum(point % 2 for point in left.points & right.points) or -_apart(left, right)


def common(left: Span, right: Span) -> tuple[int, int] | None:
    """The first and last tick at which both hold, whether or not ends belong to them; None if at none."""
    both = set(range(left.start, left.end + 1)) & set(range(right.start, right.end + 1))
    return (min(both), max(both)) if both else None


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


def is_containing(left: Span, right: Span, slack: int | None = None) -> bool:
    """As `coincide.containing`."""
    if slack is None:
        return bool(right.points) and right.points <= left.points
    wider = range(left.start - slack, left.end + slack + 1)
    return bool(left.points and right.points) and {right.start, right.end} <= set(wider)


def is_following(left: Span, right: Span, within: int) -> bool:
    """As `coincide.following`."""
    return bool(left.points and right.points) and right.start in range(
        left.end, left.end + within + 1
    )


def united(spans: Sequence[Span], gap: int | None = None) -> list[tuple[int, int, int]]:
    """As `coincide.merged`: start, end and number of each set of spans that chains connect."""
    return [(start, end, len(members)) for start, end, members in unions(spans, gap)]


def unions(spans: Sequence[Span], gap: int | None = None) -> list[tuple[int, int, list[int]]]:
    """Start, end and members of each set of spans that chains connect, as `coincide.labelled` tells."""
    parts: list[list[int]] = []
    for i, span in enumerate(spans):
        if not span.points:
            continue
        near = [part for part in parts if any(_is_one(span, spans[j], gap) for j in part)]
        parts = [part for part in parts if part not in near]
        parts.append([i, *(j for part in near for j in part)])
    return sorted(
        (min(spans[i].start for i in part), max(spans[i].end for i in part), part) for part in parts
    )


def ticks(spans: Sequence[Span]) -> set[int]:
    """The stretches from one tick to the next that spans cover, by their first tick."""
    return {point // 2 for span in spans for point in span.points if point % 2}


def runs(of: set[int]) -> list[tuple[int, int]]:
    """Such stretches, neighbours as one: as `coincide.gaps` and `coincide.difference` give them."""
    starts = sorted(tick for tick in of if tick - 1 not in of)
    return [(t, next(u for u in range(t, t + len(of) + 1) if u not in of)) for t in starts]


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


class UncertainSpan(NamedTuple):
    """An event that lasts, whose start and end may each be off by some ticks."""

    start: int
    end: int
    closed: str = "both"
    widths: tuple[int, int] = (0, 0)

    @property
    def is_valid(self) -> bool:
        """Whether the latest start is not after the earliest end."""
        return self.start + self.widths[0] <= self.end - self.widths[1]

    @property
    def is_empty(self) -> bool:
        """Whether it surely holds no moment."""
        return not any(self.widths) and not Span(*self[:3]).points

    def _edge(self, number: int) -> tuple[int, int, bool]:
        """The first and last moment where the start (0) or the end (1) may be, and whether it belongs."""
        time, width = (self.start, self.end)[number], self.widths[number]
        return time - width, time + width, self.closed in ("both", ("left", "right")[number])


def chance_of_overlap(
    left: UncertainSpan, right: UncertainSpan, gap: int | None = None
) -> Fraction:
    """How likely `coincide.overlapping` holds."""
    if left.is_empty or right.is_empty:
        return Fraction(0)
    far = gap or 0
    strict = gap is None
    return _chance(left._edge(0), right._edge(1), -far, strict) * _chance(
        right._edge(0), left._edge(1), -far, strict
    )


def chance_of_containing(left: UncertainSpan, right: UncertainSpan) -> Fraction:
    """How likely `coincide.containing` holds."""
    if left.is_empty or right.is_empty:
        return Fraction(0)
    own, others = (left._edge(0), left._edge(1)), (right._edge(0), right._edge(1))
    # At a known end that both have, all of the right span is contained unless only it has that end.
    starts = _chance(own[0], others[0], 0, own[0][2] < others[0][2], any_end=True)
    return starts * _chance(others[1], own[1], 0, own[1][2] < others[1][2], any_end=True)


def chance_of_following(left: UncertainSpan, right: UncertainSpan, within: int) -> Fraction:
    """How likely `coincide.following` holds."""
    if left.is_empty or right.is_empty:
        return Fraction(0)
    end, start = left._edge(1), right._edge(0)
    return satisfaction_probability(*end[:2], *start[:2], 0, within)


def _chance(
    early: tuple[int, int, bool],
    late: tuple[int, int, bool],
    least: int,
    strict: bool,
    any_end: bool = False,
) -> Fraction:
    """How likely one end is at least so long after another one; `strict`: at a tie, if both belong."""
    is_tie = early[:2] == late[:2] and early[0] == early[1] and least == 0
    if is_tie and strict and (any_end or not (early[2] and late[2])):
        return Fraction(0)
    far = 1 << 70
    return satisfaction_probability(*early[:2], *late[:2], least, far)
