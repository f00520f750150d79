"""What runs in Spark's Python worker: gathers one slice, joins it, yields Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from event_model.results import JoinCounters
from spark_plugin.devices import load_task_backend, release_gpu
from spark_plugin.emission import Emission, JoinSpec, output_schema
from spark_plugin.import_caches import forget_archive_finders
from spark_plugin.sides import Side
from spark_plugin.wire import CODED, TIME, UNMATCHED, WireLayout, is_left, right_lengths


@dataclass(frozen=True)
class SliceTask:
    """The function of the `mapInArrow` stage: every partition is one slice.

    Spark may call it with any batch boundaries, again after a failure, or not at all for an empty
    partition: the answer depends on the rows alone.

    Parameters
    ----------
    spec : JoinSpec
    layout : WireLayout
    names : tuple of str
        Names of the output columns: keys, left columns, right columns and what follows them.
    metrics : str or None
        Name of a column to add, null but in one last row: candidates, probed, pairs.
    """

    spec: JoinSpec
    layout: WireLayout
    names: tuple[str, ...]
    metrics: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join the rows of one partition.

        Yields
        ------
        pa.RecordBatch
            Columns in wire types, in the order of `spark_plugin.emission.output_schema`.
        """
        forget_archive_finders()
        try:
            yield from self._joined(batches)
        finally:
            release_gpu()

    def _joined(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered = list(batches)
        if not gathered:
            return
        table = pa.Table.from_batches(gathered)
        del gathered
        schema = self._schema(table.schema)
        left, right = self._sides(table)
        del table
        emission = Emission(left, right, self.spec, schema, load_task_backend(self.spec.backend))
        for batch in emission:
            named = batch.rename_columns(list(self.names))
            yield named if self.metrics is None else self._with_null_metrics(named)
        if self.metrics is not None:
            yield self._metrics_row(schema, emission.counters)

    def _schema(self, wire: pa.Schema) -> pa.Schema:
        layout = self.layout
        groups = [
            [pa.field(f"{prefix}{i}", wire.field(name).type) for i, name in enumerate(names)]
            for prefix, names in (
                ("by", layout.keys),
                ("left", layout.left),
                ("right", layout.right),
            )
        ]
        return output_schema(self.spec, *groups)

    def _sides(self, table: pa.Table) -> tuple[Side, Side]:
        coded = table.column(CODED).to_numpy()
        left = is_left(coded)
        return self._side(table, coded, left, True), self._side(table, coded, ~left, False)

    def _side(self, table: pa.Table, coded: np.ndarray, mask: np.ndarray, is_base: bool) -> Side:
        rows = np.flatnonzero(mask)
        picked = pa.array(rows)

        def column(name: str) -> pa.Array:
            taken = table.column(name).combine_chunks()
            return taken.take(picked)

        latest = column(TIME).to_numpy()
        lengths = coded[rows]
        matchable = None
        if not is_base:
            lengths = right_lengths(lengths)
        elif lengths.size and lengths.min() == UNMATCHED:
            matchable = lengths != UNMATCHED
            lengths = np.where(matchable, lengths, 0)
        payload = self.layout.left if is_base else self.layout.right
        return Side(
            latest - lengths,
            latest,
            matchable,
            [column(name) for name in self.layout.keys],
            [column(name) for name in payload],
        )

    def _with_null_metrics(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        nulls = pa.nulls(batch.num_rows, pa.list_(pa.int64()))
        return pa.RecordBatch.from_arrays(
            [*batch.columns, nulls], names=[*batch.schema.names, self.metrics]
        )

    def _metrics_row(self, schema: pa.Schema, counters: JoinCounters) -> pa.RecordBatch:
        values = [counters.candidates, counters.probed, counters.pairs]
        arrays = [pa.nulls(1, field.type) for field in schema]
        metrics = pa.array([values], pa.list_(pa.int64()))
        return pa.RecordBatch.from_arrays([*arrays, metrics], names=[*self.names, self.metrics])
