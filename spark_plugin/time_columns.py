"""What the time columns mean: which kinds go together, and how values become ticks.

Shared by the Spark and the Arrow side, so that both give the same ticks and the same errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from event_model.errors import ConditionError, SchemaError
from event_model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, Tick

Family = Literal["timestamp", "timestamp_ntz", "integer", "float"]

INVALID_REASONS = {
    "not_finite": "NaN or infinity in",
    "range": "times that reach 2^61 ticks in",
    "order": "min above max in",
    "length": "timestamps longer than the declared longest length in",
}
"""Why a row is invalid, in the order in which it is asked, with the words for it."""


NOT_FINITE = -(2**63)
"""Ticks of a NaN or an infinity on Spark, far out of range."""


@dataclass(frozen=True)
class TimeColumn:
    """A time column of one side.

    Parameters
    ----------
    side : str
        ``"left"`` or ``"right"``, for messages.
    name : str
    family : str
        ``"timestamp"`` (an instant), ``"timestamp_ntz"`` (a wall clock), ``"integer"``, ``"float"``.
    nanoseconds : int or None
        Length of one step of a timestamp; None for numbers, whose unit the user gives.
    """

    side: str
    name: str
    family: Family
    nanoseconds: int | None = None


@dataclass(frozen=True)
class TimeScale:
    """How values of one column become ticks: ``value * factor``, rounded for floats.

    Parameters
    ----------
    column : TimeColumn
    factor : Fraction
        Ticks per step of the column.
    """

    column: TimeColumn
    factor: Fraction

    @property
    def limit(self) -> int:
        """Values must stay strictly inside +-limit, so that ticks stay inside +-2**61."""
        return math.ceil(TIME_LIMIT / self.factor) if self.factor > 1 else TIME_LIMIT


def resolve_tick(columns: Sequence[TimeColumn], unit: str | None) -> Tick:
    """The tick in which all time columns of a join are counted.

    Microseconds for timestamps (nanoseconds with ``unit="ns"``); the user's unit for integers; for
    floats the finer of the user's unit and a microsecond, since their fractions carry time.

    Raises
    ------
    SchemaError
        If the columns are of different kinds, or floats have no unit.
    ConditionError
        If a unit is given that timestamps cannot have.
    """
    families = {column.family for column in columns}
    kinds = {family if family.startswith("timestamp") else "number" for family in families}
    if len(kinds) > 1:
        listed = ", ".join(f"{c.side}.{c.name} is {c.family}" for c in columns)
        raise SchemaError(
            f"time columns of one join must be of one kind (instants, wall-clock times, or numbers):"
            f" {listed}. Cast one side"
        )
    if "number" not in kinds:
        if unit not in (None, "us", "ns"):
            raise ConditionError(
                "timestamp columns are counted in us, or in ns with options=CorrelateOptions(unit='ns');"
                f" found unit={unit!r}. Leave the unit out"
            )
        return Tick(unit or "us")
    if "float" not in families:
        return Tick(unit)
    if unit is None:
        names = ", ".join(f"{c.side}.{c.name}" for c in columns if c.family == "float")
        raise SchemaError(
            f"float time columns need a unit: {names}. Say what 1.0 means, for example"
            " options=CorrelateOptions(unit='s')"
        )
    return Tick(min(unit, "us", key=NANOSECONDS_PER_UNIT.__getitem__))


def scale_of(column: TimeColumn, tick: Tick, unit: str | None) -> TimeScale:
    """How a column becomes ticks. The tick comes from `resolve_tick`."""
    step = column.nanoseconds or (NANOSECONDS_PER_UNIT[unit] if unit else None)
    if step is None or tick.nanoseconds is None:
        return TimeScale(column, Fraction(1))
    return TimeScale(column, Fraction(step, tick.nanoseconds))


def time_names(side: str, time: str | Sequence[str]) -> tuple[str, str]:
    """Names of the min and max column; one name alone means exact instants.

    Raises
    ------
    ConditionError
        If it is neither one nor two names.
    """
    names = (time, time) if isinstance(time, str) else tuple(time)
    if len(names) == 1:
        names *= 2
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ConditionError(
            f"{side}_time must be a column name or a (min, max) pair of names; found {time!r}"
        )
    return names


def describe_invalid(
    side: str, reason: str, count: int, scales: Sequence[TimeScale], example: object
) -> str:
    """The message for invalid rows: the column, the count, one example, and what to do."""
    names = " and ".join(dict.fromkeys(scale.column.name for scale in scales))
    return (
        f"{side}: {INVALID_REASONS[reason]} {names} in {count} row{'s' if count > 1 else ''},"
        f" for example {example}. Mend the data, or leave such rows out with"
        " options=CorrelateOptions(invalid='drop')"
    )
