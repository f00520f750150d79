"""The kernels of the causality join. Numba, one thread, no GIL.

A block of causes is walked bucket by bucket. Of every bucket that is linked to a cause's, two
cursors move through the effects, which are in order of time, and hold those in the window of the
link between them. Candidates are tested there and then; none is ever written down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.cause_and_effect.deciding import squared_gap
from coincide.cause_and_effect.placing.gaps import gap_to_side
from coincide.cause_and_effect.points import H, X, Y, Z
from coincide.compiled import compiled
from cpu_fallback.causality.links import (
    CHUNK,
    HITS,
    RUN,
    first_bucket,
    links_of,
    new_found,
    place,
)

SURE, TESTED, FOUND = range(3)
"""Entries of a tally: pairs that needed no test, pairs tested, and those of them that qualified."""


class Wanted(NamedTuple):
    """What is written of each pair.

    Parameters
    ----------
    values : int64 array
        What to write for an effect, by position.
    out : int64 array, shape (pairs,), written
        Empty: pairs are only counted.
    deltas : int64 array, shape (pairs,), written, or empty
        Ticks.
    distances : float64 array, shape (pairs,), written, or empty
    """

    values: np.ndarray
    out: np.ndarray
    deltas: np.ndarray
    distances: np.ndarray


@compiled(allocates=True)
def walk_block(start, stop, sides, places, wanted):
    """Count the effects of the causes start ... stop, or write them cause by cause.

    One kernel does both, so that both see the same pairs in the same order.

    Parameters
    ----------
    start, stop : int64
        Positions of causes.
    sides : Sides
    places : int64 array, shape (stop - start,), written
        Each cause's number of effects is added to its entry; before, that is where its first one goes.
    wanted : Wanted

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
        link, links = np.int64(0), links_of(sides, bucket, found)  # a literal is compiled apart
        while link < links:
            link, spans = place(sides, begin, last, link, links, found)
            if spans > 0:
                _take(start, sides, found, spans, places, wanted, tally)
        begin = last
        if last == base.offsets[bucket + 1]:
            bucket += 1
    return tally


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _take(start, sides, found, spans, places, wanted, tally):
    """Take what qualifies in the windows of some causes."""
    sure, plain, writes = sides.layout.sure, sides.layout.plain, wanted.out.size > 0
    if sure and not writes:
        tally[SURE] += _count_all(start, found, spans, places)
        return
    if plain and not writes:
        _count_near(start, sides, found, spans, places, tally)
        return
    span = effect = np.int64(0)
    while span < spans:
        span, effect, hits = _collect(sides, found, span, spans, effect, tally)
        if not (sure or plain):
            hits = _keep_met(sides, found, hits)
        _put(start, sides, found, hits, places, wanted)
        tally[SURE if sure else FOUND] += hits


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _count_all(start, found, spans, places):
    """Count all in the windows of some causes."""
    total = 0
    for k in range(spans):
        here = found.spans[k, 2] - found.spans[k, 1]
        places[found.spans[k, 0] - start] += here
        total += here
    return total


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _count_near(start, sides, found, spans, places, tally):
    """Count what is near enough in the windows of some causes."""
    # Taken out of their tuples here: inside the loops that would cost more than a test does.
    own, points, noted, farthest = (
        sides.base.points, sides.targets.points, found.spans, sides.layout.gap
    )  # fmt: skip
    boxes = sides.targets.boxes
    for k in range(spans):
        i, first, past, bucket = noted[k, 0], noted[k, 1], noted[k, 2], noted[k, 3]
        x, y, z = own[X, i], own[Y, i], own[Z, i]
        dx = gap_to_side(x, boxes[bucket, 0, X], boxes[bucket, 1, X])
        dy = gap_to_side(y, boxes[bucket, 0, Y], boxes[bucket, 1, Y])
        dz = gap_to_side(z, boxes[bucket, 0, Z], boxes[bucket, 1, Z])
        if squared_gap(dx, dy, dz) > farthest:
            continue
        near = 0
        for j in range(first, past):  # without a branch: several effects at a time
            near += squared_gap(points[X, j] - x, points[Y, j] - y, points[Z, j] - z) <= farthest
        places[i - start] += near
        tally[TESTED] += past - first
        tally[FOUND] += near


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _collect(sides, found, span, spans, effect, tally):
    """Note what is near enough in the windows of some causes, as much as there is room for.

    Parameters
    ----------
    span, effect : int64
        Where to go on: a span, and how many of its effects are done.

    Returns
    -------
    span, effect, hits : int64
        Where to go on, and what is noted.
    """
    own, points, noted, farthest = (
        sides.base.points, sides.targets.points, found.spans, sides.layout.gap
    )  # fmt: skip
    flags, causes, effects = found.flags, found.causes, found.effects
    boxes = sides.targets.boxes
    tests = points.shape[0] > 0 and not sides.layout.sure
    hits, tested = 0, 0
    x = y = z = 0.0
    while span < spans and hits + CHUNK <= HITS:
        i, first, bucket = noted[span, 0], noted[span, 1] + effect, noted[span, 3]
        past = min(noted[span, 2], first + CHUNK)
        n = past - first
        if tests:
            x, y, z = own[X, i], own[Y, i], own[Z, i]
            dx = gap_to_side(x, boxes[bucket, 0, X], boxes[bucket, 1, X])
            dy = gap_to_side(y, boxes[bucket, 0, Y], boxes[bucket, 1, Y])
            dz = gap_to_side(z, boxes[bucket, 0, Z], boxes[bucket, 1, Z])
            if squared_gap(dx, dy, dz) > farthest:
                n, past = 0, noted[span, 2]
        # Neither loop has a branch: the first does several effects at a time, the other's is unforeseeable.
        for k in range(n):
            j = first + k
            gap = (
                squared_gap(points[X, j] - x, points[Y, j] - y, points[Z, j] - z) if tests else 0.0
            )
            flags[k] = gap <= farthest
        for k in range(n):
            causes[hits], effects[hits] = i, first + k
            hits += flags[k]
        tested += n
        effect += past - first
        if past == noted[span, 2]:
            span, effect = span + 1, 0
    if not sides.layout.sure:
        tally[TESTED] += tested
    return span, effect, hits


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _keep_met(sides, found, hits):
    """Keep, of what is noted, the pairs that qualify; their number."""
    rule, causes, effects = sides.rule, found.causes, found.effects
    times, lengths, points = sides.base.times, sides.base.lengths, sides.base.points
    others, lengths2, points2 = sides.targets.times, sides.targets.lengths, sides.targets.points
    placed, high = points.shape[0] > 0, points.shape[0] > H
    gap, dh, count = 0.0, 0.0, 0
    for k in range(hits):
        i, j = causes[k], effects[k]
        if placed:
            dx, dy, dz = (
                points2[X, j] - points[X, i], points2[Y, j] - points[Y, i], points2[Z, j] - points[Z, i]
            )  # fmt: skip
            gap, dh = squared_gap(dx, dy, dz), points2[H, j] - points[H, i] if high else 0.0
        left, right = lengths[i] if lengths.size else 0, lengths2[j] if lengths2.size else 0
        causes[count], effects[count] = i, j
        count += rule.meets(gap, dh, others[j] - times[i], left, right)
    return count


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _put(start, sides, found, hits, places, wanted):
    """Count the pairs that are noted, and write what is wanted of them."""
    causes, effects = found.causes, found.effects
    values, out, deltas, distances = wanted.values, wanted.out, wanted.deltas, wanted.distances
    rule, times, points = sides.rule, sides.base.times, sides.base.points
    others, points2 = sides.targets.times, sides.targets.points
    writes, high = out.size > 0, points.shape[0] > H
    for k in range(hits):
        i, j = causes[k], effects[k]
        at = places[i - start]
        places[i - start] = at + 1
        if writes:
            out[at] = values[j]
        if deltas.size:
            deltas[at] = others[j] - times[i]
        if distances.size:
            dx, dy, dz = (
                points2[X, j] - points[X, i], points2[Y, j] - points[Y, i], points2[Z, j] - points[Z, i]
            )  # fmt: skip
            dh = points2[H, j] - points[H, i] if high else 0.0
            distances[at] = rule.distance_of(squared_gap(dx, dy, dz), dh)


@compiled(allocates=True)
def repeat(values, offsets, start, stop, out):
    """Write the value of each cause start ... stop as often as it has effects."""
    for i in range(start, stop):
        for at in range(offsets[i] - offsets[start], offsets[i + 1] - offsets[start]):
            out[at] = values[i]


@compiled(allocates=True)
def measures_of(rule, times, points, times2, points2, own, others, delta, distance):
    """Delta and distance of given pairs.

    Parameters
    ----------
    rule : PairRule
    times, points, times2, points2
        Of causes and of effects, by row; points of no event where they have no places.
    own, others : int64 arrays, shape (n,)
        Rows of the pairs.
    delta : int64 array, shape (n,), written
        Ticks.
    distance : float64 array, shape (n,), written; or empty
    """
    placed, high = distance.size > 0, points.shape[0] > H
    for k in range(own.size):
        i, j = own[k], others[k]
        delta[k] = times2[j] - times[i]
        if placed:
            dx, dy, dz = (
                points2[X, j] - points[X, i], points2[Y, j] - points[Y, i], points2[Z, j] - points[Z, i]
            )  # fmt: skip
            dh = points2[H, j] - points[H, i] if high else 0.0
            distance[k] = rule.distance_of(squared_gap(dx, dy, dz), dh)
