"""The algorithms that correlate each event when it comes: simple, and eager."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.sides import LEFT, RIGHT
from coincide.model.streams.state import (
    INVALIDATED,
    NEVER,
    admit,
    base_limit,
    live_events,
    now_of,
    sample_lengths,
)
from cpu_fallback.streams.kernels.buffering import (
    block_of_one,
    grown,
    invalidate,
    load_event,
    merge_block,
)
from cpu_fallback.streams.kernels.lazy import correlate_ranges
from cpu_fallback.streams.kernels.runs import FIRST, INNER, new_ranges, ordered_targets, probe_runs


@compiled(allocates=True)
def correlate_simple(
    batch, buffers, progress, regions, rules, ordered, tally, response, late, left_out, right_out
):
    """Simple and Simple-Sort timing correlation, Lee & Lee (2010), Algorithm 1."""
    at = np.int64(0)
    block, ranges = block_of_one(), new_ranges(np.int64(1))
    # Not literals, for which callees would be compiled once more.
    start, stop, column = np.int64(0), np.int64(1), np.int64(FIRST)
    for i in range(batch.sides.size):
        if not admit(i, batch, progress, rules.delays, tally, late):
            continue
        side = np.int64(batch.sides[i])
        load_event(block, i, batch, progress)
        targets = ordered_targets(buffers, 1 - side)
        ranges[0, FIRST] = targets.start
        ranges[0, INNER] = targets.stop
        if rules.pairs:
            left_out = grown(left_out, at, at + targets.stop - targets.start)
            right_out = grown(right_out, at, at + targets.stop - targets.start)
        at = probe_runs(
            side, block, start, stop, ranges, column, targets, now_of(progress), rules, tally, response,
            left_out, right_out, at,
        )  # fmt: skip
        limit = base_limit(progress, rules.delays, side)
        if ordered:
            invalidate(buffers, 1 - side, limit, regions.keep[side], tally)
            merge_block(buffers, side, block)
        else:
            _remove_obsolete(buffers, 1 - side, limit, regions.keep[side, 0], tally)
            _append_event(buffers, side, block)
        sample_lengths(tally, live_events(buffers, LEFT), live_events(buffers, RIGHT))
    return at, left_out, right_out


@compiled
def _remove_obsolete(buffers, side, limit, keep, tally):
    """Let go of obsolete events of an unsorted buffer; the last event takes the place of each."""
    keys, shapes, numbers = (
        buffers.keys[side, 0],
        buffers.shapes[side, 0],
        buffers.numbers[side, 0],
    )
    t, stop = buffers.ends[side, 0]
    before = stop
    while t < stop:
        if keys[t] - limit < keep:
            stop -= 1
            keys[t] = keys[stop]
            shapes[t] = shapes[stop]
            numbers[t] = numbers[stop]
        else:
            t += 1
    buffers.ends[side, 0, 1] = stop
    tally[INVALIDATED + side] += before - stop


@compiled
def _append_event(buffers, side, block):
    at = buffers.ends[side, 0, 1]
    buffers.keys[side, 0, at] = block.keys[0]
    buffers.shapes[side, 0, at] = block.shapes[0]
    buffers.numbers[side, 0, at] = block.numbers[0]
    buffers.ends[side, 0, 1] = at + 1


@compiled
def let_go_unsorted(buffers, progress, regions, rules, tally):
    """Let go of obsolete events on both sides of unsorted buffers."""
    for side in (LEFT, RIGHT):
        if progress.clock[1 - side] != NEVER:
            limit = base_limit(progress, rules.delays, 1 - side)
            _remove_obsolete(buffers, side, limit, regions.keep[1 - side, 0], tally)


@compiled(allocates=True)
def correlate_eagerly(
    batch, buffers, progress, regions, rules, tally, response, late, left_out, right_out
):
    """Eager timing correlation, Lee & Lee (2010), Algorithm 2.

    Parameters and returns as `correlate_simple`.
    """
    at = np.int64(0)
    block, ranges = block_of_one(), new_ranges(np.int64(1))
    for i in range(batch.sides.size):
        if not admit(i, batch, progress, rules.delays, tally, late):
            continue
        side = np.int64(batch.sides[i])
        load_event(block, i, batch, progress)
        at, left_out, right_out = correlate_ranges(
            side, block, ranges, buffers, regions, rules, now_of(progress), tally, response,
            left_out, right_out, at,
        )  # fmt: skip
        limit = base_limit(progress, rules.delays, side)
        invalidate(buffers, 1 - side, limit, regions.keep[side], tally)
        merge_block(buffers, side, block)
        sample_lengths(tally, live_events(buffers, LEFT), live_events(buffers, RIGHT))
    return at, left_out, right_out
