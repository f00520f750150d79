"""Intervals of a min and a max column, of one that is both, or about the stamps of one column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import arrow_time_column, column_of, plain_type
from coincide.engine.events.span_ends import AnyTicks
from coincide.engine.events.ticks import Ticks
from coincide.engine.events.time_arguments import Around, AroundByRow
from coincide.engine.events.time_columns import TimeColumn, TimeScale, scale_of
from coincide.engine.events.timestamps import (
    INTERVALS,
    NOTHING_LACKS,
    Faults,
    IntervalModel,
    Lacking,
    most_rounded,
)
from coincide.model.errors import (
    ConditionError,
    DataError,
    SchemaError,
    argument,
    brief,
    call,
    option,
)
from coincide.model.options import CorrelateOptions
from coincide.model.remembered import remembered
from coincide.model.timestamps import are_valid_times
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT


@dataclass(frozen=True)
class IntervalColumns:
    """Intervals: `coincide.engine.events.timestamps.TimestampColumns`."""

    disorder: ClassVar[str] = "order"
    """The reason why a row is invalid whose length is below `shortest`."""
    scales: tuple[TimeScale, TimeScale]
    longest: int | None = None
    beyond: tuple[int, int] | None = (0, 0)

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys(scale.column.name for scale in self.scales))

    @property
    def model(self) -> IntervalModel:  # noqa: D102
        return INTERVALS

    @property
    def shortest(self) -> int:
        """The least length of a valid event, ticks."""
        return 0

    @property
    def declared(self) -> tuple[int, int] | None:  # noqa: D102
        return None if self.longest is None else (0, self.longest)

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        return self.names

    def read(self, table: pa.Table) -> ReadIntervals:  # noqa: D102
        lower, upper = (
            Ticks(column_of(table, scale.column.side, scale.column.name), scale)
            for scale in self.scales
        )
        longest = 2 * TIME_LIMIT if self.longest is None else self.longest
        return ReadIntervals(lower, upper, longest, self.shortest, self.disorder)


class ReadIntervals:
    """Intervals of rows: `coincide.engine.events.timestamps.ReadTimes`."""

    def __init__(
        self,
        lower: AnyTicks,
        upper: AnyTicks,
        longest: int,
        shortest: int = 0,
        disorder: str = "order",
    ) -> None:
        self._lower, self._upper, self._longest, self._shortest = lower, upper, longest, shortest
        self._disorder = disorder

    @property
    def are_valid(self) -> bool:  # noqa: D102
        lower, upper = self._lower, self._upper
        if not (lower.shows_all and upper.shows_all):
            return False
        are_valid: bool = are_valid_times(lower.ticks, upper.ticks, self._longest)
        if are_valid and self._shortest:
            are_valid = bool(self.shapes.min(initial=self._shortest) >= self._shortest)
        return are_valid

    @remembered
    def null(self) -> np.ndarray:  # noqa: D102
        return self._lower.null | self._upper.null

    @property
    def excused(self) -> np.ndarray:  # noqa: D102
        return self.null

    def faults(self) -> Faults:  # noqa: D102
        lower, upper = self._lower, self._upper
        for part in (lower.not_finite, upper.not_finite):
            if part.size:
                yield "not_finite", part
        yield "range", lower.out_of_range | upper.out_of_range
        yield self._disorder, self.shapes < self._shortest
        yield "length", self.shapes > self._longest

    def lacking(self) -> Lacking:  # noqa: D102
        return NOTHING_LACKS

    @property
    def max_time(self) -> np.ndarray:  # noqa: D102
        return self._upper.ticks

    @remembered
    def shapes(self) -> np.ndarray:  # noqa: D102
        return self._upper.ticks - self._lower.ticks

    def rounded(self, valid: np.ndarray | None) -> float:  # noqa: D102
        return most_rounded((self._lower, self._upper), valid)


def instant_of(name: str, value: Any, scale: TimeScale, options: CorrelateOptions) -> int:
    """A time that a caller gives, in ticks."""
    asked = scale.column
    try:
        one = _one_value(value)
        column = arrow_time_column(asked.side, name, one.type)
    except (pa.ArrowException, OverflowError, SchemaError):
        raise _no_instant(name, value, asked) from None
    if not _goes_with(column, asked):
        raise _no_instant(name, value, asked)
    try:
        ticks = Ticks(one, scale_of(column, scale.tick, options))
        wrong = ticks.null.any() or ticks.not_finite.any() or ticks.out_of_range.any()
        instant = int(ticks.ticks[0])
    except DataError:
        raise ConditionError(
            f"{argument(name)} is finer than a tick of 1 {scale.tick.unit} (found"
            f" {_shown(value)}). Round it, or count in a finer tick, for example"
            f" {argument('tick', 'ns')}."
        ) from None
    if wrong:
        raise _no_instant(name, value, asked)
    return instant


def _no_instant(name: str, value: object, asked: TimeColumn) -> ConditionError:
    wanted = {
        "timestamp": "a datetime with a time zone",
        "timestamp_ntz": "a datetime without a time zone",
        "duration": "a duration",
    }.get(asked.family, "a number")
    return ConditionError(
        f"{argument(name)} must be a time like those of {asked.side}.{asked.name}, {wanted},"
        f" below 2^61 ticks (found {_shown(value)})."
    )


def _shown(value: object) -> str:
    return brief(str(value) if isinstance(value, pa.Scalar) else value)


def _one_value(value: Any) -> pa.ChunkedArray:
    if hasattr(value, "nanosecond"):  # of pandas, whose nanoseconds PyArrow would leave out
        value = pa.scalar(value, pa.timestamp("ns", None if value.tz is None else str(value.tz)))
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    return pa.chunked_array([pa.repeat(scalar, 1)])


def _goes_with(given: TimeColumn, asked: TimeColumn) -> bool:
    return given.family == asked.family or (given.family, asked.family) == ("integer", "float")


@dataclass(frozen=True)
class AroundColumns:
    """A column of stamps: `coincide.engine.events.timestamps.TimestampColumns`."""

    scale: TimeScale
    before: int
    after: int
    longest: None = None

    @classmethod
    def resolve(
        cls, given: Around, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> AroundColumns:
        """For stamps that become ticks by a scale."""
        return cls(scales[0], *given.margins(scales[0].tick))

    @property
    def scales(self) -> tuple[TimeScale, TimeScale]:  # noqa: D102
        return self.scale, self.scale

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return (self.scale.column.name,)

    @property
    def model(self) -> IntervalModel:  # noqa: D102
        return IntervalModel(self.after)

    @property
    def length(self) -> int:
        """Of all events, ticks."""
        return self.before + self.after

    @property
    def declared(self) -> tuple[int, int]:  # noqa: D102
        return self.length, self.length

    @property
    def beyond(self) -> tuple[int, int]:  # noqa: D102
        return -self.before, self.after

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        return self.names

    def read(self, table: pa.Table) -> ReadAround:  # noqa: D102
        stamps = Ticks(column_of(table, self.scale.column.side, self.names[0]), self.scale)
        return ReadAround(stamps, self.after, np.full(stamps.ticks.size, self.length))


class ReadAround:
    """Intervals of rows: `coincide.engine.events.timestamps.ReadTimes`."""

    def __init__(self, stamps: Ticks, after: int | np.ndarray, lengths: np.ndarray) -> None:
        self._stamps = stamps
        self.max_time = stamps.ticks + after
        self.shapes = lengths

    @property
    def are_valid(self) -> bool:  # noqa: D102
        return self._stamps.shows_all and not self._is_far.any()

    @property
    def null(self) -> np.ndarray:  # noqa: D102
        return self._stamps.null

    @property
    def excused(self) -> np.ndarray:  # noqa: D102
        return self.null

    def faults(self) -> Faults:  # noqa: D102
        if self._stamps.not_finite.size:
            yield "not_finite", self._stamps.not_finite
        yield "range", self._is_far

    def lacking(self) -> Lacking:  # noqa: D102
        return NOTHING_LACKS

    @property
    def _is_far(self) -> np.ndarray:
        """Whether a stamp or an end about it reaches 2^61 ticks: no sum overflows, as widths stay below."""
        ends = self.max_time, self.max_time - self.shapes
        return self._stamps.out_of_range | (ends[0] >= TIME_LIMIT) | (ends[1] <= -TIME_LIMIT)

    def rounded(self, valid: np.ndarray | None) -> float:  # noqa: D102
        return most_rounded([self._stamps], valid)


@dataclass(frozen=True)
class AroundRowsColumns:
    """Stamps and half-widths: `coincide.engine.events.timestamps.TimestampColumns`."""

    scale: TimeScale
    before: TimeScale
    after: TimeScale
    longest: int | None = None

    @classmethod
    def resolve(
        cls, given: AroundByRow, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> AroundRowsColumns:
        """For stamps that become ticks by a scale."""
        before, after = (
            _scale_of_widths(name, given.unit, scales[0]) for name in (given.before, given.after)
        )
        return cls(scales[0], before, after, longest)

    @property
    def scales(self) -> tuple[TimeScale, TimeScale]:  # noqa: D102
        return self.scale, self.scale

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        scales = self.scale, self.before, self.after
        return tuple(dict.fromkeys(scale.column.name for scale in scales))

    @property
    def model(self) -> IntervalModel:  # noqa: D102
        return INTERVALS

    @property
    def declared(self) -> tuple[int, int] | None:  # noqa: D102
        return None if self.longest is None else (0, self.longest)

    @property
    def beyond(self) -> tuple[int, int] | None:  # noqa: D102
        return None if self.longest is None else (-self.longest, self.longest)

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        return self.names[1:] if reason == "width" else self.names

    def read(self, table: pa.Table) -> ReadAroundRows:  # noqa: D102
        stamps = Ticks(column_of(table, self.scale.column.side, self.scale.column.name), self.scale)
        before, after = (_Widths(table, scale) for scale in (self.before, self.after))
        return ReadAroundRows(stamps, (before, after), self.longest)


def _scale_of_widths(name: str, unit: str | None, stamps: TimeScale) -> TimeScale:
    """How half-widths become ticks: counted as stamps are, or in a unit of their own."""
    column, tick = stamps.column, stamps.tick
    if unit is None:
        if column.nanoseconds is not None:
            raise ConditionError(
                f"{column.side}.{name} holds numbers, and {column.side}.{column.name} holds"
                f" timestamps. Give the unit of the numbers to {call('around', column.name)},"
                " such as 'ms'; on the command line by --left-around-unit or"
                " --right-around-unit."
            )
        factor = stamps.factor
    elif tick.nanoseconds is None:
        raise ConditionError(
            f"{column.side}.{name} counts {unit}, but the unit of {column.side}.{column.name}"
            f" is unknown. Give it too, for example {option('unit', 's')}."
        )
    else:
        factor = Fraction(NANOSECONDS_PER_UNIT[unit], tick.nanoseconds)
    return TimeScale(TimeColumn(column.side, name, "float"), factor, tick)


class ReadAroundRows(ReadAround):
    """Intervals of rows, each of its own half-widths."""

    def __init__(self, stamps: Ticks, widths: tuple[_Widths, _Widths], longest: int | None) -> None:
        self._longest = longest
        self._is_wrong = np.logical_or.reduce([width.are_none for width in widths])
        before, after = (np.where(self._is_wrong, 0, width.ticks) for width in widths)
        super().__init__(stamps, after, before + after)

    @property
    def are_valid(self) -> bool:  # noqa: D102
        return super().are_valid and not (self._is_wrong | self._is_long).any()

    def faults(self) -> Faults:  # noqa: D102
        if self._stamps.not_finite.size:
            yield "not_finite", self._stamps.not_finite
        yield "range", self._stamps.out_of_range
        yield "width", self._is_wrong
        yield "range", self._is_far
        yield "length", self._is_long

    @property
    def _is_long(self) -> np.ndarray:
        longest = 2 * TIME_LIMIT if self._longest is None else self._longest
        return self.shapes > longest


class _Widths:
    """Half-widths of rows: ticks, and which are none: missing, not finite, out of range or negative."""

    def __init__(self, table: pa.Table, scale: TimeScale) -> None:
        column = column_of(table, scale.column.side, scale.column.name)
        if pa.types.is_integer(
            column.type
        ):  # beyond 2^53 they are out of range, and may be inexact
            column = column.cast(pa.float64(), safe=False)
        own = arrow_time_column(scale.column.side, scale.column.name, plain_type(column.type))
        widths = Ticks(column, replace(scale, column=own))
        self.ticks = widths.ticks
        are_negative = pc.fill_null(pc.less(column, 0), False).to_numpy()
        self.are_none = widths.null | widths.not_finite | widths.out_of_range | are_negative
