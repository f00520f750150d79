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
from gpu_kernels.kernels.searching import at, owner_after, owner_apart, owner_of, reach

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
    rule: Any  # From the timestamps' model: `coincide.model.timestamps.protocol.Rule`
    side: int = LEFT  # The base events: LEFT or RIGHT

    def takes(self, event, target):
        """Whether a candidate qualifies: `Rule.qualifies`."""
        return meets(self, event, target)


def sides_type(rule: Any) -> Any:
    """The type of `Sides` with a type of rule (`coincide.model.timestamps.protocol.numba_type`)."""
    return types.NamedTuple([BASE, TARGETS, rule, types.int64], Sides)


class Spans(NamedTuple):
    """The places of base events among the targets.

    An *entry* is a base event and a class of targets: entry i belongs to the event i // K2 of a run of
    base events, and to the class i % K2.
    """

    first: Any  # int64, shape (entries,)
    inner: Any  # int64, shape (entries,)
    shell: Any  # int64, shape (entries,)


SPANS = types.NamedUniTuple(I64_ARRAY, len(Spans._fields), Spans)

RECIPROCAL_BITS = 36
MOST_ENTRIES = (1 << RECIPROCAL_BITS) // MOST_CLASSES - 1
"""This many times a reciprocal is below 2**63."""


class Run(NamedTuple):
    """A run of base events."""

    start: int  # Its first event
    classes: int  # K2
    reciprocal: int  # 2**RECIPROCAL_BITS / K2, rounded up

    @classmethod
    def of(cls, start: int, classes: int) -> Run:
        """The run of at most `MOST_ENTRIES` entries: for these the reciprocal is as good as a division."""
        return cls(start, classes, -(-(1 << RECIPROCAL_BITS) // classes))

    def event_of(self, entry):
        """The base event of an entry: entry // K2, by a product, since GPUs divide integers slowly."""
        return self.start + ((entry * self.reciprocal) >> RECIPROCAL_BITS)


RUN = types.NamedUniTuple(types.int64, len(Run._fields), Run)


_BANKS_BITS = 5
"""Shared memory has 32 banks."""

NOTED = TILE + (TILE >> _BANKS_BITS)
"""Size of an array in shared memory with a number for each item of a tile."""

_SLOTS = THREADS + (THREADS >> _BANKS_BITS)
"""From an item's slot to that of the next item of a thread that takes every `THREADS`-th."""

# `scan`, int64, (entries + 1,): exclusive scan of the candidates that are looked at, by entry.
# `owners`, int64, (tiles + 1,): the entry of each tile's first candidate; past the last, the last entry.
# `flags`, uint8, (tiles * THREADS,): which candidates qualify, a bit each, the lowest first.
# `parts`, int64, (3 * entries,): matches in the early shell, the inner range, the late shell of an entry.
# `moves`, int64, (entries,), if they are moved: how far the matches of an entry are from their places.
# `top`, float64, and `distances`, uint64, half ticks: the best so far of each base event, (events,).


_MOVES = types.boolean, I64_ARRAY


def _candidates_and(*more):
    """A run of base events: what all kernels take that look at candidates, and more."""
    return lambda rule: (sides_type(rule), RUN, SPANS, I64_ARRAY, I64_ARRAY, *more)


_EARLY, _LATE = 1, 3
"""What `probe` finds of a candidate that qualifies, by its shell: odd, unlike 0 of others."""


@rule_kernel(_candidates_and(U8_ARRAY, I64_ARRAY, I64_ARRAY))
def probe(sides, run, spans, scan, owners, flags, totals, parts):
    """Decide the candidates in the shells of a run of base events."""
    noted = cuda.shared.array(NOTED, np.int32)
    decided = cuda.shared.array(TILE, np.uint8)
    total = cuda.shared.array(1, np.int32)
    tile, thread = np.int64(cuda.blockIdx.x), np.int64(cuda.threadIdx.x)
    origin = tile * TILE
    stop = min(origin + TILE, scan[at(scan.size - 1)])
    lowest = owners[at(tile)]
    if thread == 0:
        total[0] = 0
    _note_owners(noted, scan, 1, lowest, owners[at(tile + 1)] + 1, origin, stop, thread)
    cuda.syncthreads()
    # Neighbouring threads take neighbouring candidates, hence neighbouring targets.
    item, slot = thread, _slot_of(thread)
    while item < TILE:
        found = 0
        if origin + item < stop:
            owner = lowest + noted[at(slot)]
            found = _decided(sides, run, spans, owner, origin + item - scan[at(owner)])
        decided[at(item)] = found
        item += THREADS
        slot += _SLOTS
    cuda.syncthreads()
    bits = np.int32(0)
    for i in range(ITEMS):
        bits |= np.int32(decided[at(thread * ITEMS + i)] & 1) << i
    flags[at(tile * THREADS + thread)] = bits
    if bits:
        cuda.atomic.add(total, 0, cuda.popc(bits))
        _add_up(parts, noted, decided, bits, lowest, thread)
    cuda.syncthreads()
    if thread == 0:
        totals[at(tile)] = total[0]


@kernel(SPANS, I64_ARRAY, I64_ARRAY, U8_ARRAY, *[I64_ARRAY] * 3, *_MOVES, I64_ARRAY)
def scatter(spans, scan, owners, flags, before, inner_before, values, are_moved, moves, out):
    """Write the candidates that `probe` found to qualify."""
    sums = cuda.shared.array((2, THREADS), np.int32)
    tile, thread = np.int64(cuda.blockIdx.x), np.int64(cuda.threadIdx.x)
    bits = np.int32(flags[at(tile * THREADS + thread)])
    own = cuda.popc(bits)
    side = _scan_block(sums, own, thread)
    rank = before[at(tile)] + sums[side, at(thread)] - own
    item = tile * TILE + thread * ITEMS
    past_owners = owners[at(tile + 1)] + 1
    owner = following = np.int64(0)
    if bits:
        owner = owner_of(scan, owners[at(tile)], past_owners, item)
        following = scan[at(owner + 1)]
    while bits:
        if bits & 1:
            if item >= following:
                owner = owner_after(scan, 1, owner, past_owners, item)
                following = scan[at(owner + 1)]
            target, is_late = candidate_of(spans, owner, item - scan[at(owner)])
            part = owner + is_late
            # Before it are those that were found to qualify, and all inner ranges up to its shell.
            row = rank + inner_before[at(part)]
            if are_moved:
                row += moves[at(owner)]
            out[at(row)] = values[at(target)]
            rank += 1
        item += 1
        bits >>= 1


scatter_int32 = scatter.declaring(*scatter.types[:-1], I32_ARRAY)


@kernel(
    *(RUN, SPANS, I64_ARRAY, I64_ARRAY, types.boolean, I64_ARRAY, I64_ARRAY, types.int64, *_MOVES),
    *(I64_ARRAY, I64_ARRAY),
)
def copy(
    run, spans, places, owners, both, base_values, target_values, matches, are_moved, moves,
    base_out, target_out,
):  # fmt: skip
    """Write the inner ranges, and what stands for the base event of every match.

    The items are the matches in the order of base events: unless these are moved, writes are coalesced,
    and so are reads of targets. `owners` belong to the parts of entries, three an entry.
    """
    noted = cuda.shared.array(NOTED, np.int32)
    tile, thread = np.int64(cuda.blockIdx.x), np.int64(cuda.threadIdx.x)
    origin = tile * TILE
    stop = min(origin + TILE, matches)
    lowest, past_entries = owners[at(tile)] // 3, owners[at(tile + 1)] // 3 + 1
    _note_owners(noted, places, 3, lowest, past_entries, origin, stop, thread)
    cuda.syncthreads()
    item, slot = origin + thread, _slot_of(thread)
    while item < stop:
        entry = lowest + noted[at(slot)]
        row = item
        if are_moved:
            row += moves[at(entry)]
        if both:
            base_out[at(row)] = base_values[at(run.event_of(entry))]
        i = item - places[at(3 * entry + 1)]
        if i >= 0 and item < places[at(3 * entry + 2)]:
            target_out[at(row)] = target_values[at(spans.inner[at(entry)] + i)]
        item += THREADS
        slot += _SLOTS


copy_int32 = copy.declaring(*copy.types[:-2], I32_ARRAY, I32_ARRAY)


# A thread takes consecutive candidates: most belong to one base event, whose best is written once.


@rule_kernel(_candidates_and(F64_ARRAY, I64_ARRAY))
def most_probable(sides, run, spans, scan, owners, top, qualified):
    """Find the highest merit among the candidates of each base event."""
    tally = cuda.shared.array(1, np.int64)
    tile, thread = np.int64(cuda.blockIdx.x), np.int64(cuda.threadIdx.x)
    if thread == 0:
        tally[0] = 0
    cuda.syncthreads()
    item, stop = _items_of(scan, tile, thread)
    own = 0
    while item < stop:
        owner, end = _owner_and_end(scan, owners, tile, item, stop)
        event = run.event_of(owner)
        shift = spans.first[at(owner)] - scan[at(owner)]
        best = -1.0
        while item < end:
            p = merit_of(sides, event, shift + item)
            if p >= 0.0:
                own += 1
                best = max(best, p)
            item += 1
        # Read first: of many candidates few raise the maximum.
        if best >= 0.0 and best > top[at(event - run.start)]:
            cuda.atomic.max(top, event - run.start, best)
    if own:
        cuda.atomic.add(tally, 0, own)
    cuda.syncthreads()
    if thread == 0 and tally[0]:
        cuda.atomic.add(qualified, 0, tally[0])


@rule_kernel(_candidates_and(F64_ARRAY, U64_ARRAY))
def nearest(sides, run, spans, scan, owners, top, distances):
    """Find the least distance from the middle of the window among the most probable candidates."""
    tile = np.int64(cuda.blockIdx.x)
    item, stop = _items_of(scan, tile, np.int64(cuda.threadIdx.x))
    while item < stop:
        owner, end = _owner_and_end(scan, owners, tile, item, stop)
        event = run.event_of(owner)
        shift = spans.first[at(owner)] - scan[at(owner)]
        highest, least = top[at(event - run.start)], distances[at(event - run.start)]
        while item < end:
            if merit_of(sides, event, shift + item) == highest:
                least = min(least, distance_of(sides, event, shift + item))
            item += 1
        if least < distances[at(event - run.start)]:
            cuda.atomic.min(distances, event - run.start, least)


@rule_kernel(_candidates_and(F64_ARRAY, U64_ARRAY, I64_ARRAY, I64_ARRAY))
def foremost(sides, run, spans, scan, owners, top, distances, ranks, least):
    """Find the least rank among the most probable and nearest candidates."""
    tile = np.int64(cuda.blockIdx.x)
    item, stop = _items_of(scan, tile, np.int64(cuda.threadIdx.x))
    while item < stop:
        owner, end = _owner_and_end(scan, owners, tile, item, stop)
        event = run.event_of(owner)
        shift = spans.first[at(owner)] - scan[at(owner)]
        lowest = least[at(event - run.start)]
        while item < end:
            target = shift + item
            if (
                ranks[at(target)] < lowest
                and merit_of(sides, event, target) == top[at(event - run.start)]
                and distance_of(sides, event, target) == distances[at(event - run.start)]
            ):
                lowest = ranks[at(target)]
            item += 1
        if lowest < least[at(event - run.start)]:
            cuda.atomic.min(least, event - run.start, lowest)


@device_function
def _items_of(scan, tile, thread):
    """The consecutive candidates of a thread: the first, and past the last."""
    first = tile * TILE + thread * ITEMS
    return first, min(first + ITEMS, scan[at(scan.size - 1)])


@device_function
def _owner_and_end(scan, owners, tile, item, stop):
    """The owner of a candidate, and where its candidates end, or at `stop` before that."""
    owner = owner_of(scan, owners[at(tile)], owners[at(tile + 1)] + 1, item)
    return owner, min(stop, scan[at(owner + 1)])


@device_function
def candidate_of(spans, owner, i):
    """The i-th target in the shells of an entry, and whether it is in the late one: 1 or 0."""
    first = spans.first[at(owner)]
    early = spans.inner[at(owner)] - first
    if i >= early:
        return spans.shell[at(owner)] + i - early, 1
    return first + i, 0


@device_function
def _decided(sides, run, spans, owner, i):
    """Whether the i-th target in the shells of an entry qualifies: `_EARLY` or `_LATE` if so, else 0."""
    target, is_late = candidate_of(spans, owner, i)
    found = _LATE if is_late else _EARLY
    return found if sides.takes(run.event_of(owner), target) else 0


@device_function
def _add_up(parts, noted, decided, bits, lowest, thread):
    """Count the candidates of a thread that qualify, by part.

    With one addition for each run of candidates of one shell: however many entries have none, none is
    visited.
    """
    item, slot = thread * ITEMS, _slot_of(thread * ITEMS)
    part, qualified = np.int64(-1), 0
    while bits:
        if bits & 1:
            shell = 3 * (lowest + noted[at(slot)]) + decided[at(item)] - _EARLY
            if shell != part:
                if qualified:
                    cuda.atomic.add(parts, part, qualified)
                part, qualified = shell, 0
            qualified += 1
        item += 1
        slot += 1
        bits >>= 1
    cuda.atomic.add(parts, part, qualified)


@device_function
def _slot_of(item):
    """Where what is noted of an item of a tile is: so that no two threads of a warp want one bank."""
    return item + (item >> _BANKS_BITS)


@device_function
def _note_owners(noted, offsets, stride, lowest, past_owners, origin, stop, thread):
    """Note the owner of each item of a tile, less the lowest: a search for the items of a thread."""
    item, slot = origin + thread * ITEMS, _slot_of(thread * ITEMS)
    if item >= stop:
        return
    owner = owner_apart(offsets, stride, lowest, past_owners, item)
    following = offsets[at(stride * (owner + 1))]
    for _ in range(ITEMS):
        if item >= following and item < stop:
            owner = owner_after(offsets, stride, owner, past_owners, item)
            following = offsets[at(stride * (owner + 1))]
        noted[at(slot)] = owner - lowest
        item += 1
        slot += 1


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
    k1, l1 = sides.base.keys[at(event)], sides.base.shapes[at(event)]
    k2, l2 = sides.targets.keys[at(target)], sides.targets.shapes[at(target)]
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


_NARROWED = 16 if THREADS > 16 else THREADS
"""Most classes of targets of which a block of threads notes how far its base events reach."""


@device_function
def _narrow(base, targets, bands, group, k2, lowest, highest, begins, ends):
    """Note how far the base events of a group, of any class, reach among the targets of a class."""
    lo, hi = bands[0, k2, OUTER_LO], bands[0, k2, OUTER_HI]
    for k1 in range(1, bands.shape[0]):
        lo, hi = min(lo, bands[k1, k2, OUTER_LO]), max(hi, bands[k1, k2, OUTER_HI])
    begin, end = targets.offsets[k2, group], targets.offsets[k2, group + 1]
    begin = reach(targets.places, begin, end, base.keys[at(lowest)], lo)
    begins[k2] = begin
    ends[k2] = reach(targets.places, begin, end, base.keys[at(highest)], hi + 1)


@kernel(BASE, TARGETS, I64_CUBE, types.boolean, RUN, SPANS, types.boolean, I64_ARRAY, I64_ARRAY)
def place(base, targets, bands, in_order, run, spans, shells, counts, parts):
    """Find the spans of a run of base events, a thread for each entry.

    The ends are those of `cpu_fallback.join.buffers`; each search goes only as far as the last one left,
    and those of a block of threads, where base events are in order, only as far as its first and its
    last one reach.
    """
    begins = cuda.shared.array(_NARROWED, np.int64)
    ends = cuda.shared.array(_NARROWED, np.int64)
    origin, thread = np.int64(cuda.blockIdx.x) * THREADS, np.int64(cuda.threadIdx.x)
    entry, stop = origin + thread, min(origin + THREADS, spans.first.size)
    groups = base.offsets.size - 1
    lowest, highest = run.event_of(origin), run.event_of(stop - 1)
    group = owner_of(base.offsets, 0, groups + 1, lowest)
    is_narrow = in_order and run.classes <= _NARROWED and group < groups
    is_narrow = is_narrow and highest < base.offsets[at(group + 1)]
    if is_narrow and thread < run.classes:
        _narrow(base, targets, bands, group, thread, lowest, highest, begins, ends)
    cuda.syncthreads()
    if entry >= stop:
        return
    event = run.event_of(entry)
    k1 = base.classes[at(event)]
    k2 = entry - (event - run.start) * run.classes
    if not is_narrow:
        group = owner_of(base.offsets, 0, groups + 1, event)
    first = inner = shell = last = np.int64(0)
    if group < groups:
        key, places = base.keys[at(event)], targets.places
        begin, end = targets.offsets[k2, group], targets.offsets[k2, group + 1]
        if is_narrow:
            begin, end = begins[k2], ends[k2]
        first = reach(places, begin, end, key, bands[k1, k2, OUTER_LO])
        last = reach(places, first, end, key, bands[k1, k2, OUTER_HI] + 1)
        inner, shell = first, last
        # Where a shell is empty its two ends are one.
        if bands[k1, k2, INNER_LO] != bands[k1, k2, OUTER_LO]:
            inner = reach(places, first, last, key, bands[k1, k2, INNER_LO])
        if bands[k1, k2, INNER_HI] != bands[k1, k2, OUTER_HI]:
            shell = reach(places, inner, last, key, bands[k1, k2, INNER_HI] + 1)
    spans.first[at(entry)] = first
    spans.inner[at(entry)] = inner
    spans.shell[at(entry)] = shell
    counts[at(entry)] = last - first
    if shells:
        counts[at(entry)] -= shell - inner
        parts[at(3 * entry)] = parts[at(3 * entry + 2)] = 0
        parts[at(3 * entry + 1)] = shell - inner


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
