"""Intervals, of a min and a max column; exact instants, of one column that is both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import arrow_time_column, column_of
from coincide.engine.events.ticks import Ticks
from coincide.engine.events.time_columns import TimeColumn, TimeScale, scale_of
from coincide.engine.events.timestamps import INTERVALS, Faults, IntervalModel, most_rounded
from coincide.model.errors import ConditionError, DataError, SchemaError, argument, brief
from coincide.model.options import CorrelateOptions
from coincide.model.timestamps import are_valid_times
from coincide.model.units import TIME_LIMIT


@dataclass(frozen=True)
class IntervalNames:
    """A min and a max column: `coincide.engine.events.timestamp_names.TimestampNames`."""

    lower: str
    upper: str
    labels: tuple[str, ...] = ()
    widths: tuple[str, ...] = ()

    @property
    def clocks(self) -> tuple[str, str]:  # noqa: D102
        return self.lower, self.upper

    def check_longest(self, name: str) -> None:  # noqa: D102
        pass

    def resolved(  # noqa: D102
        self, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> IntervalColumns:
        return IntervalColumns(scales, longest)


@dataclass(frozen=True)
class IntervalColumns:
    """Intervals: `coincide.engine.events.timestamps.TimestampColumns`."""

    scales: tuple[TimeScale, TimeScale]
    longest: int | None = None
    beyond: tuple[int, int] = (0, 0)

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys(scale.column.name for scale in self.scales))

    @property
    def model(self) -> IntervalModel:  # noqa: D102
        return INTERVALS

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
        return ReadIntervals(lower, upper, 2 * TIME_LIMIT if self.longest is None else self.longest)


class ReadIntervals:
    """Intervals of rows: `coincide.engine.events.timestamps.ReadTimes`."""

    def __init__(self, lower: Ticks, upper: Ticks, longest: int) -> None:
        self._lower, self._upper, self._longest = lower, upper, longest

    @property
    def are_valid(self) -> bool:  # noqa: D102
        lower, upper = self._lower, self._upper
        shows_all = lower.shows_all and upper.shows_all
        return shows_all and are_valid_times(lower.ticks, upper.ticks, self._longest)

    @cached_property
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
        yield "order", lower.ticks > upper.ticks
        yield "length", self.shapes > self._longest

    @property
    def max_time(self) -> np.ndarray:  # noqa: D102
        return self._upper.ticks

    @cached_property
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
    except DataError:  # finer than a tick
        raise _no_instant(name, value, asked) from None
    if wrong:
        raise _no_instant(name, value, asked)
    return instant


def _no_instant(name: str, value: object, asked: TimeColumn) -> ConditionError:
    wanted = {
        "timestamp": "a datetime with a time zone",
        "timestamp_ntz": "a datetime without a time zone",
    }.get(asked.family, "a number")
    return ConditionError(
        f"{argument(name)} must be a time like those of {asked.side}.{asked.name}, {wanted},"
        f" below 2^61 ticks (found {brief(value)})."
    )


def _one_value(value: Any) -> pa.ChunkedArray:
    if hasattr(value, "nanosecond"):  # of pandas, whose nanoseconds PyArrow would leave out
        value = pa.scalar(value, pa.timestamp("ns", None if value.tz is None else str(value.tz)))
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    return pa.chunked_array([pa.repeat(scalar, 1)])


def _goes_with(given: TimeColumn, asked: TimeColumn) -> bool:
    return given.family == asked.family or (given.family, asked.family) == ("integer", "float")
