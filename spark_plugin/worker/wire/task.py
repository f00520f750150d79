"""What runs in Spark's Python worker, whatever the way: joins in, Arrow batches in wire types out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

import pyarrow as pa

from coincide.results import JoinCounters
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.wide_columns import narrow_type
from spark_plugin.worker.backends.devices import load_task_backend, release_gpu
from spark_plugin.worker.emission import emission_of
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.emission.spec import JoinSpec, output_schema
from spark_plugin.worker.reports.metrics import COUNTERS, with_metrics
from spark_plugin.worker.wire.columns import WireLayout
from spark_plugin.worker.wire.reuse import begin_task


@dataclass(frozen=True)
class WireTask(ABC):
    """The function of a `mapInArrow` stage.

    Spark may call it with any batch boundaries, again after a failure, or not at all for an empty
    partition: the answer depends on the rows alone.

    Parameters
    ----------
    spec : JoinSpec
    layout : WireLayout
    names : tuple of str
        Names of the output columns: keys, left columns, right columns and what follows them.
    metrics : str or None
        Name of a column to add, null but in one last row: the numbers of `counted`.
    """

    counted: ClassVar[tuple[str, ...]] = COUNTERS
    """Names of what tasks count."""

    spec: JoinSpec
    layout: WireLayout
    names: tuple[str, ...]
    metrics: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join the rows of one partition.

        Yields
        ------
        pa.RecordBatch
            Columns in wire types, in the order of `names`.
        """
        begin_task()
        try:
            yield from self._joined(batches)
        finally:
            release_gpu()

    @abstractmethod
    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """The joins of one partition, one after the other."""

    def finished(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The output columns, from a batch of an emission."""
        return batch.columns

    def joined(self, left: Side, right: Side) -> Emission:
        """The join of two sides, in columns of the types in which theirs came.

        Those of Spark have short offsets, unless it is told otherwise, and it takes such ones always.
        """
        fields = [
            [pa.field(f"{name}{i}", narrow_type(column.type)) for i, column in enumerate(columns)]
            for name, columns in (
                ("by", left.keys),
                ("left", left.payload),
                ("right", right.payload),
            )
        ]
        schema = output_schema(self.spec, *fields)
        return emission_of(left, right, self.spec, schema, load_task_backend(self.spec.backend))

    def _joined(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counters, schema = JoinCounters(), None
        for emission in self.emissions(batches):
            schema = emission.schema
            for batch in emission:
                yield self._named(self.finished(batch), None)
            counters += emission.counters
        if self.metrics is not None and schema is not None:
            nothing = self.finished(pa.RecordBatch.from_pylist([], schema=schema))
            nulls = [pa.nulls(1, column.type) for column in nothing]
            yield self._named(nulls, asdict(counters))

    def _named(self, columns: list[pa.Array], told: Mapping[str, int] | None) -> pa.RecordBatch:
        return with_metrics(columns, self.names, self.metrics, told)
