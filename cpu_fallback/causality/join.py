"""The causality join on the CPU: sort into buckets once, count, scan, fill in chunks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.places import LayoutKind, choose_layout
from coincide.model.causality.spaces import PlacedEvents, no_points
from coincide.model.counters import CountedJoin
from coincide.model.remembered import remembered
from coincide.model.threads import run_tasks, tally_of_blocks
from cpu_fallback.causality import kernels

_NO_INTS = np.empty(0, np.int64)
_NOTHING = kernels.Wanted(_NO_INTS, _NO_INTS, _NO_INTS, np.empty(0))


class CausalityJoin(CountedJoin):
    """A causality join of two sides, or of one stream with itself, ready to be counted and filled.

    Nothing is evaluated before it is asked for; `counts` is evaluated once.
    """

    def __init__(
        self,
        causes: PlacedEvents,
        effects: PlacedEvents | None,
        model: CausalityModel,
        *,
        way: LayoutKind | None = None,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        self.threads, self._empty = threads, empty
        self._given = causes, causes if effects is None else effects
        run = partial(run_tasks, threads=threads)
        self.way, self.sides = choose_layout(causes, effects, model, way=way, run=run)

    @property
    def left_order(self) -> np.ndarray:
        """Row of the cause at each base position: int64 array, shape (causes,)."""
        return self.sides.base.order

    @property
    def right_order(self) -> np.ndarray:
        """Row of the effect at each target position: int64 array, shape (effects,)."""
        return self.sides.targets.order

    @remembered
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        counts = np.zeros(self.left_order.size, np.int64)

        def count(start: int, stop: int) -> np.ndarray:
            return kernels.walk_block(start, stop, self.sides, counts[start:stop], _NOTHING)

        return counts, tally_of_blocks(count, counts.size, self.threads)

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values of the pairs of the base positions start ... stop, cause by cause: int64 arrays."""
        return self._fill(start, stop, left_values, right_values)[:2]

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the effects only: int64 array, shape (pairs,)."""
        return self._fill(start, stop, _NO_INTS, right_values)[1]

    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As `pairs`, with delta and distance of each, as `measured` gives them."""
        return self._fill(start, stop, left_values, right_values, measured=True)

    def measured(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """T_effect - T_cause of later ends, ticks, and distance, empty without places, of pairs."""
        n = left_rows.size
        delta, distance = self._empty(n), self._empty_distances(n)
        sides = [
            each
            for side in self._given
            for each in (side.times, no_points() if side.points is None else side.points)
        ]
        kernels.measures_of(self.sides.rule, *sides, left_rows, right_rows, delta, distance)
        return delta, distance

    def _empty_distances(self, size: int) -> np.ndarray:
        placed = all(side.points is not None for side in self._given)
        return self._empty(size if placed else 0).view(np.float64)

    def _fill(
        self,
        start: int,
        stop: int,
        left_values: np.ndarray,
        right_values: np.ndarray,
        measured: bool = False,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        offsets = self.offsets
        pairs = int(offsets[stop] - offsets[start])
        left_out = self._empty(pairs if left_values.size else 0)
        right_out, delta = self._empty(pairs), self._empty(pairs if measured else 0)
        distance = self._empty_distances(pairs if measured else 0)
        if pairs:
            wanted = kernels.Wanted(right_values, right_out, delta, distance)
            places = offsets[start:stop] - offsets[start]
            kernels.walk_block(start, stop, self.sides, places, wanted)
            if left_out.size:
                kernels.repeat(left_values, offsets, start, stop, left_out)
        return left_out, right_out, delta, distance
