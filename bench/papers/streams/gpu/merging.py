"""Kernels of the live events of a stream: a block is merged into them, obsolete ones are found."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import cuda, types

from gpu_kernels.kernels.compilation import kernel
from gpu_kernels.kernels.join import I64_ARRAY, I64_TABLE
from gpu_kernels.kernels.searching import owner_of, reach


class Sorted(NamedTuple):
    """Events of a stream."""

    keys: Any  # int64, shape (n,): half ticks: as their model gives them, or doubled max_times
    shapes: Any  # int64, shape (n,)
    numbers: Any  # int64, shape (n,): arrival numbers


SORTED = types.NamedUniTuple(I64_ARRAY, len(Sorted._fields), Sorted)


@kernel(SORTED, I64_TABLE, I64_ARRAY, SORTED, I64_ARRAY, SORTED)
def merge(old, live, before, block, offsets, out):
    """Merge a block into the live events of its side, by rank: a thread for each event.

    An event goes where its own rank and its rank among the others take it. With equal keys the old event
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
