"""A task of border crossings: readings by stream and time in, crossings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.backends import load_task_backend
from coincide.engine.borders.arguments import READINGS, BorderArguments, words_of_far
from coincide.engine.borders.monitor import NewSearch
from coincide.engine.borders.readings import REASONS, Queries, ReadingColumns, words_of_invalid
from coincide.engine.borders.reports import COUNTED, BorderSummary
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import narrow_type, one_array
from coincide.model.borders.crossings import Counting
from coincide.model.borders.monitor import Monitor
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import DataError
from coincide.model.units import TIME_LIMIT
from spark_plugin.tasks.counting import FaultyRows, KeyTask, KeyWork
from spark_plugin.tasks.wire import Runs, Shipment


@dataclass(frozen=True)
class CrossingTask(KeyTask):
    """Tells the crossings of streams, in order of times within a stream."""

    counted: ClassVar[tuple[str, ...]] = COUNTED

    columns: ReadingColumns
    queries: ShippedQueries
    names: tuple[str, ...] = ()
    metrics: str | None = None

    def work(self, schema: pa.Schema) -> KeyWork:
        """What takes readings."""
        return _CrossingWork(self, narrow_type(schema.field(STREAM).type))


class _CrossingWork(KeyWork):
    """Takes readings by stream and time."""

    def __init__(self, task: CrossingTask, stream_kind: pa.DataType) -> None:
        arguments = task.columns.arguments
        load_task_backend(arguments.options.backend)
        self._reader, self._runs = ReadingRows(task.columns), Runs()
        self._dimensions = arguments.dimensions
        self._search = PartitionSearch(task.queries, arguments)
        self._kind = stream_kind
        self.kinds = self._search.kinds(stream_kind)

    def take(self, table: pa.Table) -> Iterator[list[pa.Array]]:
        table, times = self._reader.valid(table)
        if not times.size:
            return
        streams, values = one_array(table.column(STREAM)), values_of(table, self._dimensions)
        numbers = self._runs.numbered([streams])
        yield from self._search.crossings(numbers, times, values, Gather(streams, self._kind))
        self._search.keep_only(int(numbers[-1]))

    def end(self) -> Iterator[list[pa.Array]]:
        self._reader.refuse()
        return iter(())

    def summary(self) -> BorderSummary:
        return self._search.summary(self._reader.counts)


class PartitionSearch:
    """Takes readings and returns crossings."""

    def __init__(self, queries: ShippedQueries, arguments: BorderArguments) -> None:
        ids, self._monitor = queries.watch(arguments.options)
        self._ids = Gather(ids, narrow_type(ids.type))
        self._made, self._has_streams = arguments.made, arguments.stream is not None

    def crossings(
        self,
        numbers: np.ndarray,
        times: np.ndarray,
        values: np.ndarray,
        streams: Gather,
        *,
        counting: Counting = "first",
    ) -> Iterator[list[pa.Array]]:
        """The output columns of some readings: query, stream if any, event, and times in ticks."""
        self._monitor.streams.reserve(int(numbers.max()) + 1)
        for part in self._monitor.push(numbers, times, values, counting=counting):
            told = [part.events.astype(np.int64), part.min_times, part.max_times]
            told += [] if part.instants is None else [part.instants]
            whose = [streams(part.rows)] if self._has_streams else []
            yield [self._ids(part.queries), *whose, *map(pa.array, told)]

    def keep_only(self, stream: int) -> None:
        """Forget all streams but one, which is number 0 from now on."""
        self._monitor.keep_only(stream)

    def remembered(self, streams: int) -> dict[str, np.ndarray]:
        """Where streams 0 ... streams - 1 are, and what they are in: arrays of one dimension."""
        table, open_pairs = self._monitor.streams, self._monitor.open_pairs
        columns = {name: getattr(table, name)[:streams].ravel() for name in table.columns}
        return columns if open_pairs is None else {**columns, _OPEN: open_pairs.pairs}

    def remember(self, columns: Mapping[str, np.ndarray]) -> None:
        """What `remembered` gave, after no reading."""
        table, open_pairs = self._monitor.streams, self._monitor.open_pairs
        table.reserve(columns[table.columns[0]].size)
        for name in table.columns:
            column = getattr(table, name)
            column[:] = columns[name].reshape(column.shape)
        if open_pairs is not None:
            open_pairs.pairs = columns[_OPEN]

    def kinds(self, stream_kind: pa.DataType) -> list[pa.DataType]:
        """Types of the output columns."""
        ids = [self._ids.kind, *([stream_kind] if self._has_streams else [])]
        return [*ids, *[pa.int64()] * (len(self._made) - len(ids))]

    def summary(self, rows: SideCounts) -> BorderSummary:
        """What was found, and what the rows of readings were."""
        return BorderSummary.of(self._monitor, rows)


_OPEN = "open"
_ID, _CLOSED = "query", "closed"


class Watch(NamedTuple):
    """Queries, and before any reading what tells of their crossings."""

    ids: pa.Array
    monitor: Monitor


@dataclass(frozen=True)
class ShippedQueries:
    """Queries on their way to the workers."""

    key: str
    shipment: Shipment

    def watch(self, options: BorderOptions) -> Watch:
        """The queries, in a worker: their index is kept for the tasks that follow."""
        if self.key not in _kept:
            # One at a time: it may be large.
            _kept.clear()
            _kept[self.key] = _watch_of(self.shipment.table(), options)
        ids, monitor = _kept[self.key]
        return Watch(ids, monitor.restarted())


_kept: dict[str, Watch] = {}


def as_table(queries: Queries, ids: pa.Array) -> pa.Table:
    """Queries to be sent, with their ids as they cross."""
    borders = np.concatenate([queries.lower, queries.upper], axis=1)
    columns = {str(k): borders[:, k] for k in range(borders.shape[1])}
    return pa.table({_ID: ids, _CLOSED: queries.closed, **columns})


def _watch_of(table: pa.Table, options: BorderOptions) -> Watch:
    ids, closed, *columns = (one_array(column) for column in table.columns)
    lower, upper = np.split(np.stack([column.to_numpy() for column in columns], axis=1), 2, axis=1)
    monitor = Monitor(lower.shape[1], options, NewSearch(options.backend, options.threads or 1))
    monitor.add(np.ascontiguousarray(lower), np.ascontiguousarray(upper), closed.to_numpy())
    return Watch(ids, monitor)


STREAM, TIME = "stream", "time"
"""Names of columns: int64 or a key, and ticks. They come with those of `faults`."""

FIRST_CODE = TIME_LIMIT
"""In place of the time of an invalid reading is its reason, counted from here: those of `REASONS`, and
after them, for each value column, an integer that float64 has not."""


def value_names(dimensions: int) -> list[str]:
    """Names of the columns of values."""
    return [f"value{k}" for k in range(dimensions)]


def values_of(table: pa.Table, dimensions: int) -> np.ndarray:
    """What was read: float64 array, shape (n, d), C order."""
    values = np.empty((table.num_rows, dimensions))
    for k, name in enumerate(value_names(dimensions)):
        values[:, k] = one_array(table.column(name)).to_numpy()
    return values


class ReadingRows(FaultyRows):
    """Readings in the chunks of one partition; invalid ones are refused or counted."""

    def __init__(self, columns: ReadingColumns) -> None:
        super().__init__(TIME, FIRST_CODE)
        self._columns = columns

    def reason(self, code: int) -> str:
        """The word of `REASONS`."""
        return tuple(REASONS)[code]

    def refuse(self) -> None:
        """Raise if some that were read are to be refused."""
        arguments = self._columns.arguments
        for code, name in enumerate(arguments.values, len(REASONS)):
            if code in self.codes:
                raise DataError(words_of_far(READINGS, name, self.codes[code], self.examples[code]))
        if arguments.options.invalid == "raise" and self.codes:
            words = (
                words_of_invalid(self._columns, self.reason(code), count, self.examples[code])
                for code, count in sorted(self.codes.items())
            )
            raise DataError(" ".join(words))
