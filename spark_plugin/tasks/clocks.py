"""A task of clock errors: events by key in, the segments of each key out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.clocks.limits import LimitCounts
from coincide.engine.clocks.rows import ErrorRows
from coincide.engine.events.schemas import one_array
from coincide.engine.reports.metrics import numbers_of
from coincide.model.clocks.errors import STATUSES, Limits
from coincide.model.clocks.events import ClockEvents
from cpu_fallback.clocks import clock_error
from spark_plugin.tasks.counting import CHUNK_BYTES, CHUNK_ROWS, Answer, CountingTask
from spark_plugin.tasks.wire import CODED, TIME, Runs, begins, chunks, is_left


@dataclass(frozen=True)
class ClockTask(CountingTask):
    """Finds the error of each clock, key by key; the first columns of keys have a clock each."""

    counted: ClassVar[tuple[str, ...]] = tuple(numbers_of(LimitCounts()))

    clocks: tuple[str, ...]
    match: tuple[str, ...]
    limits: Limits
    rows: ErrorRows
    names: tuple[str, ...]
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns of each key, once its last row has come; at the end what limits are like."""
        counts, none = LimitCounts(), None
        for columns, count in self._of_keys(batches):
            counts, none = counts + count, [pa.nulls(1, column.type) for column in columns]
            yield columns, None
        if none is not None:
            yield none, numbers_of(counts)

    def _of_keys(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[list[pa.Array], LimitCounts]]:
        held: list[pa.Table] = []
        runs = Runs()
        for table in chunks(batches, CHUNK_ROWS, CHUNK_BYTES):
            keys = [one_array(table.column(name)) for name in self.clocks]
            goes_on = not keys or runs.numbered(keys)[0] == 0
            starts = np.flatnonzero(begins(keys)).tolist() if keys else [0]
            for start, stop in pairwise([*starts, table.num_rows]):
                if held and (start or not goes_on):
                    yield self._answer(pa.concat_tables(held))
                    held = []
                held.append(table.slice(start, stop - start))
        if held:
            yield self._answer(pa.concat_tables(held))

    def _answer(self, table: pa.Table) -> tuple[list[pa.Array], LimitCounts]:
        """The rows of one key, on the wire."""
        is_own, times = (
            is_left(table.column(CODED).to_numpy()), table.column(TIME).to_numpy(),
        )  # fmt: skip
        codes = self._codes(table)
        events = ClockEvents.of(times[is_own], times[~is_own], codes[is_own], codes[~is_own])
        sizes = np.array([[is_own.sum(), (~is_own).sum()]])
        keys = [
            one_array(table.column(name).slice(0, 1)).cast(field.type)
            for name, field in zip(self.clocks, self.rows.keys, strict=True)
        ]
        answer = clock_error(events, self.limits)
        found = self.rows.table(keys, [answer], sizes)
        status = pc.index_in(found["status"], value_set=pa.array(STATUSES)).cast(pa.int64())
        found = found.set_column(found.schema.get_field_index("status"), "status", status)
        columns = [_on_the_wire(one_array(column)) for column in found.columns]
        return columns, LimitCounts.of(answer, self.limits)

    def _codes(self, table: pa.Table) -> np.ndarray:
        """Numbers from 0 on of what is equal in a pair: int64 array, shape (n,)."""
        codes = np.zeros(table.num_rows, np.int64)
        for name in self.match:
            column = one_array(table.column(name))
            values = pc.dictionary_encode(column)
            codes = codes * len(values.dictionary) + values.indices.to_numpy()
            codes = np.unique(codes, return_inverse=True)[1]
        return codes


def _on_the_wire(column: pa.Array) -> pa.Array:
    """Times and durations as their ticks."""
    is_time = pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)
    return column.view(pa.int64()) if is_time else column
