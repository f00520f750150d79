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
    Faults,
    IntervalModel,
    ReadTimes,
    TimestampColumns,
)
from coincide.model.compiled import read_only
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
from coincide.model.timestamps import are_valid_times
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT


@dataclass(frozen=True)
class IntervalColumns(TimestampColumns):
    """Intervals of a min and a max column, or of one that is both."""

    disorder: ClassVar[str] = "order"
    """The reason why a row is invalid whose length is below `shortest`."""
    beyond: tuple[int, int] | None = (0, 0)

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

    def read(self, table: pa.Table) -> ReadTimes:  # noqa: D102
        lower, *rest = (
            Ticks(column_of(table, scale.column.side, scale.column.name), scale)
            for scale in dict.fromkeys(self.scales)
        )
        return self.between(lower, rest[0] if rest else lower)

    def between(self, lower: AnyTicks, upper: AnyTicks) -> ReadTimes:
        """The timestamps of rows whose earliest and latest times are these."""
        # Zeros take no memory before they are written.
        is_one = lower is upper
        shapes = np.zeros_like(upper.ticks) if is_one else upper.ticks - lower.ticks
        shortest = self.shortest
        longest = 2 * TIME_LIMIT if self.longest is None else self.longest
        are_valid = (
            lower.shows_all
            and upper.shows_all
            and bool(are_valid_times(read_only(lower.ticks), read_only(upper.ticks), longest))
            and (not shortest or bool(shapes.min(initial=shortest) >= shortest))
        )

        def faults() -> Faults:
            for part in (lower.not_finite, upper.not_finite):
                if part.size:
                    yield "not_finite", part
            yield "range", lower.out_of_range | upper.out_of_range
            yield self.disorder, shapes < shortest
            yield "length", shapes > longest

        return ReadTimes(upper.ticks, shapes, (lower, upper), are_valid, faults)


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
    if hasattr(value, "nanosecond"):  # pandas' nanoseconds, which PyArrow would leave out
        value = pa.scalar(value, pa.timestamp("ns", None if value.tz is None else str(value.tz)))
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    return pa.chunked_array([pa.repeat(scalar, 1)])


def _goes_with(given: TimeColumn, asked: TimeColumn) -> bool:
    return given.family == asked.family or (given.family, asked.family) == ("integer", "float")


@dataclass(frozen=True, kw_only=True)
class AroundColumns(TimestampColumns):
    """Intervals about the stamps of one column, all of one length."""

    before: int
    after: int

    @classmethod
    def resolve(
        cls, given: Around, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> AroundColumns:
        """For stamps that become ticks by a scale."""
        before, after = given.margins(scales[0].tick)
        return cls(scales, before=before, after=after)

    @property
    def model(self) -> IntervalModel:  # noqa: D102
        return IntervalModel(self.after)

    @property
    def length(self) -> int:
        """The longest length, ticks."""
        return self.before + self.after

    @property
    def declared(self) -> tuple[int, int]:  # noqa: D102
        return self.length, self.length

    @property
    def beyond(self) -> tuple[int, int]:  # noqa: D102
        return -self.before, self.after

    def read(self, table: pa.Table) -> ReadTimes:  # noqa: D102
        stamps = Ticks(column_of(table, self.scale.column.side, self.names[0]), self.scale)
        lengths = np.full(stamps.ticks.size, self.length)
        return about_stamps(stamps, stamps.ticks + self.after, lengths)


def about_stamps(
    stamps: Ticks,
    max_time: np.ndarray,
    shapes: np.ndarray,
    *,
    wrong: np.ndarray | None = None,
    longest: int | None = None,
    lost: np.ndarray | None = None,
) -> ReadTimes:
    """Intervals that are made of stamps; `wrong` are rows whose half-widths are not valid."""
    # No sum overflows, as widths stay below 2^61 ticks.
    is_far = stamps.out_of_range | (max_time >= TIME_LIMIT) | (max_time - shapes <= -TIME_LIMIT)
    too_long = None if longest is None else shapes > longest
    masks = [each for each in (is_far, wrong, too_long, lost) if each is not None]
    are_valid = stamps.shows_all and not any(mask.any() for mask in masks)

    def faults() -> Faults:
        if stamps.not_finite.size:
            yield "not_finite", stamps.not_finite
        yield "range", stamps.out_of_range
        if wrong is not None:
            yield "width", wrong
        yield "range", is_far
        if too_long is not None:
            yield "length", too_long

    return ReadTimes(max_time, shapes, (stamps,), are_valid, faults, lost)


@dataclass(frozen=True, kw_only=True)
class AroundRowsColumns(TimestampColumns):
    """Intervals about the stamps of one column, as long as two others say."""

    before: TimeScale
    after: TimeScale

    @classmethod
    def resolve(
        cls, given: AroundByRow, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> AroundRowsColumns:
        """For stamps that become ticks by a scale."""
        before, after = (
            _scale_of_widths(name, given.unit, scales[0]) for name in (given.before, given.after)
        )
        return cls(scales, longest, before=before, after=after)

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

    def read(self, table: pa.Table) -> ReadTimes:  # noqa: D102
        stamps = Ticks(column_of(table, self.scale.column.side, self.scale.column.name), self.scale)
        widths = [_Widths(table, scale) for scale in (self.before, self.after)]
        wrong = np.logical_or.reduce([width.are_none for width in widths])
        before, after = (np.where(wrong, 0, width.ticks) for width in widths)
        latest = stamps.ticks + after
        return about_stamps(stamps, latest, before + after, wrong=wrong, longest=self.longest)


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


class _Widths:
    """Half-widths of rows: ticks, and which are not valid: missing, infinite, out of range or negative."""

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
