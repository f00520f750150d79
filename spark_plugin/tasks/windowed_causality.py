"""A task of windowed causality: tuples by key and arrival in, pairs out; a window for each key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.schemas import narrow_type, one_array
from coincide.engine.windowed_causality.arguments import WindowArguments
from coincide.engine.windowed_causality.reports import COUNTED, WindowSummary
from coincide.engine.windowed_causality.window import WindowColumns, WindowedCausality, output_kinds
from spark_plugin.tasks.counting import KeyTask, KeyWork
from spark_plugin.tasks.wire import Runs

_PAIRS_AT_ONCE = 1 << 22
"""Most pairs that are in memory, or those of one tuple."""


@dataclass(frozen=True)
class KeyedTuples:
    """Columns of tuples on the wire: those of keys come first, then `given`, and others."""

    arguments: WindowArguments
    keys: int
    given: tuple[str, ...]  # what the arguments call them
    order: tuple[str, ...] = ()  # columns on the wire, by which tuples of a key are in order

    def keys_of(self, table: pa.Table) -> list[pa.Array]:
        """The keys of rows."""
        return [one_array(table.column(k)) for k in range(self.keys)]

    def tuples(self, table: pa.Table) -> pa.Table:
        """Rows as their window takes them."""
        columns = table.select(range(self.keys, self.keys + len(self.given)))
        return columns.rename_columns(list(self.given))

    def pairs(self, window: WindowedCausality, table: pa.Table) -> Iterator[list[pa.Array]]:
        """The output columns that rows of one key make known, in order of arrival."""
        # Each tuple may meet the whole window.
        most = max(1, _PAIRS_AT_ONCE // self.arguments.options.window)
        tuples, own = self.tuples(table), [table.column(k)[0] for k in range(self.keys)]
        for at in range(0, table.num_rows, most):
            for batch in window.take(tuples.slice(at, most)).to_batches():
                yield [*(pa.repeat(key, batch.num_rows) for key in own), *batch.columns]


@dataclass(frozen=True)
class WindowTask(KeyTask):
    """Finds the pairs of keys, by the tuple that came last."""

    counted: ClassVar[tuple[str, ...]] = COUNTED

    columns: KeyedTuples
    names: tuple[str, ...] = ()
    metrics: str | None = None

    def work(self, schema: pa.Schema) -> KeyWork:
        """What takes tuples."""
        return _WindowWork(self, schema)


class _WindowWork(KeyWork):
    """Takes tuples by key and arrival."""

    def __init__(self, task: WindowTask, schema: pa.Schema) -> None:
        self._columns, self._arguments = task.columns, task.columns.arguments
        self._window, self._runs = WindowedCausality(**vars(self._arguments)), Runs()
        self._keyless = SideCounts()
        kinds, keys = [narrow_type(kind) for kind in schema.types], self._columns.keys
        payload = [kinds[keys + self._columns.given.index(n)] for n in self._arguments.payload]
        self.kinds = [*kinds[:keys], *output_kinds(payload)][: len(task.names)]

    def take(self, table: pa.Table) -> Iterator[list[pa.Array]]:
        nulls = [key for key in self._columns.keys_of(table) if key.null_count]
        if nulls:
            has_key = reduce(pc.and_, map(pc.is_valid, nulls))
            lost = self._columns.tuples(table.filter(pc.invert(has_key)))
            self._keyless += WindowColumns(lost.schema, self._arguments).unmatchable(lost)
            table = table.filter(has_key)
        for columns in self._pairs(table):
            yield [_cast(*each) for each in zip(columns, self.kinds, strict=True)]

    def end(self) -> Iterator[list[pa.Array]]:
        self._window.flush()
        return iter(())

    def summary(self) -> WindowSummary:
        told = self._window.summary()
        return replace(told, rows=told.rows + self._keyless)

    def _pairs(self, table: pa.Table) -> Iterator[list[pa.Array]]:
        if not table.num_rows:
            return
        numbers = self._runs.numbered(self._columns.keys_of(table))
        begins = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [numbers.size]])
        for start, stop in pairwise(begins.tolist()):
            if numbers[start]:  # 0 goes on from the chunk before
                self._window.flush()
            yield from self._columns.pairs(self._window, table.slice(start, stop - start))


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
