"""Kernels of aggregates: sums and least values of matches, without a pair that is made.

`before`, `codes` and `tables` are those of `coincide.model.range_sums.Prepared`. `sums`, int64, (events,
lanes), and `least`, int64, (events, columns): what is found of each base event of a run. Whole sums depend
on no order of additions.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from coincide.model.range_sums import NOTHING, least_between
from gpu_kernels.kernels.compilation import ITEMS, THREADS, TILE, device_function, kernel
from gpu_kernels.kernels.join import (
    I64_ARRAY,
    I64_CUBE,
    I64_TABLE,
    RUN,
    SPANS,
    U8_ARRAY,
    candidate_of,
)
from gpu_kernels.kernels.searching import at, owner_after, owner_of


@kernel(RUN, SPANS, I64_TABLE, I64_TABLE, I64_CUBE, I64_TABLE, I64_TABLE)
def take_ranges(run, spans, before, codes, tables, sums, least):
    """Take the inner ranges, a thread for each base event: it writes all of the event's row."""
    row = cuda.grid(1)
    if row >= max(sums.shape[0], least.shape[0]):
        return
    first = row * run.classes
    for c in range(before.shape[1]):
        total = np.int64(0)
        for entry in range(first, first + run.classes):
            start, stop = spans.inner[at(entry)], spans.shell[at(entry)]
            total += before[stop, c] - before[start, c]
        sums[row, c] = total
    for c in range(codes.shape[0]):
        found = NOTHING
        for entry in range(first, first + run.classes):
            start, stop = spans.inner[at(entry)], spans.shell[at(entry)]
            found = min(found, least_between(codes[c], tables[c], start, stop))
        least[row, c] = found


@kernel(RUN, SPANS, I64_ARRAY, I64_ARRAY, U8_ARRAY, *[I64_TABLE] * 4)
def take_candidates(run, spans, scan, owners, flags, before, codes, sums, least):
    """Take the candidates that `join.probe` found to qualify, by runs of neighbours of one thread."""
    tile, thread = np.int64(cuda.blockIdx.x), np.int64(cuda.threadIdx.x)
    bits = np.int32(flags[at(tile * THREADS + thread)])
    if not bits:
        return
    item = tile * TILE + thread * ITEMS
    past_owners = owners[at(tile + 1)] + 1
    owner = owner_of(scan, owners[at(tile)], past_owners, item)
    following = scan[at(owner + 1)]
    row = start = stop = np.int64(-1)
    while bits:
        if bits & 1:
            if item >= following:
                owner = owner_after(scan, 1, owner, past_owners, item)
                following = scan[at(owner + 1)]
            target, _ = candidate_of(spans, owner, item - scan[at(owner)])
            event = run.event_of(owner) - run.start
            if event != row or target != stop:
                _take(row, start, stop, before, codes, sums, least)
                row, start = event, target
            stop = target + 1
        item += 1
        bits >>= 1
    _take(row, start, stop, before, codes, sums, least)


@device_function
def _take(row, start, stop, before, codes, sums, least):
    """Add the targets start ... stop to what is found of a base event."""
    if start == stop:
        return
    for c in range(before.shape[1]):
        cuda.atomic.add(sums, (row, c), before[stop, c] - before[start, c])
    for c in range(codes.shape[0]):
        found = NOTHING
        for target in range(start, stop):
            found = min(found, codes[c, target])
        cuda.atomic.min(least, (row, c), found)
