"""Invalid rows: each under one reason, counted where they are skipped, and in words where refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coincide.engine.events.ticks import not_finite_decimal
from coincide.engine.events.time_columns import INVALID_REASONS, LACKING
from coincide.engine.events.timestamps import Faults
from coincide.model.counters import Sums
from coincide.model.errors import DataError

_EXAMPLE_WIDTH = 200


@dataclass(frozen=True)
class SideCounts(Sums):
    """What the rows of one side were."""

    rows: int = 0
    unmatchable: int = 0
    invalid: dict[str, int] = field(
        default_factory=dict, metadata={"names": tuple(INVALID_REASONS)}
    )
    rounded: float = 0.0
    too_long: int = 0  # Rows that match nothing, as no match can be so long
    longest_match: int = 0  # How long one can be, ticks, if there are such
    # Unmatchable rows that have a stamp or a start, and keys, by what they lack
    lacking: dict[str, int] = field(default_factory=dict, metadata={"names": LACKING})

    @property
    def dropped(self) -> int:
        """Skipped rows in all."""
        return sum(self.invalid.values())


def first_faults(faults: Faults, excused: np.ndarray) -> dict[str, np.ndarray]:
    """Masks of invalid rows by reason; each row under its first reason only, those excused under none."""
    found: dict[str, np.ndarray] = {}
    seen = excused.copy()
    for reason, mask in faults:
        own = mask & ~seen
        if own.any():
            found[reason] = found[reason] | own if reason in found else own
            seen |= own
    return found


def invalid_rows(
    table: pa.Table,
    names: Sequence[str],
    faults: dict[str, np.ndarray],
    words: Callable[[str, int, str], str],
) -> DataError:
    """The error of rows that are to be refused: of each reason the words, the count and an example."""
    messages = (
        words(reason, int(mask.sum()), example_of(table, mask, names))
        for reason, mask in faults.items()
    )
    return DataError(" ".join(messages))


def example_of(table: pa.Table, mask: np.ndarray, names: Sequence[str]) -> str:
    """The first row of a mask in words, by some of its columns."""
    one = table.slice(int(np.argmax(mask)), 1)
    row = dict(zip(one.column_names, one.columns, strict=True))
    return example_row({name: readable(row[name][0]) for name in names})


def readable(value: pa.Scalar) -> object:
    """What a scalar holds; the bare number of a time for which Python has no date."""
    try:
        found = value.as_py()
    except (ValueError, OverflowError, KeyError):
        return getattr(value, "value", "...")
    if pa.types.is_decimal(value.type) and found == not_finite_decimal(value.type.scale):
        return "NaN or infinity"
    return found


def example_row(row: dict[str, object]) -> str:
    """A row in words, on one line, cut to a readable width."""
    return example_text(", ".join(f"{name}={value}" for name, value in row.items()))


def example_text(words: str) -> str:
    """Words on one line, cut to a readable width."""
    text = " ".join(words.splitlines())
    return text if len(text) <= _EXAMPLE_WIDTH else text[:_EXAMPLE_WIDTH] + " ..."
