"""What a task counts, and the invalid rows that it refuses or leaves out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from coincide.engine.backends import release_gpu
from coincide.engine.events.invalid_rows import SideCounts, example_text
from coincide.engine.events.schemas import one_array
from coincide.engine.reports.metrics import numbers_of
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.wire import chunks

Answer = tuple[list[pa.Array], Mapping[str, int] | None]
"""Output columns, and the numbers of `CountingTask.counted` next to a last row of nulls."""


class CountingTask(ABC):
    """The function of a `mapInArrow` stage.

    Spark may call it with any batch boundaries, and again after a failure: the answer depends on the rows
    alone.

    Attributes
    ----------
    counted : tuple of str
        Names of the numbers that it tells, which Spark adds up.
    names : tuple of str
        Those of the output columns.
    metrics : str or None
        Name of a column to add, null but in one last row: the numbers of `counted`, and how many rows
        came before it. It is missing where a task is stopped, as for ``limit``.
    """

    names: tuple[str, ...]
    metrics: str | None

    @property
    @abstractmethod
    def counted(self) -> tuple[str, ...]:
        """Names of the numbers that it tells."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through one partition.

        Yields
        ------
        pa.RecordBatch
            Columns in wire types, in the order of `names`.
        """
        batches, given = begin_task(batches), 0
        try:
            for columns, told in self.answers(batches):
                if told is None:
                    given += len(columns[0])
                    yield self._named(columns, None)
                elif self.metrics is not None:
                    yield self._named(columns, [*(told[name] for name in self.counted), given])
                    given = 0
        finally:
            release_gpu()

    @abstractmethod
    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, batch by batch, and at the end a row of nulls with what was counted."""

    def _named(self, columns: list[pa.Array], numbers: list[int] | None) -> pa.RecordBatch:
        if self.metrics is None:
            return pa.RecordBatch.from_arrays(columns, names=list(self.names))
        kind, count = pa.list_(pa.int64()), len(columns[0])
        values = pa.nulls(count, kind) if numbers is None else pa.array([numbers], kind)
        return pa.RecordBatch.from_arrays([*columns, values], names=[*self.names, self.metrics])


CHUNK_ROWS = 1 << 18
CHUNK_BYTES = 64 << 20
"""Rows to work on at once."""


class KeyWork(ABC):
    """The work of a `KeyTask` in one partition.

    Attributes
    ----------
    kinds : list of pa.DataType
        Types of the output columns.
    """

    kinds: list[pa.DataType]

    @abstractmethod
    def take(self, table: pa.Table) -> Iterable[list[pa.Array]]:
        """The output columns that the next rows make known."""

    @abstractmethod
    def end(self) -> Iterable[list[pa.Array]]:
        """Those that the end of the rows makes known."""

    @abstractmethod
    def summary(self) -> Any:
        """What was found, which `numbers_of` turns into numbers."""


class KeyTask(CountingTask):
    """Works through keys, each whole in one partition and in order; none is kept once the next begins."""

    @abstractmethod
    def work(self, schema: pa.Schema) -> KeyWork:
        """What takes rows of a schema."""

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, key by key."""
        work = None
        for table in chunks(batches, CHUNK_ROWS, CHUNK_BYTES):
            work = work or self.work(table.schema)
            for columns in work.take(table):
                yield columns, None
        if work is not None:
            for columns in work.end():
                yield columns, None
            yield [pa.nulls(1, kind) for kind in work.kinds], numbers_of(work.summary())


@dataclass(frozen=True)
class TellingTask:
    """A task that tells of a partition without rows, too, whose types it has not learnt."""

    task: CountingTask
    kinds: tuple[pa.DataType, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through one partition."""
        has_told = False
        for batch in self.task(batches):
            metrics = batch.column(batch.num_columns - 1)
            has_told |= metrics.null_count < len(metrics)
            yield batch
        if not has_told:
            zeros = pa.array([[0] * (len(self.task.counted) + 1)], self.kinds[-1])
            nothing = [pa.nulls(1, kind) for kind in self.kinds[:-1]]
            names = [*self.task.names, str(self.task.metrics)]
            yield pa.RecordBatch.from_arrays([*nothing, zeros], names=names)


ROUNDED, EXAMPLE = "rounded", "example"
"""Names of columns: the change of a row's times by rounding them, if they were floats; and where an invalid
row is refused, what it was in words."""


class FaultyRows(ABC):
    """Takes the invalid rows, whose column holds a code from `first` on, out of chunks, and counts them."""

    # All that are to be refused come first, and in one partition.

    def __init__(self, column: str, first: int) -> None:
        self._column, self._first = column, first
        self._rows, self._rounded = 0, 0.0
        self.codes: dict[int, int] = {}  # invalid rows by code
        self.examples: dict[int, str] = {}  # one of each, in words

    @abstractmethod
    def reason(self, code: int) -> str:
        """What is wrong with a row of some code, in a word."""

    @abstractmethod
    def refuse(self) -> None:
        """Raise if some that were read are to be refused: to be called at the end, too."""

    @property
    def counts(self) -> SideCounts:
        """What the rows up to here were."""
        dropped: dict[str, int] = {}
        for code, count in self.codes.items():
            reason = self.reason(code)
            dropped[reason] = dropped.get(reason, 0) + count
        return SideCounts(self._rows, 0, dropped, self._rounded)

    def valid(self, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """The valid rows of a chunk, and what their column of codes holds; raises what is to be refused."""
        self._rows += table.num_rows
        values = one_array(table.column(self._column)).to_numpy()
        wrong = values >= self._first
        if wrong.any():
            self._count(table, values[wrong] - self._first, np.flatnonzero(wrong))
            table, values = table.filter(pa.array(~wrong)), values[~wrong]
        if values.size:
            self.refuse()
            if ROUNDED in table.column_names:
                change = one_array(table.column(ROUNDED)).to_numpy().max()
                self._rounded = max(self._rounded, float(change))
        return table, values

    def _count(self, table: pa.Table, codes: np.ndarray, rows: np.ndarray) -> None:
        found = np.unique(codes, return_index=True, return_counts=True)
        for code, first, count in zip(*map(np.ndarray.tolist, found), strict=True):
            self.codes[code] = self.codes.get(code, 0) + count
            if EXAMPLE in table.column_names:
                words = table.column(EXAMPLE)[int(rows[first])].as_py()
                if words is not None:  # told of rows that are refused, and not of those left out
                    self.examples.setdefault(code, example_text(words))


C = TypeVar("C")
"""What the columns of rows mean."""


def valid_rows(kind: Callable[[C], FaultyRows], columns: C, table: pa.Table) -> pa.Table:
    """The valid rows of a chunk that comes alone; raises what is to be refused."""
    rows = kind(columns)
    found, _ = rows.valid(table)
    rows.refuse()
    return found
