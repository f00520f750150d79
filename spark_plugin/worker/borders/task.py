"""A task of border crossings: readings by stream and time in, crossings out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.wide_columns import narrow_type
from spark_plugin.worker.backends.devices import load_task_backend
from spark_plugin.worker.borders.partition import PartitionSearch
from spark_plugin.worker.borders.readings import ReadingColumns
from spark_plugin.worker.borders.reports import COUNTED
from spark_plugin.worker.borders.shipped import ShippedQueries
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
