"""Which buckets hold partners of a bucket's events, and where in them: what all kernels share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.array_types import Int64s
from coincide.causality.deciding import squared_gap
from coincide.compiled import compiled
from cpu_fallback.causality.buckets import Buckets
from cpu_fallback.causality.searching import gallop

_NEAR = 4
"""Steps that are taken one by one before a search begins."""
_FAR = 8
"""Effects a cause from which on searching for the next one takes less time than going there."""

RUN = 512
"""Causes placed together: few enough that what is noted of them stays in the L1 cache."""


class Layout(NamedTuple):
    """How the buckets of causes and of effects lie to each other.

    Parameters
    ----------
    by_place : bool
        Whether buckets are places, which `starts`, `targets` and `windows` link
        (`cpu_fallback.causality.places.Links`), or cells, whose neighbours `shifts`, `widths` and `slabs`
        tell (`coincide.causality.grid.Neighbours`).
    sure : bool
        Whether every pair within a window qualifies: nothing is tested.
    self_join : bool
        Whether causes and effects are the same events, of which the earlier is the cause, and of
        simultaneous ones the one in the lower row.
    most : int
        Most links of a bucket.
    gap : float
        The largest |x - y|² of a pair that can qualify, or a little more.
    """

    by_place: bool
    sure: bool
    self_join: bool
    most: int
    gap: float
    shifts: Int64s
    widths: Int64s
    slabs: np.ndarray
    starts: Int64s
    targets: Int64s
    windows: np.ndarray


class Sides(NamedTuple):
    """Both sides of a join, as the kernels take them; the rule is a `PairRule` or an `UncertainRule`."""

    base: Buckets
    targets: Buckets
    layout: Layout
    rule: Any


class Found(NamedTuple):
    """Working memory of one kernel call: links of one bucket, and where its causes stand in one of them.

    Parameters
    ----------
    targets : int64 array, shape (most links,)
        Positions of buckets.
    windows : int64 array, shape (most links, 2)
        Least and most delta, ticks.
    cursors : int64 array, shape (rows,)
        Of each row of cells, where the search for the next cell begins.
    spans : int64 array, shape (run, 3)
        Cause, first effect and past the last effect, of each cause of a run that has any in a window.
    firsts : int64 array, shape (run,)
        Where the first effect of each cause of a run is that is not too early.
    """

    targets: np.ndarray
    windows: np.ndarray
    cursors: np.ndarray
    spans: np.ndarray
    firsts: np.ndarray


@compiled
def new_found(layout):
    """Working memory for a layout."""
    most = layout.most
    cursors = np.zeros(layout.shifts.size, np.int64)
    links = np.empty(most, np.int64), np.empty((most, 2), np.int64)
    runs = np.empty((RUN, 3), np.int64), np.empty(RUN, np.int64)
    return Found(links[0], links[1], cursors, runs[0], runs[1])


@compiled
def links_of(sides, bucket, found):
    """Find the links of a bucket of causes; of cells, buckets must be asked for in their order.

    Returns
    -------
    int64
        Their number; `found` has them.
    """
    layout, count = sides.layout, 0
    if layout.by_place:
        for k in range(layout.starts[bucket], layout.starts[bucket + 1]):
            found.targets[count] = layout.targets[k]
            found.windows[count, 0] = layout.windows[k, 0]
            found.windows[count, 1] = layout.windows[k, 1]
            count += 1
        return count
    numbers, own = sides.targets.numbers, sides.base.numbers[bucket]
    for row in range(layout.shifts.size):
        first = own + layout.shifts[row]
        cell = gallop(numbers, found.cursors[row], numbers.size, first)
        found.cursors[row] = cell
        while cell < numbers.size and numbers[cell] < first + layout.widths[row]:
            slab = layout.slabs[row, numbers[cell] - first]
            if slab[0] <= slab[1]:
                found.targets[count] = cell
                found.windows[count, 0], found.windows[count, 1] = slab[0], slab[1]
                count += 1
            cell += 1
    return count


@compiled
def first_bucket(buckets, position):
    """The bucket of an event; the number of buckets for one of none."""
    return max(gallop(buckets.offsets, 0, buckets.offsets.size, position + 1) - 1, 0)


@compiled
def place(sides, begin, last, link, found):
    """Find where the effects of causes begin ... last, of one bucket, stand in a linked bucket.

    Parameters
    ----------
    sides : Sides
    begin, last : int64
        At most `RUN` causes.
    link : int64
        In `found`, whose `spans` are written.

    Returns
    -------
    int64
        Number of spans.
    """
    # Taken out of their tuples here: inside the loop that would cost more than the loop does.
    times, order, spans, firsts = sides.base.times, sides.base.order, found.spans, found.firsts
    others, order2 = sides.targets.times, sides.targets.order
    lo, hi = found.windows[link, 0], found.windows[link, 1]
    end = sides.targets.offsets[found.targets[link] + 1]
    first = gallop(others, sides.targets.offsets[found.targets[link]], end, times[begin] + lo)
    _find_firsts(times, begin, last, lo, others, first, end, firsts)
    skips_itself = sides.layout.self_join and lo == 0
    count, past = 0, first
    for i in range(begin, last):
        first, time = firsts[i - begin], times[i]
        if first == end:
            break
        if others[first] > time + hi:
            continue
        if skips_itself and others[first] == time:
            # Of simultaneous events the one in the lower row is the cause.
            first = gallop(order2, first, gallop(others, first, end, time + 1), order[i] + 1)
        past = max(first, past)
        for _ in range(_NEAR):
            if past == end or others[past] > time + hi:
                break
            past += 1
        else:
            past = gallop(others, past, end, time + hi + 1)
        if first < past:
            spans[count, 0], spans[count, 1], spans[count, 2] = i, first, past
            count += 1
    return count


@compiled
def _find_firsts(times, begin, last, lo, others, first, end, firsts):
    """Where the first effect at delta `lo` or more of each of some causes is; all are from `first` on."""
    stop = gallop(others, first, end, times[last - 1] + lo)
    if stop - first > _FAR * (last - begin):
        for i in range(begin, last):
            first = gallop(others, first, stop, times[i] + lo)
            firsts[i - begin] = first
        return
    i = begin
    while i < last and first < stop:
        # Without a branch: which of the two comes next is not to be foreseen.
        later = others[first] < times[i] + lo
        firsts[i - begin] = first
        first += later
        i += not later
    for k in range(i, last):
        firsts[k - begin] = stop


@compiled(forceinline=True)
def corners(boxes, bucket):
    """The least and the largest x, y and z of a bucket."""
    low = (boxes[bucket, 0, 0], boxes[bucket, 0, 1], boxes[bucket, 0, 2])
    return low, (boxes[bucket, 1, 0], boxes[bucket, 1, 1], boxes[bucket, 1, 2])


@compiled(forceinline=True)
def gap_to_box(x, y, z, low, high):
    """|x - y|² of a point and the nearest of a box."""
    dx = max(max(low[0] - x, x - high[0]), 0.0)
    dy = max(max(low[1] - y, y - high[1]), 0.0)
    dz = max(max(low[2] - z, z - high[2]), 0.0)
    return squared_gap(dx, dy, dz)
