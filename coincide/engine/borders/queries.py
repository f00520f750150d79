"""Tables of border queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.borders.arguments import (
    QUERIES,
    BorderArguments,
    check_numbers,
    floats_of,
)
from coincide.engine.events.frames import arrow_table, own_names
from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import column_of, id_type, stored, type_of
from coincide.engine.events.sides import example_of
from coincide.engine.events.ticks import contiguous
from coincide.model.borders.index import CLOSED, closed_bits, half_open
from coincide.model.errors import DataError, SchemaError, several


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
    table = arrow_table(QUERIES, given, arguments.query_columns(own), borders)
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
