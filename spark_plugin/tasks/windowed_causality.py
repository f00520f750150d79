"""A task of windowed causality: tuples by key and arrival in, pairs out; a window for each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import narrow_type, one_array
from coincide.engine.events.sides import SideCounts
from coincide.engine.windowed_causality.arguments import WindowArguments
from coincide.engine.windowed_causality.reading import WindowColumns
from coincide.engine.windowed_causality.reports import COUNTED, counted
from coincide.engine.windowed_causality.window import WindowedCausality, output_kinds
from spark_plugin.tasks.counting import Answer, CountingTask
from spark_plugin.tasks.wire import Runs, chunks

_CHUNK_ROWS = 1 << 18
_CHUNK_BYTES = 64 << 20
"""Tuples to read at once."""
_PAIRS_AT_ONCE = 1 << 22
"""So many pairs are in memory at most, or those of one tuple."""


@dataclass(frozen=True)
class WindowTask(CountingTask):
    """Finds the pairs of keys, each of which is whole in one partition, its tuples in order of arrival.

    Nothing is kept of a key once the next one begins.
    """

    counted: ClassVar[tuple[str, ...]] = COUNTED

    arguments: WindowArguments
    keys: int
    given: tuple[str, ...]
    names: tuple[str, ...]
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, key by key, in order of the tuple that came last."""
        window, runs = WindowedCausality.of(self.arguments), Runs()
        kinds: list[pa.DataType] = []
        keyless = SideCounts()
        for table in chunks(batches, _CHUNK_ROWS, _CHUNK_BYTES):
            kinds = self._kinds(table.schema)
            has_key = self._has_key(table)
            if has_key is not None:
                lost = self._tuples(table.filter(pc.invert(has_key)))
                keyless += WindowColumns(lost.schema, self.arguments).unmatchable(lost)
                table = table.filter(has_key)
            for columns in self._pairs(window, runs, table):
                yield [_cast(*each) for each in zip(columns, kinds, strict=True)], None
        if not kinds:
            return
        window.flush()
        told = window.summary()
        told = replace(told, rows=told.rows + keyless)
        yield [pa.nulls(1, kind) for kind in kinds], counted(told)

    def _kinds(self, schema: pa.Schema) -> list[pa.DataType]:
        """Types of the output columns."""
        kinds = [narrow_type(kind) for kind in schema.types]
        payload = [kinds[self.keys + self.given.index(name)] for name in self.arguments.payload]
        return [*kinds[: self.keys], *output_kinds(payload)][: len(self.names)]

    def _has_key(self, table: pa.Table) -> pa.ChunkedArray | None:
        """In which rows no key is null; None: in all."""
        keys = [table.column(k) for k in range(self.keys) if table.column(k).null_count]
        return reduce(pc.and_, map(pc.is_valid, keys)) if keys else None

    def _tuples(self, table: pa.Table) -> pa.Table:
        columns = table.select(range(self.keys, table.num_columns))
        return columns.rename_columns(list(self.given))

    def _pairs(
        self, window: WindowedCausality, runs: Runs, table: pa.Table
    ) -> Iterator[list[pa.Array]]:
        if not table.num_rows:
            return
        keys = [one_array(table.column(k)) for k in range(self.keys)]
        tuples, most = self._tuples(table), self._tuples_at_once
        numbers = runs.numbered(keys)
        begins = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [numbers.size]])
        for start, stop in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            if numbers[start]:  # 0 goes on from the chunk before
                window.flush()
            for at in range(start, stop, most):
                found = window.take(tuples.slice(at, min(most, stop - at)))
                for batch in found.to_batches():
                    own = [pa.repeat(key[start], batch.num_rows) for key in keys]
                    yield [*own, *batch.columns]

    @property
    def _tuples_at_once(self) -> int:
        """Each may meet the whole window."""
        return max(1, _PAIRS_AT_ONCE // self.arguments.options.window)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
