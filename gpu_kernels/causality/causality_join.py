"""The causality join on a GPU: laid out on the host, counted, scanned and filled on the device."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.places import Way, choose_layout
from coincide.model.causality.spaces import PlacedEvents
from gpu_kernels.causality.linked_sides import CausalBlock, LinkedSides
from gpu_kernels.device.arrays import array_module
from gpu_kernels.device.memory import in_parts, take, translated
from gpu_kernels.device.transfers import current
from gpu_kernels.device.usable import TURN as _DEVICE
from gpu_kernels.join.filling import BlockJoin
from gpu_kernels.kernels import causality as kernels
from gpu_kernels.kernels.compilation import launch_each

_MEASURED_AT_ONCE = 1 << 24
"""Pairs of which 32 bytes each are on the device."""

_Values = tuple[np.ndarray | None, np.ndarray]


class CausalityJoin(BlockJoin):
    """A causality join of two sides, or of one stream with itself, ready to be counted and filled.

    Parameters and results are those of `cpu_fallback.causality.CausalityJoin`, to the bit: positions,
    counts, pairs, deltas and distances. Effects of one cause may be in another order.
    """

    def __init__(
        self,
        causes: PlacedEvents,
        effects: PlacedEvents | None,
        model: CausalityModel,
        *,
        way: Way | None = None,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        super().__init__(len(causes), empty)
        self.threads = threads
        self._placed = causes.points is not None and (effects is None or effects.points is not None)
        with ThreadPoolExecutor(threads) as pool:
            self.way, sides = choose_layout(
                causes, effects, model, way=way, run=lambda tasks: list(pool.map(_called, tasks))
            )
        self._orders = sides.base.order, sides.targets.order
        self._positions = tuple(np.arange(order.size) for order in self._orders)
        with _DEVICE, translated("both sides of the join"):
            self._linked = LinkedSides(sides)

    @property
    def left_order(self) -> np.ndarray:
        """Row of the cause at each base position: int64 array, shape (causes,)."""
        return self._orders[0]

    @property
    def right_order(self) -> np.ndarray:
        """Row of the effect at each target position: int64 array, shape (effects,)."""
        return self._orders[1]

    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As `pairs`, with delta and distance of each, as of `measured`."""
        values = left_values, right_values
        left, right, delta, distance = self._fill(start, stop, values, measured=True)
        return left, right, delta, distance.view(np.float64)

    def measured(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Delta and distance of given pairs."""
        n = left_rows.size
        delta, distance = self._empty(n), self._empty(n if self._placed else 0)

        def evaluate(start: int, stop: int) -> None:
            places = [
                self._residents.get(order, _inverse)[current().send_one(rows[start:stop])]
                for order, rows in zip(self._orders, (left_rows, right_rows), strict=True)
            ]
            deltas, distances = self._measures(*places)
            fetch(deltas, delta[start:stop])
            fetch(distances, distance[start:stop])

        with _DEVICE, translated(), current().fetching() as fetch:
            for start in range(0, n, _MEASURED_AT_ONCE):
                in_parts(evaluate, start, min(start + _MEASURED_AT_ONCE, n))
        return delta, distance.view(np.float64)

    def _blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        return self._linked.blocks(start, stop)

    def _block(self, start: int, stop: int) -> CausalBlock:
        return CausalBlock(self._linked, start, stop)

    def _outputs(self, matches: int, both: bool, measured: bool) -> list[np.ndarray]:
        more = [matches, matches if self._placed else 0] if measured else []
        return super()._outputs(matches, both, measured) + [self._empty(size) for size in more]

    def _columns(self, start: int, stop: int, values: _Values, measured: bool) -> list[Any]:
        if not measured:
            return super()._columns(start, stop, values, measured)
        left, right = (self._residents.get(array) for array in values if array is not None)
        at = map(self._residents.get, self._positions)
        causes, effects = self._block(start, stop).fill(*at)
        return [left[causes], right[effects], *self._measures(causes, effects)]

    def _measures(self, causes: Any, effects: Any) -> tuple[Any, Any]:
        """Deltas of pairs of positions, and the bits of their distances, in device memory."""
        deltas = take(causes.size, np.int64)
        distances = take(causes.size if self._placed else 0, np.float64)
        launch_each(
            kernels.measure, deltas.size, self._linked.sides, causes, effects, deltas, distances
        )
        return deltas, distances.view(np.int64)


def _called(task: Callable[[], Any]) -> Any:
    return task()


def _inverse(order: Any) -> Any:
    """The position of each row, in device memory."""
    places = take(order.size, np.int64)
    places[order] = array_module().arange(order.size, dtype=np.int64)
    return places
