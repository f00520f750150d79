"""Ticks, units and durations. All time is int64 ticks; only this module knows about seconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real

from coincide.errors import ConditionError, brief

TIME_LIMIT = 2**61
"""|time| and |bound| must stay below this many ticks, so that no int64 difference overflows."""

_MOST_DIGITS = 60
"""Of a duration: three times those of 2^61."""

NANOSECONDS_PER_UNIT = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}

_DURATION = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµμ]+)\s*")
_ALIASES = {"µs": "us", "μs": "us", "m": "min", "sec": "s", "day": "d"}

Duration = int | str
"""An int counts ticks; a string is a number and a unit, such as ``"500ms"`` or ``"-1.5s"``."""


@dataclass(frozen=True)
class Tick:
    """How long one tick is.

    Parameters
    ----------
    unit : str or None
        ``"ns"``, ``"us"``, ``"ms"``, ``"s"``, ``"min"``, ``"h"``, ``"d"``; None for bare ticks, whose
        length nobody said, so that durations must be ints.
    """

    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None:
            object.__setattr__(self, "unit", unit_name(self.unit))

    @property
    def nanoseconds(self) -> int | None:
        """Length of a tick in nanoseconds, None for bare ticks."""
        return None if self.unit is None else NANOSECONDS_PER_UNIT[self.unit]

    def count(self, duration: Duration) -> int:
        """Ticks in a duration, exactly.

        Raises
        ------
        ConditionError
            If the duration does not parse, is no whole number of ticks, is a string while ticks are
            bare, or reaches 2**61 ticks.
        """
        if isinstance(duration, str):
            ticks = self._count_text(duration)
        elif isinstance(duration, bool) or not hasattr(duration, "__index__"):
            raise ConditionError(
                f"a duration is an int (ticks) or a string such as '500ms'; found {brief(duration)} of type"
                f" {type(duration).__name__}"
            )
        else:
            ticks = duration.__index__()
        if abs(ticks) >= TIME_LIMIT:
            raise ConditionError(
                f"the duration {brief(duration)} is {brief(ticks)} ticks; bounds must stay below 2^61"
                " ticks. Use a coarser unit or a smaller bound"
            )
        return ticks

    def _count_text(self, text: str) -> int:
        nanoseconds = parse_duration(text)
        if self.nanoseconds is None:
            raise ConditionError(
                f"the duration {brief(text)} has a unit, but the time columns are plain numbers of unknown"
                " unit. Give the unit of the columns, as by options=CorrelateOptions(unit='us'), or the"
                " duration as an int in ticks"
            )
        ticks = nanoseconds / self.nanoseconds
        if ticks.denominator != 1:
            raise ConditionError(
                f"the duration {brief(text)} is {float(ticks):g} ticks of 1 {self.unit}, not a whole"
                " number. Round it, or give the times in a finer unit"
            )
        return int(ticks)


def unit_name(unit: str) -> str:
    """The canonical name of a unit.

    Raises
    ------
    ConditionError
        If the unit is unknown.
    """
    name = _ALIASES.get(unit, unit) if isinstance(unit, str) else ""
    if name not in NANOSECONDS_PER_UNIT:
        raise ConditionError(
            f"unknown unit {brief(unit)}; use one of {', '.join(NANOSECONDS_PER_UNIT)}"
        )
    return name


def parse_duration(text: str) -> Fraction:
    """Nanoseconds in a duration such as ``"250ms"`` or ``"-1.5 s"``, exactly.

    Raises
    ------
    ConditionError
        If the text is not a number followed by a unit, or has more than 60 digits.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConditionError(
            f"cannot read the duration {brief(text)}; write a number and a unit, such as '250ms' or '-1.5s'"
        )
    sign, number, unit = match.groups()
    if len(number) > _MOST_DIGITS:
        raise ConditionError(
            f"the duration {brief(text)} has {len(number):,} digits; at most {_MOST_DIGITS} are read."
            " Round it, or give it in another unit"
        )
    size = Fraction(number) * NANOSECONDS_PER_UNIT[unit_name(unit)]
    return -size if sign == "-" else size


def as_float(number: Real) -> float:
    """The nearest float; infinity for what has none."""
    try:
        return float(number)
    except OverflowError:
        return math.inf
