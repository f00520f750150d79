"""A time that a caller gives, as the time columns hold theirs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from coincide.errors import ConditionError, DataError, SchemaError, brief
from coincide.options import CorrelateOptions
from spark_plugin.worker.arrow.schemas import arrow_time_column
from spark_plugin.worker.arrow.ticks import Ticks
from spark_plugin.worker.arrow.time_columns import TimeColumn, TimeScale, scale_of


def instant_of(argument: str, value: Any, scale: TimeScale, options: CorrelateOptions) -> int:
    """A time that a caller gives, in ticks.

    Parameters
    ----------
    argument : str
        What the caller calls it.
    value : int, float, datetime, numpy.datetime64 or pa.Scalar
        As the column holds it.
    scale : TimeScale
        Of the column.
    options : CorrelateOptions

    Raises
    ------
    ConditionError
        If it is no time like those of the column.
    """
    asked = scale.column
    try:
        one = _one_value(value)
        column = arrow_time_column(asked.side, argument, one.type)
    except (pa.ArrowException, OverflowError, SchemaError):
        raise _no_instant(argument, value, asked) from None
    if not _goes_with(column, asked):
        raise _no_instant(argument, value, asked)
    try:
        ticks = Ticks(one, scale_of(column, scale.tick, options))
        wrong = ticks.null.any() or ticks.not_finite.any() or ticks.out_of_range.any()
        instant = int(ticks.ticks[0])
    except DataError:  # finer than a tick
        raise _no_instant(argument, value, asked) from None
    if wrong:
        raise _no_instant(argument, value, asked)
    return instant


def _no_instant(argument: str, value: object, asked: TimeColumn) -> ConditionError:
    wanted = {
        "timestamp": "a datetime with a time zone",
        "timestamp_ntz": "a datetime without a time zone",
    }.get(asked.family, "a number")
    return ConditionError(
        f"{argument} must be a time as {asked.side}.{asked.name} holds them: {wanted}, below"
        f" 2^61 ticks; found {brief(value)}"
    )


def _one_value(value: Any) -> pa.ChunkedArray:
    if hasattr(value, "nanosecond"):  # of pandas, whose nanoseconds PyArrow would leave out
        value = pa.scalar(value, pa.timestamp("ns", None if value.tz is None else str(value.tz)))
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    return pa.chunked_array([pa.repeat(scalar, 1)])


def _goes_with(given: TimeColumn, asked: TimeColumn) -> bool:
    return given.family == asked.family or (given.family, asked.family) == ("integer", "float")
