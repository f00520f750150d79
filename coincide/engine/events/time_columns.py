"""What the time columns mean: which kinds go together, and how values become ticks.

Shared by the Spark and the Arrow side, so that both give the same ticks and the same errors.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from coincide.model.errors import ConditionError, DataError, SchemaError, argument, option
from coincide.model.options import CorrelateOptions
from coincide.model.sides import has_own_unit, unit_option
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, Tick

Family = Literal["timestamp", "timestamp_ntz", "duration", "integer", "float"]

INVALID_REASONS = {
    "not_finite": "NaN or infinity in",
    "range": "times that reach 2^61 ticks in",
    "order": "min above max in",
    "ends": "starts that are or may be after their ends in",
    "width": "missing, negative or infinite half-widths in",
    "length": "timestamps longer than the declared longest length in",
    "template": "unknown or missing ids of templates in",
    "place": "infinite coordinates (above 1e100), or on a sphere |latitude| > 90 or |longitude| > 360, in",
}
"""Why a row is invalid, in the order in which it is asked, with the words for it."""
LACKING = ("no_segment", "no_end")
"""Why a row with a stamp, or a start, has no time: its clock has no segment then, or it has no end."""

_CSV_OPTIONS = {
    "left": "left_csv", "right": "right_csv", "cause": "causes_csv", "effect": "effects_csv",
}  # fmt: skip
"""The option of sides that have one of their own."""


@dataclass(frozen=True)
class TimeColumn:
    """A time column of one side."""

    side: str
    name: str
    family: Family
    nanoseconds: int | Fraction | None = None
    is_single: bool = False
    is_decimal: bool = False
    zone: str | None = None  # That of timestamps that Arrow holds
    duration: TimeColumn | None = None  # Where it is an end: the column of how long after this one

    def unit(self, options: CorrelateOptions) -> str | None:
        """What a number of it counts: a duration its own unit."""
        if self.nanoseconds is None:
            return options.unit_of(self.side)
        units = (unit for unit, size in NANOSECONDS_PER_UNIT.items() if size == self.nanoseconds)
        return next(units)


@dataclass(frozen=True)
class TimeScale:
    """How values of one column become ticks: ``value * factor``, rounded for floats."""

    column: TimeColumn
    factor: Fraction
    tick: Tick

    def of(self, name: str) -> TimeScale:
        """The same for a column of another name."""
        return replace(self, column=replace(self.column, name=name))

    @property
    def epsilon(self) -> float:
        """Relative step of the column's floats, which are no more certain than that."""
        if self.column.is_decimal:
            return 0.0
        return 2.0**-23 if self.column.is_single else 2.0**-52

    @property
    def noise(self) -> float:
        """A change of this many ticks, a picosecond, is not reported: floats were computed."""
        return 1e-3 / (self.tick.nanoseconds or 1)

    @property
    def limit(self) -> int:
        """Values must stay strictly inside +-limit, so that ticks stay inside +-2**61."""
        return math.ceil(TIME_LIMIT / self.factor) if self.factor > 1 else TIME_LIMIT


def resolve_tick(columns: Sequence[TimeColumn], options: CorrelateOptions) -> Tick:
    """The tick in which all time columns of a join are counted."""
    # What ``options.tick`` says, else microseconds for timestamps (nanoseconds with ``unit="ns"``),
    # nanoseconds for floats, whose fractions carry time, and the finest unit for integers. With
    # instants, numbers that have a unit are instants, too: counted since 1970 in UTC.
    kind = _kind_of(columns, options)
    if kind == "timestamp":
        return _timestamp_tick(columns, options)
    if kind == "number":
        return _number_tick(columns, options)
    return _tick_of_both(columns, options)


def _timestamp_tick(columns: Sequence[TimeColumn], options: CorrelateOptions) -> Tick:
    units = {options.unit_of(column.side) for column in columns}
    for name, given in (*(("unit", unit) for unit in units), ("tick", options.tick)):
        if given not in (None, "us", "ns"):
            raise ConditionError(
                f"timestamp columns are counted in us, or in ns with {argument('unit', 'ns')}"
                f" (found {argument(name, given)}). Remove the {name}."
            )
    return Tick(options.tick or ("ns" if "ns" in units else "us"), is_of_columns=True)


def _number_tick(columns: Sequence[TimeColumn], options: CorrelateOptions) -> Tick:
    units = _units(columns, options)
    if not all(units):
        if options.tick:
            raise ConditionError(
                f"{argument('tick', options.tick)} needs the unit of the numbers in the time"
                f" columns. Give it too, for example {argument('unit', 's')}, or remove the tick."
            )
        return Tick()
    has_floats = any(column.family == "float" for column in columns)
    tick = options.tick or _finest([*units, "ns"] if has_floats else units)
    spans = [column for column in columns if column.family == "duration"]
    if spans and tick == "ps":
        raise ConditionError(
            f"durations are counted in ns at the finest (found {_listed(_alike(spans))} next to"
            " numbers of ps). Cast them to numbers of ps."
        )
    for column, unit in zip(columns, units, strict=True):
        if column.family != "float" and _finest([unit, tick]) != tick:
            raise ConditionError(
                f"{column.side}.{column.name} counts {unit}, which ticks of 1 {tick} would round."
                f" Use {option('tick', unit)} or a finer one."
            )
    others = () if options.tick else [unit for unit in units if unit != tick]
    return Tick(
        tick,
        is_of_columns=any(column.family == "duration" for column in columns),
        taken_for=next(iter(others), None),
    )


def _tick_of_both(columns: Sequence[TimeColumn], options: CorrelateOptions) -> Tick:
    """The tick of timestamps on one side and numbers since 1970 on the other; units must fit it."""
    stamps = [c for c in columns if _is_stamp(c)]
    numbers = [c for c in columns if not _is_stamp(c)]
    own = [unit_option(column.side) for column in stamps]
    is_fine = any(getattr(options, name) == "ns" for name in own)
    if not is_fine:
        is_fine = any(c.family == "float" or options.unit_of(c.side) == "ns" for c in numbers)
    tick = options.tick or ("ns" if is_fine else "us")
    others: dict[str, Any] = dict.fromkeys(map(unit_option, _sides(numbers)))
    alone = replace(options, unit=None, tick=tick, **others)
    _timestamp_tick(stamps, alone)
    found = _number_tick(numbers, replace(options, tick=tick))
    units = sorted({unit for c in numbers if (unit := options.unit_of(c.side)) not in (None, tick)})
    taken_for = None if options.tick or not units else units[0]
    return replace(found, is_of_columns=True, taken_for=taken_for)


def _kind_of(columns: Sequence[TimeColumn], options: CorrelateOptions) -> str:
    """``"timestamp"``, ``"number"``, or ``"both"``: instants on one side, numbers on the other."""
    kinds = {c.family if c.family.startswith("timestamp") else "number" for c in columns}
    if kinds == {"timestamp", "number"} and _are_instants(columns, options):
        return "both"
    if len(kinds) > 1:
        listed = ", ".join(dict.fromkeys(f"{c.side}.{c.name} is {c.family}" for c in columns))
        raise SchemaError(
            "the time columns of one join must all be instants, all wall-clock times, or all"
            f" numbers (found {listed}). {_remedy_for_kinds(columns)}"
        )
    return "number" if "number" in kinds else "timestamp"


def _sides(columns: Iterable[TimeColumn]) -> list[str]:
    return list(dict.fromkeys(column.side for column in columns))


def _are_instants(columns: Sequence[TimeColumn], options: CorrelateOptions) -> bool:
    """Whether all numbers have a unit, and are on another side than the timestamps."""
    numbers = _sides(c for c in columns if not _is_stamp(c))
    stamps = _sides(filter(_is_stamp, columns))
    are_apart = set(numbers).isdisjoint(stamps) and all(map(options.unit_of, numbers))
    return are_apart and all(c.family not in ("timestamp_ntz", "duration") for c in columns)


def _is_stamp(column: TimeColumn) -> bool:
    return column.family.startswith("timestamp")


def _remedy_for_kinds(columns: Sequence[TimeColumn]) -> str:
    """What makes times of two kinds one, as a line that can be run."""
    timestamps = list(filter(_is_stamp, columns))
    if len(timestamps) == len(columns):
        return _remedy_for_clocks(_alike([c for c in columns if c.family == "timestamp_ntz"]))
    spans = _alike([c for c in columns if c.family == "duration"])
    if spans:
        return (
            f"A duration is not an instant. Add {_listed(spans)} to one where the data are written."
        )
    side = next(c.side for c in columns if not _is_stamp(c))
    unit = argument(unit_option(side), "s")
    counted = (
        f"Give with {unit} what a number of {side} counts since 1970 in UTC, which makes it an"
        " instant"
    )
    clocks = _alike([c for c in timestamps if c.family == "timestamp_ntz"] or timestamps)
    if clocks[0].family == "timestamp":
        return f"{counted}."
    return f"{counted}. {_remedy_for_clocks(clocks)}"


def _remedy_for_clocks(clocks: Sequence[TimeColumn]) -> str:
    """What makes instants of times of clocks; the page has a line for a file."""
    return (
        f"Give the time zone of the clocks of {_listed(clocks)}: tz_localize('Europe/Rome') in"
        f" pandas, pyarrow.compute.assume_timezone in Arrow, CAST({clocks[0].name} AS TIMESTAMP) in"
        f" Spark, {_typing(clocks)} for CSV, or a line of docs/files.md for Parquet."
    )


def _typing(clocks: Sequence[TimeColumn]) -> str:
    """The option that makes instants of clocks, of their side alone: the other may have such names too."""
    own = _CSV_OPTIONS.get(clocks[0].side)
    types = [f"{clock.name}=timestamp@Europe/Rome" for clock in clocks]
    if own is None:
        return " ".join(argument("csv_type", each) for each in types)
    # As one value, which `argument` would cut.
    return f"{argument(own)} '{' '.join(f'type={each}' for each in types)}'"


def _alike(columns: Sequence[TimeColumn]) -> list[TimeColumn]:
    """Those that are as the first one, of its side."""
    first = columns[0] if columns else None
    found = {c.name: c for c in columns if first and replace(c, name=first.name) == first}
    return list(found.values())


def _listed(columns: Sequence[TimeColumn]) -> str:
    return " and ".join(f"{c.side}.{c.name}" for c in columns)


def _units(columns: Sequence[TimeColumn], options: CorrelateOptions) -> list[str | None]:
    """What the numbers of each column count; all None or none."""
    units = [column.unit(options) for column in columns]
    unknown = [c for c, unit in zip(columns, units, strict=True) if unit is None]
    # One column of exact instants is the earlier and the later end: it is reported once.
    floats = ", ".join(dict.fromkeys(f"{c.side}.{c.name}" for c in unknown if c.family == "float"))
    if floats:
        sides = f"If the sides differ, use {argument('left_unit')} and {argument('right_unit')}."
        cure = f" {sides}" if all(has_own_unit(c.side) for c in columns) else ""
        raise SchemaError(
            f"float time columns need a unit (found none for {floats}). Give what 1.0 means, for"
            f" example {option('unit', 's')}.{cure}"
        )
    if unknown and any(units):
        side = unknown[0].side
        own = f" Give the other one too, for example {option(unit_option(side), 's')}, or give one unit"
        cure = f"{own} for both." if has_own_unit(side) else f" Give {option('unit', 's')}."
        raise SchemaError(
            f"only one side has a unit, so what a number in {side}.{unknown[0].name} counts is"
            f" unknown.{cure}"
        )
    return units


def _finest(units: Iterable[str | None]) -> str:
    return min((unit for unit in units if unit), key=NANOSECONDS_PER_UNIT.__getitem__)


def scale_of(column: TimeColumn, tick: Tick, options: CorrelateOptions) -> TimeScale:
    """How a column becomes ticks. The tick comes from `resolve_tick`."""
    unit = options.unit_of(column.side)
    step = column.nanoseconds or (NANOSECONDS_PER_UNIT[unit] if unit else None)
    if step is None or tick.nanoseconds is None:
        return TimeScale(column, Fraction(1), tick)
    return TimeScale(column, Fraction(step, tick.nanoseconds), tick)


def time_names(argument_name: str, time: str | Sequence[str]) -> tuple[str, str]:
    """Names of the min and max column; one name alone means exact instants."""
    names = (time,) if isinstance(time, str) or not isinstance(time, Collection) else tuple(time)
    if len(names) == 1:
        names *= 2
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ConditionError(
            f"{argument(argument_name)} must be a column name, a (min, max) pair of names, around(...),"
            f" resolution(...) or histograms(...) (found {time!r})."
        )
    return names


def range_hint(tick: Tick, scales: Sequence[TimeScale] = ()) -> str:
    """How far fine ticks reach, and what reaches further; empty where ticks are not the matter."""
    if tick.unit == "ps":
        coarser = f"; {option('tick', 'ns')} reaches 73 years, if no time is finer"
        return f"a tick is 1 ps, which reaches 26 days{'' if scales else coarser}"
    if tick.unit != "ns":
        return ""
    reach = "a tick is 1 ns, which reaches 73 years"
    if any(s.column.family != "float" and s.factor < NANOSECONDS_PER_UNIT["us"] for s in scales):
        return reach
    unless_finer = "" if scales else ", if no time is finer"
    return f"{reach}; {option('tick', 'us')} reaches 73,000{unless_finer}"


_IN_SECONDS = ("m", "h", "W")
"""Units of NumPy's times that Arrow lacks."""


def in_plain_units(name: str, array: np.ndarray, *, has_dates: bool = True) -> np.ndarray:
    """NumPy's times in units of which Arrow has each tick: it takes 25 s for 1 s. All else as it is.

    Dates, which Arrow has in 32 bits, may be left as such.
    """
    if array.dtype.kind not in "mM":
        return array
    unit, count = np.datetime_data(array.dtype)
    plain = "s" if unit in _IN_SECONDS or (unit == "D" and not has_dates) else unit
    if (unit, count) == (plain, 1) or unit == "generic":
        return array
    found = array.astype(f"{array.dtype.kind}8[{plain}]")
    has_wrapped = (found.astype(array.dtype) != array) & ~np.isnat(array)
    if has_wrapped.any():
        raise DataError(
            f"{name}: {INVALID_REASONS['range']} {array.dtype} in row {int(has_wrapped.argmax())}"
            f" (found {int(array.view(np.int64)[has_wrapped.argmax()])}). Mend this time first."
        )
    return found
