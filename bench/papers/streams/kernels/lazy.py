"""The lazy algorithms: a block at a time, with look-up and with classes."""

from __future__ import annotations

import numpy as np

from bench.papers.streams.kernels.buffering import grown, let_go, merge_block, sorted_block
from bench.papers.streams.kernels.runs import (
    FIRST,
    SHELL,
    in_places,
    key_ranges,
    max_time_at,
    max_time_ranges,
    new_ranges,
    note_response,
    probe_runs,
    probe_short_runs,
    take_runs,
    targets_of,
)
from bench.papers.streams.state import EVALUATIONS, HITS, now_of
from coincide.model.compiled import compiled
from coincide.model.sides import LEFT, RIGHT


@compiled(allocates=True)
def correlate_ranges(
    side, block, ranges, looks_up, buffers, regions, rules, now, tally, response,
    left_out, right_out, at,
):  # fmt: skip
    """Correlate a block of n events, Lee & Lee (2010), Algorithm 5; with a look-up table 6."""
    # `ranges` is an int64 array, shape (n, 4), overwritten.
    targets = targets_of(buffers, 1 - side, 0, False)
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
        if probes and looks_up and rules.lookup:
            at = _probe_with_lookup(
                side, block, ranges, column, targets, now, rules, tally, response,
                left_out, right_out, at,
            )  # fmt: skip
        elif probes:
            at = probe_runs(
                side, block, start, count, ranges, column, targets, now, rules, tally, response,
                left_out, right_out, at,
            )  # fmt: skip
    return at, left_out, right_out


LAZY, LOOKUP, CLASSED = range(3)


@compiled(allocates=True)
def evaluate(
    algorithm, waiting, buffers, progress, regions, rules, tally, response, left_out, right_out
):
    """Correlate all events that wait, then let go of obsolete ones."""
    # First those of the left side with the processed ones of the right; then those of the right
    # with all of the left. So every pair is met once, when the later of its two events is
    # processed.
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
        else:
            at, left_out, right_out = correlate_ranges(
                side, block, new_ranges(block.keys.size), algorithm == LOOKUP, buffers, regions, rules,
                now, tally, response, left_out, right_out, at,
            )  # fmt: skip
        merge_block(buffers, side, block)
        progress.waiting[side] = 0
    let_go(buffers, progress, regions, rules, tally)
    progress.evaluated_at[0] = now
    return at, left_out, right_out


_BEFORE_ALL = np.int64(-(2**63))


@compiled(allocates=True)
def _probe_with_lookup(
    side, block, ranges, column, targets, now, rules, tally, response, left_out, right_out, at
):
    """Decide the left or the right probe regions, Lee & Lee (2010), Algorithm 7; else as `probe_runs`."""
    base_out, target_out = (left_out, right_out) if side == LEFT else (right_out, left_out)
    pair_rule, pairs = rules.pair_rule, rules.pairs
    leftwards = column == FIRST
    # Mirrored times make the right region a left one: entries then are negated.
    sign = 1 if leftwards else -1
    count, origin = block.keys.size, targets.start
    table = np.full(targets.stop - origin, _BEFORE_ALL)
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


@compiled(allocates=True)
def correlate_block_by_class(
    side, block, buffers, regions, rules, now, tally, response, left_out, right_out, at
):
    """As `correlate_ranges`, pair of classes by pair of classes."""
    ranges = new_ranges(block.keys.size)
    for k2 in range(buffers.ends.shape[1]):
        targets = targets_of(buffers, 1 - side, k2, True)
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
