"""Buffers of live events: how they grow, are searched and let go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.papers.streams.kernels.runs import first_reaching
from bench.papers.streams.state import INVALIDATED, NEVER, base_limit
from coincide.model.classes import class_of
from coincide.model.compiled import compiled, copy_into
from coincide.model.sides import LEFT, RIGHT

_SHIFTS_PER_EVENT = 24
_PLAIN = 16


class Block(NamedTuple):
    """The unprocessed events of one side, by class, ascending by key."""

    keys: np.ndarray  # int64, shape (n,): as in `Buffers`
    shapes: np.ndarray  # int64, shape (n,): as in `Buffers`
    numbers: np.ndarray  # int64, shape (n,): as in `Buffers`
    offsets: np.ndarray  # int64, shape (K + 1,): first event of each class


@compiled(allocates=True)
def sorted_block(side, waiting, progress, tops, pair_rule, by_key):
    """The events of a side that wait, as a Block."""
    count = progress.waiting[side]
    shapes, numbers = waiting.shapes[side], waiting.numbers[side]
    offsets = np.zeros(tops.size + 1, np.int64)
    classes = np.empty(count, np.uint16)
    for i in range(count):
        classes[i] = class_of(shapes[i], tops)
        offsets[classes[i] + 1] += 1
    for k in range(tops.size):
        offsets[k + 1] += offsets[k]
    block = Block(
        np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64), offsets
    )
    place = offsets.copy()
    for i in range(count):
        at = place[classes[i]]
        place[classes[i]] += 1
        key = 2 * waiting.max_times[side, i]
        block.keys[at] = key - pair_rule.lean(side, shapes[i]) if by_key else key
        block.shapes[at] = shapes[i]
        block.numbers[at] = numbers[i]
    for k in range(tops.size):
        _sort_run(block, offsets[k], offsets[k + 1])
    return block


@compiled(allocates=True)
def _sort_run(block, start, stop):
    """Sort by key, stably. Streams come nearly sorted: insertion, unless it takes too long."""
    moves = 0
    most = _SHIFTS_PER_EVENT * (stop - start)
    for i in range(start + 1, stop):
        key, shape, number = block.keys[i], block.shapes[i], block.numbers[i]
        at = i
        while at > start and block.keys[at - 1] > key:
            block.keys[at] = block.keys[at - 1]
            block.shapes[at] = block.shapes[at - 1]
            block.numbers[at] = block.numbers[at - 1]
            at -= 1
        block.keys[at] = key
        block.shapes[at] = shape
        block.numbers[at] = number
        moves += i - at
        if moves > most and stop - start > _PLAIN:
            _merge_sort(block, start, stop)
            return


@compiled(allocates=True)
def _merge_sort(block, start, stop):
    """Sort by key, stably: runs of 1, 2, 4 ... events are merged two by two."""
    rows = (block.keys[start:stop], block.shapes[start:stop], block.numbers[start:stop])
    size = stop - start
    spare = np.empty((3, size), np.int64)
    width = np.int64(1)
    while width < size:
        for low in range(0, size, 2 * width):
            _merge_two(rows, spare, low, min(low + width, size), min(low + 2 * width, size))
        for r in range(3):
            copy_into(rows[r], spare[r])
        width *= 2


@compiled
def _merge_two(rows, spare, low, middle, high):
    """Merge two sorted runs of rows of keys, shapes and numbers into spare ones."""
    keys, shapes, numbers = rows
    i, j = low, middle
    for at in range(low, high):
        first = j >= high or (i < middle and keys[i] <= keys[j])
        event = i if first else j
        spare[0, at] = keys[event]
        spare[1, at] = shapes[event]
        spare[2, at] = numbers[event]
        i += first
        j += not first


@compiled
def merge_block(buffers, side, block):
    """Merge a block into the buffers of its side, from the back: only what overlaps is moved."""
    for k in range(buffers.ends.shape[1]):
        if k + 1 >= block.offsets.size or block.offsets[k] == block.offsets[k + 1]:
            continue
        _merge_run(
            buffers.keys[side, k],
            buffers.shapes[side, k],
            buffers.numbers[side, k],
            buffers.ends[side, k],
            block,
            block.offsets[k],
            block.offsets[k + 1],
        )


@compiled
def _merge_run(keys, shapes, numbers, ends, block, start, stop):
    old = ends[1] - 1
    at = old + stop - start
    ends[1] = at + 1
    new = stop - 1
    while new >= start:
        if old >= ends[0] and keys[old] > block.keys[new]:
            keys[at] = keys[old]
            shapes[at] = shapes[old]
            numbers[at] = numbers[old]
            old -= 1
        else:
            keys[at] = block.keys[new]
            shapes[at] = block.shapes[new]
            numbers[at] = block.numbers[new]
            new -= 1
        at -= 1


@compiled(allocates=True)
def live_counts(buffers):
    """Events in the buffers of both sides: int64 array, shape (2,)."""
    counts = np.zeros(2, np.int64)
    for side in (LEFT, RIGHT):
        for k in range(buffers.ends.shape[1]):
            counts[side] += buffers.ends[side, k, 1] - buffers.ends[side, k, 0]
    return counts


@compiled
def invalidate(buffers, side, limit, keep, tally):
    """Let go of the obsolete events of a side, Lee & Lee (2010), Algorithm 2, line 8."""
    for k in range(buffers.ends.shape[1]):
        start, stop = buffers.ends[side, k]
        if start == stop or buffers.keys[side, k, start] - limit >= keep[k]:
            continue
        first = first_reaching(buffers.keys[side, k], start, stop, limit, keep[k])
        buffers.ends[side, k, 0] = first
        tally[INVALIDATED + side] += first - start


@compiled
def let_go(buffers, progress, regions, rules, tally):
    """Invalidate both sides, Lee & Lee (2010), Algorithm 5, lines 14 and 15."""
    for side in (LEFT, RIGHT):
        if progress.clock[1 - side] != NEVER:
            limit = base_limit(progress, rules.delays, 1 - side)
            invalidate(buffers, side, limit, regions.keep[1 - side], tally)


@compiled(allocates=True)
def grown(array, used, needed):
    """An array with room for `needed` entries: the same, or a larger copy of those used."""
    if needed <= array.size:
        return array
    larger = np.empty(needed + needed // 2, np.int64)
    copy_into(larger[:used], array[:used])
    return larger
