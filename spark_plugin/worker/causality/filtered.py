"""A causality join of which only some pairs count."""

from __future__ import annotations

from typing import Any

import numpy as np

from spark_plugin.worker.arrow.sides import PairTest
from spark_plugin.worker.emission.filtered import FilteredPairs


class FilteredCausality(FilteredPairs):
    """Pairs of a causality join that pass a test, with delta and distance; used like the join.

    Parameters
    ----------
    join : CausalityJoin
        Of either backend.
    test, batch_pairs, threads, itself
        As of `FilteredPairs`.
    """

    def __init__(
        self,
        join: Any,
        test: PairTest,
        batch_pairs: int,
        threads: int,
        itself: np.ndarray | None = None,
    ) -> None:
        super().__init__(join, test, batch_pairs, threads, itself)
        self.measured = join.measured

    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As of the join: `cpu_fallback.causality.CausalityJoin.measured_pairs`."""
        own, others = self.pairs(start, stop, *self._positions)
        measures = self.measured(self.left_order[own], self.right_order[others])
        return left_values[own], right_values[others], *measures
