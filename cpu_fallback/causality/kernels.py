"""The kernels of the causality join. Numba, one thread, no GIL."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.model.causality.buckets import gallop, gap_between, gap_to_side, height_between
from coincide.model.causality.deciding import squared_gap
from coincide.model.causality.spaces import H, X, Y, Z
from coincide.model.compiled import compiled

SURE, TESTED, FOUND = range(3)
"""Entries of a tally: pairs that needed no test, pairs tested, and those of them that qualified."""


class Wanted(NamedTuple):
    """What is written of each pair."""

    values: np.ndarray
    out: np.ndarray
    deltas: np.ndarray
    distances: np.ndarray


@compiled(allocates=True)
def walk_block(start, stop, sides, places, wanted):
    """Count the effects of the causes start ... stop, or write them cause by cause."""
    # One kernel does both, so that both see the same pairs in the same order.
    tally = np.zeros(3, np.int64)
    base, found = sides.base, new_memory(sides.layout)
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
    """Note what is near enough in the windows of some causes, as much as there is room for."""
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
    """Keep the noted pairs that qualify; their number."""
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
    writes = out.size > 0
    for k in range(hits):
        i, j = causes[k], effects[k]
        at = places[i - start]
        places[i - start] = at + 1
        if writes:
            out[at] = values[j]
        if deltas.size:
            deltas[at] = others[j] - times[i]
        if distances.size:
            dh = height_between(points, i, points2, j)
            distances[at] = rule.distance_of(gap_between(points, i, points2, j), dh)


@compiled(allocates=True)
def repeat(values, offsets, start, stop, out):
    """Write the value of each cause start ... stop as often as it has effects."""
    for i in range(start, stop):
        for at in range(offsets[i] - offsets[start], offsets[i + 1] - offsets[start]):
            out[at] = values[i]


@compiled(allocates=True)
def measures_of(rule, times, points, times2, points2, own, others, delta, distance):
    """Delta and distance of given pairs."""
    for k in range(own.size):
        i, j = own[k], others[k]
        delta[k] = times2[j] - times[i]
        if distance.size:
            dh = height_between(points, i, points2, j)
            distance[k] = rule.distance_of(gap_between(points, i, points2, j), dh)


_NEAR = 4
"""Steps that are taken one by one before a search begins."""
_FAR = 8
"""Effects a cause from which on searching for the next one takes less time than going there."""

RUN, SPANS = 256, 4096
"""Causes placed together, and how much is noted of them: few enough to stay in the nearest caches."""
CHUNK = 256
"""Candidates of a cause whose distances are computed together."""
HITS = 2048
"""Candidates that are noted before they are looked at more closely."""


class WalkMemory(NamedTuple):
    """Working memory of one kernel call: links of a bucket, and its causes' places in some of them."""

    targets: np.ndarray
    windows: np.ndarray
    cursors: np.ndarray
    spans: np.ndarray
    firsts: np.ndarray
    flags: np.ndarray
    causes: np.ndarray
    effects: np.ndarray


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def new_memory(layout):
    """Working memory for a layout."""
    most = layout.most
    cursors = np.zeros(layout.offsets.size, np.int64)
    links = np.empty(most, np.int64), np.empty((most, 2), np.int64)
    runs = np.empty((SPANS, 4), np.int64), np.empty(RUN, np.int64)
    hits = np.empty(CHUNK, np.uint8), np.empty(HITS + 1, np.int64), np.empty(HITS + 1, np.int64)
    return WalkMemory(links[0], links[1], cursors, runs[0], runs[1], hits[0], hits[1], hits[2])


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def links_of(sides, bucket, found):
    """Find the links of a bucket of causes; of cells, buckets must be asked for in their order."""
    layout, count = sides.layout, 0
    if layout.by_place:
        for k in range(layout.starts[bucket], layout.starts[bucket + 1]):
            found.targets[count] = layout.targets[k]
            found.windows[count, 0] = layout.windows[k, 0]
            found.windows[count, 1] = layout.windows[k, 1]
            count += 1
        return count
    numbers, own = sides.targets.numbers, sides.base.numbers[bucket]
    for row in range(layout.offsets.size):
        first = own + layout.offsets[row]
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


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def first_bucket(buckets, position):
    """The bucket of an event; the number of buckets for one of none."""
    return max(gallop(buckets.offsets, np.int64(0), buckets.offsets.size, position + 1) - 1, 0)


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def place(sides, begin, last, link, links, found):
    """Find the places in linked buckets of the effects of causes begin ... last, of one bucket."""
    # Taken out of their tuples here: inside the loops that would cost more than a step does.
    times, ranks, others, ranks2 = (
        sides.base.times, sides.base.ranks, sides.targets.times, sides.targets.ranks
    )  # fmt: skip
    offsets, spans, firsts = sides.targets.offsets, found.spans, found.firsts
    targets, windows = found.targets, found.windows
    count = 0
    while link < links and count + last - begin <= SPANS:
        target, lo, hi = targets[link], windows[link, 0], windows[link, 1]
        link, end = link + 1, offsets[target + 1]
        # The cause is the event of the lower rank, where two of one stream are simultaneous.
        meets_itself = sides.layout.self_join and lo == 0
        first = gallop(others, offsets[target], end, times[begin] + lo)
        if first == end:
            continue
        stop = gallop(others, first, end, times[last - 1] + lo)
        find_firsts(times, begin, last, lo, others, first, stop, firsts)
        past = first
        for i in range(begin, last):
            first, time = firsts[i - begin], times[i]
            if first == end:
                break
            if others[first] > time + hi:
                continue
            if meets_itself and others[first] == time:
                first = gallop(ranks2, first, gallop(others, first, end, time + 1), ranks[i] + 1)
            past = max(first, past)
            for _ in range(_NEAR):
                if past == end or others[past] > time + hi:
                    break
                past += 1
            else:
                past = gallop(others, past, end, time + hi + 1)
            if first < past:
                spans[count, 0], spans[count, 1], spans[count, 2] = i, first, past
                spans[count, 3] = target
                count += 1
    return link, count


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def find_firsts(times, begin, last, lo, others, first, stop, firsts):
    """Where the first effect at delta `lo` or more of each of some causes is: in first ... stop."""
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
