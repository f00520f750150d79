"""The slice planner: cuts the time axis so that slices hold about equal work. NumPy only, no Spark.

Each left event goes to exactly one slice and each right event to every slice that it can reach, so
each pair is found exactly once, whatever the cuts. A slice is one task. Where time alone cannot even
out the work, keys are dealt to buckets within a time slice, and the left events of a cell that is
still too heavy (a burst, a hot key) are dealt to several slices, each of which gets the cell's right
events whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spark_plugin.samples import Reach, Sample, expected_partners, shifted

MOST_TIME_SLICES = 2048
_SMALLEST_SLICE_WORK = 100_000.0
"""Below this much work, in rows, a task of its own does not pay."""
_HEAVY = 1.5
"""A cell is split when its work exceeds the mean by this factor."""
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
    splits : int64 array, shape (T * B,)
        Slices that share the left events of each cell (time slice t, bucket b), cell = t * B + b.
    reach : Reach
    replication : float
        Estimated copies per right event.
    """

    cuts: np.ndarray
    buckets: int
    splits: np.ndarray
    reach: Reach
    replication: float

    @cached_property
    def first_slices(self) -> np.ndarray:
        """First slice of each cell: int64 array, shape (T * B,)."""
        return np.cumsum(self.splits) - self.splits

    @property
    def count(self) -> int:
        """Number of slices."""
        return int(self.splits.sum())

    @property
    def is_split(self) -> bool:
        """Whether some cell is shared by several slices."""
        return bool((self.splits > 1).any())

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
            parts.append(f"{int((self.splits > 1).sum())} heavy cells split")
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
    slice_rows : int
        Rows that a slice should hold.
    max_replication : float
        Most copies per right event, on average. Copies of less than `slice_rows` rows in all are
        always allowed.
    pair_work : float
        Work of a pair in rows, from `PAIR_WORK`.
    keyed : bool
        Whether events have keys.
    """
    work = _Work(left, right, reach, pair_work)
    wanted = slices or _slices_for(work, parallelism, slice_rows, keyed)
    allowed = max(max_replication, slice_rows / max(right.rows, 1))
    for time_slices, buckets, most_splits in _shapes(wanted, keyed):
        plan = work.plan(time_slices, buckets, wanted, most_splits)
        if plan.replication <= allowed:
            break
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
    return SlicePlan(cuts, 1, np.ones(cuts.size + 1, np.int64), reach, replication)


def _slices_for(work: _Work, parallelism: int, slice_rows: int, keyed: bool) -> int:
    by_memory = -(-work.rows // slice_rows)
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
    """Estimated work along the time axis, from the samples."""

    def __init__(self, left: Sample, right: Sample, reach: Reach, pair_work: float) -> None:
        self.left, self.right, self.reach = left, right, reach
        self.rows = left.rows + right.rows
        middle = (reach.first + reach.last) // 2
        self._seen_from_left = right.midpoints - middle
        self._left_work = left.weights * (1.0 + pair_work * expected_partners(left, right, reach))
        self._positions = np.concatenate([left.midpoints, self._seen_from_left])
        work = np.concatenate([self._left_work, right.weights])
        order = np.argsort(self._positions, kind="stable")
        self._positions, self._cumulated = self._positions[order], np.cumsum(work[order])
        self.total = float(self._cumulated[-1]) if self._cumulated.size else 0.0

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
        splits = np.where(heavy, np.ceil(left_work / share), 1).astype(np.int64)
        splits = np.clip(splits, 1, most_splits)
        return SlicePlan(
            cuts, buckets, splits, self.reach, self._replication(cuts, buckets, splits)
        )

    def _cuts(self, time_slices: int) -> np.ndarray:
        targets = self.total * np.arange(1, time_slices) / time_slices
        places = np.searchsorted(self._cumulated, targets)
        if not places.size or not self._positions.size:
            return np.empty(0, np.int64)
        cuts, drawn = np.unique(self._positions[places], return_counts=True)
        # A burst at one instant draws several cuts to the same place: it gets a cell of its own, up to
        # the next place, so that only its partners are copied when the cell is split.
        after = np.searchsorted(self._positions, cuts[drawn > 1], side="right")
        return np.union1d(cuts, self._positions[after[after < self._positions.size]])

    def _replication(self, cuts: np.ndarray, buckets: int, splits: np.ndarray) -> float:
        if not self.right.midpoints.size:
            return 1.0
        first, last = (
            np.searchsorted(shifted(cuts, end), self.right.midpoints, side="right")
            for end in (self.reach.last, self.reach.first)
        )
        grid = splits.reshape(-1, buckets)
        above = np.concatenate([np.zeros((1, buckets), np.int64), np.cumsum(grid, axis=0)])
        bucket = self.right.hashes % buckets
        copies = above[last + 1, bucket] - above[first, bucket]
        return float((copies * self.right.weights).sum() / self.right.weights.sum())
