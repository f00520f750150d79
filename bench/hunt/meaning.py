"""What a row means, said once more: which tick a time is, which rows are invalid, which match nothing.

On Python's integers and floats, a row at a time, from docs/meaning.md; nothing of the product.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from bench.hunt.columns import TimeType
from bench.hunt.data import DataSet, Row
from bench.hunt.templates import Shape, Templates
from cpu_fallback.reference.decision import float_ticks

LIMIT = 2**61
"""Times reach it nowhere, in ticks."""
NOT_FINITE, RANGE, ORDER, LENGTH = "not_finite", "range", "order", "length"
TEMPLATE = "template"


class TooFineError(Exception):
    """A timestamp is no whole number of ticks, which no option allows."""


@dataclass(frozen=True)
class Event:
    """A row that can be joined, or can match nothing: then its ends are 0."""

    row: Row
    low: int  # ticks
    high: int
    matchable: bool  # whether neither a time nor a key is null
    shape: Shape | None = None  # a histogram's

    @property
    def buckets(self) -> Shape:
        """The buckets of a histogram, or the one of an interval."""
        return ((self.low - self.high, 0, 1.0),) if self.shape is None else self.shape


@dataclass(frozen=True)
class Meaning:
    """The rows of one side."""

    events: list[Event]  # those that are not invalid, in the order of the rows
    rows: int  # all
    invalid: Counter[str] = field(default_factory=Counter)  # by reason
    too_fine: bool = False  # whether a time is no whole number of ticks

    @property
    def unmatchable(self) -> int:
        """Rows that match nothing, invalid ones apart."""
        return sum(not event.matchable for event in self.events)


def meaning_of(data: DataSet, side: int, longest: int | None = None) -> Meaning:
    """The rows of the left (0) or right (1) side; `longest` is its declared longest length, ticks."""
    given = data.sides[side]
    factors = [data.factor(kind) for kind in given.types]
    found = Meaning([], len(given.rows))
    too_fine = False
    for row in given.rows:
        try:
            if given.templates is None:
                reason, event = _read(row, given.types, factors, longest)
            else:
                ticks = _ticks(row.low, given.types[0], factors[0])
                reason, event = _read_histogram(row, ticks, given.templates)
        except TooFineError:
            too_fine = True
            continue
        if reason is None:
            found.events.append(event)
        else:
            found.invalid[reason] += 1
    return Meaning(found.events, found.rows, found.invalid, too_fine)


def _read(
    row: Row, types: tuple[TimeType, TimeType], factors: list[Fraction], longest: int | None
) -> tuple[str | None, Event]:
    ends = [
        _ticks(value, kind, factor)
        for value, kind, factor in zip((row.low, row.high), types, factors, strict=True)
    ]
    nothing = Event(row, 0, 0, False)
    if None in ends:
        return None, nothing
    for reason in (NOT_FINITE, RANGE):
        if reason in ends:
            return reason, nothing
    low, high = ends
    assert isinstance(low, int)
    assert isinstance(high, int)
    if low > high:
        return ORDER, nothing
    if longest is not None and high - low > longest:
        return LENGTH, nothing
    if any(key is None for key in row.keys):
        return None, nothing
    return None, Event(row, low, high, True)


def _read_histogram(
    row: Row, ticks: int | str | None, templates: Templates
) -> tuple[str | None, Event]:
    nothing = Event(row, 0, 0, False)
    if not isinstance(ticks, int):
        return ticks, nothing
    found = templates.shape(row.template)
    if found is None:
        return TEMPLATE, nothing
    high = ticks + found[0]
    low = high + found[1][0][0]
    if low <= -LIMIT or high >= LIMIT:
        return RANGE, nothing
    if any(key is None for key in row.keys):
        return None, nothing
    return None, Event(row, low, high, True, found[1])


def _ticks(value: float | None, kind: TimeType, factor: Fraction) -> int | str | None:
    """Ticks of a value; why it is no time; None for a null."""
    if value is None:
        return None
    if kind.family == "float":
        if not math.isfinite(value):
            return NOT_FINITE
        ticks = float_ticks(value, factor, is_single=kind.name == "float32")
        return RANGE if abs(ticks) >= LIMIT else ticks
    ticks = value * factor
    if ticks.denominator != 1:
        raise TooFineError
    return RANGE if abs(ticks) >= LIMIT else int(ticks)
