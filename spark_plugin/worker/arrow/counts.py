"""What the rows of a side were."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_plugin.worker.arrow.time_columns import (
    INVALID_REASONS,
)


@dataclass(frozen=True)
class SideCounts:
    """What the rows of one side were.

    Parameters
    ----------
    rows : int
        Rows in.
    unmatchable : int
        Rows with a null time or key: they match nothing.
    invalid : dict of str to int
        Rows left out, by reason (`spark_plugin.worker.arrow.time_columns.INVALID_REASONS`).
    rounded : float
        Largest change of a time by rounding it to ticks, in ticks; 0 where none is changed by more
        than its float is uncertain by.
    """

    rows: int = 0
    unmatchable: int = 0
    invalid: dict[str, int] = field(default_factory=dict)
    rounded: float = 0.0

    @property
    def dropped(self) -> int:
        """Rows left out in all."""
        return sum(self.invalid.values())

    def __add__(self, other: SideCounts) -> SideCounts:
        """Counts of the rows of both."""
        reasons = [r for r in INVALID_REASONS if r in self.invalid or r in other.invalid]
        return SideCounts(
            self.rows + other.rows,
            self.unmatchable + other.unmatchable,
            {r: self.invalid.get(r, 0) + other.invalid.get(r, 0) for r in reasons},
            max(self.rounded, other.rounded),
        )
