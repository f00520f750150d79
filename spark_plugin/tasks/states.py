"""The second step of aggregates whose left side was broadcast: the states of each left event as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.engine.join.aggregate_states import Together
from coincide.engine.join.spec import AnySpec
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.wire import chunks

_ROWS, _BYTES = 1 << 15, 32 << 20
"""Rows of states at once, which are more where one left event has more."""


@dataclass(frozen=True)
class StatesTask:
    """Gets rows of states in the order of their left events, each whole in a partition."""

    spec: AnySpec
    kinds: tuple[pa.DataType, ...]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through one partition.

        Yields
        ------
        pa.RecordBatch
            Left events, each once, and their aggregates in wire types.
        """
        merging, rest = Together(self.spec, self.kinds), None
        for chunk in chunks(begin_task(batches), _ROWS, _BYTES):
            table = chunk if rest is None else pa.concat_tables([rest, chunk])
            last = _begins(table)[-1]
            if last:
                yield self._aggregates(merging, table.slice(0, last))
            # More rows of the last event may come.
            rest = table.slice(last)
        if rest is not None:
            yield self._aggregates(merging, rest)

    def _aggregates(self, merging: Together, table: pa.Table) -> pa.RecordBatch:
        begins = _begins(table)
        events = pa.array(table.column(0).to_numpy()[begins])
        found = merging.of(np.append(begins, table.num_rows), table.drop_columns(self.names[0]))
        return pa.RecordBatch.from_arrays([events, *found], names=list(self.names))


def _begins(table: pa.Table) -> np.ndarray:
    """Where each left event begins: int64 array."""
    events = table.column(0).to_numpy()
    return np.flatnonzero(np.append(True, events[1:] != events[:-1]))
