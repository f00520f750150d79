"""What tasks count, by name: numbers of one last row, which Spark adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from coincide.engine.events.sides import SideCounts
from coincide.engine.events.time_columns import INVALID_REASONS
from coincide.model.results import JoinCounters
from coincide.model.sides import SIDES

_LARGEST = "rounded"
"""How names end whose numbers are not added up: the largest counts."""


def merged(name: str, value: str) -> str:
    """SQL that makes one number of those of all tasks."""
    return f"{'max' if name.endswith(_LARGEST) else 'sum'}({value})"


def of_one_run(found: Mapping[str, int | None], runs: int) -> dict[str, int] | None:
    """Merged numbers of rows that were computed several times, as of once; None if runs differed."""
    numbers = {
        name: (value or 0, 1 if name.endswith(_LARGEST) else runs) for name, value in found.items()
    }
    if any(value % share for value, share in numbers.values()):
        return None
    return {name: value // share for name, (value, share) in numbers.items()}


def of_all(stages: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Merged numbers of several stages, of the same names, merged."""
    return {
        name: (max if name.endswith(_LARGEST) else sum)(numbers[name] for numbers in stages)
        for name in stages[0]
    }


def as_bits(number: float) -> int:
    """A float that is not negative as an integer; these are in order as the floats are."""
    return int(np.float64(number).view(np.int64))


def of_bits(bits: int) -> float:
    """Back from `as_bits`."""
    return float(np.int64(bits).view(np.float64))


@dataclass(frozen=True)
class JoinTally:
    """What a join looked at and found, and what the rows of its sides were."""

    left: SideCounts = field(default_factory=SideCounts)
    right: SideCounts = field(default_factory=SideCounts)
    counters: JoinCounters = field(default_factory=JoinCounters)

    def __add__(self, other: JoinTally) -> JoinTally:
        return JoinTally(
            self.left + other.left, self.right + other.right, self.counters + other.counters
        )

    def numbers(self) -> dict[str, int]:
        """By name, always of the same order."""
        sides = zip(SIDES, (self.left, self.right), strict=True)
        return asdict(self.counters) | {
            f"{side}_{name}": number for side, counts in sides for name, number in _numbers(counts)
        }

    @classmethod
    def of_numbers(cls, found: Mapping[str, int | None]) -> JoinTally:
        """Back from merged numbers."""
        left, right = (_side_of(found, side) for side in SIDES)
        return cls(left, right, counters_of(found))


COUNTERS = tuple(asdict(JoinCounters()))
"""Names of the numbers of a join alone."""


def counters_of(found: Mapping[str, int | None]) -> JoinCounters:
    """Back from merged numbers."""
    return JoinCounters(**{name: int(found[name] or 0) for name in COUNTERS})


def _numbers(counts: SideCounts) -> list[tuple[str, int]]:
    return [
        ("rows", counts.rows),
        ("unmatchable", counts.unmatchable),
        *((reason, counts.invalid.get(reason, 0)) for reason in INVALID_REASONS),
        (_LARGEST, as_bits(counts.rounded)),
    ]


def _side_of(found: Mapping[str, int | None], side: str) -> SideCounts:
    values = {name: int(found[f"{side}_{name}"] or 0) for name, _ in _numbers(SideCounts())}
    return SideCounts(
        values["rows"],
        values["unmatchable"],
        {reason: values[reason] for reason in INVALID_REASONS if values[reason]},
        of_bits(values[_LARGEST]),
    )


TALLY = tuple(JoinTally().numbers())
"""Names of those of a join and of the rows of its sides."""
