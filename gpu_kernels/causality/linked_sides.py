"""Both sides of a causality join in device memory, and runs of causes among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.model.causality.buckets import Buckets
from coincide.model.causality.deciding import PairRule
from coincide.model.causality.places import Layout, Sides
from coincide.model.results import offsets_of, runs_of_about
from gpu_kernels.device.memory import take
from gpu_kernels.device.transfers import current
from gpu_kernels.join.blocks import Block, Placed, entries_of_block
from gpu_kernels.kernels import causality as kernels
from gpu_kernels.kernels.causality import Bucketed, CausalRun, CausalSides, Linking
from gpu_kernels.kernels.causality import Placed as PlacedSide
from gpu_kernels.kernels.compilation import launch_each
from gpu_kernels.kernels.join import Spans


class LinkedSides:
    """Both sides of a join: as `gpu_kernels.join.blocks.Placing` asks.

    An event takes 16 bytes and 24 for its place, 8 of intervals and 8 for a height; links 24 bytes each.
    """

    def __init__(self, given: Sides) -> None:
        layout, base, targets, rule = given.layout, given.base, given.targets, given.rule
        if not isinstance(rule, PairRule):
            raise TypeError("histogram timestamps are joined on CPUs")
        own, self._own = _sent_side(base)
        others, self._others = (own, self._own) if targets is base else _sent_side(targets)
        self.sides = CausalSides(own, others, rule, layout.gap, layout.plain)
        starts, links, windows = _links(layout)
        self._linking = Linking(
            layout.by_place, layout.sure, layout.self_join, *map(_sent, (starts, links, windows))
        )
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
            kernels.place_causes, entries, self.sides, self._own, self._others, self._linking,
            run, spans, counts[1:], parts[1:],
        )  # fmt: skip
        return Placed(run, spans, counts, parts)


class CausalBlock(Block):
    """A run of causes, placed and probed."""

    _probe = kernels.probe
    _copy = kernels.copy

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
    numbers = layout.shifts[:, None] + cell
    return layout.starts, numbers[possible], layout.slabs[possible]


def _entries(base: Buckets, by_place: bool, starts: np.ndarray, links: int) -> np.ndarray:
    """First entry of each cause, and the end: int64 array, shape (causes + 1,); of no bucket none."""
    counts = np.zeros(base.times.size, np.int64)
    each = np.diff(starts) if by_place else np.full(base.numbers.size, links)
    counts[: base.offsets[-1]] = np.repeat(each, np.diff(base.offsets))
    return offsets_of(counts)
