"""Which buckets hold partners of a bucket's events, and where in them: what all kernels share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.cause_and_effect.placing.searching import gallop
from coincide.compiled import compiled

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


class Found(NamedTuple):
    """Working memory of one kernel call: links of one bucket, and where its causes stand in some of them.

    Parameters
    ----------
    targets : int64 array, shape (most links,)
        Positions of buckets.
    windows : int64 array, shape (most links, 2)
        Least and most delta, ticks.
    cursors : int64 array, shape (rows,)
        Of each row of cells, where the search for the next cell begins.
    spans : int64 array, shape (spans, 4)
        Cause, first effect, past the last effect, and bucket of effects, of causes of a run and links in
        whose windows these have any.
    firsts : int64 array, shape (run,)
        Where the first effect of each cause of a run is that is not too early.
    flags : uint8 array, shape (chunk,)
        Which of some candidates of a cause are near enough.
    causes, effects : int64 arrays, shape (hits,)
        Candidates that are, or pairs.
    """

    targets: np.ndarray
    windows: np.ndarray
    cursors: np.ndarray
    spans: np.ndarray
    firsts: np.ndarray
    flags: np.ndarray
    causes: np.ndarray
    effects: np.ndarray


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def new_found(layout):
    """Working memory for a layout."""
    most = layout.most
    cursors = np.zeros(layout.shifts.size, np.int64)
    links = np.empty(most, np.int64), np.empty((most, 2), np.int64)
    runs = np.empty((SPANS, 4), np.int64), np.empty(RUN, np.int64)
    hits = np.empty(CHUNK, np.uint8), np.empty(HITS + 1, np.int64), np.empty(HITS + 1, np.int64)
    return Found(links[0], links[1], cursors, runs[0], runs[1], hits[0], hits[1], hits[2])


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
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


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def first_bucket(buckets, position):
    """The bucket of an event; the number of buckets for one of none."""
    return max(gallop(buckets.offsets, np.int64(0), buckets.offsets.size, position + 1) - 1, 0)


@compiled(allocates=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def place(sides, begin, last, link, links, found):
    """Find where the effects of causes begin ... last, of one bucket, stand in linked buckets.

    Parameters
    ----------
    sides : Sides
    begin, last : int64
        At most `RUN` causes.
    link, links : int64
        The first link in `found` to look at, and their number. `found.spans` is written.

    Returns
    -------
    link, count : int64
        The next link to look at, and the number of spans: there may not be room for all.
    """
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
        # Of simultaneous events of one stream the one of the lower rank is the cause.
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
    """Where the first effect at delta `lo` or more of each of some causes is: in first ... stop.

    Parameters
    ----------
    times, others : int64 arrays
        Of causes and effects.
    begin, last, lo, first, stop : int64
    firsts : int64 array, written
    """
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
