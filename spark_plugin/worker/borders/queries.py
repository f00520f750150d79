"""A table of border queries: ids, and ranges [lower, upper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import DataError, SchemaError
from coincide.plurals import several
from spark_plugin.worker.arrow.frames import arrow_table, own_names
from spark_plugin.worker.arrow.schemas import can_be_key, column_of, type_of
from spark_plugin.worker.arrow.tables import example_row, readable
from spark_plugin.worker.arrow.ticks import contiguous
from spark_plugin.worker.arrow.wide_columns import stored
from spark_plugin.worker.borders.arguments import QUERIES, BorderArguments
from spark_plugin.worker.borders.numbers import check_numbers, floats_of


@dataclass(frozen=True, eq=False)
class Queries:
    """Border queries of d dimensions, n of them.

    Parameters
    ----------
    ids : pa.Array
        Distinct, without nulls.
    lower, upper : float64 arrays, shape (n, d)
        lower <= upper; infinite where a range is open. Where they are equal, the range holds nothing.
    """

    ids: pa.Array
    lower: np.ndarray
    upper: np.ndarray

    @property
    def empty(self) -> int:
        """Queries whose range holds nothing."""
        return int((self.lower == self.upper).any(axis=1).sum())


def query_columns(schema: pa.Schema, arguments: BorderArguments) -> list[str]:
    """The columns of queries that are needed, checked.

    Raises
    ------
    SchemaError
        If one is missing or of a type that cannot serve.
    """
    kind = type_of(schema, QUERIES, arguments.query)
    if not can_be_key(kind):
        raise SchemaError(
            f"{QUERIES}.{arguments.query} is {kind}, which cannot be compared exactly; cast it to a string"
            " or an integer"
        )
    borders = [name for pair in arguments.border_names(schema.names) for name in pair]
    check_numbers(QUERIES, borders, schema)
    return [arguments.query, *borders]


def query_table(given: Any, arguments: BorderArguments) -> pa.Table:
    """The columns of queries that are needed, of a table of any library.

    Raises
    ------
    SchemaError
        If one is missing or of a type that cannot serve.
    """
    borders = [name for pair in arguments.border_names(own_names(given)) for name in pair]
    table = arrow_table(QUERIES, given, [arguments.query, *borders], borders)
    return table.select(query_columns(table.schema, arguments))


def read_queries(table: pa.Table, arguments: BorderArguments) -> Queries:
    """The queries of a table.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    DataError
        If an id is null or stands twice, a border is NaN, or a lower one above the upper one.
    """
    ids = contiguous(column_of(table, QUERIES, arguments.query))
    names = arguments.border_names(table.column_names)
    lower = _borders(table, [name for name, _ in names], -np.inf)
    upper = _borders(table, [name for _, name in names], np.inf)
    _refuse(table, "null ids", pc.is_null(ids).to_numpy(zero_copy_only=False))
    borders = np.concatenate([lower, upper], axis=1)
    _refuse(table, "NaN borders", np.isnan(borders).any(axis=1))
    _refuse(table, "a lower border above the upper one", (lower > upper).any(axis=1))
    _refuse(table, "ids that other rows have", _repeats(ids))
    return Queries(ids, lower, upper)


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
        one = table.slice(int(np.argmax(wrong)), 1)
        example = example_row({name: readable(one.column(name)[0]) for name in table.column_names})
        count = int(wrong.sum())
        raise DataError(
            f"{QUERIES}: {what} in {several(count, 'row')}, for example {example}; mend"
            " them or leave them out"
        )
