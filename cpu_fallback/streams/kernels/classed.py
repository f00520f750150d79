"""The lazy algorithm with classes, on the axis of keys."""

from __future__ import annotations

from coincide.compiled import compiled
from cpu_fallback.streams.kernels.growth import grown
from cpu_fallback.streams.kernels.ranges import classed_targets, key_ranges, new_ranges
from cpu_fallback.streams.kernels.runs import FIRST, SHELL, take_runs
from cpu_fallback.streams.kernels.short_runs import probe_short_runs


@compiled(allocates=True)
def correlate_block_by_class(
    side, block, buffers, regions, rules, now, tally, response, left_out, right_out, at
):
    """Correlate a block with the targets, pair of classes by pair of classes.

    Parameters and returns as `lazy.correlate_block`, with

    Parameters
    ----------
    block : Block
        With the classes of base events, ascending by key.
    """
    ranges = new_ranges(block.keys.size)
    for k2 in range(buffers.ends.shape[1]):
        targets = classed_targets(buffers, 1 - side, k2)
        if targets.start == targets.stop:
            continue
        for k1 in range(block.offsets.size - 1):
            begin, end = block.offsets[k1], block.offsets[k1 + 1]
            if begin == end:
                continue
            band = regions.bands[side, k1, k2]
            candidates, early, late = key_ranges(block, begin, end, targets, band, ranges)
            if rules.pairs:
                left_out = grown(left_out, at, at + candidates + 1)
                right_out = grown(right_out, at, at + candidates + 1)
            at = take_runs(
                side, block, begin, end, ranges, targets, now, rules, tally, response,
                left_out, right_out, at,
            )  # fmt: skip
            for column, probes in ((FIRST, early), (SHELL, late)):
                if probes:
                    at = probe_short_runs(
                        side, block, begin, end, ranges, column, probes, targets, now, rules, tally,
                        response, left_out, right_out, at,
                    )  # fmt: skip
    return at, left_out, right_out
