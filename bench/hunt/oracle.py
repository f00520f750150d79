"""The right answer: all pairs by exact arithmetic, once for each data set."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from bench.hunt.data import DataSet
from bench.hunt.meaning import Event, Meaning, meaning_of
from bench.hunt.templates import shape_probability
from cpu_fallback.reference.decision import decision_is_clear, qualifies, satisfaction_probability

Match = tuple[Fraction, Event]


class Oracle:
    """A data set's right answer; timestamps beyond declared longest lengths, ticks, are invalid."""

    def __init__(
        self, data: DataSet, longest: tuple[int | None, int | None] = (None, None)
    ) -> None:
        self.data = data
        self._longest = longest

    def serves(self, data: DataSet, longest: tuple[int | None, int | None]) -> bool:
        """Whether this is the oracle of that data set and of these lengths."""
        return self.data is data and self._longest == longest

    def swapped(self, data: DataSet) -> Oracle:
        """The oracle of a data set whose sides are those of this one swapped."""
        return Oracle(data, self._longest[::-1])

    @cached_property
    def sides(self) -> tuple[Meaning, Meaning]:
        """What the rows of both sides mean."""
        left, right = (meaning_of(self.data, i, self._longest[i]) for i in (0, 1))
        return left, right

    @property
    def is_invalid(self) -> bool:
        """Whether rows are invalid."""
        return any(side.invalid for side in self.sides)

    @property
    def is_too_fine(self) -> bool:
        """Whether times are finer than a tick."""
        return any(side.too_fine for side in self.sides)

    @cached_property
    def matches(self) -> list[list[Match]]:
        """For each left event its matches with their probabilities."""
        confidence = self.data.confidence
        return [
            [(p, right) for p, right in found if qualifies(p, confidence)]
            for found in self.probabilities()
        ]

    def probabilities(self, *, keys: bool = True) -> list[list[Match]]:
        """For each left event all right ones that it may meet; `keys`: of equal keys only."""
        left, right = (side.events for side in self.sides)
        others = [event for event in right if event.matchable or not keys]
        return [
            [
                (self._probability(one, other), other)
                for other in others
                if not keys or one.row.keys == other.row.keys
            ]
            if one.matchable or not keys
            else []
            for one in left
        ]

    def before_window(self, left: Event) -> list[Event]:
        """The last right events before a window of exact times, any of which may count."""
        begin = left.high + self.data.lo
        others = [
            event
            for event in self.sides[1].events
            if left.matchable and event.matchable and event.row.keys == left.row.keys
        ]
        if any(event.high == begin for event in others):
            return []  # that one lies in the window, and takes the place of those before
        earlier = [event for event in others if event.high < begin]
        last = max((event.high for event in earlier), default=None)
        return [event for event in earlier if event.high == last]

    def _probability(self, one: Event, other: Event) -> Fraction:
        return event_probability(one, other, self.data.lo, self.data.hi)


def event_probability(left: Event, right: Event, lo: int, hi: int) -> Fraction:
    """The satisfaction probability of two events, by the reference."""
    if left.shape is None is right.shape:
        return satisfaction_probability(left.low, left.high, right.low, right.high, lo, hi)
    return shape_probability(left.buckets, right.buckets, right.high - left.high, lo, hi)


def clear_confidence(data: DataSet) -> float:
    """The threshold, lowered until float64 decides every pair of intervals as exact arithmetic does."""
    oracle, confidence = Oracle(data), data.confidence
    if data.has_histograms:
        return confidence
    found = {p for row in oracle.probabilities() for p, _ in row}
    while not all(decision_is_clear(p, confidence) for p in found):
        confidence *= 0.999
    return confidence


def reference_row(event: Event) -> dict[str, Any]:
    """An event as `cpu_fallback.reference.join` takes it."""
    ends = {"min_time": event.low, "max_time": event.high}
    # All are as good as one row: which of equal ones is taken depends on the way, and `asked` judges it.
    return {**ends, "id": event.row.number, "shape": event.shape, "row": 0}


def reference_matches(matches: Sequence[Match]) -> list[tuple[Fraction, dict[str, Any]]]:
    """Matches likewise, with their probabilities."""
    return [(p, reference_row(event)) for p, event in matches]
