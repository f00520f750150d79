"""A task of spans by key: the rows of its keys in, and what a sweep of tables makes of them out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import one_array
from coincide.model.errors import CoincideWarning
from spark_plugin.tasks.counting import Answer, CountingTask
from spark_plugin.tasks.wire import on_the_wire

SIDE, PARTITION = "side", "part"
"""Columns on the wire: 0 of rows of the first table, 1 of the second; the number of the task."""
_TASK_BITS = 33
"""Rows of a task have smaller numbers."""


@dataclass(frozen=True)
class SweepTask(CountingTask):
    """Calls a function of tables with the rows of a partition, which has whole keys."""

    counted: ClassVar[tuple[str, ...]] = ()

    function: Callable[..., pa.Table]
    arguments: dict[str, Any]
    tables: tuple[pa.Schema, ...]  # As the function takes them
    wires: tuple[tuple[str, ...], ...]  # What their columns are called on the wire
    names: tuple[str, ...]
    kinds: tuple[pa.DataType, ...]  # On the wire
    numbered: str | None  # A column of numbers that are to differ between tasks
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns of all keys of a partition."""
        held = list(batches)
        if not any(batch.num_rows for batch in held):
            return
        rows = pa.Table.from_batches(held)
        given = [
            self._table(rows.filter(pc.equal(rows[SIDE], i)), i) for i in range(len(self.tables))
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoincideWarning)  # a worker's are not seen
            found = self.function(*given, **self.arguments)
        columns = [
            on_the_wire(name, one_array(column), kind)
            for name, column, kind in zip(self.names, found.columns, self.kinds, strict=True)
        ]
        if self.numbered is not None:
            place = self.names.index(self.numbered)
            first = rows[PARTITION][0].as_py() << _TASK_BITS
            columns[place] = pc.add(columns[place], pa.scalar(first, pa.int64()))
        yield columns, None

    def _table(self, rows: pa.Table, side: int) -> pa.Table:
        schema = self.tables[side]
        columns = [
            _off_the_wire(one_array(rows[wire]), field.type)
            for wire, field in zip(self.wires[side], schema, strict=True)
        ]
        return pa.table(columns, schema=schema)


def _off_the_wire(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in its own type: times and dates cross as whole numbers."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return column.view(kind)
    if pa.types.is_date(kind):
        return column.cast(pa.int32()).view(kind)
    return column.cast(kind)
