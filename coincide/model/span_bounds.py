"""Bounds on the differences between the ends of two spans: what a relation comes to in ticks."""

from __future__ import annotations

from typing import NamedTuple

FAR = 2**62
"""No two times are that far apart, ticks."""
SHARES = 10**9
"""Shares are whole numbers of billionths."""


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
    left_share: int = 0  # The least overlap, in billionths of the left span
    right_share: int = 0

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
            self.right_shortest, self.left_shortest, self.right_share, self.left_share,
        )  # fmt: skip

    @property
    def reach(self) -> tuple[int, int]:
        """The least of right's end less left's start, and the largest of right's start less left's end."""
        lows, highs = self[0:8:2], self[1:8:2]
        lo, hi = max(lows), min(highs)
        # Where they are not in order, the spans overlap by some length, or nearly do.
        return (lo, hi) if lo <= hi else (min(lo, 0), max(hi, 0))
