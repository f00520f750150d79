"""Monitors of streams: rows are packed by bucket of keys and slice; closed slices reach a monitor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import one_array
from spark_plugin.tasks.blobs import packed, unpacked
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.counting import FaultyRows
from spark_plugin.tasks.packing import EVENTS
from spark_plugin.tasks.streaming import IS_LATE, Slice, StreamPackTask
from spark_plugin.tasks.wire import CODED, TIME


@dataclass(frozen=True, kw_only=True)
class CheckedPackTask(StreamPackTask):
    """Packs rows after a look for invalid ones, which are refused or left out."""

    reader: Callable[[], FaultyRows]
    ends: tuple[str, str]  # columns of the min and max time, ticks

    def packs_of(self, table: pa.Table) -> Iterator[tuple[Slice, pa.Buffer]]:
        """As in `Packing`."""
        reader = self.reader()
        table, _ = reader.valid(table)
        reader.refuse()
        low, high = (one_array(table.column(name)) for name in self.ends)
        placed = table.append_column(TIME, high).append_column(CODED, pc.subtract(high, low))
        yield from super().packs_of(placed)


class StreamMonitor(Protocol):
    """Takes rows in order of time, slice by slice, and finds what it is there for."""

    def take(self, rows: pa.Table) -> Iterator[list[pa.Array]]:
        """The output columns that the rows of one slice, in any order, make known."""

    def state(self) -> bytes:
        """All that it has to remember."""


@dataclass(frozen=True)
class Monitors(ABC):
    """Makes monitors, one for each bucket of keys."""

    names: tuple[str, ...]  # of the output columns

    @abstractmethod
    def monitor(self, state: bytes | None) -> StreamMonitor:
        """A new monitor, or one with what it remembers."""

    def found(self, monitor: StreamMonitor, packs: list[pa.Buffer]) -> Iterator[pa.Buffer]:
        """What a monitor finds in the packs of a slice, packed."""
        for columns in monitor.take(unpacked(packs)):
            yield from packed(pa.table(columns, names=list(self.names)))


@dataclass(frozen=True)
class FoundTask:
    """Unpacks what monitors have found."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through one partition."""
        for batch in begin_task(batches):
            for is_late, blob in zip(batch.column(IS_LATE), batch.column(EVENTS), strict=True):
                if not is_late.as_py():
                    yield from unpacked([blob.as_buffer()]).cast(self.schema).to_batches()
