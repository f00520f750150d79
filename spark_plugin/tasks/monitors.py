"""Monitors of streams: rows are packed by bucket of keys and slice; closed slices reach a monitor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import one_array
from coincide.model.errors import DataError, argument, option
from spark_plugin.tasks.blobs import packed, unpacked
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.grid import Slices
from spark_plugin.tasks.packing import EVENTS
from spark_plugin.tasks.streaming import IS_LATE, StreamPackTask
from spark_plugin.tasks.wire import CODED, TIME, as_stream


@dataclass(frozen=True, kw_only=True)
class CheckedPackTask(StreamPackTask):
    """Packs rows, and refuses or skips invalid ones."""

    check: Callable[[pa.Table], pa.Table]  # gives the valid rows, or raises
    ends: tuple[str, str]  # columns of the min and max time, ticks
    longest: int = 0  # from one to the other at most, ticks
    drops_longer: bool = False  # and not refuses

    def packs_of(self, table: pa.Table) -> Iterator[tuple[Slices, pa.Buffer]]:
        """As in `Packing`."""
        table = self.check(table)
        low, high = (one_array(table.column(name)) for name in self.ends)
        lengths = pc.subtract(high, low)
        placed = table.append_column(TIME, high).append_column(CODED, lengths)
        found = pc.max(lengths).as_py()
        if found is not None and found > self.longest:
            if not self.drops_longer:
                raise DataError(
                    f"an event is longer than the stated longest, {self.longest:,} ticks (found"
                    f" {found:,}). Skip such rows with {option('invalid', 'drop')}, or begin with a"
                    f" new checkpoint and a larger {argument('longest')}."
                )
            placed = placed.filter(pc.less_equal(lengths, self.longest))
        yield from super().packs_of(placed)


class StreamMonitor(ABC):
    """Takes rows in order of time, slice by slice, and finds what it is there for."""

    @abstractmethod
    def take(self, rows: pa.Table) -> Iterator[list[pa.Array]]:
        """The output columns that the rows of some slices, in any order, make known."""

    @abstractmethod
    def state(self) -> bytes:
        """All that it has to remember."""

    def pass_time(self, until: int) -> Iterator[list[pa.Array]]:
        """Those that are known as no row is to come that begins before some ticks."""
        return iter(())

    def waits_for(self) -> int | None:
        """Up to which ticks time alone makes nothing known; None: it never does."""
        return None


@dataclass(frozen=True)
class Monitors(ABC):
    """Makes monitors, one for each bucket of keys."""

    names: tuple[str, ...]  # those of the output columns

    @abstractmethod
    def monitor(self, state: bytes | None) -> StreamMonitor:
        """A new monitor, or one with what it remembers."""

    def found(
        self, monitor: StreamMonitor, slices: Iterable[list[pa.Buffer]], until: int
    ) -> Iterator[pa.Buffer]:
        """What a monitor finds in the packs of slices, in order of time, up to some ticks, packed."""
        of_slices = (monitor.take(unpacked(packs)) for packs in slices)
        for columns in chain(chain.from_iterable(of_slices), monitor.pass_time(until)):
            if len(columns[0]):
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


def row_of(columns: dict[str, pa.Array]) -> bytes:
    """Columns of any lengths as Arrow's stream: a list each, in one row."""
    lists = [
        pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), column)
        for column in columns.values()
    ]
    return as_stream(pa.table(lists, names=list(columns)))


def columns_of_row(row: bytes) -> dict[str, pa.Array]:
    """The columns of which `row_of` has made it."""
    batch = pa.ipc.open_stream(pa.py_buffer(row)).read_next_batch()
    return {name: batch.column(name).flatten() for name in batch.schema.names}
