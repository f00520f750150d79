"""What a task counts, and the invalid rows that it refuses or leaves out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.backends import release_gpu
from coincide.engine.events.schemas import one_array
from coincide.engine.events.sides import example_text
from spark_plugin.tasks.connection import begin_task

Answer = tuple[list[pa.Array], Mapping[str, int] | None]
"""Output columns, and the numbers of `CountingTask.counted` beside a last row of nulls."""


class CountingTask(ABC):
    """The function of a `mapInArrow` stage.

    Spark may call it with any batch boundaries, and again after a failure: the answer depends on the rows
    alone.

    Attributes
    ----------
    counted : tuple of str
        Names of the numbers that it tells, which Spark adds up.
    names : tuple of str
        Of the output columns.
    metrics : str or None
        Name of a column to add, null but in one last row: the numbers of `counted`, and how many rows
        came before it. Of a task that is stopped, as for ``limit``, it is missing.
    """

    counted: ClassVar[tuple[str, ...]]
    names: tuple[str, ...]
    metrics: str | None

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


@dataclass(frozen=True)
class TellingTask:
    """A task that tells of a partition without rows, too, of which it has learnt no types."""

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
    """Takes the invalid rows out of the chunks of one partition, and knows how many they are.

    All that are to be refused come first, and in one partition.

    Parameters
    ----------
    column : str
        Of int64, in which the codes of invalid rows are.
    first : int
        In place of the value of an invalid row stands its code, counted from here.

    Attributes
    ----------
    rows : int
        All that came.
    rounded : float
        The largest change of a time.
    counts : dict of int to int
        Invalid rows by code.
    examples : dict of int to str
        One of each, in words.
    """

    def __init__(self, column: str, first: int) -> None:
        self._column, self._first = column, first
        self.rows, self.rounded = 0, 0.0
        self.counts: dict[int, int] = {}
        self.examples: dict[int, str] = {}

    @abstractmethod
    def refuse(self) -> None:
        """Raise if some that were read are to be refused: to be called at the end, too."""

    def valid(self, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """The valid rows of a chunk, and what their column of codes holds.

        Raises
        ------
        DataError
            If rows up to here are to be refused.
        """
        self.rows += table.num_rows
        values = one_array(table.column(self._column)).to_numpy()
        wrong = values >= self._first
        if wrong.any():
            self._count(table, values[wrong] - self._first, np.flatnonzero(wrong))
            table, values = table.filter(pa.array(~wrong)), values[~wrong]
        if values.size:
            self.refuse()
            if ROUNDED in table.column_names:
                change = one_array(table.column(ROUNDED)).to_numpy().max()
                self.rounded = max(self.rounded, float(change))
        return table, values

    def _count(self, table: pa.Table, codes: np.ndarray, rows: np.ndarray) -> None:
        found = np.unique(codes, return_index=True, return_counts=True)
        for code, first, count in zip(*map(np.ndarray.tolist, found), strict=True):
            self.counts[code] = self.counts.get(code, 0) + count
            if EXAMPLE in table.column_names:
                words = table.column(EXAMPLE)[int(rows[first])].as_py()
                if words is not None:  # told of rows that are refused, and not of those left out
                    self.examples.setdefault(code, example_text(words))
