"""Kernels with a block for each tile of items: work is balanced over pairs, not over events.

Items, such as the candidates of all entries, are numbered by an exclusive scan of how many each
entry owns. A block takes a tile of consecutive items; `owners` says with whose it begins. A burst is
so shared among blocks, and within a block all threads do the same, whoever owns the items.

The functions that use `cuda` stay in one file: the simulator exchanges that name in a file's globals.
"""

from __future__ import annotations

import numpy as np
from numba import cuda, types

from gpu_kernels.kernels.compilation import (
    ITEMS,
    THREADS,
    TILE,
    device_function,
    kernel,
    rule_kernel,
)
from gpu_kernels.kernels.deciding import distance_of, merit_of
from gpu_kernels.kernels.layout import (
    F64_ARRAY,
    I64_ARRAY,
    RUN,
    SPANS,
    U8_ARRAY,
    U64_ARRAY,
    sides_type,
)
from gpu_kernels.kernels.searching import owner_of


def _candidates_and(*more):
    """Of a run of base events: what all kernels take that look at candidates, and more."""
    return lambda rule: (sides_type(rule), RUN, SPANS, I64_ARRAY, I64_ARRAY, *more)


@rule_kernel(_candidates_and(U8_ARRAY, I64_ARRAY, I64_ARRAY))
def probe(sides, run, spans, scan, owners, flags, totals, parts):
    """Decide the candidates in the shells of a run of base events.

    Parameters
    ----------
    sides : Sides
    run : Run
    spans : Spans
    scan : int64 array, shape (entries + 1,)
        Exclusive scan of the candidates in the shells of each entry: early ones, then late ones.
    owners : int64 array, shape (tiles + 1,)
        The entry that owns the first candidate of each tile; past the last tile, the last entry.
    flags : uint8 array, shape (tiles * THREADS,), written
        Which candidates qualify, a bit each, the lowest first.
    totals : int64 array, shape (tiles,), written
        How many qualify in each tile.
    parts : int64 array, shape (3 * entries,), added to
        How many qualify in the early shell of each entry, which is item 3 * entry, and in the late one,
        item 3 * entry + 2: zero before.
    """
    decided = cuda.shared.array(TILE, np.uint8)
    sums = cuda.shared.array((2, THREADS), np.int32)
    tile, thread = cuda.blockIdx.x, cuda.threadIdx.x
    origin = np.int64(tile) * TILE
    end = min(origin + TILE, scan[scan.size - 1])
    owner, past_owners = owners[tile], owners[tile + 1] + 1
    # Neighbouring threads take neighbouring candidates, hence neighbouring targets.
    for item in range(thread, TILE, THREADS):
        decided[item] = 0
        if origin + item < end:
            owner = owner_of(scan, owner, past_owners, origin + item)
            target = _shell_target(spans, owner, origin + item - scan[owner])
            decided[item] = sides.takes(run.event_of(owner), target)
    cuda.syncthreads()
    bits = np.int32(0)
    for i in range(ITEMS):
        bits |= np.int32(decided[thread * ITEMS + i]) << i
    flags[origin // ITEMS + thread] = bits
    side = _scan_block(sums, cuda.popc(bits), thread)
    if thread == 0:
        totals[tile] = sums[side, THREADS - 1]
    # One addition for each run of candidates of one shell: however many entries have none, none is visited.
    item, owner = origin + thread * ITEMS, owners[tile]
    part, qualified = np.int64(-1), 0
    while bits:
        if bits & 1:
            owner = owner_of(scan, owner, past_owners, item)
            target = _shell_target(spans, owner, item - scan[owner])
            shell = 3 * owner + 2 * np.int64(target >= spans.shell[owner])
            if shell != part:
                if qualified:
                    cuda.atomic.add(parts, part, qualified)
                part, qualified = shell, 0
            qualified += 1
        item += 1
        bits >>= 1
    if qualified:
        cuda.atomic.add(parts, part, qualified)


@kernel(SPANS, I64_ARRAY, I64_ARRAY, U8_ARRAY, *[I64_ARRAY] * 4)
def scatter(spans, scan, owners, flags, before, inner_before, values, out):
    """Write the candidates that `probe` found to qualify.

    Parameters
    ----------
    spans, scan, owners, flags
        As `probe`.
    before : int64 array, shape (tiles,)
        How many qualify in all tiles before each.
    inner_before : int64 array, shape (entries + 1,)
        How many targets are in the inner ranges before that of each entry: exclusive scan.
    values : int64 array, shape (targets,)
        What to write for a target.
    out : int64 array, shape (matches,), written
    """
    sums = cuda.shared.array((2, THREADS), np.int32)
    tile, thread = cuda.blockIdx.x, cuda.threadIdx.x
    bits = np.int32(flags[np.int64(tile) * THREADS + thread])
    own = cuda.popc(bits)
    side = _scan_block(sums, own, thread)
    rank = before[tile] + sums[side, thread] - own
    item = np.int64(tile) * TILE + thread * ITEMS
    owner = owners[tile]
    while bits:
        if bits & 1:
            owner = owner_of(scan, owner, owners[tile + 1] + 1, item)
            target = _shell_target(spans, owner, item - scan[owner])
            late = np.int64(target >= spans.shell[owner])
            # Before it stand those that were found to qualify, and all inner ranges up to its shell.
            out[rank + inner_before[owner + late]] = values[target]
            rank += 1
        item += 1
        bits >>= 1


@kernel(RUN, SPANS, I64_ARRAY, I64_ARRAY, types.boolean, *[I64_ARRAY] * 4)
def copy(run, spans, places, owners, both, base_values, target_values, base_out, target_out):
    """Write the inner ranges, and what stands for the base event of every match.

    The items are the rows of the output: writes are coalesced, and so are reads of targets.

    Parameters
    ----------
    run, spans
        As `probe`.
    places : int64 array, shape (3 * entries + 1,)
        Where in the output the early shell, the inner range and the late shell of each entry begin.
    owners : int64 array, shape (tiles + 1,)
        The part (an index of `places`) to which the first row of each tile belongs.
    both : bool
        Whether to write `base_out`; else it and `base_values` stand for nothing.
    base_values, target_values : int64 arrays
        What to write for a base or target event, by its position.
    base_out, target_out : int64 arrays, shape (matches,), written
    """
    tile = cuda.blockIdx.x
    origin = np.int64(tile) * TILE
    part, past_parts = owners[tile], owners[tile + 1] + 1
    for item in range(origin + cuda.threadIdx.x, min(origin + TILE, target_out.size), THREADS):
        part = owner_of(places, part, past_parts, item)
        entry = part // 3
        if both:
            base_out[item] = base_values[run.event_of(entry)]
        if part - 3 * entry == 1:
            target_out[item] = target_values[spans.inner[entry] + item - places[part]]


@rule_kernel(_candidates_and(F64_ARRAY, I64_ARRAY))
def most_probable(sides, run, spans, scan, owners, top, qualified):
    """Find the highest merit among the candidates of each base event.

    Parameters
    ----------
    sides, run, spans
        As `probe`.
    scan : int64 array, shape (entries + 1,)
        Exclusive scan of all candidates of each entry, the inner range included.
    owners : int64 array, shape (tiles + 1,)
        As `probe`, of this scan.
    top : float64 array, shape (events,), -inf, raised
        The highest merit that qualifies: `coincide.timestamps.protocol.Rule`.
    qualified : int64 array, shape (1,), added to
        How many candidates qualify.
    """
    tally = cuda.shared.array(1, np.int64)
    tile, thread = cuda.blockIdx.x, cuda.threadIdx.x
    if thread == 0:
        tally[0] = 0
    cuda.syncthreads()
    origin = np.int64(tile) * TILE
    owner, past_owners = owners[tile], owners[tile + 1] + 1
    own = 0
    for item in range(origin + thread, min(origin + TILE, scan[scan.size - 1]), THREADS):
        owner = owner_of(scan, owner, past_owners, item)
        event = run.event_of(owner)
        target = spans.first[owner] + item - scan[owner]
        p = merit_of(sides, event, target)
        if p >= 0.0:
            own += 1
            # Read first: of many candidates few raise the maximum.
            if p > top[event - run.start]:
                cuda.atomic.max(top, event - run.start, p)
    if own:
        cuda.atomic.add(tally, 0, own)
    cuda.syncthreads()
    if thread == 0 and tally[0]:
        cuda.atomic.add(qualified, 0, tally[0])


@rule_kernel(_candidates_and(F64_ARRAY, U64_ARRAY))
def nearest(sides, run, spans, scan, owners, top, distances):
    """Of the most probable candidates, find the least distance from the middle of the window.

    Parameters
    ----------
    sides, run, spans, scan, owners, top
        As `most_probable`.
    distances : uint64 array, shape (events,), its largest value, lowered
        Half ticks.
    """
    tile = cuda.blockIdx.x
    origin = np.int64(tile) * TILE
    owner, past_owners = owners[tile], owners[tile + 1] + 1
    stop = min(origin + TILE, scan[scan.size - 1])
    for item in range(origin + cuda.threadIdx.x, stop, THREADS):
        owner = owner_of(scan, owner, past_owners, item)
        event = run.event_of(owner)
        target = spans.first[owner] + item - scan[owner]
        if merit_of(sides, event, target) == top[event - run.start]:
            apart = distance_of(sides, event, target)
            if apart < distances[event - run.start]:
                cuda.atomic.min(distances, event - run.start, apart)


@rule_kernel(_candidates_and(F64_ARRAY, U64_ARRAY, I64_ARRAY, I64_ARRAY))
def foremost(sides, run, spans, scan, owners, top, distances, ranks, least):
    """Of the most probable and nearest candidates, find the least rank.

    Parameters
    ----------
    sides, run, spans, scan, owners, top, distances
        As `nearest`.
    ranks : int64 array, shape (targets,)
        Order among targets for ties; no two are equal.
    least : int64 array, shape (events,), its largest value, lowered
    """
    tile = cuda.blockIdx.x
    origin = np.int64(tile) * TILE
    owner, past_owners = owners[tile], owners[tile + 1] + 1
    stop = min(origin + TILE, scan[scan.size - 1])
    for item in range(origin + cuda.threadIdx.x, stop, THREADS):
        owner = owner_of(scan, owner, past_owners, item)
        event = run.event_of(owner)
        target = spans.first[owner] + item - scan[owner]
        if (
            merit_of(sides, event, target) == top[event - run.start]
            and distance_of(sides, event, target) == distances[event - run.start]
            and ranks[target] < least[event - run.start]
        ):
            cuda.atomic.min(least, event - run.start, ranks[target])


@device_function
def _shell_target(spans, entry, i):
    """The i-th target in the shells of an entry."""
    early = spans.inner[entry] - spans.first[entry]
    return spans.first[entry] + i if i < early else spans.shell[entry] + i - early


@device_function
def _scan_block(sums, value, thread):
    """Inclusive scan of one value a thread, in shared memory: returns which row of `sums` has it."""
    side = 0
    sums[side, thread] = value
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        total = sums[side, thread]
        if thread >= step:
            total += sums[side, thread - step]
        side = 1 - side
        sums[side, thread] = total
        step *= 2
        cuda.syncthreads()
    return side
