"""The join of events on a GPU: sort once, count, scan, fill in blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coincide.model.classes import checked
from coincide.model.results import JoinCounters
from coincide.model.sides import LEFT
from coincide.model.timestamps.protocol import Events, PairModel
from gpu_kernels.device.arrays import array_module, on_device, on_host, tuple_on_device
from gpu_kernels.device.memory import in_parts, take, translated
from gpu_kernels.device.transfers import current
from gpu_kernels.device.usable import TURN as _DEVICE
from gpu_kernels.join.blocks import BandedSides, Block
from gpu_kernels.join.buffers import OrderedEvents, base_buffer, ordered, target_buffer
from gpu_kernels.join.filling import BlockJoin, find_best
from gpu_kernels.kernels import join as placement
from gpu_kernels.kernels.compilation import launch_each
from gpu_kernels.kernels.join import Sides


class EventJoin(BlockJoin):
    """A join of two sides, sorted on the device and ready to be counted and filled.

    Parameters and results are those of `cpu_fallback.EventJoin`, in the same order and to the bit.
    All arrays that it returns are in host memory.
    """

    def __init__(
        self,
        left: Events,
        right: Events,
        model: PairModel,
        *,
        classes: int | None = None,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        self.threads = threads
        with _DEVICE, translated("both sides of the join"):
            bases, targets = ordered(left, right)
            self._left_order, self._right_order, self.bands, self._banded = prepared(
                bases, targets, left.groups, model, classes
            )
        super().__init__(self._left_order.size, empty)

    @cached_property
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""
        with _DEVICE, translated():
            return self._residents.known(on_host(self._left_order), self._left_order)

    @cached_property
    def right_order(self) -> np.ndarray:
        """Right row at each target position: int64 array, shape (n_right,)."""
        with _DEVICE, translated():
            return self._residents.known(on_host(self._right_order), self._right_order)

    def _blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        return self._banded.blocks(start, stop)

    def _block(self, start: int, stop: int) -> Block:
        return Block(self._banded, start, stop)

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The most probable partner of the base positions start ... stop. Needs no counts."""
        best, merits = np.full(stop - start, -1, np.int64), np.full(stop - start, np.nan)
        tally = np.zeros(3, np.int64)

        def choose(a: int, b: int) -> None:
            positions, places = self._residents.get(ranks, _ranked)
            chosen, highest, found = find_best(self._banded, places, a, b)
            some = np.flatnonzero(highest > -np.inf)
            best[a - start + some] = positions[chosen[some]]
            merits[a - start + some] = highest[some]
            np.add(tally, found, out=tally)

        with _DEVICE, translated():
            for a, b in self._banded.blocks(start, stop):
                in_parts(choose, a, b)
        return best, merits, JoinCounters.of_tally(*tally.tolist())


def _ranked(ranks: Any) -> tuple[np.ndarray, Any]:
    """The target at each place of an order, in host memory, and the place of each target.

    Equal ranks are told apart by position, which is what the CPU does.
    """
    xp = array_module()
    positions = xp.argsort(ranks, kind="stable")
    places = take(ranks.size, np.int64)
    places[positions] = xp.arange(ranks.size, dtype=np.int64)
    return on_host(positions), places


def event_probabilities(
    left: Events,
    left_rows: np.ndarray,
    right: Events,
    right_rows: np.ndarray,
    model: PairModel,
) -> np.ndarray:
    """Satisfaction probabilities of given pairs: float64 array, shape (n,)."""
    out = np.empty(left_rows.size)

    def evaluate(start: int, stop: int) -> None:
        rule = tuple_on_device(model.rule)
        given = left.times.of(left_rows[start:stop]), right.times.of(right_rows[start:stop])
        arrived = (
            type(times)(*sent) for times, sent in zip(given, current().send(*given), strict=True)
        )
        columns = [column for times in arrived for column in (times.keys(), times.shapes())]
        found = take(stop - start, np.float64)
        launch_each(placement.pair_probabilities, stop - start, rule, *columns, found)
        on_host(found, out[start:stop])

    with _DEVICE:
        in_parts(evaluate, 0, out.size)
    return out


class Prepared(NamedTuple):
    """A join ready to be counted and filled."""

    left_order: Any
    right_order: Any
    bands: np.ndarray
    banded: BandedSides


def prepared(
    left: OrderedEvents, right: OrderedEvents, groups: int, model: PairModel, classes: int | None
) -> Prepared:
    """Choose classes, and sort both sides into them."""
    k1, k2 = checked(model.choose_classes(left, right, groups, classes))
    bands = model.bands(LEFT, k1, k2)
    left_order, base = base_buffer(left, groups, k1)
    right_order, targets = target_buffer(right, groups, k2)
    sides = Sides(base, targets, tuple_on_device(model.rule))
    return Prepared(left_order, right_order, bands, BandedSides(sides, on_device(bands)))
