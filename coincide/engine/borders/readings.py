"""A table of readings: streams, ticks and values; invalid rows refused, or left out and counted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.borders.arguments import READINGS, BorderArguments, check_numbers, floats_of
from coincide.engine.events.schemas import (
    arrow_time_column,
    can_be_key,
    column_of,
    computed_time,
    result_time,
    type_of,
)
from coincide.engine.events.sides import example_row, readable
from coincide.engine.events.ticks import Ticks, contiguous
from coincide.engine.events.time_columns import (
    TimeColumn,
    TimeScale,
    range_hint,
    resolve_tick,
    scale_of,
)
from coincide.model.errors import (
    ConditionError,
    DataError,
    SchemaError,
    option,
    several,
    with_options,
)
from coincide.model.units import Tick

REASONS = {
    "null": "nulls",
    "not_finite": "a time that is NaN or infinite",
    "range": "times that reach 2^61 ticks",
    "infinite": "infinite values",
}
"""Why a reading is none, in the order in which it is asked, with the words for it."""


@dataclass(frozen=True)
class ReadingColumns:
    """The columns of one schema; everything but the rows is known and checked."""

    arguments: BorderArguments
    scale: TimeScale
    stream_kind: pa.DataType
    time_kinds: tuple[pa.DataType, pa.DataType, pa.DataType]

    @classmethod
    def of(cls, schema: pa.Schema, arguments: BorderArguments) -> ReadingColumns:
        """The columns that arguments name."""
        stream = pa.int64()
        if arguments.stream is not None:
            stream = type_of(schema, READINGS, arguments.stream)
        if not can_be_key(stream):
            raise SchemaError(
                f"{READINGS}.{arguments.stream} is {stream}, which cannot be compared exactly; cast it to a"
                " string or an integer"
            )
        kind = type_of(schema, READINGS, arguments.time)
        column = arrow_time_column(READINGS, arguments.time, kind)
        tick = tick_of(column, arguments)
        check_numbers(READINGS, list(arguments.values), schema)
        scale = scale_of(column, tick, arguments.time_options)
        own = result_time(kind, tick)
        return cls(arguments, scale, stream, (own, own, computed_time(kind, tick)))

    @property
    def tick(self) -> Tick:
        """In what times are counted."""
        return self.scale.tick


@dataclass(frozen=True, eq=False)
class Readings:
    """Valid readings, n of them, in the order in which they came."""

    streams: pa.Array
    times: np.ndarray
    values: np.ndarray
    rows: int
    dropped: dict[str, int] = field(default_factory=dict)
    rounded: float = 0.0
    valid: np.ndarray | None = None

    def rows_of(self, index: np.ndarray) -> Readings:
        """Some of them: an int64 array."""
        streams = self.streams.take(pa.array(index))
        return Readings(streams, self.times[index], self.values[index], index.size)


def tick_of(column: TimeColumn, arguments: BorderArguments) -> Tick:
    """In what the times of a column are counted."""
    try:
        return resolve_tick([column], arguments.time_options)
    except (SchemaError, ConditionError) as error:
        raise type(error)(with_options(error, "BorderOptions")) from None


def read_readings(table: pa.Table, columns: ReadingColumns) -> Readings:
    """The readings of a table."""
    arguments = columns.arguments
    if arguments.stream is None:
        streams = pa.array(np.zeros(table.num_rows, np.int64))
    else:
        streams = contiguous(column_of(table, READINGS, arguments.stream))
    ticks = Ticks(column_of(table, READINGS, arguments.time), columns.scale)
    values = np.empty((table.num_rows, arguments.dimensions))
    for dimension, name in enumerate(arguments.values):
        values[:, dimension] = floats_of(table, READINGS, name)[0]
    null = ticks.null | pc.is_null(streams).to_numpy(zero_copy_only=False)
    not_finite = ticks.not_finite if ticks.not_finite.size else np.zeros_like(null)
    wrong = {
        "null": null,
        "not_finite": not_finite,
        "range": ticks.out_of_range,
        "infinite": np.isinf(values).any(axis=1),
    }
    dropped, seen = {}, np.zeros_like(null)
    for reason, mask in wrong.items():
        own = mask & ~seen
        seen |= mask
        if own.any():
            dropped[reason] = int(own.sum())
            if arguments.options.invalid == "raise":
                raise DataError(_complaint(table, columns, reason, own))
    times = ticks.ticks
    rounding = ticks.rounding
    if dropped:
        streams, times, values = streams.filter(pa.array(~seen)), times[~seen], values[~seen]
        rounding = None if rounding is None else rounding[~seen]
    rounded = 0.0 if rounding is None else float(rounding.max(initial=0.0))
    valid = ~seen if dropped else None
    return Readings(streams, times, values, table.num_rows, dropped, rounded, valid)


def _complaint(table: pa.Table, columns: ReadingColumns, reason: str, wrong: np.ndarray) -> str:
    one = table.slice(int(np.argmax(wrong)), 1)
    names = columns.arguments.columns
    example = example_row({name: readable(one.column(name)[0]) for name in names})
    return words_of_invalid(columns, reason, int(wrong.sum()), example)


def words_of_invalid(columns: ReadingColumns, reason: str, count: int, example: str) -> str:
    """What is wrong with invalid readings, and what to do."""
    arguments = columns.arguments
    blamed = {
        "null": [*arguments.streams, arguments.time],
        "infinite": list(arguments.values),
    }.get(reason, [arguments.time])
    words = f"{REASONS[reason]} in {' or '.join(blamed)} in {several(count, 'row')}"
    hint = range_hint(columns.tick, [columns.scale]) if reason == "range" else ""
    hint = hint and f"Here {with_options(hint, 'BorderOptions')}. "
    return (
        f"{READINGS}: {words}, for example {example}. {hint}Mend the data, or leave such rows out with"
        f" {option('invalid', 'drop', 'BorderOptions')}"
    )
