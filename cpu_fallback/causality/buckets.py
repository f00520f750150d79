"""Events of a side in buckets, each a cell of the grid or one place, by time within."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.array_types import Int64s
from coincide.causality.points import DIMENSIONS, PlacedEvents, Points, no_points
from coincide.compiled import compiled
from cpu_fallback.causality.sorting import rows_by_time, sorted_rows


class Buckets(NamedTuple):
    """Events sorted by (bucket, time, row); those that match nothing are last, in no bucket.

    Parameters
    ----------
    order : int64 array, shape (n,)
        Row of each event in the caller's arrays.
    times, lengths : int64 arrays, shape (n,)
        Ticks; `lengths` is empty where all are exact instants.
    points : Points
        Empty where no pair has to be tested.
    numbers : int64 array, shape (buckets,)
        Ascending.
    offsets : int64 array, shape (buckets + 1,)
        First event of each bucket.
    """

    order: Int64s
    times: Int64s
    lengths: Int64s
    points: Points
    numbers: Int64s
    offsets: Int64s


def in_buckets(events: PlacedEvents, numbers: np.ndarray, most: int, tested: bool) -> Buckets:
    """Sort events into buckets.

    Parameters
    ----------
    events : PlacedEvents
    numbers : int64 array, shape (n,)
        Bucket of each event; `most` for none.
    most : int
    tested : bool
        Whether pairs will be tested, which takes their places.
    """
    order = sorted_rows(rows_by_time(events.times), numbers, most)
    found, offsets = _runs(numbers, order, most)
    lengths = np.empty(0, np.int64) if events.lengths is None else events.lengths[order]
    points = no_points()
    if tested and events.points is not None:
        points = events.points[order]
    return Buckets(order, events.times[order], lengths, points, found, offsets)


@compiled
def _runs(numbers, order, most):
    """The numbers below `most` that occur, and where the events of each begin."""
    count, last = 0, np.int64(-1)
    for row in order:
        if numbers[row] != last and numbers[row] < most:
            count += 1
            last = numbers[row]
    found, offsets = np.empty(count, np.int64), np.empty(count + 1, np.int64)
    count, last, n = 0, np.int64(-1), 0
    for row in order:
        if numbers[row] == most:
            break
        if numbers[row] != last:
            last = numbers[row]
            found[count], offsets[count] = last, n
            count += 1
        n += 1
    offsets[count] = n
    return found, offsets


@compiled
def cell_numbers(cells, points, group, none):
    """The number of each event's cell.

    Parameters
    ----------
    cells : CellNumbers
    points : Points
        Those of no event, where no dimension has more than one cell.
    group : int64 array, shape (n,)
        Codes of keys, negative for events that match nothing.
    none : int64
        The number of those.
    """
    numbers = np.empty(group.size, np.int64)
    for i in range(group.size):
        if group[i] < 0:
            numbers[i] = none
            continue
        number = group[i] * cells.stride[DIMENSIONS]
        for d in range(DIMENSIONS):
            if cells.per_unit[d] > 0.0:
                cell = int((points[i, d] - cells.origin[d]) * cells.per_unit[d])
                number += cell * cells.stride[d]
        numbers[i] = number
    return numbers


@compiled
def extent(points, group):
    """Least and largest coordinates of the events that can match: two float64 arrays, shape (4,)."""
    low, high = np.full(DIMENSIONS, np.inf), np.full(DIMENSIONS, -np.inf)
    for i in range(group.size):
        if group[i] >= 0:
            for d in range(DIMENSIONS):
                low[d] = min(low[d], points[i, d])
                high[d] = max(high[d], points[i, d])
    return low, high
