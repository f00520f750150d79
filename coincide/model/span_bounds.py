"""Bounds on the differences between the ends of two spans: what a relation comes to in ticks."""

from __future__ import annotations

from typing import NamedTuple

FAR = 2**62
"""No two times are that far apart, ticks."""
MOST_PARTS = 10**9
"""The largest denominator of a share: products with what is left of a length do not overflow."""


class EndBounds(NamedTuple):
    """What qualifies a pair of spans that needs no more than to begin and to end in time."""

    after_hi: int  # right's start less left's end
    before_lo: int  # right's end less left's start
    left_shortest: int
    right_shortest: int


class SpanBounds(NamedTuple):
    """What qualifies a pair of spans: inclusive bounds on differences of ends, ticks, and the rest."""

    starts_lo: int = -FAR  # right's start less left's start
    starts_hi: int = FAR
    ends_lo: int = -FAR  # right's end less left's end
    ends_hi: int = FAR
    after_lo: int = -FAR  # right's start less left's end
    after_hi: int = FAR
    before_lo: int = -FAR  # right's end less left's start
    before_hi: int = FAR
    left_shortest: int = 0  # A shorter span holds too little time
    right_shortest: int = 0
    left_share: int = 0  # The least overlap, in parts of the left span
    left_parts: int = 1
    right_share: int = 0
    right_parts: int = 1

    @classmethod
    def of(cls, **bounds: tuple[int, int]) -> SpanBounds:
        """Bounds of some of the differences: ``starts``, ``ends``, ``after``, ``before``."""
        ends = {
            f"{name}_{end}": value
            for name, both in bounds.items()
            for end, value in zip(("lo", "hi"), both, strict=True)
        }
        return cls(**ends)

    def mirrored(self) -> SpanBounds:
        """The same of swapped sides."""
        return SpanBounds(
            -self.starts_hi, -self.starts_lo, -self.ends_hi, -self.ends_lo,
            -self.before_hi, -self.before_lo, -self.after_hi, -self.after_lo,
            self.right_shortest, self.left_shortest,
            self.right_share, self.right_parts, self.left_share, self.left_parts,
        )  # fmt: skip

    def by_ends(self, *, left_instants: bool, right_instants: bool) -> EndBounds | None:
        """The two bounds that suffice to count matches; None where pairs have to be looked at."""
        lo, hi = list(self[0:8:2]), list(self[1:8:2])
        # Both ends of an instant are one, and so are the differences from them.
        alike = [((0, 2), (1, 3))] * left_instants + [((0, 3), (1, 2))] * right_instants
        for source, into in (pair for pairs in alike for pair in pairs):
            lo[into], hi[into] = max(lo[source], lo[into]), min(hi[source], hi[into])
            lo[source], hi[source] = -FAR, FAR
        # A right span that begins too late must not end too soon: it would be taken off twice.
        slack = self.left_shortest + self.right_shortest + 2
        is_enough = max(lo[:3]) == -FAR and min(*hi[:2], hi[3]) == FAR and lo[3] - hi[2] < slack
        if not is_enough or self.left_share or self.right_share:
            return None
        return EndBounds(hi[2], lo[3], self.left_shortest, self.right_shortest)

    @property
    def reach(self) -> tuple[int, int]:
        """The least of right's end less left's start, and the largest of right's start less left's end."""
        lows, highs = self[0:8:2], self[1:8:2]
        lo, hi = max(lows), min(highs)
        # Where they are not in order, the spans overlap by some length, or nearly do.
        return (lo, hi) if lo <= hi else (min(lo, 0), max(hi, 0))
