"""How many pairs of an answer chance alone would make."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, stdev

from coincide.units import Duration


@dataclass(frozen=True)
class AccidentalPairs:
    """Pairs that qualify when the times of the right side are moved, where no pair is a true one.

    Parameters
    ----------
    shifts : tuple of int and str
        As they were given.
    counts : tuple of int
        Qualifying pairs by each shift.
    """

    shifts: tuple[Duration, ...]
    counts: tuple[int, ...]

    @property
    def expected(self) -> float:
        """Accidental pairs to expect in the answer: the mean of the counts."""
        return fmean(self.counts)

    @property
    def spread(self) -> float | None:
        """Standard deviation of the counts (n - 1); None of one shift, which does not tell it."""
        return stdev(self.counts) if len(self.counts) > 1 else None

    @property
    def words(self) -> str:
        """The numbers, for a reader."""
        spread = "" if self.spread is None else f" ± {self.spread:,.1f}"
        shifts = ", ".join(f"{s}: {n:,}" for s, n in zip(self.shifts, self.counts, strict=True))
        return f"{self.expected:,.1f}{spread} expected by chance; by shift {shifts}"

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        spread = None if self.spread is None else round(self.spread, 3)
        return {
            "accidental_pairs": round(self.expected, 3),
            "accidental_spread": spread,
            "accidental_by_shift": dict(zip(map(str, self.shifts), self.counts, strict=True)),
        }
