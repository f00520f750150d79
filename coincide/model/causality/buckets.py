"""Events of a side in buckets, each a cell of the grid or one place, by time within."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.model.causality.deciding import squared_gap
from coincide.model.causality.grid import DIMENSIONS
from coincide.model.causality.spaces import H, PlacedEvents, Points, X, Y, Z, no_points
from coincide.model.compiled import Int64s, compiled
from coincide.model.ordering import ascends, stable_order

_DENSE = 4
"""Numbers of buckets an event up to which counting them all takes less time than sorting by digits."""


class Buckets(NamedTuple):
    """Events sorted by (bucket, time, row); those that match nothing are last, in no bucket."""

    order: Int64s  # int64, shape (n,): row of each event in the caller's arrays
    ranks: Int64s  # int64, shape (n,)
    times: Int64s  # int64, shape (n,): ticks
    lengths: Int64s  # int64, shape (n,): `lengths` is empty where all are exact instants
    points: Points  # Those of events that have no places, where these have none
    numbers: Int64s  # int64, shape (buckets,): ascending
    offsets: Int64s  # int64, shape (buckets + 1,): first event of each bucket
    boxes: np.ndarray  # float64, shape (buckets, 2, 3)


def in_buckets(events: PlacedEvents, numbers: np.ndarray, most: int) -> Buckets:
    """Sort events into buckets."""
    points = no_points() if events.points is None else events.points
    lengths = np.empty(0, np.int64) if events.lengths is None else events.lengths
    if most == 1 and events.group is None and ascends(events.times):
        offsets = np.array([0, len(events)][: 2 if len(events) else 1], np.int64)
        numbers = np.zeros(offsets.size - 1, np.int64)
        boxes = _boxes(points, offsets)
        order = np.arange(len(events))
        ranks = order if events.ranks is None else events.ranks
        return Buckets(order, ranks, events.times, lengths, points, numbers, offsets, boxes)
    if most <= _DENSE * len(events):
        rows = stable_order(events.times)
        order, times, points, found, offsets = _dealt(rows, numbers, most, events.times, points)
    else:
        order = stable_order(events.times, numbers)
        times, points = _gathered(order, events.times, points)
        found, offsets = _runs(numbers, order, most)
    lengths = lengths[order] if lengths.size else lengths
    ranks = order if events.ranks is None else events.ranks[order]
    return Buckets(order, ranks, times, lengths, points, found, offsets, _boxes(points, offsets))


@compiled(allocates=True)
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
    n = rows.size
    order, times_out, points_out = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty_like(points),
    )
    for row in rows:
        at = starts[numbers[row]]
        starts[numbers[row]] = at + 1
        order[at], times_out[at] = row, times[row]
        for d in range(points.shape[0]):
            points_out[d, at] = points[d, row]
    return order, times_out, points_out, found, offsets


@compiled(allocates=True)
def _gathered(order, times, points):
    times_out, points_out = np.empty(order.size, np.int64), np.empty_like(points)
    for at in range(order.size):
        times_out[at] = times[order[at]]
        for d in range(points.shape[0]):
            points_out[d, at] = points[d, order[at]]
    return times_out, points_out


@compiled(allocates=True)
def _boxes(points, offsets):
    boxes = np.zeros((offsets.size - 1, 2, 3))
    for bucket in range(offsets.size - 1):
        for d in range(min(3, points.shape[0])):
            low, high = np.inf, -np.inf
            for i in range(offsets[bucket], offsets[bucket + 1]):
                low, high = min(low, points[d, i]), max(high, points[d, i])
            boxes[bucket, 0, d], boxes[bucket, 1, d] = low, high
    return boxes


@compiled(allocates=True)
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


@compiled(allocates=True)
def cell_numbers(cells, points, group, none):
    """The number of each event's cell."""
    numbers = np.empty(group.size, np.int64)
    for i in range(group.size):
        if group[i] < 0:
            numbers[i] = none
            continue
        number = group[i] * cells.stride[DIMENSIONS]
        for d in range(points.shape[0]):
            if cells.per_unit[d] > 0.0:
                cell = int((points[d, i] - cells.origin[d]) * cells.per_unit[d])
                number += cell * cells.stride[d]
        numbers[i] = number
    return numbers


@compiled(allocates=True)
def extent(points, group):
    """Least and largest x, y, z and h of the events that can match: two float64 arrays, shape (4,)."""
    low, high = np.full(DIMENSIONS, np.inf), np.full(DIMENSIONS, -np.inf)
    for d in range(points.shape[0]):
        for i in range(group.size):
            if group[i] >= 0:
                low[d], high[d] = min(low[d], points[d, i]), max(high[d], points[d, i])
    return low, high


@compiled(allocates=True)
def gap_between(own, i, others, j):
    """|x - y|² of event i and event j of two arrays of `Points`."""
    return squared_gap(others[X, j] - own[X, i], others[Y, j] - own[Y, i], others[Z, j] - own[Z, i])


@compiled(allocates=True)
def height_between(own, i, others, j):
    """The difference of their heights."""
    return others[H, j] - own[H, i] if own.shape[0] > H else 0.0


@compiled(forceinline=True)
def gap_to_side(value, low, high):
    """How far a coordinate is from the nearest between two ends."""
    return max(max(low - value, value - high), 0.0)


@compiled(allocates=True)
def gallop(values, at, end, bound):
    """The first position from `at` on, before `end`, of a value that is at least `bound`, or `end`."""
    if at >= end or values[at] >= bound:
        return at
    step = 1
    while at + step < end and values[at + step] < bound:
        at += step
        step *= 2
    low, high = at, min(at + step, end)  # below the bound, and not
    while high - low > 1:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle
        else:
            high = middle
    return high
