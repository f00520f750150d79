"""Which slices events are in, by a plan: NumPy over all rows at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

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
        False for left events that match nothing: they are spread over the slices with first parts.
    hashes : int64 array, shape (n,)
        Of keys; empty where there are no buckets.
    salts : int64 array, shape (n,)
        What spreads the events of a cell; empty where no cell is split and all events can match.
    """

    midpoints: np.ndarray
    matchable: np.ndarray | None = None
    hashes: np.ndarray = field(default_factory=lambda: _NONE)
    salts: np.ndarray = field(default_factory=lambda: _NONE)


def slices_of_left(places: Places, plan: SlicePlan) -> tuple[np.ndarray, np.ndarray]:
    """The slices of left events, mostly one each.

    Returns
    -------
    rows, slices : int64 arrays, shape (m,)
        Ascending by slice, and by midpoint within.
    """
    rows = _by_time(places.midpoints)
    cells = np.searchsorted(plan.cuts, places.midpoints[rows], side="right")
    cells = _in_buckets(cells, places, plan, rows)
    slices = plan.first_slices[cells]
    if plan.is_split:
        slices = slices + places.salts[rows] % plan.left_parts[cells] * plan.right_parts[cells]
    copies = plan.right_parts[cells]
    if places.matchable is not None:
        idle = ~places.matchable[rows]
        first_parts = plan.first_parts
        slices = np.where(idle, first_parts[places.salts[rows] % first_parts.size], slices)
        copies = np.where(idle, 1, copies)
    if plan.deals_right:
        rows, slices = np.repeat(rows, copies), np.repeat(slices, copies) + _within(copies)
    return _grouped(rows, slices, plan)


def slices_of_right(places: Places, plan: SlicePlan) -> tuple[np.ndarray, np.ndarray]:
    """The slices that right events can reach; as `slices_of_left`."""
    rows = _by_time(places.midpoints)
    first, last = (
        np.searchsorted(cuts, places.midpoints[rows], side="right") for cuts in plan.seen_cuts
    )
    copies = last - first + 1
    if (copies != 1).any():
        rows, cells = np.repeat(rows, copies), np.repeat(first, copies) + _within(copies)
    else:
        cells = first
    cells = _in_buckets(cells, places, plan, rows)
    slices = plan.first_slices[cells]
    if plan.is_split:
        steps, copies = plan.right_parts[cells], plan.left_parts[cells]
        slices = slices + places.salts[rows] % steps
        rows = np.repeat(rows, copies)
        slices = np.repeat(slices, copies) + _within(copies) * np.repeat(steps, copies)
    return _grouped(rows, slices, plan)


def _by_time(midpoints: np.ndarray) -> np.ndarray:
    if (midpoints[1:] >= midpoints[:-1]).all():
        return np.arange(midpoints.size)
    return np.argsort(midpoints)


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
    # Of 16 bits NumPy sorts by counting.
    narrow = slices.astype(np.uint16) if plan.count <= 1 << 16 else slices
    order = np.argsort(narrow, kind="stable")
    return rows[order], slices[order]
