"""The causality join on a GPU: laid out on the host, counted, scanned and filled on the device."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np

from coincide.model.causality.buckets import Buckets
from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.places import Layout, LayoutKind, Sides, choose_layout
from coincide.model.causality.spaces import PlacedEvents
from coincide.model.counters import offsets_of, runs_of_about
from gpu_kernels.device.arrays import array_module, tuple_on_device
from gpu_kernels.device.memory import in_parts, take, translated
from gpu_kernels.device.transfers import current
from gpu_kernels.device.turn import TURN as _DEVICE
from gpu_kernels.join import Block, BlockJoin, Placed, entries_of_block
from gpu_kernels.kernels import causality as kernels
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.causality import Bucketed, CausalRun, CausalSides, Linking
from gpu_kernels.kernels.causality import Placed as PlacedSide
from gpu_kernels.kernels.compilation import Fixed, launch_each
from gpu_kernels.kernels.join import Spans


class LinkedSides:
    """Both sides of a join: as `gpu_kernels.join.Placing` asks.

    An event takes 16 bytes and 24 for its place, 8 of intervals or histograms and 8 for a height; links
    24 bytes each.
    """

    def __init__(self, given: Sides) -> None:
        layout, base, targets = given.layout, given.base, given.targets
        own, in_own = _sent_side(base)
        others, in_others = (own, in_own) if targets is base else _sent_side(targets)
        rule = tuple_on_device(given.rule)
        self.given = Fixed(CausalSides(own, others, rule, layout.gap, layout.plain))
        self.placed = Fixed(own), Fixed(others)
        starts, links, windows = _links(layout)
        linking = Linking(
            layout.by_place, layout.sure, layout.self_join, *map(_sent, (starts, links, windows))
        )
        searched = map(Fixed, (layout.gap, in_own, in_others, linking))
        self._given_to_place = [*self.placed, *searched]
        self._entries = _entries(base, layout.by_place, starts, links.size)

    def blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut causes into blocks of a bounded number of entries, unless of one cause.

        Causes may have none, and a block has no more causes than entries that it may have.
        """
        entries = self._entries[start : stop + 1]
        most = entries_of_block(max(stop - start, int(entries[-1] - entries[0])))
        return [(start + a, start + b) for a, b in runs_of_about(entries, most)]

    def place(self, start: int, stop: int, shells: bool) -> Placed:
        """Find the effects in the windows of causes: `gpu_kernels.kernels.causality.place_causes`."""
        begins = self._entries[start : stop + 1] - self._entries[start]
        entries = int(begins[-1])
        run = CausalRun(start, _sent(begins), take(entries, np.int64))
        spans = Spans(*(take(entries, np.int64) for _ in Spans._fields))
        counts, parts = take(entries + 1, np.int64), take(3 * entries + 1, np.int64)
        launch_each(
            kernels.place_causes, entries, *self._given_to_place, run, spans, counts[1:], parts[1:]
        )  # fmt: skip
        return Placed(run, spans, counts, parts)


class CausalBlock(Block):
    """A run of causes, placed and probed."""

    _probe = kernels.probe
    _fills: ClassVar = {np.dtype(np.int64): (kernels.copy, tiles.scatter)}

    def _bounds(self) -> Any:
        return self._places[3 * self._run.begins]


def _sent(array: np.ndarray) -> Any:
    return current().send_one(np.ascontiguousarray(array).reshape(-1)).reshape(array.shape)


def _sent_side(buckets: Buckets) -> tuple[PlacedSide, Bucketed]:
    placed = PlacedSide(*map(_sent, (buckets.times, buckets.lengths, buckets.points)))
    bucketed = Bucketed(
        *map(_sent, (buckets.ranks, buckets.numbers, buckets.offsets, buckets.boxes))
    )
    return placed, bucketed


def _links(layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, targets and windows of `Linking`."""
    if layout.by_place:
        return layout.starts, layout.targets, layout.windows
    cell = np.arange(layout.slabs.shape[1])
    possible = (cell < layout.widths[:, None]) & (layout.slabs[..., 0] <= layout.slabs[..., 1])
    numbers = layout.offsets[:, None] + cell
    return layout.starts, numbers[possible], layout.slabs[possible]


def _entries(base: Buckets, by_place: bool, starts: np.ndarray, links: int) -> np.ndarray:
    """First entry of each cause, and the end: int64 array, shape (causes + 1,); of no bucket none."""
    counts = np.zeros(base.times.size, np.int64)
    each = np.diff(starts) if by_place else np.full(base.numbers.size, links)
    counts[: base.offsets[-1]] = np.repeat(each, np.diff(base.offsets))
    return offsets_of(counts)


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
        way: LayoutKind | None = None,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        super().__init__(len(causes), len(causes if effects is None else effects), empty)
        self.threads = threads
        self._placed = causes.points is not None and (effects is None or effects.points is not None)
        self._curvature = model.rule.curvature
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
        """As `pairs`, with delta and distance of each, as `measured` gives them."""
        values = left_values, right_values
        left, right, delta, distance = self._fill(start, stop, values, measured=True)
        return left, right, delta, distance.view(np.float64)

    def measured(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Delta and distance of given pairs."""
        n = left_rows.size
        sizes = n, n if self._placed else 0

        def evaluate(start: int, stop: int) -> None:
            places = [
                self._residents.get(order, _inverse)[current().send_one(rows[start:stop])]
                for order, rows in zip(self._orders, (left_rows, right_rows), strict=True)
            ]
            deltas, distances = self._measures(*places)
            fetch(deltas, delta[start:stop])
            fetch(distances, distance[start:stop])

        with _DEVICE, translated(), current().fetching() as fetch:
            delta, distance = map(self._result, sizes)
            for start in range(0, n, _MEASURED_AT_ONCE):
                in_parts(evaluate, start, min(start + _MEASURED_AT_ONCE, n))
        return delta, distance.view(np.float64)

    def _blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        return self._linked.blocks(start, stop)

    def _block(self, start: int, stop: int) -> CausalBlock:
        return CausalBlock(self._linked, start, stop)

    def _outputs(self, matches: int, both: bool, measured: bool) -> list[np.ndarray]:
        more = [matches, matches if self._placed else 0] if measured else []
        return super()._outputs(matches, both, measured) + [self._result(size) for size in more]

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
            kernels.measure, deltas.size, *self._linked.placed, self._curvature, causes, effects,
            deltas, distances,
        )  # fmt: skip
        return deltas, distances.view(np.int64)


def _called(task: Callable[[], Any]) -> Any:
    return task()


def _inverse(order: Any) -> Any:
    """The position of each row, in device memory."""
    places = take(order.size, np.int64)
    places[order] = array_module().arange(order.size, dtype=np.int64)
    return places
