"""One row per left event, with its most probable partner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from coincide.results import JoinCounters
from spark_plugin.worker.arrow.sides import tie_ranks
from spark_plugin.worker.emission.emission import Emission, MakeBatch

_BEST_ROWS = 1 << 14


class Best(Emission):
    """One row per left event, with its most probable partner."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        _ = self._ranks, self._best_counters  # made before threads share them
        return super().__iter__()

    @cached_property
    def _best_counters(self) -> list[JoinCounters]:
        return []

    @property
    def counters(self) -> JoinCounters:
        """As of every `Emission`."""
        return sum(self._best_counters, JoinCounters())

    def _runs(self) -> Iterable[tuple[int, int]]:
        # A burst has very many candidates: no thread works on one run for long.
        return self._even_runs(min(self._spec.batch_pairs, _BEST_ROWS))

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join, spec = self.join, self._spec
        best, _, counters = join.best(start, stop, self._ranks)
        self._best_counters.append(counters)
        found = np.flatnonzero(best >= 0)
        pairs = join.left_order[start + found], join.right_order[best[found]]
        lonely = np.flatnonzero(best < 0) if spec.how == "left" else found[:0]
        yield from self._beside_lonely(
            pairs, self._measured(*pairs), join.left_order[start + lonely],
            np.searchsorted(found, lonely),
        )  # fmt: skip

    @cached_property
    def _ranks(self) -> np.ndarray:
        """Order for ties, by target position."""
        return tie_ranks(self._right)[self.join.right_order]
