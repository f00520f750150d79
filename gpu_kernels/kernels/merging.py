"""Kernels on the sorted buffers of live events: putting a block in, and finding what is obsolete."""

from __future__ import annotations

from numba import cuda, types

from gpu_kernels.kernels.compilation import kernel
from gpu_kernels.kernels.layout import I64_ARRAY, I64_TABLE, SORTED
from gpu_kernels.kernels.searching import owner_of, reach


@kernel(SORTED, I64_TABLE, I64_ARRAY, SORTED, I64_ARRAY, SORTED)
def merge(old, live, before, block, offsets, out):
    """Merge a block into the live events of its side, by rank: a thread for each event.

    An event goes where its own rank and its rank among the others take it. Of equal keys the old event
    comes first.

    Parameters
    ----------
    old : Sorted
    live : int64 array, shape (K, 2)
        First live position of each class among the old events, and the one past the last.
    before : int64 array, shape (K + 1,)
        Exclusive scan of the live events of each class.
    block : Sorted
        The new events.
    offsets : int64 array, shape (K + 1,)
        First new event of each class.
    out : Sorted, written
        Room for all.
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
    """Find the first event of each class that is not obsolete, a thread for each class.

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Ascending within each class.
    live : int64 array, shape (K, 2)
        As `merge`.
    limit : int64
        Twice the smallest max_time that can still come on the base side.
    keep : int64 array, shape (K,)
        Keys below limit + keep are obsolete.
    first : int64 array, shape (K,), written
    """
    k = cuda.grid(1)
    if k < first.size:
        first[k] = reach(keys, live[k, 0], live[k, 1], limit, keep[k])
