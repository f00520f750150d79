"""A task of border crossings: readings by stream and time in, crossings out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.borders.crossings import IN
from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.wide_columns import narrow_type
from spark_plugin.worker.backends.devices import load_task_backend
from spark_plugin.worker.borders.readings import ReadingColumns
from spark_plugin.worker.borders.reports import COUNTED
from spark_plugin.worker.borders.shipped import ShippedQueries, Watch
from spark_plugin.worker.borders.wire import WireReader
from spark_plugin.worker.reports.metrics import as_bits
from spark_plugin.worker.wire.chunks import chunks
from spark_plugin.worker.wire.counting import Answer, CountingTask
from spark_plugin.worker.wire.runs import Runs

_CHUNK_ROWS = 1 << 18
_CHUNK_BYTES = 64 << 20
"""Readings to work on at once."""


@dataclass(frozen=True)
class CrossingTask(CountingTask):
    """Tells the crossings of streams, each of which is whole in one partition, its readings in order.

    Nothing is kept of a stream once the next one begins.

    Parameters
    ----------
    columns : ReadingColumns
    queries : ShippedQueries
    names : tuple of str
        Of the output columns: query, stream, event as `OUT` and `IN`, and times in ticks.
    metrics : str or None
        Name of a column to add, null but in one last row: the numbers of `counted`.
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
        search = _PartitionSearch(self.columns, self.queries.watch(options))
        for table in chunks(batches, _CHUNK_ROWS, _CHUNK_BYTES):
            for columns in search.crossings(table):
                yield columns, None
        search.reader.refuse()
        if search.stream_kind is not None:
            ids = [pa.nulls(1, search.query_ids.kind), pa.nulls(1, search.stream_kind)]
            numbers = [pa.nulls(1, pa.int64())] * (len(self.names) - len(ids))
            yield [*ids, *numbers], search.told()


class _PartitionSearch:
    """The search among the streams of one partition."""

    def __init__(self, columns: ReadingColumns, watch: Watch) -> None:
        self.reader, self.query_ids = WireReader(columns), Gather(watch.ids, watch.kind)
        self.stream_kind: pa.DataType | None = None
        self._monitor, self._runs = watch.monitor, Runs()
        self._entered = self._left = 0

    def crossings(self, table: pa.Table) -> Iterator[list[pa.Array]]:
        """The output columns of a chunk."""
        readings = self.reader.read(table)
        self.stream_kind = narrow_type(readings.streams.type)
        if not readings.times.size:
            return
        streams = Gather(readings.streams, self.stream_kind)
        numbers = self._runs.numbered([readings.streams])
        last = int(numbers[-1])
        self._monitor.streams.reserve(last + 1)
        for part in self._monitor.push(numbers, readings.times, readings.values):
            entered = int((part.events == IN).sum())
            self._entered, self._left = (
                self._entered + entered,
                self._left + part.events.size - entered,
            )
            times = [part.min_times, part.max_times]
            times += [] if part.instants is None else [part.instants]
            arrays = map(pa.array, [part.events.astype(np.int64), *times])
            yield [self.query_ids(part.queries), streams(part.rows), *arrays]
        self._monitor.keep_only(last)

    def told(self) -> dict[str, int]:
        """The numbers of `COUNTED`."""
        return {
            **self.reader.dropped,
            **asdict(self._monitor.taken),
            "readings": self.reader.rows,
            "entered": self._entered,
            "left": self._left,
            "retrieved": self._monitor.retrieved,
            "rounded": as_bits(self.reader.rounded),
        }
