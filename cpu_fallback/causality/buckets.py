"""Events of a side in buckets, each a cell of the grid or one place, by time within."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.array_types import Int64s
from coincide.causality.points import DIMENSIONS, PlacedEvents, Points, no_points
from coincide.compiled import compiled
from cpu_fallback.causality.sorting import rows_by_time, sorted_rows

_DENSE = 4
"""Numbers of buckets an event up to which counting them all takes less time than sorting by digits."""


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
    boxes : float64 array, shape (buckets, 2, 3)
        Least and largest x, y and z of the events of each bucket; of no bucket where `points` is empty.
    """

    order: Int64s
    times: Int64s
    lengths: Int64s
    points: Points
    numbers: Int64s
    offsets: Int64s
    boxes: np.ndarray


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
    points = events.points if tested and events.points is not None else no_points()
    rows = rows_by_time(events.times)
    if most <= _DENSE * rows.size:
        order, times, points, found, offsets = _dealt(rows, numbers, most, events.times, points)
    else:
        order = sorted_rows(rows, numbers, most)
        times, points = _gathered(order, events.times, points)
        found, offsets = _runs(numbers, order, most)
    lengths = np.empty(0, np.int64) if events.lengths is None else events.lengths[order]
    boxes = _boxes(points, offsets if points.size else offsets[:1])
    return Buckets(order, times, lengths, points, found, offsets, boxes)


@compiled
def _dealt(rows, numbers, most, times, points):
    """Deal events, in the order of `rows`, to their buckets: in one pass, each is touched once."""
    starts = np.zeros(most + 2, np.int64)
    for number in numbers:
        starts[number + 1] += 1
    count = 0
    for number in range(most):
        count += starts[number + 1] > 0
    found, offsets = np.empty(count, np.int64), np.zeros(count + 1, np.int64)
    count = 0
    for number in range(most + 1):
        if number < most and starts[number + 1] > 0:
            found[count] = number
            offsets[count + 1] = offsets[count] + starts[number + 1]
            count += 1
        starts[number + 1] += starts[number]
    n, placed = rows.size, points.shape[0] > 0
    order, times_out, points_out = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty_like(points),
    )
    for row in rows:
        at = starts[numbers[row]]
        starts[numbers[row]] = at + 1
        order[at], times_out[at] = row, times[row]
        if placed:
            for d in range(DIMENSIONS):
                points_out[at, d] = points[row, d]
    return order, times_out, points_out, found, offsets


@compiled
def _gathered(order, times, points):
    times_out, points_out = np.empty(order.size, np.int64), np.empty_like(points)
    for at in range(order.size):
        times_out[at] = times[order[at]]
        if points.shape[0]:
            for d in range(DIMENSIONS):
                points_out[at, d] = points[order[at], d]
    return times_out, points_out


@compiled
def _boxes(points, offsets):
    boxes = np.empty((offsets.size - 1, 2, 3))
    for bucket in range(offsets.size - 1):
        for d in range(3):
            low, high = np.inf, -np.inf
            for i in range(offsets[bucket], offsets[bucket + 1]):
                low, high = min(low, points[i, d]), max(high, points[i, d])
            boxes[bucket, 0, d], boxes[bucket, 1, d] = low, high
    return boxes


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
