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

from coincide.engine.events.schemas import narrow_type, one_array
from coincide.engine.events.sides import SideCounts
from coincide.engine.windowed_causality.arguments import WindowArguments
from coincide.engine.windowed_causality.reports import COUNTED, WindowSummary
from coincide.engine.windowed_causality.window import WindowColumns, WindowedCausality, output_kinds
from spark_plugin.tasks.counting import KeyTask, KeyWork
from spark_plugin.tasks.wire import Runs

_PAIRS_AT_ONCE = 1 << 22
"""So many pairs are in memory at most, or those of one tuple."""


@dataclass(frozen=True)
class WindowTask(KeyTask):
    """Finds the pairs of keys, by the tuple that came last; `given` names all but the key columns."""

    counted: ClassVar[tuple[str, ...]] = COUNTED

    arguments: WindowArguments
    keys: int
    given: tuple[str, ...]
    names: tuple[str, ...] = ()
    metrics: str | None = None

    def work(self, schema: pa.Schema) -> KeyWork:
        """What takes tuples."""
        return _WindowWork(self, schema)


class _WindowWork(KeyWork):
    """Takes tuples by key and arrival."""

    def __init__(self, task: WindowTask, schema: pa.Schema) -> None:
        self._task, self._arguments = task, task.arguments
        self._window, self._runs = WindowedCausality(**vars(task.arguments)), Runs()
        self._keyless = SideCounts()
        kinds = [narrow_type(kind) for kind in schema.types]
        payload = [kinds[task.keys + task.given.index(name)] for name in self._arguments.payload]
        self.kinds = [*kinds[: task.keys], *output_kinds(payload)][: len(task.names)]

    def take(self, table: pa.Table) -> Iterator[list[pa.Array]]:
        nulls = [table.column(k) for k in range(self._task.keys) if table.column(k).null_count]
        if nulls:
            has_key = reduce(pc.and_, map(pc.is_valid, nulls))
            lost = self._tuples(table.filter(pc.invert(has_key)))
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

    def _tuples(self, table: pa.Table) -> pa.Table:
        columns = table.select(range(self._task.keys, table.num_columns))
        return columns.rename_columns(list(self._task.given))

    def _pairs(self, table: pa.Table) -> Iterator[list[pa.Array]]:
        if not table.num_rows:
            return
        keys = [one_array(table.column(k)) for k in range(self._task.keys)]
        # Each tuple may meet the whole window.
        tuples, most = self._tuples(table), max(1, _PAIRS_AT_ONCE // self._arguments.options.window)
        numbers = self._runs.numbered(keys)
        begins = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [numbers.size]])
        for start, stop in pairwise(begins.tolist()):
            if numbers[start]:  # 0 goes on from the chunk before
                self._window.flush()
            for at in range(start, stop, most):
                found = self._window.take(tuples.slice(at, min(most, stop - at)))
                for batch in found.to_batches():
                    own = [pa.repeat(key[start], batch.num_rows) for key in keys]
                    yield [*own, *batch.columns]


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
