"""The lazy algorithm: regions of a block of events at a time."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from cpu_fallback.streams.kernels.growth import grown
from cpu_fallback.streams.kernels.ranges import max_time_ranges, new_ranges, ordered_targets
from cpu_fallback.streams.kernels.runs import FIRST, SHELL, probe_runs, take_runs


@compiled(allocates=True)
def correlate_block(
    side, block, buffers, regions, rules, now, tally, response, left_out, right_out, at
):
    """Correlate a block with the targets, Lee & Lee (2010), Algorithm 5.

    Parameters
    ----------
    side : int
        Of the base events.
    block : Block
        One class, ascending by max_time.
    buffers : Buffers
    regions : Regions
    rules : Rules
    now : int64
        The streams' time, ticks.
    tally, response, left_out, right_out : arrays, written
    at : int64
        Pairs that the output holds already.

    Returns
    -------
    int64
        Pairs that the output holds.
    two int64 arrays
        `left_out` and `right_out`, or larger ones.
    """
    ranges = new_ranges(block.keys.size)
    return correlate_ranges(
        side, block, ranges, buffers, regions, rules, now, tally, response, left_out, right_out, at
    )


@compiled(allocates=True)
def correlate_ranges(
    side, block, ranges, buffers, regions, rules, now, tally, response, left_out, right_out, at
):
    """As `correlate_block`, with `ranges` to overwrite: int64 array, shape (n, 4)."""
    targets = ordered_targets(buffers, 1 - side)
    start, count = np.int64(0), block.keys.size
    candidates, early, late = max_time_ranges(
        side, block, targets, regions, rules.pair_rule, ranges
    )
    if candidates == 0:
        return at, left_out, right_out
    if rules.pairs:
        left_out = grown(left_out, at, at + candidates)
        right_out = grown(right_out, at, at + candidates)
    if candidates > early + late:
        at = take_runs(
            side, block, start, count, ranges, targets, now, rules, tally, response,
            left_out, right_out, at,
        )  # fmt: skip
    for column, probes in ((FIRST, early), (SHELL, late)):
        if probes:
            at = probe_runs(
                side, block, start, count, ranges, column, targets, now, rules, tally, response,
                left_out, right_out, at,
            )  # fmt: skip
    return at, left_out, right_out
