"""The lazy algorithm with a look-up table: probes are spared where an earlier one tells the answer.

The table has one entry for each live target, in the targets' order, so that a run of probes reads it
in sequence. The entry is the min_time of the last base event of the block that was found to satisfy
the condition with this target. Base events are taken in descending order of max_time for the left
probe region. So one whose min_time is not above the entry is not later at either end; it satisfies
the condition too (Lee & Lee (2010), Corollary 2 and Theorem 2), and the formula is not needed. The
right region is the mirror image: ascending, min_time not below the entry.

The paper also stores probabilities below the threshold, which can spare nothing. Here such a result
leaves the entry as it is. A probability so near the threshold that rounding could decide is not
stored either. Corollary 2 speaks of one end of the window: where a window is so narrow that both ends
cut, and where shapes are no lengths, every candidate is evaluated (`Rules.lookup`).
"""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.sides import LEFT
from coincide.streams.shared import EVALUATIONS, HITS
from cpu_fallback.streams.kernels.growth import grown
from cpu_fallback.streams.kernels.lazy import correlate_block
from cpu_fallback.streams.kernels.ranges import max_time_ranges, new_ranges, ordered_targets
from cpu_fallback.streams.kernels.runs import FIRST, SHELL, max_time_at, note_response, take_runs
from cpu_fallback.streams.kernels.searching import in_places

_BEFORE_ALL = np.int64(-(2**63))


@compiled(allocates=True)
def correlate_block_with_lookup(
    side, block, buffers, regions, rules, now, tally, response, left_out, right_out, at
):
    """Correlate a block with the targets, Lee & Lee (2010), Algorithm 6.

    Parameters and returns as `correlate_block`.
    """
    if not rules.lookup:
        return correlate_block(
            side, block, buffers, regions, rules, now, tally, response, left_out, right_out, at
        )
    targets = ordered_targets(buffers, 1 - side)
    start, count = np.int64(0), block.keys.size
    ranges = new_ranges(count)
    candidates, early, late = max_time_ranges(
        side, block, targets, regions, rules.pair_rule, ranges
    )
    if rules.pairs:
        left_out = grown(left_out, at, at + candidates)
        right_out = grown(right_out, at, at + candidates)
    at = take_runs(
        side, block, start, count, ranges, targets, now, rules, tally, response,
        left_out, right_out, at,
    )  # fmt: skip
    table = np.empty(targets.stop - targets.start, np.int64)
    for column, probes in ((FIRST, early), (SHELL, late)):
        if probes:
            at = _probe_with_lookup(
                side, block, ranges, column, targets, table, now, rules, tally, response,
                left_out, right_out, at,
            )  # fmt: skip
    return at, left_out, right_out


@compiled
def _probe_with_lookup(
    side, block, ranges, column, targets, table, now, rules, tally, response,
    left_out, right_out, at,
):  # fmt: skip
    """Decide the left or the right probe regions, Lee & Lee (2010), Algorithm 7; else as `probe_runs`.

    `table` is an int64 array with one entry per live target, overwritten.
    """
    base_out, target_out = (left_out, right_out) if side == LEFT else (right_out, left_out)
    pair_rule, pairs = rules.pair_rule, rules.pairs
    leftwards = column == FIRST
    # Mirrored times make the right region a left one: entries then are negated.
    sign = 1 if leftwards else -1
    table[:] = _BEFORE_ALL
    count, origin = block.keys.size, targets.start
    probed, hits = 0, 0
    for step in range(count):
        i = count - 1 - step if leftwards else step
        start, stop = ranges[i, column], ranges[i, column + 1]
        probed += stop - start
        length = block.shapes[i]
        base_max = max_time_at(pair_rule, side, block, i, False)
        mark = sign * (base_max - length)
        for t in range(start, stop):
            max_time = max_time_at(pair_rule, 1 - side, targets, t, False)
            found = mark <= table[t - origin]
            hits += found
            if not found:
                s, l1, l2 = in_places(side, base_max, length, max_time, targets.shapes[t])
                p = pair_rule.merit(s, l1, l2)
                found = p >= 0.0
                if p >= rules.certain:
                    table[t - origin] = mark
            if found:
                if pairs:
                    base_out[at] = block.numbers[i]
                    target_out[at] = targets.numbers[t]
                at += 1
                if rules.response:
                    note_response(response, now, base_max, max_time)
    tally[EVALUATIONS] += probed - hits
    tally[HITS] += hits
    return at
