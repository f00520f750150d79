"""The kernels of the causality join. Numba, one thread, no GIL.

A block of causes is walked bucket by bucket. Of every bucket that is linked to a cause's, two
cursors move through the effects, which are in order of time, and hold those in the window of the
link between them. Candidates are tested there and then; none is ever written down.
"""

from __future__ import annotations

import math

import numpy as np

from coincide.causality.deciding import squared_distance, squared_gap
from coincide.compiled import compiled
from cpu_fallback.causality.links import (
    RUN,
    corners,
    first_bucket,
    gap_to_box,
    links_of,
    new_found,
    place,
)

SURE, TESTED, FOUND = range(3)
"""Entries of a tally: pairs that needed no test, pairs tested, and those of them that qualified."""


@compiled
def walk_block(start, stop, sides, places, values, out):
    """Count the effects of the causes start ... stop, or write them cause by cause.

    One kernel does both, so that both see the same pairs in the same order.

    Parameters
    ----------
    start, stop : int64
        Positions of causes.
    sides : Sides
    places : int64 array, shape (stop - start,), written
        Each cause's number of effects is added to its entry; before, that is where its first one goes.
    values : int64 array
        What to write for an effect, by position.
    out : int64 array, written
        Empty: nothing is written.

    Returns
    -------
    int64 array, shape (3,)
        The tally of the block.
    """
    tally = np.zeros(3, np.int64)
    base, found = sides.base, new_found(sides.layout)
    bucket, begin = first_bucket(base, start), start
    while bucket < base.numbers.size and begin < stop:
        last = min(min(stop, begin + RUN), base.offsets[bucket + 1])
        for link in range(links_of(sides, bucket, found)):
            spans = found.spans[: place(sides, begin, last, link, found)]
            if sides.layout.sure:
                _take_all(start, spans, places, values, out, tally)
            else:
                target = found.targets[link]
                _take_met(start, sides, target, spans, places, values, out, tally)
        begin = last
        if last == base.offsets[bucket + 1]:
            bucket += 1
    return tally


@compiled
def _take_all(start, spans, places, values, out, tally):
    """Take what is in the windows of some causes."""
    for k in range(spans.shape[0]):
        i, first, past = spans[k, 0], spans[k, 1], spans[k, 2]
        if out.size:
            at = places[i - start]
            for j in range(first, past):
                out[at] = values[j]
                at += 1
        places[i - start] += past - first
        tally[SURE] += past - first


@compiled
def _take_met(start, sides, target, spans, places, values, out, tally):
    """Take what qualifies in the windows of some causes, in the bucket `target`."""
    # Taken out of their tuples here: inside the loops that would cost more than a test does.
    rule, times, lengths, points = (
        sides.rule,
        sides.base.times,
        sides.base.lengths,
        sides.base.points,
    )
    others, lengths2, points2 = sides.targets.times, sides.targets.lengths, sides.targets.points
    placed, writes, farthest = points.shape[0] > 0, out.size > 0, sides.layout.gap
    low = high = (0.0, 0.0, 0.0)
    if placed:
        low, high = corners(sides.targets.boxes, target)
    gap = dh = x = y = z = h = 0.0
    for k in range(spans.shape[0]):
        i, first, past = spans[k, 0], spans[k, 1], spans[k, 2]
        if placed:
            x, y, z, h = points[i, 0], points[i, 1], points[i, 2], points[i, 3]
            if gap_to_box(x, y, z, low, high) > farthest:
                continue
        left, at = lengths[i] if lengths.size else 0, places[i - start]
        for j in range(first, past):
            if placed:
                gap = squared_gap(points2[j, 0] - x, points2[j, 1] - y, points2[j, 2] - z)
                dh = points2[j, 3] - h
            right = lengths2[j] if lengths2.size else 0
            if rule.meets(gap, dh, others[j] - times[i], left, right):
                if writes:
                    out[at] = values[j]
                at += 1
        tally[TESTED] += past - first
        tally[FOUND] += at - places[i - start]
        places[i - start] = at


@compiled
def repeat(values, offsets, start, stop, out):
    """Write the value of each cause start ... stop as often as it has effects."""
    for i in range(start, stop):
        for at in range(offsets[i] - offsets[start], offsets[i + 1] - offsets[start]):
            out[at] = values[i]


@compiled
def measured_pairs(curvature, times, points, times2, points2, own, others, delta, distance):
    """Delta and distance of given pairs.

    Parameters
    ----------
    curvature : float64
        As `PairRule.curvature`.
    times, points, times2, points2
        Of causes and of effects, by row; points of no event where they have no places.
    own, others : int64 arrays, shape (n,)
        Rows of the pairs.
    delta : int64 array, shape (n,), written
        Ticks.
    distance : float64 array, shape (n,), written; or empty
    """
    for k in range(own.size):
        i, j = own[k], others[k]
        delta[k] = times2[j] - times[i]
        if distance.size:
            p, q = points[i], points2[j]
            gap = squared_gap(q[0] - p[0], q[1] - p[1], q[2] - p[2])
            distance[k] = math.sqrt(squared_distance(curvature, gap, q[3] - p[3]))
