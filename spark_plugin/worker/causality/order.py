"""In what order a cause takes its effects, and an effect its causes: as `docs/causality.md` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cpu_fallback.causality import Merits
from cpu_fallback.join.choosing import Keys
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.emission import Rows
from spark_plugin.worker.emission.order import PairOrder
from spark_plugin.worker.partial_results import sortable


class CausalOrder(PairOrder):
    """The order of causes and effects among the partners of an event.

    Parameters
    ----------
    causes, effects : Side
    spec : CausalitySpec
    merits : Merits
    measure : callable
        From rows of causes and effects to delta, and distance where there are places.
    """

    def __init__(
        self, causes: Side, effects: Side, spec: Any, merits: Merits, measure: Callable[..., Any]
    ) -> None:
        super().__init__(causes, effects, spec, lambda own, others: merits.of(own, others)[0])
        self._of, self._measure, self._is_placed = merits.of, measure, bool(spec.coordinates)

    def preferred(self, rows: Rows) -> np.ndarray:
        """As of `PairOrder`; by distance, floats that are not negative are ordered as their bits are."""
        if self._spec.partners.prefer == "distance":
            return self._distances(rows).view(np.int64)
        return super().preferred(rows)

    def leading(self, rows: Rows) -> Keys:
        """As of `PairOrder`."""
        if self._spec.partners.prefer != "probability":
            return super().leading(rows)
        probability, apart = self._of(*rows)
        return -probability.view(np.int64), sortable(apart)

    def after_preferred(self, rows: Rows) -> list[np.ndarray]:
        """As of `PairOrder`, then the nearest in space."""
        probability, apart = self._of(*rows)
        placed = [self._distances(rows)] if self._is_placed else []
        return [-probability, apart, *placed]

    def from_middle(self, rows: Rows) -> np.ndarray:
        """How far pairs are from the middle of their own windows: uint64 array, shape (pairs,)."""
        return self._of(*rows)[1]

    def _merits(self, rows: Rows) -> np.ndarray:
        return self._of(*rows)[0]

    def _distances(self, rows: Rows) -> np.ndarray:
        distances: np.ndarray = self._measure(*rows)[1]
        return distances
