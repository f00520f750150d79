"""Which slices events are in, by a plan: NumPy over all rows at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spark_plugin.ways.exchange.plan import SlicePlan

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Places:
    """What says which slices events are in.

    Parameters
    ----------
    midpoints : int64 array, shape (n,)
        Doubled, half ticks.
    matchable : bool array, shape (n,), or None
        False for left events that match nothing: they are spread over slices by their salts.
    hashes : int64 array, shape (n,)
        Of keys; empty where there are no buckets.
    salts : int64 array, shape (n,)
        What spreads the events of a cell; empty where no cell is split and all events can match.
    shapes : int64 array, shape (n,)
        Of right events that reach by their own shapes how far they do; else it may be empty.
    """

    midpoints: np.ndarray
    matchable: np.ndarray | None = None
    hashes: np.ndarray = field(default_factory=lambda: _NONE)
    salts: np.ndarray = field(default_factory=lambda: _NONE)
    shapes: np.ndarray = field(default_factory=lambda: _NONE)

    def part(self, rows: slice) -> Places:
        """Some of the events, in a run."""
        matchable = None if self.matchable is None else self.matchable[rows]
        columns = (each[rows] for each in (self.hashes, self.salts, self.shapes))
        return Places(self.midpoints[rows], matchable, *columns)

    @property
    def by_time(self) -> np.ndarray:
        """The order by midpoint: int64 array."""
        if (self.midpoints[1:] >= self.midpoints[:-1]).all():
            return np.arange(self.midpoints.size)
        return np.argsort(self.midpoints)


def copies_of_left(places: Places, plan: SlicePlan) -> np.ndarray:
    """In how many slices left events are, at most: int64 array, shape (n,)."""
    return np.full(places.midpoints.size, plan.right_parts.max())


def copies_of_right(places: Places, plan: SlicePlan) -> np.ndarray:
    """In how many slices right events are, at most: int64 array, shape (n,)."""
    first, last = _reached(places.midpoints, places.shapes, plan)
    return np.maximum(last - first + 1, 0) * plan.left_parts.max()


def slices_of_left(places: Places, plan: SlicePlan) -> tuple[np.ndarray, np.ndarray]:
    """The slices of left events, mostly one each.

    Returns
    -------
    rows, slices : int64 arrays, shape (m,)
        Ascending by slice, and by midpoint within.
    """
    rows = places.by_time
    cells = np.searchsorted(plan.cuts, places.midpoints[rows], side="right")
    cells = _in_buckets(cells, places, plan, rows)
    slices, copies = plan.first_slices[cells], plan.right_parts[cells]
    if plan.is_split:
        slices = slices + places.salts[rows] % plan.left_parts[cells] * copies
    if places.matchable is not None:
        idle, first_parts = ~places.matchable[rows], plan.first_parts
        slices = np.where(idle, first_parts[places.salts[rows] % first_parts.size], slices)
        copies = np.where(idle, 1, copies)
    if plan.deals_right:
        rows, slices = np.repeat(rows, copies), np.repeat(slices, copies) + _within(copies)
    return _grouped(rows, slices, plan)


def slices_of_right(places: Places, plan: SlicePlan) -> tuple[np.ndarray, np.ndarray]:
    """The slices that right events can reach; as `slices_of_left`."""
    rows = places.by_time
    shapes = places.shapes[rows] if plan.reach.steps else places.shapes
    cells, last = _reached(places.midpoints[rows], shapes, plan)
    copies = np.maximum(last - cells + 1, 0)
    if (copies != 1).any():
        rows, cells = np.repeat(rows, copies), np.repeat(cells, copies) + _within(copies)
    cells = _in_buckets(cells, places, plan, rows)
    slices = plan.first_slices[cells]
    if plan.is_split:
        steps, copies = plan.right_parts[cells], plan.left_parts[cells]
        slices = slices + places.salts[rows] % steps
        rows = np.repeat(rows, copies)
        slices = np.repeat(slices, copies) + _within(copies) * np.repeat(steps, copies)
    return _grouped(rows, slices, plan)


def _reached(
    midpoints: np.ndarray, shapes: np.ndarray, plan: SlicePlan
) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last time slice that right events reach, if any."""
    if plan.reach.steps:
        ends = plan.reach.of_right(midpoints, shapes)
        first, last = (np.searchsorted(plan.cuts, end, side="right") for end in ends)
    else:
        first, last = (np.searchsorted(cuts, midpoints, side="right") for cuts in plan.seen_cuts)
    return first, last


def _in_buckets(
    time_slices: np.ndarray, places: Places, plan: SlicePlan, rows: np.ndarray
) -> np.ndarray:
    if plan.buckets == 1:
        return time_slices
    return time_slices * plan.buckets + places.hashes[rows] % plan.buckets


def _within(copies: np.ndarray) -> np.ndarray:
    """The how-many-eth of its run each is, of runs so long."""
    return np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)


def _grouped(
    rows: np.ndarray, slices: np.ndarray, plan: SlicePlan
) -> tuple[np.ndarray, np.ndarray]:
    if (slices[1:] >= slices[:-1]).all():
        return rows, slices
    order = stable_order(slices)
    return rows[order], slices[order]


def stable_order(slices: np.ndarray) -> np.ndarray:
    """The order of events by slice, and as they are within: int64 array."""
    # Of 16 bits NumPy sorts by counting.
    narrow = slices.astype(np.uint16) if slices.max(initial=0) < 1 << 16 else slices
    return np.argsort(narrow, kind="stable")
