"""The k best partners of each left event, by any preference, chosen among the pairs that were found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from coincide.sides import RIGHT
from cpu_fallback.join.choosing import least_of_each
from spark_plugin.worker.emission.emission import Emission, MakeBatch
from spark_plugin.worker.emission.order import PairOrder

RUN_PAIRS = 1 << 17


class Chosen(Emission):
    """Up to k rows per left event: its best partners, the best one first."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._order.prepared(RIGHT)  # before threads share it
        return super().__iter__()

    def _runs(self) -> Iterable[tuple[int, int]]:
        # Of so few pairs that what is computed of them stays in the processor's cache.
        return self.join.chunks(min(self._batch_pairs, RUN_PAIRS))

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join, spec = self.join, self._spec
        k = spec.partners.k
        rows = join.pairs(start, stop, join.left_order, join.right_order)
        offsets = join.offsets[start : stop + 1] - join.offsets[start]
        few = np.flatnonzero(least_of_each(offsets, self._order.leading(rows), k))
        rows = rows[0][few], rows[1][few]
        best, ranks = self._order.best(rows, RIGHT, k)
        rows = rows[0][best], rows[1][best]
        ranked = [ranks] if "rank" in spec.measures else []
        order = join.left_order[start:stop]
        lonely = np.flatnonzero(join.counts[start:stop] == 0) if spec.how == "left" else few[:0]
        measured = self._measured(*rows) + ranked
        yield from self._beside_lonely(
            rows, measured, order[lonely], np.searchsorted(rows[0], order[lonely])
        )

    def _measured(self, left_rows: np.ndarray, right_rows: np.ndarray) -> list[np.ndarray]:
        measured = super()._measured(left_rows, right_rows)
        if "preferred" in self._spec.measures:
            measured.append(self._order.preferred((left_rows, right_rows)))
        return measured

    @cached_property
    def _order(self) -> PairOrder:
        return PairOrder(self._left, self._right, self._spec, self._probabilities)
