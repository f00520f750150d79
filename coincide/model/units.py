"""Ticks, units and durations. All time is int64 ticks; only this module knows about seconds."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from numbers import Real
from typing import SupportsIndex

import numpy as np

from coincide.model.errors import ConditionError, argument, brief, option, said_of

TIME_LIMIT = 2**61
"""|time| and |bound| must stay below this many ticks, so that no int64 difference overflows."""

UNBOUNDED = 2**62
"""No difference of two times reaches it; added to a time it does not overflow."""

_MOST_DIGITS = 60
"""Most digits of a duration: three times those of 2^61."""

NANOSECONDS_PER_UNIT: dict[str, int | Fraction] = {
    "ps": Fraction(1, 1000),
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}

_PART = r"(\d+(?:\.\d*)?|\.\d+)\s*(?![eE]\d)([A-Za-zµμ]+)"
_DURATION = re.compile(rf"\s*([+-]?)\s*((?:{_PART}\s*)+)")
_ALIASES = {
    "µs": "us", "μs": "us", "m": "min", "hr": "h", "hrs": "h",
    **{
        word: unit
        for unit, words in {
            "ps": "picosecond psec", "ns": "nanosecond nsec",
            "us": "microsecond usec", "ms": "millisecond msec",
            "s": "second sec", "min": "minute min", "h": "hour", "d": "day",
        }.items()
        for singular in words.split()
        for word in (singular, singular + "s")
    },
}  # fmt: skip

Duration = int | str | timedelta | np.timedelta64
"""An int counts ticks, and must be 0 next to timestamps. A string is a number and a unit, or several, as
``"500ms"``, ``"-1.5 seconds"`` or ``"1h30m"``. A timedelta is as long as it is."""


@dataclass(frozen=True)
class Tick:
    """How long one tick is.

    Parameters
    ----------
    unit : str or None
        ``"ps"``, ``"ns"``, ``"us"``, ``"ms"``, ``"s"``, ``"min"``, ``"h"``, ``"d"``. None for
        bare ticks: their length is unknown, so durations must be ints.
    is_of_columns : bool
        Whether the columns say it, not the user, who may take it for another.
    taken_for : str or None
        What columns count where that is another unit, and the user has named no tick.
    """

    unit: str | None = None
    is_of_columns: bool = field(default=False, compare=False, repr=False)
    taken_for: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.unit is not None:
            object.__setattr__(self, "unit", unit_name(self.unit))

    @property
    def nanoseconds(self) -> int | Fraction | None:
        """Length of a tick in nanoseconds, None for bare ticks."""
        return None if self.unit is None else NANOSECONDS_PER_UNIT[self.unit]

    def count(self, duration: Duration) -> int:
        """Ticks in a duration, exactly.

        Raises
        ------
        ConditionError
            If the duration does not parse, is no whole number of ticks, is a string while ticks are
            bare, is an int other than 0 whose unit is not plain, or reaches 2**61 ticks.
        """
        duration = plain(duration)
        if duration and isinstance(duration, int) and (self.is_of_columns or self.taken_for):
            raise ConditionError(self._lacks_unit(duration))
        ticks = self._count_text(duration) if isinstance(duration, str) else duration
        if abs(ticks) >= TIME_LIMIT:
            raise ConditionError(
                f"the duration {brief(duration)} is {brief(ticks)} ticks, but bounds must stay"
                " below 2^61 ticks. Use a coarser unit or a smaller bound."
            )
        return ticks

    def _lacks_unit(self, count: int) -> str:
        number = brief(count)
        if self.is_of_columns:
            return (
                f"the duration {number} has no unit, and the times are timestamps or durations."
                f" Write '{number}ms', or another unit. For ticks write '{number}{self.unit}'."
            )
        return (
            f"the duration {number} has no unit: the times count {self.taken_for}, and a tick is"
            f" 1 {self.unit} here. Write '{number}{self.taken_for}'. For ticks write"
            f" '{number}{self.unit}', or name the {argument('tick')}."
        )

    @property
    def _taken(self) -> list[str]:
        """Units that a tick may have: timestamps and durations count no picoseconds."""
        return [unit for unit in NANOSECONDS_PER_UNIT if unit != "ps" or not self.is_of_columns]

    def _count_text(self, text: str) -> int:
        nanoseconds = parse_duration(text)
        if self.nanoseconds is None:
            raise ConditionError(
                f"the duration {brief(text)} has a unit, but the unit of the time columns is"
                " unknown, as they hold plain numbers. Give the unit of the columns, for example"
                f" {option('unit', 'us')}, or give the duration as an int in ticks."
            )
        ticks = nanoseconds / self.nanoseconds
        if ticks.denominator != 1:
            # From the longest one down.
            finer = [u for u in self._taken if nanoseconds % NANOSECONDS_PER_UNIT[u] == 0]
            way = (
                f", or count in a finer tick, for example {argument('tick', finer[-1])}"
                if finer
                else ""
            )
            raise ConditionError(
                f"the duration {brief(text)} is {float(ticks):g} ticks of 1 {self.unit}, not a"
                f" whole number. Round it{way}."
            )
        return int(ticks)


def plain(duration: Duration) -> int | str:
    """A duration as an int, of ticks, or a string: of a timedelta in the largest unit that fits."""
    if isinstance(duration, str):
        return duration
    nanoseconds = _nanoseconds(duration)
    if nanoseconds is not None:
        fitting = [u for u, size in NANOSECONDS_PER_UNIT.items() if nanoseconds % size == 0]
        unit = fitting[-1] if nanoseconds else "ns"
        return f"{nanoseconds // NANOSECONDS_PER_UNIT[unit]}{unit}"
    if isinstance(duration, SupportsIndex) and not isinstance(duration, bool):
        with suppress(TypeError):  # arrays have the method, too
            return duration.__index__()
    raise ConditionError(
        "a duration is an int (ticks), a string such as '500ms', or a timedelta (found"
        f" {brief(duration)} of type {type(duration).__name__})."
    )


def size_of(duration: Duration) -> Fraction | int:
    """How long a duration is, to compare with 0: nanoseconds, or ticks of an int."""
    found = plain(duration)
    return parse_duration(found) if isinstance(found, str) else Tick().count(found)


def _nanoseconds(duration: object) -> int | Fraction | None:
    """The nanoseconds of a timedelta of Python, of pandas (which has them, too) or of NumPy; else None."""
    if isinstance(duration, np.timedelta64):
        if np.isnat(duration) or np.datetime_data(duration.dtype)[0] in ("generic", "Y", "M"):
            raise ConditionError(f"{brief(duration)} is not a duration (found no length of time).")
        name, count = np.datetime_data(duration.dtype)
        return int(duration.astype(np.int64)) * count * _nanoseconds_in(name, duration)
    if isinstance(duration, timedelta):
        seconds = duration.days * 86400 + duration.seconds
        own = getattr(duration, "nanoseconds", 0)
        return (seconds * 10**6 + duration.microseconds) * 1000 + own
    return None


def _nanoseconds_in(name: str, duration: np.timedelta64) -> int | Fraction:
    """Nanoseconds in one of NumPy's units."""
    sizes = {
        **NANOSECONDS_PER_UNIT,
        "m": NANOSECONDS_PER_UNIT["min"],
        "D": NANOSECONDS_PER_UNIT["d"],
    }
    sizes["W"] = 7 * sizes["D"]
    if name not in sizes:
        raise ConditionError(f"{brief(duration)} is finer than a picosecond. Round it.")
    return sizes[name]


def unit_name(unit: str) -> str:
    """The canonical name of a unit."""
    name = _ALIASES.get(unit, unit) if isinstance(unit, str) else ""
    if name not in NANOSECONDS_PER_UNIT:
        raise ConditionError(
            f"the unit {brief(unit)} is unknown. Use one of {', '.join(NANOSECONDS_PER_UNIT)}."
        )
    return name


def name_units(options: object, *names: str) -> None:
    """Give fields of frozen options that are units their canonical names."""
    for name in names:
        given = getattr(options, name)
        if given is not None:
            with said_of(name):
                object.__setattr__(options, name, unit_name(given))


def parse_duration(text: str) -> Fraction:
    """Nanoseconds in a duration such as ``"250ms"``, ``"-1.5 s"`` or ``"1h 30min"``, exactly."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConditionError(
            f"cannot read the duration {brief(text)}. Write a number and a unit, such as '250ms',"
            " '-1.5s' or '1h30min'."
        )
    total = Fraction(0)
    for number, unit in re.findall(_PART, match[2]):
        if len(number) > _MOST_DIGITS:
            raise ConditionError(
                f"the duration {brief(text)} has {len(number):,} digits, and at most"
                f" {_MOST_DIGITS} are read. Round it, or give it in another unit."
            )
        total += Fraction(number) * NANOSECONDS_PER_UNIT[unit_name(unit)]
    return -total if match[1] == "-" else total


def as_float(number: Real) -> float:
    """The nearest float; infinity for what has none."""
    try:
        return float(number)
    except OverflowError:
        return math.inf
