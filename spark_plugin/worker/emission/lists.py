"""One row per left event, its partners in lists."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from coincide.errors import MemoryBudgetError
from spark_plugin.worker.arrow import row_sizes
from spark_plugin.worker.arrow.row_sizes import cuts
from spark_plugin.worker.emission.emission import Emission, MakeBatch


class Lists(Emission):
    """One row per left event, its partners in lists."""

    in_lists = True

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        yield from self._lists(start, stop, self.join.counts[start:stop])

    def _lists(self, start: int, stop: int, counts: np.ndarray) -> Iterator[MakeBatch]:
        join, kept = self.join, self._kept(counts)
        if kept.size == 0:
            return
        bounds = np.concatenate([[0], np.cumsum(counts[kept])])
        if bounds[-1] > row_sizes.ARRAY_BYTES:
            if stop - start == 1:
                raise MemoryBudgetError(
                    f"one left event has {bounds[-1]} partners, more than a list can hold; use emit='pairs'"
                )
            middle = (start + stop) // 2
            yield from self._lists(start, middle, counts[: middle - start])
            yield from self._lists(middle, stop, counts[middle - start :])
            return
        columns = self._right_columns
        if len(columns) == 1 and columns[0].values is not None and not self._measures:
            values = columns[0].wrap(
                join.partners(start, stop, columns[0].ordered(join.right_order))
            )
            yield from self._rows(start + kept, [_lists_of(bounds, values)])
            return
        right_rows = join.partners(start, stop, join.right_order)
        measured: list[np.ndarray] = []
        if self._measures:
            left_rows = np.repeat(join.left_order[start:stop], counts)
            measured = self._measured(left_rows, right_rows)
        rows = join.left_order[start + kept]
        for part in self._cut_lists(rows, right_rows, bounds):
            ends = bounds[part.start : part.stop + 1]
            yield partial(self._list_batch, rows[part], ends, right_rows, measured)

    def _cut_lists(
        self, rows: np.ndarray, right_rows: np.ndarray, bounds: np.ndarray
    ) -> Iterator[slice]:
        """Left events with their lists, in batches of bounded size."""
        own, partners = self._sizes
        if partners is None:
            yield from self._cut(rows)
            return
        before = np.concatenate([[0], np.cumsum(partners[right_rows] + 1)])
        sizes = np.diff(before[bounds])
        if own is not None:
            sizes += own[rows]
        yield from (slice(*cut) for cut in cuts(sizes, rows.size, row_sizes.BATCH_BYTES))

    def _list_batch(
        self,
        rows: np.ndarray,
        bounds: np.ndarray,
        right_rows: np.ndarray,
        measured: list[np.ndarray],
    ) -> pa.RecordBatch:
        inside = slice(bounds[0], bounds[-1])
        values = [column.list_of(right_rows[inside]) for column in self._right_columns]
        values += [pa.array(each[inside]) for each in measured]
        return self._batch(rows, [_lists_of(bounds - bounds[0], value) for value in values])


def _lists_of(bounds: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values)
