"""Tables of border queries, and their ids."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.borders.arguments import (
    QUERIES,
    BorderArguments,
    IdRun,
    check_numbers,
    floats_of,
)
from coincide.engine.events.frames import arrow_table, own_names
from coincide.engine.events.schemas import can_be_key, column_of, stored, type_of
from coincide.engine.events.sides import example_row, readable
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
    kind = type_of(schema, QUERIES, arguments.query)
    if not can_be_key(kind):
        raise SchemaError(
            f"{QUERIES}.{arguments.query} is {kind}, which cannot be compared exactly; cast it to a string"
            " or an integer"
        )
    borders = [name for pair in arguments.border_names(schema.names) for name in pair]
    check_numbers(QUERIES, borders, schema)
    if arguments.closed_column is not None:
        words = type_of(schema, QUERIES, arguments.closed_column)
        if (
            not (pa.types.is_string(words) or pa.types.is_large_string(words))
            and words != pa.null()
        ):
            raise SchemaError(
                f"{QUERIES}.{arguments.closed_column} is {words}; it must be a text, one of"
                f" {', '.join(CLOSED)}"
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
    _refuse(table, f"{arguments.closed_column} that is none of {', '.join(CLOSED)}", unknown)
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
        one = table.slice(int(np.argmax(wrong)), 1)
        example = example_row({name: readable(one.column(name)[0]) for name in table.column_names})
        count = int(wrong.sum())
        raise DataError(
            f"{QUERIES}: {what} in {several(count, 'row')}, for example {example}; mend"
            " them or leave them out"
        )


_SHARE_TO_MERGE = 16


class QueryIds:
    """Ids of one type, and the numbers of their queries, which may be removed.

    An id may come again once its query was removed, and has a new number then. Ids lie in a large run and
    after it ever smaller ones, so that a few more cost what they are. Those of removed queries are taken
    out of a run once they are more than half of it.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.runs: list[IdRun] = []

    def __len__(self) -> int:
        """How many ids are kept, some of them of removed queries."""
        return sum(map(len, self.runs))

    def runs_with(self, ids: pa.Array, start: int) -> list[IdRun]:
        """The runs to have, once there are more ids, of live queries."""
        if not len(ids):
            return self.runs
        numbers, is_live = range(start, start + len(ids)), np.ones(len(ids), np.bool_)
        runs = [*self.runs, IdRun(numbers, stored(ids), _stored_kind(self.kind), is_live)]
        while len(runs) > 1 and len(runs[-1]) * _SHARE_TO_MERGE > len(runs[-2]):
            runs[-2:] = [runs[-2].followed_by(runs[-1])]
        return runs

    def removals(self, numbers: np.ndarray) -> list[np.ndarray]:
        """What `remove` needs, run by run, to remove live queries of some numbers, each given once."""
        whose = self._runs_of(numbers)
        return [run.rows_of(numbers[whose == k]) for k, run in enumerate(self.runs)]

    def remove(self, removals: list[np.ndarray]) -> None:
        """Queries are no more. It takes no memory, but to sweep."""
        for run, rows in zip(self.runs, removals, strict=True):
            run.remove(rows)
        # They are removed by now: where memory lacks, the next removal sweeps.
        with suppress(MemoryError):
            runs = [run.swept() if run.removed * 2 > len(run) else run for run in self.runs]
            self.runs = [run for run in runs if len(run)]

    def live(self, ids: pa.Array) -> np.ndarray:
        """The numbers of live queries with some ids: int64 array, -1 where there is none.

        O(log N) for each id.
        """
        found = np.full(len(ids), -1, np.int64)
        values = stored(ids)
        for run in self.runs:
            found = np.maximum(found, run.live(values))
        return found

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of live numbers."""
        if not numbers.size:
            return self._wrapped(pa.array([], _stored_kind(self.kind)))
        first, last = self._runs_of(np.array([numbers.min(), numbers.max()])).tolist()
        if first == last:
            return self._wrapped(self.runs[first].of(numbers))
        # Sorted by counting, as such small integers are.
        whose = self._runs_of(numbers).astype(np.int16)
        order = np.argsort(whose, kind="stable")
        ends = np.searchsorted(whose[order], np.arange(len(self.runs) + 1))
        parts = [run.of(numbers[order[ends[k] : ends[k + 1]]]) for k, run in enumerate(self.runs)]
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return self._wrapped(pa.concat_arrays(parts).take(pa.array(place)))

    def _runs_of(self, numbers: np.ndarray) -> np.ndarray:
        starts = [run.numbers[0] for run in self.runs]
        return np.searchsorted(np.array(starts, np.int64), numbers, side="right") - 1

    def _wrapped(self, ids: pa.Array) -> pa.Array:
        is_extension = isinstance(self.kind, pa.BaseExtensionType)
        return self.kind.wrap_array(ids) if is_extension else ids


def _stored_kind(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
