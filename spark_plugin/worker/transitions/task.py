"""A task of region transitions: events by query, stream and midpoint in, transitions and stays out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.wide_columns import narrow_type
from spark_plugin.worker.reports.metrics import as_bits
from spark_plugin.worker.transitions.arguments import SIDE
from spark_plugin.worker.transitions.columns import EventColumns
from spark_plugin.worker.transitions.reports import COUNTED, REASONS
from spark_plugin.worker.transitions.running import Decided, RunningWatch
from spark_plugin.worker.transitions.wire import WireReader
from spark_plugin.worker.wire.chunks import chunks
from spark_plugin.worker.wire.counting import Answer, CountingTask

_CHUNK_ROWS = 1 << 18
_CHUNK_BYTES = 64 << 20
"""Events to work on at once."""
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class TransitionTask(CountingTask):
    """Tells transitions and stays of queries and streams, each of which is whole in one partition.

    Parameters
    ----------
    columns : EventColumns
    until : int or None
        The end of the data, ticks; None where there are no events.
    names : tuple of str
        Of the output columns: query, stream, transition as a number, and times in ticks.
    metrics : str or None
        Name of a column to add, null but in one last row: the numbers of `counted`.
    is_measured : bool
        Whether `until` is the largest max_time that planning found: a later one was not there then.
    """

    counted: ClassVar[tuple[str, ...]] = COUNTED

    columns: EventColumns
    until: int | None
    names: tuple[str, ...]
    metrics: str | None = None
    is_measured: bool = False

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, those of one query and stream in order of their first events."""
        reader, watch = WireReader(self.columns), RunningWatch(self.columns, self.until)
        kinds: list[pa.DataType] | None = None
        for table in chunks(batches, _CHUNK_ROWS, _CHUNK_BYTES):
            events = reader.read(table)
            if self.is_measured and len(events):
                self._refuse_later(int(events.crossings.max_time.max()))
            ids = events.ids[: len(self.columns.arguments.ids)]
            kinds = [narrow_type(column.type) for column in ids]
            yield from _answers(watch.take(events), kinds)
        reader.refuse()
        if kinds is None:
            return
        yield from _answers(watch.end(), kinds)
        numbers = [pa.nulls(1, pa.int64())] * (len(self.names) - len(kinds))
        told = {
            **dict.fromkeys(REASONS, 0),
            **reader.dropped,
            **watch.found,
            "events": reader.rows,
            "repeated": watch.repeated,
            "neither": watch.neither,
            "both": watch.both,
            "undecided": watch.undecided,
            "rounded": as_bits(reader.rounded),
        }
        yield [*(pa.nulls(1, kind) for kind in kinds), *numbers], told

    def _refuse_later(self, latest: int) -> None:
        if self.until is None or latest > self.until:
            raise DataError(
                f"{SIDE} has changed since the largest max_time was found: give a fixed version of it, such"
                " as a cached one, or say until= when the data end"
            )


def _answers(parts: Iterable[Decided], kinds: list[pa.DataType]) -> Iterator[Answer]:
    for events, found in parts:
        ids = [Gather(column, kind) for column, kind in zip(events.ids, kinds, strict=False)]
        for start in range(0, found.row.size, _BATCH_ROWS):
            taken = slice(start, start + _BATCH_ROWS)
            row = found.row[taken]
            numbers = [
                found.transition[taken].astype(np.int64),
                *(events.crossings.min_time[row], events.crossings.max_time[row]),
                *(found.min_time[taken], found.max_time[taken]),
            ]
            yield [*(column(row) for column in ids), *map(pa.array, numbers)], None
