"""The slice planner: cuts the time axis so that slices hold about equal work. NumPy only, no Spark.

Each left event goes to exactly one slice and each right event to every slice that it can reach, so
each pair is found exactly once, whatever the cuts. A slice is one task. Where time alone cannot even
out the work, keys are dealt to buckets within a time slice, and the left events of a cell that is
still too heavy (a burst, a hot key) are dealt to several slices, each of which gets the cell's right
events whole. Where these are more than a worker shall hold, they are dealt too: a slice gets a part of
the left events and a part of the right ones, and each part of the left meets each part of the right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from coincide.errors import MemoryBudgetError
from spark_plugin.ways.samples import Reach, Sample, expected_partners, shifted

MOST_TIME_SLICES = 16_384
MOST_SLICES = 100_000
_SMALLEST_SLICE_WORK = 100_000.0
"""Below this much work, in rows, a task of its own does not pay."""
_HEAVY = 1.5
"""A cell is split when its work exceeds the mean, or its rows the room of a slice, by this factor."""
_FARTHEST = 2**62
"""No doubled midpoint lies further out."""
PAIR_WORK = {"pairs": 0.3, "lists": 0.1, "counts": 0.02, "best": 0.1}
"""Work of a pair, in rows that cross to the worker, by emit."""


@dataclass(frozen=True, eq=False)
class SlicePlan:
    """Which slice an event goes to.

    Parameters
    ----------
    cuts : int64 array, shape (T - 1,), ascending
        Left events at or above cuts[t] (doubled midpoints) are in a time slice after t.
    buckets : int
        Key buckets per time slice, B.
    left_parts, right_parts : int64 arrays, shape (T * B,)
        Into how many parts the events of each cell (time slice t, bucket b) are dealt, cell = t * B + b.
        Each pair of parts is a slice: part i of the left and part j of the right of a cell are in its
        slice i * right_parts + j.
    reach : Reach
    replication : float
        Estimated copies per right event.
    """

    cuts: np.ndarray
    buckets: int
    left_parts: np.ndarray
    right_parts: np.ndarray
    reach: Reach
    replication: float
    way: ClassVar[str] = "exchange"

    @cached_property
    def first_slices(self) -> np.ndarray:
        """First slice of each cell: int64 array, shape (T * B,)."""
        slices = self.left_parts * self.right_parts
        return np.cumsum(slices) - slices

    @property
    def count(self) -> int:
        """Number of slices."""
        return int((self.left_parts * self.right_parts).sum())

    @property
    def is_split(self) -> bool:
        """Whether some cell is shared by several slices."""
        return bool((self.left_parts > 1).any()) or self.deals_right

    @property
    def deals_right(self) -> bool:
        """Whether some left events are in several slices, each with some of their partners."""
        return bool((self.right_parts > 1).any())

    @cached_property
    def first_parts(self) -> np.ndarray:
        """Slices with the first part of the right events of a cell: int64 array.

        Each left event is in just one of them.
        """
        slices = self.left_parts * self.right_parts
        within = np.arange(self.count) - np.repeat(self.first_slices, slices)
        return np.flatnonzero(within % np.repeat(self.right_parts, slices) == 0)

    @property
    def seen_cuts(self) -> tuple[np.ndarray, np.ndarray]:
        """The cuts as right events see them: two int64 arrays, shape (T - 1,).

        A right event at m reaches the time slices from the number of first cuts <= m up to the number
        of second cuts <= m, both included. The cuts move rather than m: no sum can overflow.
        """
        return shifted(self.cuts, self.reach.last), shifted(self.cuts, self.reach.first)

    def describe(self) -> str:
        """The plan in one line, for the log."""
        parts = [f"{self.count} slices", f"{self.cuts.size + 1} in time"]
        if self.buckets > 1:
            parts.append(f"{self.buckets} key buckets")
        if self.is_split:
            heavy = (self.left_parts > 1) | (self.right_parts > 1)
            parts.append(f"{int(heavy.sum())} heavy cells split")
        return f"{', '.join(parts)}, {self.replication:.2f} copies of a right event"


def plan_slices(
    left: Sample,
    right: Sample,
    reach: Reach,
    *,
    parallelism: int,
    slices: int | None,
    slice_rows: int,
    max_replication: float,
    pair_work: float,
    keyed: bool,
    row_bytes: tuple[float, float] = (0.0, 0.0),
    slice_bytes: int = 1 << 62,
) -> SlicePlan:
    """Cut the time axis.

    Parameters
    ----------
    left, right : Sample
    reach : Reach
    parallelism : int
        Tasks that the cluster runs at once.
    slices : int or None
        Slices asked for; None: chosen from the work.
    slice_rows, slice_bytes : int
        Rows, and bytes of rows, that a slice should hold where `slices` is None. That goes before
        `max_replication`.
    max_replication : float
        Most copies per right event, on average. Copies of less than `slice_rows` rows in all are
        always allowed.
    pair_work : float
        Work of a pair in rows, from `PAIR_WORK`.
    keyed : bool
        Whether events have keys.
    row_bytes : (float, float)
        Bytes of a left and of a right row on the way, on average.

    Raises
    ------
    MemoryBudgetError
        If slices that are so small would be too many.
    """
    fills = (0.0, 0.0) if slices else tuple(max(1 / slice_rows, b / slice_bytes) for b in row_bytes)
    work = _Work(left, right, reach, pair_work, (fills[0], fills[1]))
    wanted = slices or _slices_for(work, parallelism, keyed)
    allowed = max(max_replication, slice_rows / max(right.rows, 1))
    for time_slices, buckets, most_splits in _shapes(wanted, keyed):
        plan = work.plan(time_slices, buckets, wanted, most_splits)
        if plan.replication <= allowed:
            break
    plan = work.dealt(plan)
    if plan.count > MOST_SLICES:
        raise MemoryBudgetError(
            f"so many events can meet so many that slices of slice_rows={slice_rows:,} rows"
            f" would be {plan.count:,}; allow a worker more rows (slice_rows, slice_bytes), or ask for"
            " a narrower window"
        )
    return plan


def uniform_plan(
    first: int, last: int, reach: Reach, slices: int, max_replication: float
) -> SlicePlan:
    """Slices of equal duration over doubled midpoints first ... last, for declared statistics.

    Fewer slices than asked for where more would copy right events too often.
    """
    copies_per_cut = (reach.last - reach.first) / max(last - first, 1)
    slices = max(1, int(min(slices, (max_replication - 1.0) / max(copies_per_cut, 1e-300))))
    edges = [first + (last - first) * i // slices for i in range(1, slices)]
    cuts = np.unique(np.array([max(-_FARTHEST, min(_FARTHEST, e)) for e in edges], np.int64))
    replication = 1.0 + cuts.size * min(copies_per_cut, 1.0)
    whole = np.ones(cuts.size + 1, np.int64)
    return SlicePlan(cuts, 1, whole, whole, reach, replication)


def _slices_for(work: _Work, parallelism: int, keyed: bool) -> int:
    by_memory = math.ceil(work.fill)
    by_work = min(parallelism, int(work.total // _SMALLEST_SLICE_WORK))
    slices = max(1, by_memory, by_work)
    if slices > parallelism:
        # Whole waves of tasks, so that no core idles in the last one.
        slices = -(-slices // parallelism) * parallelism
    # Beyond this time alone does not cut; buckets of keys do.
    return slices if keyed else min(slices, MOST_TIME_SLICES)


def _shapes(slices: int, keyed: bool) -> Iterator[tuple[int, int, int]]:
    """Plans to try, from the one that spreads best to the one that copies least."""
    time_slices = min(slices, MOST_TIME_SLICES)
    while True:
        buckets = max(1, slices // time_slices) if keyed else 1
        yield time_slices, buckets, slices
        if time_slices == 1:
            break
        time_slices = (time_slices + 1) // 2
    for most_splits in (max(1, slices // 2**k) for k in range(1, 12)):
        yield 1, slices if keyed else 1, most_splits


class _Work:
    """Estimated work along the time axis, from the samples; `fills`: slices that a row takes up."""

    def __init__(
        self,
        left: Sample,
        right: Sample,
        reach: Reach,
        pair_work: float,
        fills: tuple[float, float],
    ) -> None:
        self.left, self.right, self.reach, self._fills = left, right, reach, fills
        self.fill = left.rows * fills[0] + right.rows * fills[1]
        middle = (reach.first + reach.last) // 2
        self._seen_from_left = right.midpoints - middle
        self._left_work = left.weights * (1.0 + pair_work * expected_partners(left, right, reach))
        work = np.concatenate([self._left_work, right.weights])
        self.total = float(work.sum())
        self._positions = np.concatenate([left.midpoints, self._seen_from_left])
        order = np.argsort(self._positions, kind="stable")
        self._positions = self._positions[order]
        measure = work / max(self.total, 1.0)
        if self.fill > 1.0:
            # Few rows with many pairs must not leave all other rows to one slice.
            rows = np.concatenate([left.weights * fills[0], right.weights * fills[1]])
            measure = (measure + 2.0 * rows / rows.sum()) / 3.0
        self._even = np.cumsum(measure[order])

    def plan(self, time_slices: int, buckets: int, wanted: int, most_splits: int) -> SlicePlan:
        """Cut into time slices of equal work, then split the cells that stay too heavy."""
        cuts = self._cuts(time_slices)
        cells = np.searchsorted(cuts, self.left.midpoints, side="right") * buckets
        cells += self.left.hashes % buckets
        right_cells = np.searchsorted(cuts, self._seen_from_left, side="right") * buckets
        right_cells += self.right.hashes % buckets
        count = (cuts.size + 1) * buckets
        left_work = np.bincount(cells, self._left_work, count)
        load = left_work + np.bincount(right_cells, self.right.weights, count)
        share = max(self.total / wanted, _SMALLEST_SLICE_WORK)
        heavy = (load > _HEAVY * share) & (left_work > 0)
        parts = np.where(heavy, np.ceil(left_work / share), 1).astype(np.int64)
        parts = np.clip(parts, 1, most_splits)
        whole = np.ones(count, np.int64)
        copies = self._replication(cuts, buckets, parts)
        return SlicePlan(cuts, buckets, parts, whole, self.reach, copies)

    def dealt(self, plan: SlicePlan) -> SlicePlan:
        """The plan, cells that hold more than a slice has room for dealt to more slices."""
        left, right = self._fill_of_cells(plan)
        over = left / plan.left_parts + right > _HEAVY
        if not over.any():
            return plan
        # Halves make the fewest copies, unless one side is less than half.
        left_room = np.where(left <= 0.5, left, np.where(right <= 0.5, 1.0 - right, 0.5))
        right_room = np.where(right <= 0.5, right, np.where(left <= 0.5, 1.0 - left, 0.5))
        least = np.finfo(float).tiny
        left_parts, right_parts = (
            np.ceil(fill / np.maximum(room, least)).astype(np.int64)
            for fill, room in ((left, left_room), (right, right_room))
        )
        right_parts = np.where(over, np.maximum(right_parts, 1), 1)
        # Parts of the right share the work, too.
        left_parts = np.where(over, left_parts, 1)
        left_parts = np.maximum(left_parts, -(-plan.left_parts // right_parts))
        copies = self._replication(plan.cuts, plan.buckets, left_parts)
        return replace(plan, left_parts=left_parts, right_parts=right_parts, replication=copies)

    def _fill_of_cells(self, plan: SlicePlan) -> tuple[np.ndarray, np.ndarray]:
        """Slices that the left and the right events of each cell would take up: float64 arrays."""
        buckets, count = plan.buckets, plan.left_parts.size
        cells = np.searchsorted(plan.cuts, self.left.midpoints, side="right") * buckets
        left = np.bincount(cells + self.left.hashes % buckets, self.left.weights, count)
        first, last = self._time_slices_of_right(plan.cuts)
        # Each right event is in all time slices from its first to its last.
        steps = np.zeros((plan.cuts.size + 2, buckets))
        bucket = self.right.hashes % buckets
        np.add.at(steps, (first, bucket), self.right.weights)
        np.add.at(steps, (last + 1, bucket), -self.right.weights)
        right = np.cumsum(steps, axis=0)[:-1].reshape(-1)
        return left * self._fills[0], np.maximum(right, 0.0) * self._fills[1]

    def _time_slices_of_right(self, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last time slice that each right event of the sample reaches."""
        first, last = (
            np.searchsorted(shifted(cuts, end), self.right.midpoints, side="right")
            for end in (self.reach.last, self.reach.first)
        )
        return first, last

    def _cuts(self, time_slices: int) -> np.ndarray:
        places = np.searchsorted(self._even, np.arange(1, time_slices) / time_slices)
        if not places.size or not self._positions.size:
            return np.empty(0, np.int64)
        cuts, drawn = np.unique(self._positions[places], return_counts=True)
        # A burst at one instant draws several cuts to the same place: it gets a cell of its own, up to
        # the next place, so that only its partners are copied when the cell is split.
        after = np.searchsorted(self._positions, cuts[drawn > 1], side="right")
        return np.union1d(cuts, self._positions[after[after < self._positions.size]])

    def _replication(self, cuts: np.ndarray, buckets: int, left_parts: np.ndarray) -> float:
        if not self.right.midpoints.size:
            return 1.0
        first, last = self._time_slices_of_right(cuts)
        grid = left_parts.reshape(-1, buckets)
        above = np.concatenate([np.zeros((1, buckets), np.int64), np.cumsum(grid, axis=0)])
        bucket = self.right.hashes % buckets
        copies = above[last + 1, bucket] - above[first, bucket]
        return float((copies * self.right.weights).sum() / self.right.weights.sum())
