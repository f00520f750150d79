"""The oracle of border crossings: every reading against every query, and moves in rational arithmetic.

A range holds its lower border, its upper one, both or neither, in every dimension alike. One that holds no
float is empty, even if there are real numbers in it. A crossing is reported at the reading that shows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

Point = tuple[float, ...]


class Range(NamedTuple):
    """A query's range; `closed` is "left", "right", "both" or "neither"."""

    lower: Point
    upper: Point
    closed: str = "left"

    def holds(self, point: Sequence[float | Fraction]) -> bool:
        """Whether a point is in it."""
        return all(
            a < v < b
            or (v == a and self.closed in ("left", "both") and (v < b or self.closed == "both"))
            or (v == b and self.closed in ("right", "both") and (a < v or self.closed == "both"))
            for a, v, b in zip(self.lower, point, self.upper, strict=True)
        )

    @property
    def is_empty(self) -> bool:
        """Whether it holds no finite float: neither its lower border, nor the float after that."""
        for a, b in zip(self.lower, self.upper, strict=True):
            one = Range((a,), (b,), self.closed)
            near = a, math.nextafter(a, math.inf)
            if not any(one.holds((v,)) for v in near if math.isfinite(v)):
                return True
        return False

    def widened(self, margin: float | tuple[float, ...]) -> Range:
        """With a margin on all sides, or one for each dimension."""
        each = margin if isinstance(margin, tuple) else (margin,) * len(self.lower)
        return Range(
            tuple(a - m for a, m in zip(self.lower, each, strict=True)),
            tuple(b + m for b, m in zip(self.upper, each, strict=True)),
            self.closed,
        )


class Crossing(NamedTuple):
    """A crossing; its instant rounded down."""

    query: object
    stream: object
    event: str
    min_time: int
    max_time: int
    instant: int


class BorderReference:
    """Streams and queries, reading by reading."""

    def __init__(
        self,
        *,
        from_outside: bool = False,
        pass_through: bool = False,
        margin: float | tuple[float, ...] = 0.0,
    ) -> None:
        self.from_outside, self.pass_through, self.margin = from_outside, pass_through, margin
        self.queries: dict[object, Range] = {}
        self.last: dict[object, tuple[int, Point]] = {}
        self.inside: set[tuple[object, object]] = set()

    def add(self, query: object, lower: Point, upper: Point, closed: str = "left") -> None:
        """A new query: what is in its range is inside without a crossing."""
        self.queries[query] = Range(lower, upper, closed)
        for stream, (_, point) in self.last.items():
            if self.queries[query].holds(point):
                self.inside.add((stream, query))

    def remove(self, query: object) -> None:
        """A query is no more."""
        del self.queries[query]
        self.inside = {pair for pair in self.inside if pair[1] != query}

    def read(self, stream: object, time: int, point: Point) -> list[Crossing]:
        """The crossings that a reading shows."""
        if any(math.isnan(value) for value in point):
            return []
        earlier = self.last.get(stream)
        if earlier is not None and time <= earlier[0]:
            return []
        self.last[stream] = time, point
        found: list[Crossing] = []
        for query, area in self.queries.items():
            if area.is_empty:
                continue
            found += self._crossings(stream, query, area, earlier, (time, point))
        return found

    def _crossings(
        self,
        stream: object,
        query: object,
        area: Range,
        earlier: tuple[int, Point] | None,
        now: tuple[int, Point],
    ) -> list[Crossing]:
        pair = stream, query
        was_inside = pair in self.inside
        stays = area.widened(self.margin) if was_inside else area
        is_inside = stays.holds(now[1])
        (self.inside.add if is_inside else self.inside.discard)(pair)
        if earlier is None:
            time = now[0]
            told = is_inside and self.from_outside
            return [Crossing(query, stream, "I", time, time, time)] if told else []
        if was_inside == is_inside:
            passes = self.pass_through and not is_inside and _instants(area, earlier, now)
            events = "IO" if passes else ""
        else:
            events = "I" if is_inside else "O"
        crossings = []
        for event in events:
            instants = _instants(stays, earlier, now)
            assert instants is not None
            instant = instants[0] if event == "I" else instants[1]
            crossings.append(Crossing(query, stream, event, earlier[0], now[0], instant))
        return crossings


def _instants(
    area: Range, earlier: tuple[int, Point], now: tuple[int, Point]
) -> tuple[int, int] | None:
    """When a straight move is first in a range and last, rounded down; None if it never is."""
    # The move is looked at wherever it meets a border, and between each two such places.
    moves = [(Fraction(a), Fraction(b)) for a, b in zip(earlier[1], now[1], strict=True)]
    places = {Fraction(0), Fraction(1)}
    for (a, b), *borders in zip(moves, area.lower, area.upper, strict=True):
        for border in borders:
            if a != b and math.isfinite(border):
                places.add((Fraction(border) - a) / (b - a))
    ordered = sorted(place for place in places if 0 <= place <= 1)
    stretches = [(place, place) for place in ordered] + list(pairwise(ordered))
    inside = []
    for first, last in stretches:
        middle = (first + last) / 2
        if area.holds([a + middle * (b - a) for a, b in moves]):
            inside += [first, last]
    if not inside:
        return None
    span = now[0] - earlier[0]
    return earlier[0] + min(inside) * span // 1, earlier[0] + max(inside) * span // 1
