"""What tasks count, by name: numbers of one last row, which Spark adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from coincide.engine.events.invalid_rows import SideCounts
from coincide.model.counters import LARGEST, JoinCounters, Sums
from coincide.model.units import Tick

S = TypeVar("S")


def merged(name: str, value: str) -> str:
    """SQL that makes one number of those of all tasks."""
    return f"{'max' if name.endswith(LARGEST) else 'sum'}({value})"


def of_one_run(found: Mapping[str, int | None], runs: int) -> dict[str, int] | None:
    """Merged numbers of rows that were computed several times, as if once; None if runs differed."""
    numbers = {
        name: (value or 0, 1 if name.endswith(LARGEST) else runs) for name, value in found.items()
    }
    if any(value % share for value, share in numbers.values()):
        return None
    return {name: value // share for name, (value, share) in numbers.items()}


def of_all(stages: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Merged numbers of several stages, of the same names, merged."""
    return {
        name: (max if name.endswith(LARGEST) else sum)(numbers[name] for numbers in stages)
        for name in stages[0]
    }


def as_bits(number: float) -> int:
    """A float that is not negative as an integer; these are in order as the floats are."""
    return int(np.float64(number).view(np.int64))


def of_bits(bits: int) -> float:
    """Back from `as_bits`."""
    return float(np.int64(bits).view(np.float64))


def numbers_of(told: Any, prefix: str = "") -> dict[str, int]:
    """The numbers of a dataclass by name, those of its parts and dicts among them; floats as bits."""
    # A field's metadata say the ``names`` that a dict may have, and the ``prefix`` of a part's
    # names.
    found: dict[str, int] = {}
    for each in fields(told):
        value = getattr(told, each.name)
        if isinstance(value, dict):
            found |= {prefix + name: value.get(name, 0) for name in each.metadata["names"]}
        elif isinstance(value, int | float):
            number = as_bits(value) if isinstance(value, float) else value
            found[prefix + each.name] = number
        elif is_dataclass(value) and not isinstance(value, Tick):
            found |= numbers_of(value, prefix + each.metadata.get("prefix", ""))
    return found


def with_numbers(told: S, numbers: Mapping[str, int | None], prefix: str = "") -> S:
    """A dataclass with other numbers, as in `numbers_of`; dicts lack the names that have no number."""
    changes: dict[str, Any] = {}
    for each in fields(told):  # type: ignore[arg-type]
        value = getattr(told, each.name)
        if isinstance(value, dict):
            known = {name: numbers[prefix + name] or 0 for name in each.metadata["names"]}
            changes[each.name] = {name: n for name, n in known.items() if n or name in value}
        elif isinstance(value, int | float):
            number = numbers[prefix + each.name] or 0
            changes[each.name] = of_bits(number) if isinstance(value, float) else number
        elif is_dataclass(value) and not isinstance(value, Tick):
            own = prefix + each.metadata.get("prefix", "")
            changes[each.name] = with_numbers(value, numbers, own)
    return replace(told, **changes)  # type: ignore[type-var]


@dataclass(frozen=True)
class JoinTally(Sums):
    """What a join looked at and found, and what the rows of its sides were."""

    left: SideCounts = field(default_factory=SideCounts, metadata={"prefix": "left_"})
    right: SideCounts = field(default_factory=SideCounts, metadata={"prefix": "right_"})
    counters: JoinCounters = field(default_factory=JoinCounters)


COUNTERS = tuple(numbers_of(JoinCounters()))
"""Names of the numbers of a join alone."""

TALLY = tuple(numbers_of(JoinTally()))
"""Names of those of a join and of the rows of its sides."""
