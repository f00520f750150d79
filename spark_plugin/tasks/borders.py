"""A task of border crossings: readings by stream and time in, crossings out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.backends import load_task_backend
from coincide.engine.borders.arguments import READINGS, words_of_far
from coincide.engine.borders.monitor import NewSearch
from coincide.engine.borders.queries import Queries
from coincide.engine.borders.readings import REASONS, ReadingColumns, words_of_invalid
from coincide.engine.borders.reports import COUNTED
from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import narrow_type, one_array
from coincide.engine.reports.metrics import as_bits
from coincide.model.borders.crossings import IN
from coincide.model.borders.monitor import Monitor
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import DataError
from coincide.model.units import TIME_LIMIT
from spark_plugin.tasks.counting import Answer, CountingTask, FaultyRows
from spark_plugin.tasks.wire import Runs, Shipment, chunks

_CHUNK_ROWS = 1 << 18
_CHUNK_BYTES = 64 << 20
"""Readings to work on at once."""


@dataclass(frozen=True)
class CrossingTask(CountingTask):
    """Tells the crossings of streams, each of which is whole in one partition, its readings in order.

    Nothing is kept of a stream once the next one begins.
    """

    counted: ClassVar[tuple[str, ...]] = COUNTED

    columns: ReadingColumns
    queries: ShippedQueries
    names: tuple[str, ...]
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, in order of times within a stream."""
        options = self.columns.arguments.options
        load_task_backend(options.backend)
        reader, runs = WireReader(self.columns), Runs()
        has_streams = self.columns.arguments.stream is not None
        search = PartitionSearch(self.queries.watch(options), has_streams=has_streams)
        kind = None
        for table in chunks(batches, _CHUNK_ROWS, _CHUNK_BYTES):
            readings = reader.read(table)
            kind = narrow_type(readings.streams.type)
            if not readings.times.size:
                continue
            numbers = runs.numbered([readings.streams])
            streams = Gather(readings.streams, kind)
            for columns in search.crossings(numbers, readings.times, readings.values, streams):
                yield columns, None
            search.keep_only(int(numbers[-1]))
        reader.refuse()
        if kind is not None:
            told = {**reader.dropped, "readings": reader.rows, "rounded": as_bits(reader.rounded)}
            yield search.nulls(kind, len(self.names)), {**search.told(), **told}


class PartitionSearch:
    """Takes readings and hands out crossings."""

    def __init__(self, watch: Watch, *, has_streams: bool) -> None:
        self._has_streams = has_streams
        self._ids = Gather(watch.ids, watch.kind)
        self._monitor = watch.monitor
        self._entered = self._left = 0

    def crossings(
        self,
        numbers: np.ndarray,
        times: np.ndarray,
        values: np.ndarray,
        streams: Gather,
        *,
        in_any_order: bool = False,
    ) -> Iterator[list[pa.Array]]:
        """The output columns of some readings: query, stream if any, event, and times in ticks."""
        self._monitor.streams.reserve(int(numbers.max()) + 1)
        for part in self._monitor.push(numbers, times, values, in_any_order=in_any_order):
            entered = int((part.events == IN).sum())
            self._entered += entered
            self._left += part.events.size - entered
            told = [part.events.astype(np.int64), part.min_times, part.max_times]
            told += [] if part.instants is None else [part.instants]
            whose = [streams(part.rows)] if self._has_streams else []
            yield [self._ids(part.queries), *whose, *map(pa.array, told)]

    def keep_only(self, stream: int) -> None:
        """Forget all streams but one, which is number 0 from now on."""
        self._monitor.keep_only(stream)

    def nulls(self, stream_kind: pa.DataType, columns: int) -> list[pa.Array]:
        """A row of nulls in the output columns, as many as there are."""
        ids = [self._ids.kind, *([stream_kind] if self._has_streams else [])]
        kinds = [*ids, *[pa.int64()] * (columns - len(ids))]
        return [pa.nulls(1, kind) for kind in kinds]

    def told(self) -> dict[str, int]:
        """Of the numbers of `coincide.engine.borders.reports.COUNTED` those that are found here."""
        return {
            **asdict(self._monitor.taken),
            "entered": self._entered,
            "left": self._left,
            "retrieved": self._monitor.retrieved,
        }


_ID, _CLOSED = "query", "closed"


class Watch(NamedTuple):
    """Queries, and before any reading what tells of their crossings."""

    ids: pa.Array
    monitor: Monitor

    @property
    def kind(self) -> pa.DataType:
        """The type in which ids are handed out."""
        return narrow_type(self.ids.type)


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
"""Names of columns: int64 or a key, and ticks. Beside them those of `faults`."""

FIRST_CODE = TIME_LIMIT
"""In place of the time of an invalid reading stands its reason, counted from here: those of `REASONS`, and
after them, for each value column, an integer that is none of float64."""


def value_names(dimensions: int) -> list[str]:
    """Names of the columns of values."""
    return [f"value{k}" for k in range(dimensions)]


@dataclass(frozen=True, eq=False)
class WireReadings:
    """Valid readings of a chunk, n of them."""

    streams: pa.Array
    times: np.ndarray
    values: np.ndarray


class WireReader(FaultyRows):
    """Reads the chunks of one partition, and refuses invalid readings or counts them."""

    def __init__(self, columns: ReadingColumns) -> None:
        super().__init__(TIME, FIRST_CODE)
        self._columns = columns
        self._names = value_names(columns.arguments.dimensions)

    @property
    def dropped(self) -> dict[str, int]:
        """Readings left out so far, by reason, in the order of `REASONS`."""
        return {reason: self.counts.get(code, 0) for code, reason in enumerate(REASONS)}

    def read(self, table: pa.Table) -> WireReadings:
        """The valid readings of a chunk."""
        table, times = self.valid(table)
        values = np.empty((times.size, len(self._names)))
        for k, name in enumerate(self._names):
            values[:, k] = one_array(table.column(name)).to_numpy()
        return WireReadings(one_array(table.column(STREAM)), times, values)

    def refuse(self) -> None:
        """Raise if some that were read are to be refused."""
        arguments = self._columns.arguments
        for code, name in enumerate(arguments.values, len(REASONS)):
            if code in self.counts:
                words = self.counts[code], self.examples[code]
                raise DataError(words_of_far(READINGS, name, *words))
        if self.counts and arguments.options.invalid == "raise":
            code = min(self.counts)
            words = self.counts[code], self.examples[code]
            raise DataError(words_of_invalid(self._columns, list(REASONS)[code], *words))
