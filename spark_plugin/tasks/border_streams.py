"""Border crossings of a stream of readings, by bucket of their streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from coincide.engine.backends import load_task_backend
from coincide.engine.borders.readings import ReadingColumns
from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import Ids, narrow_type, one_array
from spark_plugin.tasks.borders import STREAM, TIME, PartitionSearch, ShippedQueries, values_of
from spark_plugin.tasks.monitors import Monitors


@dataclass(frozen=True)
class CrossingMonitors(Monitors):
    """Monitors of border crossings."""

    columns: ReadingColumns
    queries: ShippedQueries

    def monitor(self, state: bytes | None) -> CrossingMonitor:
        """A new monitor, or one with what it remembers."""
        return CrossingMonitor(self, state)


class CrossingMonitor:
    """Remembers where each stream of a bucket is, and which ranges it is in."""

    def __init__(self, monitors: CrossingMonitors, state: bytes | None) -> None:
        arguments = monitors.columns.arguments
        load_task_backend(arguments.options.backend)
        self._dimensions = arguments.dimensions
        self._search = PartitionSearch(monitors.queries, arguments)
        self._streams: Ids | None = None
        if state is not None:
            known = dict(zip(*_opened(state), strict=True))
            self._streams = Ids(known[STREAM].type, known.pop(STREAM))
            arrays = {name: each.to_numpy(zero_copy_only=False) for name, each in known.items()}
            self._search.remember(arrays)

    def take(self, rows: pa.Table) -> Iterator[list[pa.Array]]:
        """The output columns that the rows of one slice, in any order, make known."""
        streams = one_array(rows.column(STREAM))
        known = Ids.none(streams.type) if self._streams is None else self._streams
        self._streams, numbers = known.numbered(streams)
        times, values = one_array(rows.column(TIME)).to_numpy(), values_of(rows, self._dimensions)
        given = Gather(streams, narrow_type(streams.type))
        yield from self._search.crossings(numbers, times, values, given, in_any_order=True)

    def state(self) -> bytes:
        """All that it has to remember."""
        assert self._streams is not None
        known = self._streams.known
        columns = {STREAM: known, **self._search.remembered(len(known))}
        return _row({name: pa.array(column) for name, column in columns.items()})


def _row(columns: dict[str, pa.Array]) -> bytes:
    """Columns of any lengths as Arrow's stream: a list each, in one row."""
    lists = [
        pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), column)
        for column in columns.values()
    ]
    batch = pa.RecordBatch.from_arrays(lists, names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _opened(row: bytes) -> tuple[list[str], list[pa.Array]]:
    """The names and columns of which `_row` has made it."""
    batch = pa.ipc.open_stream(pa.py_buffer(row)).read_next_batch()
    return batch.schema.names, [column.flatten() for column in batch.columns]
