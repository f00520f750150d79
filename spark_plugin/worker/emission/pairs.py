"""One row a pair."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from spark_plugin.worker.emission.emission import Emission, MakeBatch
from spark_plugin.worker.emission.rows import Counts


class Pairs(Emission):
    """One row a pair; with ``how="left"`` one for each left event without a partner as well."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._spec.how == "left" and self._spec.pairs_once:
            _ = self._are_alone  # before threads share it
        yield from super().__iter__()

    @cached_property
    def _are_alone(self) -> np.ndarray:
        """Which events of one stream have no other one, by row: bool array."""
        join = self._of_others(self._spec.but(emit="counts", pairs_once=False)).join
        alone = np.empty(len(self._left), bool)
        alone[join.left_order] = join.counts == 0
        return alone

    def _of_others(self, spec: Any) -> Emission:
        """How many others events of one stream have."""
        return Counts(self._left, self._right, spec, pa.schema([]), self._backend)

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        if self._spec.how != "left":
            yield from self._pairs(start, stop)
            return
        counts = self.join.counts[start:stop]
        lonely = np.flatnonzero(counts == 0)
        if self._spec.pairs_once:
            lonely = lonely[self._are_alone[self.join.left_order[start + lonely]]]
        if self._spec.in_order and lonely.size:
            left_rows, right_rows, measured = self._found(start, stop)
            at = self.join.offsets[start + lonely] - self.join.offsets[start]
            lonely = self.join.left_order[start + lonely]
            yield from self._beside_lonely((left_rows, right_rows), measured, lonely, at)
            return
        yield from self._pairs(start, stop)
        yield from self._without_partner(start + lonely)

    def _pairs(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join = self.join
        if join.offsets[start] == join.offsets[stop]:
            return
        if self._direct:
            yield partial(self._direct_batch, start, stop)
            return
        yield from self._matched(*self._found(start, stop))

    def _found(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Left and right rows of pairs, and their measures."""
        join = self.join
        left_rows, right_rows = join.pairs(start, stop, join.left_order, join.right_order)
        return left_rows, right_rows, self._measured(left_rows, right_rows)

    def _direct_batch(self, start: int, stop: int) -> pa.RecordBatch:
        """One plain int64 column a side, such as an id: written by the kernel itself."""
        values = self._left_direct, self._right_direct
        left, right = self.join.pairs(start, stop, *values)
        columns = [self._left_columns[0].wrap(left), self._right_columns[0].wrap(right)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @property
    def _direct(self) -> bool:
        return not self._measures and self._is_plain

    @property
    def _is_plain(self) -> bool:
        """Whether each side has one column, of plain int64."""
        columns = self._left_columns, self._right_columns
        return all(len(side) == 1 and side[0].values is not None for side in columns)

    @property
    def _left_direct(self) -> np.ndarray:
        return self._left_columns[0].ordered(self.join.left_order)

    @property
    def _right_direct(self) -> np.ndarray:
        return self._right_columns[0].ordered(self.join.right_order)
