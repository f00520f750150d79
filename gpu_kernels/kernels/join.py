"""Kernels of the join: tiles of sorted buffers, counted and filled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types

from coincide.model.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO
from coincide.model.classes import MOST_CLASSES
from coincide.model.sides import LEFT
from coincide.model.timestamps.protocol import difference
from gpu_kernels.kernels.compilation import (
    ITEMS,
    THREADS,
    TILE,
    device_function,
    kernel,
    rule_kernel,
)
from gpu_kernels.kernels.searching import owner_of, reach

I64_ARRAY, U64_ARRAY, U16_ARRAY, U8_ARRAY, F64_ARRAY, I32_ARRAY, I8_ARRAY = (
    types.Array(kind, 1, "C")
    for kind in (
        *(types.int64, types.uint64, types.uint16, types.uint8, types.float64),
        *(types.int32, types.int8),
    )
)
I64_TABLE, F64_TABLE = (types.Array(kind, 2, "C") for kind in (types.int64, types.float64))
I64_CUBE, F64_CUBE = (types.Array(kind, 3, "C") for kind in (types.int64, types.float64))


class Base(NamedTuple):
    """Base events sorted by (group, key); events of no group last."""

    keys: Any  # int64, shape (n,): as their model gives them: `coincide.model.timestamps.protocol`
    shapes: Any  # int64, shape (n,)
    classes: Any  # uint16, shape (n,): class of each event
    offsets: Any  # int64, shape (groups + 1,): first event of each group


BASE = types.NamedTuple([I64_ARRAY, I64_ARRAY, U16_ARRAY, I64_ARRAY], Base)


class Targets(NamedTuple):
    """Target events sorted by (class, group, place)."""

    places: Any  # int64, shape (n,)
    keys: Any  # int64, shape (n,): as `Base`
    shapes: Any  # int64, shape (n,): as `Base`
    offsets: Any  # int64, shape (K2, groups + 1): the first event of each group within each class


TARGETS = types.NamedTuple([I64_ARRAY, I64_ARRAY, I64_ARRAY, I64_TABLE], Targets)


class Sides(NamedTuple):
    """What decides the candidates of a join."""

    base: Base
    targets: Targets
    rule: Any  # Of the timestamps' model: `coincide.model.timestamps.protocol.Rule`
    side: int = LEFT  # Of the base events: LEFT or RIGHT

    def takes(self, event, target):
        """Whether a candidate qualifies: `Rule.qualifies`."""
        return meets(self, event, target)


def sides_type(rule: Any) -> Any:
    """The type of `Sides` with a type of rule (`coincide.model.timestamps.protocol.numba_type`)."""
    return types.NamedTuple([BASE, TARGETS, rule, types.int64], Sides)


class Spans(NamedTuple):
    """Where base events stand among the targets.

    An *entry* is a base event and a class of targets: entry i belongs to the event i // K2 of a run of
    base events, and to the class i % K2.
    """

    first: Any  # int64, shape (entries,)
    inner: Any  # int64, shape (entries,)
    shell: Any  # int64, shape (entries,)


SPANS = types.NamedUniTuple(I64_ARRAY, len(Spans._fields), Spans)

RECIPROCAL_BITS = 36
MOST_ENTRIES = (1 << RECIPROCAL_BITS) // MOST_CLASSES - 1
"""So many times a reciprocal is below 2**63."""


class Run(NamedTuple):
    """A run of base events."""

    start: int  # Its first event
    classes: int  # K2
    reciprocal: int  # 2**RECIPROCAL_BITS / K2, rounded up

    @classmethod
    def of(cls, start: int, classes: int) -> Run:
        """Of at most `MOST_ENTRIES` entries, for which the reciprocal is as good as a division."""
        return cls(start, classes, -(-(1 << RECIPROCAL_BITS) // classes))

    def event_of(self, entry):
        """The base event of an entry: entry // K2, by a product, since GPUs divide integers slowly."""
        return self.start + ((entry * self.reciprocal) >> RECIPROCAL_BITS)


RUN = types.NamedUniTuple(types.int64, len(Run._fields), Run)


class Sorted(NamedTuple):
    """Events of a stream."""

    keys: Any  # int64, shape (n,): half ticks: as their model gives them, or doubled max_times
    shapes: Any  # int64, shape (n,)
    numbers: Any  # int64, shape (n,): arrival numbers


SORTED = types.NamedUniTuple(I64_ARRAY, len(Sorted._fields), Sorted)


# `scan`, int64, (entries + 1,): exclusive scan of the candidates that are looked at, by entry.
# `owners`, int64, (tiles + 1,): the entry of each tile's first candidate; past the last, the last entry.
# `flags`, uint8, (tiles * THREADS,): which candidates qualify, a bit each, the lowest first.
# `parts`, int64, (3 * entries,): matches in the early shell, the inner range, the late shell of an entry.
# `top`, float64, and `distances`, uint64, half ticks: the best so far of each base event, (events,).


def _candidates_and(*more):
    """Of a run of base events: what all kernels take that look at candidates, and more."""
    return lambda rule: (sides_type(rule), RUN, SPANS, I64_ARRAY, I64_ARRAY, *more)


@rule_kernel(_candidates_and(U8_ARRAY, I64_ARRAY, I64_ARRAY))
def probe(sides, run, spans, scan, owners, flags, totals, parts):
    """Decide the candidates in the shells of a run of base events."""
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
    """Write the candidates that `probe` found to qualify."""
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
    """Find the highest merit among the candidates of each base event."""
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
    """Of the most probable candidates, find the least distance from the middle of the window."""
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
    """Of the most probable and nearest candidates, find the least rank."""
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


@device_function
def _in_places(sides, event, target):
    """The s and the shapes of a pair, as a rule takes them.

    With left and right in their places, so that the bits do not depend on who is the base.
    """
    k1, l1 = sides.base.keys[event], sides.base.shapes[event]
    k2, l2 = sides.targets.keys[target], sides.targets.shapes[target]
    if sides.side != LEFT:
        k1, l1, k2, l2 = k2, l2, k1, l1
    return difference(sides.rule, k1, l1, k2, l2), l1, l2


@device_function
def meets(sides, event, target):
    """Whether a candidate qualifies: `Rule.qualifies`."""
    s, left, right = _in_places(sides, event, target)
    return sides.rule.qualifies(s, left, right)


@device_function
def merit_of(sides, event, target):
    """Its probability if it does: `Rule.merit`."""
    s, left, right = _in_places(sides, event, target)
    return sides.rule.merit(s, left, right)


@device_function
def distance_of(sides, event, target):
    """Its distance from the middle of the window: `Rule.distance`."""
    s, left, right = _in_places(sides, event, target)
    return sides.rule.distance(s, left, right)


@kernel(BASE, TARGETS, I64_CUBE, RUN, SPANS, types.boolean, I64_ARRAY, I64_ARRAY)
def place(base, targets, bands, run, spans, shells, counts, parts):
    """Find the spans of a run of base events, a thread for each entry.

    The ends are those of `cpu_fallback.join.buffers`; each search goes only as far as the last one left.
    """
    entry = cuda.grid(1)
    if entry >= spans.first.size:
        return
    event = run.event_of(entry)
    k1 = base.classes[event]
    k2 = entry - (event - run.start) * run.classes
    groups = base.offsets.size - 1
    group = owner_of(base.offsets, 0, groups + 1, event)
    first = inner = shell = last = 0
    if group < groups:
        key = base.keys[event]
        places, end = targets.places, targets.offsets[k2, group + 1]
        first = reach(places, targets.offsets[k2, group], end, key, bands[k1, k2, OUTER_LO])
        last = reach(places, first, end, key, bands[k1, k2, OUTER_HI] + 1)
        inner, shell = first, last
        # Where a shell is empty its two ends are one.
        if bands[k1, k2, INNER_LO] != bands[k1, k2, OUTER_LO]:
            inner = reach(places, first, last, key, bands[k1, k2, INNER_LO])
        if bands[k1, k2, INNER_HI] != bands[k1, k2, OUTER_HI]:
            shell = reach(places, inner, last, key, bands[k1, k2, INNER_HI] + 1)
    spans.first[entry] = first
    spans.inner[entry] = inner
    spans.shell[entry] = shell
    counts[entry] = last - first
    if shells:
        counts[entry] -= shell - inner
        parts[3 * entry] = parts[3 * entry + 2] = 0
        parts[3 * entry + 1] = shell - inner


@kernel(I64_ARRAY, I64_ARRAY)
def tile_owners(scan, owners):
    """Find whose the first item of each tile is; of the tile past the last, the last owner of all."""
    tile = cuda.grid(1)
    if tile < owners.size:
        owners[tile] = owner_of(scan, 0, scan.size - 1, np.int64(tile) * TILE)


@rule_kernel(lambda rule: (rule, *[I64_ARRAY] * 4, F64_ARRAY))
def pair_probabilities(rule, left_keys, left_shapes, right_keys, right_shapes, out):
    """Satisfaction probabilities of n pairs, a thread for each."""
    i = cuda.grid(1)
    if i < out.size:
        l1, l2 = left_shapes[i], right_shapes[i]
        out[i] = rule.probability(difference(rule, left_keys[i], l1, right_keys[i], l2), l1, l2)


@kernel(SORTED, I64_TABLE, I64_ARRAY, SORTED, I64_ARRAY, SORTED)
def merge(old, live, before, block, offsets, out):
    """Merge a block into the live events of its side, by rank: a thread for each event.

    An event goes where its own rank and its rank among the others take it. Of equal keys the old event
    comes first.
    """
    i = cuda.grid(1)
    classes = live.shape[0]
    kept = before[classes]
    if i < kept:
        k = owner_of(before, 0, classes, i)
        event = live[k, 0] + i - before[k]
        at = i + reach(block.keys, offsets[k], offsets[k + 1], old.keys[event], 0)
        out.keys[at] = old.keys[event]
        out.shapes[at] = old.shapes[event]
        out.numbers[at] = old.numbers[event]
    elif i < out.keys.size:
        event = i - kept
        k = owner_of(offsets, 0, classes, event)
        # Past all old events whose keys are not above its own.
        rank = reach(old.keys, live[k, 0], live[k, 1], block.keys[event], 1) - live[k, 0]
        at = event + before[k] + rank
        out.keys[at] = block.keys[event]
        out.shapes[at] = block.shapes[event]
        out.numbers[at] = block.numbers[event]


@kernel(I64_ARRAY, I64_TABLE, types.int64, I64_ARRAY, I64_ARRAY)
def first_live(keys, live, limit, keep, first):
    """Find the first event of each class that is not obsolete, a thread for each class."""
    k = cuda.grid(1)
    if k < first.size:
        first[k] = reach(keys, live[k, 0], live[k, 1], limit, keep[k])
