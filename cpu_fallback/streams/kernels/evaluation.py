"""Re-evaluation: what the lazy algorithms do once enough events wait."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.sides import LEFT, RIGHT
from coincide.streams.arrivals import now_of
from cpu_fallback.streams.kernels.buffering import let_go, merge_block, sorted_block
from cpu_fallback.streams.kernels.classed import correlate_block_by_class
from cpu_fallback.streams.kernels.lazy import correlate_block
from cpu_fallback.streams.kernels.lookup import correlate_block_with_lookup

LAZY, LOOKUP, CLASSED = range(3)


@compiled(allocates=True)
def evaluate(
    algorithm, waiting, buffers, progress, regions, rules, tally, response, left_out, right_out
):
    """Correlate all events that wait, then let go of obsolete ones.

    First those of the left side with the processed ones of the right; then those of the right with all
    of the left. So every pair is met once, when the later of its two events is processed.

    Parameters
    ----------
    algorithm : {LAZY, LOOKUP, CLASSED}
    waiting : Waiting
    buffers : Buffers, written
        With room for all events that wait.
    progress : Progress, written
    regions : Regions
    rules : Rules
    tally, response, left_out, right_out : arrays, written

    Returns
    -------
    int64
        Pairs found.
    two int64 arrays
        `left_out` and `right_out`, or larger ones.
    """
    at = np.int64(0)
    now = now_of(progress)
    for side in (LEFT, RIGHT):
        if progress.waiting[side] == 0:
            continue
        tops = regions.target_tops[side]
        block = sorted_block(side, waiting, progress, tops, rules.pair_rule, algorithm == CLASSED)
        if algorithm == CLASSED:
            at, left_out, right_out = correlate_block_by_class(
                side, block, buffers, regions, rules, now, tally, response, left_out, right_out, at
            )
        elif algorithm == LOOKUP:
            at, left_out, right_out = correlate_block_with_lookup(
                side, block, buffers, regions, rules, now, tally, response, left_out, right_out, at
            )
        else:
            at, left_out, right_out = correlate_block(
                side, block, buffers, regions, rules, now, tally, response, left_out, right_out, at
            )
        merge_block(buffers, side, block)
        progress.waiting[side] = 0
    let_go(buffers, progress, regions, rules, tally)
    progress.evaluated_at[0] = now
    return at, left_out, right_out
