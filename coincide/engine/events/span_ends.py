"""The ends of spans: a column, or how long after their starts; without one a span has not ended."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import as_times, column_of, computed_time, plain_type
from coincide.engine.events.ticks import Ticks
from coincide.engine.events.time_columns import TimeColumn, TimeScale
from coincide.model.errors import ConditionError, DataError, SchemaError, argument, option
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT

OPEN_END = TIME_LIMIT - 1
"""Where a span ends that has not ended, ticks: the last time that there is."""


class AnyTicks(Protocol):
    """A time column in ticks: `Ticks`, and what is made of some."""

    ticks: np.ndarray
    not_finite: np.ndarray
    rounding: np.ndarray | None

    @property
    def null(self) -> np.ndarray:
        """As in `Ticks`."""

    @property
    def out_of_range(self) -> np.ndarray:
        """As in `Ticks`."""

    @property
    def shows_all(self) -> bool:
        """As in `Ticks`."""


class SpanEnds:
    """Ends in ticks, which are taken as `Ticks` are; `lengths` are from the starts."""

    def __init__(self, given: Ticks, starts: AnyTicks | None, *, are_open: bool) -> None:
        self.ticks, self.null = given.ticks, given.null
        self.not_finite, self.rounding = given.not_finite, given.rounding
        self.out_of_range = given.out_of_range
        if starts is not None:
            is_far = self.out_of_range | starts.out_of_range
            self.ticks = np.where(is_far, 0, starts.ticks) + np.where(is_far, 0, given.ticks)
            self.out_of_range = self.out_of_range | (np.abs(self.ticks) >= TIME_LIMIT)
        if are_open:
            self.ticks = np.where(self.null, OPEN_END, self.ticks)
            self.out_of_range = self.out_of_range & ~self.null
            self.null = np.zeros(self.null.size, bool)

    @property
    def shows_all(self) -> bool:
        """As in `Ticks`."""
        return not (self.null.any() or self.not_finite.any() or self.out_of_range.any())


def read_ends(
    table: pa.Table, scale: TimeScale, starts: AnyTicks, *, are_lengths: bool, are_open: bool
) -> SpanEnds:
    """The ends of a table's rows, of a column of ends or of lengths."""
    column = column_of(table, scale.column.side, scale.column.name)
    if pa.types.is_null(column.type):  # nulls alone
        is_float = scale.column.family == "float"
        column = column.cast(pa.float64() if is_float else pa.int64())
    return SpanEnds(Ticks(column, scale), starts if are_lengths else None, are_open=are_open)


def ends_of(ticks: np.ndarray, starts: pa.Array, scale: TimeScale) -> pa.Array:
    """Ends in ticks as times such as the starts of a column; null of what goes on."""
    kind, is_open = plain_type(starts.type), ticks == OPEN_END
    if scale.column.nanoseconds is not None:
        kind = computed_time(kind, scale.tick)
        return as_times(pa.array(ticks, mask=is_open), kind, scale.tick)
    size = scale.factor
    if scale.column.family == "float":
        return pa.array(ticks * size.denominator / size.numerator, mask=is_open)
    between = ticks % size.numerator != 0
    if (between & ~is_open).any():
        example = int(ticks[between & ~is_open][0])
        raise DataError(
            f"{scale.column.side} has ends that the whole numbers of {scale.column.name} do not say (found"
            f" {example:,} {scale.tick.unit}). Cast {scale.column.name} to float64."
        )
    return pa.array(ticks // size.numerator, mask=is_open)


def kind_of_ends(scales: Sequence[TimeScale]) -> tuple[pa.DataType, Fraction]:
    """The type of times that are starts or ends of several columns, such as the first; and its scale."""
    # Ticks of one: of whole numbers that count different units not all are whole in any of these.
    first = scales[0]
    column, tick = first.column, first.tick
    if column.family == "duration":
        return pa.duration(tick.unit), Fraction(1)
    if column.nanoseconds is not None:
        zone = (column.zone or "UTC") if column.family == "timestamp" else None
        return pa.timestamp(tick.unit, zone), Fraction(1)
    is_whole = all(s.column.family == "integer" and s.factor == first.factor for s in scales)
    return pa.int64() if is_whole else pa.float64(), first.factor


def duration_scale(starts: TimeScale, column: TimeColumn, unit: str | None) -> TimeScale:
    """How a column of durations becomes ticks: by its type, its unit, or counted as starts are.

    Raises
    ------
    SchemaError, ConditionError
        If that is not known, the column holds times, or ticks are too coarse for whole numbers.
    """
    start, tick = starts.column, starts.tick
    name, first = f"{column.side}.{column.name}", f"{start.side}.{start.name}"
    if column.family not in ("duration", "integer", "float"):
        raise SchemaError(
            f"{name} must hold durations or numbers, as it says how long events last (found"
            f" {column.family}). Name a column of ends in spans('start', 'end'), on the command line"
            " after that of starts: --left-time start,end."
        )
    if column.family == "duration" and unit is not None:
        raise ConditionError(
            f"{name} holds durations, which have a unit (found {argument('unit', unit)} in spans)."
            f" Remove {argument('unit')} there."
        )
    if column.family != "duration" and unit is None:
        if start.nanoseconds is not None:
            raise ConditionError(
                f"{name} holds numbers, and {first} holds timestamps or durations. Give the unit of"
                f" the numbers to spans, such as {argument('unit', 'ms')}; on the command line by"
                " --left-duration-unit or --right-duration-unit."
            )
        return TimeScale(column, starts.factor, tick)
    if tick.nanoseconds is None:
        counts = f"counts {unit}" if unit is not None else "holds durations"
        raise ConditionError(
            f"{name} {counts}, but the unit of {first} is unknown. Give it too, for example"
            f" {option('unit', 's')}."
        )
    step = column.nanoseconds if unit is None else NANOSECONDS_PER_UNIT[unit]
    assert step is not None  # a duration's own
    factor = Fraction(step, tick.nanoseconds)
    if column.family == "integer" and factor.denominator != 1:
        raise ConditionError(
            f"{name} counts {unit}, which ticks of 1 {tick.unit} would round. Use"
            f" {option('tick', unit)} or a finer one."
        )
    return TimeScale(column, factor, tick)
