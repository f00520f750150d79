"""The eager algorithm: regions of every arriving event, at once."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.sides import LEFT, RIGHT
from coincide.streams.arrivals import (
    admit,
    base_limit,
    live_events,
    now_of,
    sample_lengths,
)
from cpu_fallback.streams.kernels.buffering import block_of_one, invalidate, load_event, merge_block
from cpu_fallback.streams.kernels.lazy import correlate_ranges
from cpu_fallback.streams.kernels.ranges import new_ranges


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
