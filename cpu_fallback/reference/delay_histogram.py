"""The oracle of histograms of delays: each pair by itself, in exact arithmetic, slow and obvious."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from cpu_fallback.reference.decision import satisfaction_probability
from cpu_fallback.reference.join import Histogram


class Event(NamedTuple):
    """A key, None for none, and the stretches of time that an event may be in: begin, end, mass."""

    key: Hashable
    stretches: Histogram

    @property
    def middle(self) -> Fraction:
        """The middle between its first and its last time."""
        return Fraction(self.stretches[0][0] + self.stretches[-1][1], 2)


class Counted(NamedTuple):
    """What is counted of one key, by bucket."""

    pairs: list[int]
    expected: list[Fraction]


def delay_histogram(
    left: Sequence[Event], right: Sequence[Event] | None, edges: Sequence[int]
) -> dict[Hashable, Counted]:
    """The histogram of each key that both sides have; without `right` no event meets itself."""
    others = left if right is None else right
    shared = {event.key for event in left} & {event.key for event in others} - {None}
    found = {}
    for key in dict.fromkeys(event.key for event in left if event.key in shared):
        pairs = [
            (one, other)
            for i, one in enumerate(left)
            for j, other in enumerate(others)
            if one.key == other.key == key and not (right is None and i == j)
        ]
        counts, sums = [], []
        for number, bucket in enumerate(pairwise(edges), 1):
            is_last = number == len(edges) - 1
            delays = [other.middle - one.middle for one, other in pairs]
            counts.append(sum(_holds(bucket, delay, is_last) for delay in delays))
            sums.append(sum((_mass(*pair, bucket, is_last) for pair in pairs), Fraction(0)))
        found[key] = Counted(counts, sums)
    return found


def _holds(bucket: tuple[int, int], delay: Fraction | int, is_last: bool) -> bool:
    low, high = bucket
    return low <= delay < high or (is_last and delay == high)


def _mass(left: Event, right: Event, bucket: tuple[int, int], is_last: bool) -> Fraction:
    """The probability that the delay of a pair is in a bucket."""
    total = Fraction(0)
    for low_l, high_l, mass_l in left.stretches:
        for low_r, high_r, mass_r in right.stretches:
            if low_l == high_l and low_r == high_r:
                part = Fraction(_holds(bucket, low_r - low_l, is_last))
            else:  # a delay of one length of time: it is no edge but by chance 0
                part = satisfaction_probability(low_l, high_l, low_r, high_r, *bucket)
            total += Fraction(mass_l) * Fraction(mass_r) * part
    return total / (_total(left) * _total(right))


def _total(event: Event) -> Fraction:
    return sum((Fraction(mass) for _, _, mass in event.stretches), Fraction(0))
