"""Border crossings of parts of files that hold whole streams: numbers of parts in, crossings out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.backends import load_task_backend
from coincide.engine.borders.readings import ReadingColumns, Readings, read_readings
from coincide.engine.borders.reports import COUNTED
from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import narrow_type
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts
from coincide.engine.files.stream_parts import StreamPart, StreamParts
from coincide.engine.reports.metrics import numbers_of
from spark_plugin.tasks.borders import PartitionSearch, ShippedQueries
from spark_plugin.tasks.counting import Answer, CountingTask


@dataclass(frozen=True)
class StreamFiles:
    """Files of readings, planned to be read by streams; small enough to be sent to every task."""

    files: PlannedFiles
    parts: StreamParts
    columns: ReadingColumns

    def read(self, number: int) -> Readings:
        """The readings of a part, in any order."""
        part, arguments = self.parts[number], self.columns.arguments
        table = self.files.read(Parts.whole(part.places), arguments.columns, threads=False)
        return read_readings(table.filter(_of(part, table[arguments.stream])), self.columns)


@dataclass(frozen=True)
class PartTask(CountingTask):
    """Tells the crossings of the parts whose numbers come in."""

    counted: ClassVar[tuple[str, ...]] = COUNTED

    readings: StreamFiles
    queries: ShippedQueries
    names: tuple[str, ...] = ()
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, in order of streams and times within a part."""
        arguments = self.readings.columns.arguments
        load_task_backend(arguments.options.backend)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                search = PartitionSearch(self.queries, arguments)
                yield from self._of_part(self.readings.read(number), search)

    def _of_part(self, readings: Readings, search: PartitionSearch) -> Iterator[Answer]:
        streams = _on_the_wire(readings.streams)
        kind = narrow_type(streams.type)
        if readings.times.size:
            numbers = streams.dictionary_encode().indices.to_numpy().astype(np.int64)
            found = search.crossings(
                numbers, readings.times, readings.values, Gather(streams, kind), counting="least"
            )
            for columns in found:
                yield columns, None
        nulls = [pa.nulls(1, each) for each in search.kinds(kind)]
        yield nulls, numbers_of(search.summary(readings.counts))


def _of(part: StreamPart, streams: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which of the rows of a part's row groups are the part's."""
    if not pa.types.is_integer(streams.type):
        streams = streams.cast(pa.large_binary())
    owned = pa.array(np.repeat(part.owns, part.places.rows))
    found: pa.ChunkedArray = pc.is_valid(streams)
    for end, compare in ((part.above, pc.greater), (part.last, pc.less_equal)):
        if end is not None:
            found = pc.and_(
                found, pc.fill_null(compare(streams, pa.scalar(end, streams.type)), False)
            )
    return pc.or_(found, pc.and_(pc.is_null(streams), owned))


def _on_the_wire(streams: pa.Array) -> pa.Array:
    return streams.cast(pa.int64()) if pa.types.is_integer(streams.type) else streams
