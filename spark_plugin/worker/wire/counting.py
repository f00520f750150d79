"""What runs in Spark's Python worker, whatever the operator: Arrow batches, and what was counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from spark_plugin.worker.backends.devices import release_gpu
from spark_plugin.worker.wire.reuse import begin_task

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
    """A task that tells of a partition without rows, too, of which it has learnt no types.

    Parameters
    ----------
    task : CountingTask
        With `metrics`.
    kinds : tuple of pa.DataType
        Of all columns that it gives.
    """

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
