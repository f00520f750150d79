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
from spark_plugin.tasks.monitors import Monitors, StreamMonitor, columns_of_row, row_of


@dataclass(frozen=True)
class CrossingMonitors(Monitors):
    """Monitors of border crossings."""

    columns: ReadingColumns
    queries: ShippedQueries

    def monitor(self, state: bytes | None) -> CrossingMonitor:
        """A new monitor, or one with what it remembers."""
        return CrossingMonitor(self, state)


class CrossingMonitor(StreamMonitor):
    """Remembers where each stream of a bucket is, and which ranges it is in."""

    def __init__(self, monitors: CrossingMonitors, state: bytes | None) -> None:
        arguments = monitors.columns.arguments
        load_task_backend(arguments.options.backend)
        self._dimensions = arguments.dimensions
        self._search = PartitionSearch(monitors.queries, arguments)
        self._streams: Ids | None = None
        if state is not None:
            known = columns_of_row(state)
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
        yield from self._search.crossings(numbers, times, values, given, counting="least")

    def state(self) -> bytes:
        """All that it has to remember."""
        assert self._streams is not None
        known = self._streams.known
        columns = {STREAM: known, **self._search.remembered(len(known))}
        return row_of({name: pa.array(column) for name, column in columns.items()})
