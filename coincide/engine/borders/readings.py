"""Tables of border queries and of readings: checked, in ticks and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.borders.arguments import (
    QUERIES,
    READINGS,
    BorderArguments,
    check_numbers,
    floats_of,
)
from coincide.engine.events.frames import Numbers, arrow_table, own_names
from coincide.engine.events.invalid_rows import SideCounts, example_of, first_faults, invalid_rows
from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import (
    arrow_time_column,
    column_of,
    computed_time,
    id_type,
    result_time,
    stored,
    type_of,
)
from coincide.engine.events.ticks import Ticks, contiguous
from coincide.engine.events.time_columns import (
    TimeScale,
    range_hint,
    resolve_tick,
    scale_of,
)
from coincide.engine.events.timestamps import Faults, most_rounded
from coincide.model.borders.index import CLOSED, closed_bits, half_open
from coincide.model.errors import (
    DataError,
    SchemaError,
    option,
    options_called,
    several,
    with_options,
)
from coincide.model.units import Tick


@dataclass(frozen=True, eq=False)
class Queries:
    """Border queries of d dimensions, n of them."""

    ids: pa.Array
    lower: np.ndarray
    upper: np.ndarray
    closed: np.ndarray

    @property
    def empty(self) -> int:
        """Queries whose range holds nothing."""
        lower, upper = half_open(self.lower, self.upper, self.closed)
        return int((lower == upper).any(axis=1).sum())


def query_columns(schema: pa.Schema, arguments: BorderArguments) -> list[str]:
    """The columns of queries that are needed, checked."""
    id_type(schema, QUERIES, arguments.query)
    borders = [name for pair in arguments.border_names(schema.names) for name in pair]
    check_numbers(QUERIES, borders, schema)
    if arguments.closed_column is not None:
        words = type_of(schema, QUERIES, arguments.closed_column)
        if not (is_string(words) or pa.types.is_null(words)):
            raise SchemaError(
                f"{QUERIES}.{arguments.closed_column} must be a text, one of {', '.join(CLOSED)}"
                f" (found {words})."
            )
    return arguments.query_columns(schema.names)


def query_table(given: Any, arguments: BorderArguments) -> pa.Table:
    """The columns of queries that are needed, of a table of any library."""
    own = own_names(given)
    borders = [name for pair in arguments.border_names(own) for name in pair]
    table = arrow_table(QUERIES, given, arguments.query_columns(own), Numbers(floats=borders))
    return table.select(query_columns(table.schema, arguments))


def read_queries(table: pa.Table, arguments: BorderArguments) -> Queries:
    """The queries of a table."""
    ids = contiguous(column_of(table, QUERIES, arguments.query))
    names = arguments.border_names(table.column_names)
    lower = _borders(table, [name for name, _ in names], -np.inf)
    upper = _borders(table, [name for _, name in names], np.inf)
    _refuse(table, "null ids", pc.is_null(ids).to_numpy(zero_copy_only=False))
    borders = np.concatenate([lower, upper], axis=1)
    _refuse(table, "NaN borders", np.isnan(borders).any(axis=1))
    _refuse(table, "a lower border above the upper one", (lower > upper).any(axis=1))
    _refuse(table, "ids that other rows have", _repeats(ids))
    return Queries(ids, lower, upper, _closed(table, arguments))


def _closed(table: pa.Table, arguments: BorderArguments) -> np.ndarray:
    """Which ends ranges hold; where a query does not say it, as the options say."""
    if arguments.closed_column is None:
        return np.repeat(closed_bits([arguments.options.closed]), table.num_rows)
    words = contiguous(column_of(table, QUERIES, arguments.closed_column)).cast(pa.string())
    words = words.fill_null(arguments.options.closed)
    codes = pc.index_in(words, value_set=pa.array(CLOSED))
    unknown = pc.is_null(codes).to_numpy(zero_copy_only=False)
    _refuse(table, f"{arguments.closed_column} other than {', '.join(CLOSED)}", unknown)
    return closed_bits(list(CLOSED))[codes.to_numpy()]


def _borders(table: pa.Table, names: list[str], of_null: float) -> np.ndarray:
    columns = []
    for name in names:
        values, null = floats_of(table, QUERIES, name)
        columns.append(np.where(null, of_null, values))
    return np.stack(columns, axis=1)


def _repeats(ids: pa.Array) -> np.ndarray:
    """Which rows have an id that an earlier one has."""
    codes = pc.dictionary_encode(stored(ids)).indices.to_numpy()
    is_repeat = np.ones(codes.size, np.bool_)
    is_repeat[np.unique(codes, return_index=True)[1]] = False
    return is_repeat


def _refuse(table: pa.Table, what: str, wrong: Any) -> None:
    if wrong.any():
        example = example_of(table, wrong, table.column_names)
        raise DataError(
            f"{QUERIES}: {what} in {several(int(wrong.sum()), 'row')} (found {example}). Fix"
            " these rows, or remove them."
        )


REASONS = {
    "null": "nulls",
    "not_finite": "a time that is NaN or infinite",
    "range": "times that reach 2^61 ticks",
    "infinite": "infinite values",
}
"""Why a reading is not valid, in the order of the checks, with the words for it."""


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
        streams = [id_type(schema, READINGS, name) for name in arguments.streams]
        kind = type_of(schema, READINGS, arguments.time)
        column = arrow_time_column(READINGS, arguments.time, kind)
        with options_called("BorderOptions"):
            tick = resolve_tick([column], arguments.time_options)
        check_numbers(READINGS, arguments.values, schema)
        scale = scale_of(column, tick, arguments.time_options)
        own = result_time(kind, tick)
        times = own, own, computed_time(kind, tick)
        return cls(arguments, scale, streams[0] if streams else pa.int64(), times)

    @property
    def tick(self) -> Tick:
        """In what times are counted."""
        return self.scale.tick


@dataclass(frozen=True, eq=False)
class Readings:
    """Valid readings, n of them, in the order in which they came.

    `times`: int64 ticks, (n,); `values`: float64, (n, d); `valid`: which rows they were, None: all.
    """

    streams: pa.Array
    times: np.ndarray
    values: np.ndarray
    counts: SideCounts = SideCounts()
    valid: np.ndarray | None = None

    def rows_of(self, index: np.ndarray) -> Readings:
        """Some of them: an int64 array."""
        streams = self.streams.take(pa.array(index))
        return Readings(streams, self.times[index], self.values[index])


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
    nothing = np.zeros(table.num_rows, np.bool_)
    faults = first_faults(_faults(streams, ticks, values), nothing)
    if faults and arguments.options.invalid == "raise":
        raise invalid_rows(table, arguments.columns, faults, partial(words_of_invalid, columns))
    times, valid = ticks.ticks, None
    if faults:
        valid = ~np.logical_or.reduce(list(faults.values()))
        streams, times, values = streams.filter(pa.array(valid)), times[valid], values[valid]
    dropped = {reason: int(mask.sum()) for reason, mask in faults.items()}
    counts = SideCounts(table.num_rows, 0, dropped, most_rounded([ticks], valid))
    return Readings(streams, times, values, counts, valid)


def _faults(streams: pa.Array, ticks: Ticks, values: np.ndarray) -> Faults:
    yield "null", ticks.null | pc.is_null(streams).to_numpy(zero_copy_only=False)
    if ticks.not_finite.size:
        yield "not_finite", ticks.not_finite
    yield "range", ticks.out_of_range
    yield "infinite", np.isinf(values).any(axis=1)


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
        f"{READINGS}: {words} (found {example}). {hint}Fix the data, or skip such rows with"
        f" {option('invalid', 'drop', 'BorderOptions')}."
    )
