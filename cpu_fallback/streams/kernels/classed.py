"""The lazy algorithm with length classes, on the midpoint axis."""

from __future__ import annotations

import numpy as np

from cpu_fallback.streams.kernels.arrivals import now_of
from cpu_fallback.streams.kernels.buffering import let_go, merge_block, sorted_block
from cpu_fallback.streams.kernels.growth import grown
from cpu_fallback.streams.kernels.later import (
    forget_times,
    lateness_of_targets,
    later_is_sure,
    remember_times,
    sorted_times,
)
from cpu_fallback.streams.kernels.ranges import classed_targets, midpoint_ranges, new_ranges
from cpu_fallback.streams.kernels.runs import FIRST, SHELL, Ages, age_scan, take_runs
from cpu_fallback.streams.kernels.short_runs import probe_short_runs
from cpu_fallback.streams.sides import LEFT, RIGHT
from cpu_fallback.streams.statistics import RESPONSE_SUM
from event_model.compiled import compiled


@compiled
def evaluate_by_class(
    waiting, buffers, recent, progress, regions, rules, tally, response, left_out, right_out
):
    """Re-evaluate as `evaluation.evaluate`, by length class.

    Parameters and returns as there, with

    Parameters
    ----------
    recent : Recent, written
        With room for all events that wait.
    """
    at = 0
    now = now_of(progress)
    for side in (LEFT, RIGHT):
        if progress.waiting[side] == 0:
            continue
        block = sorted_block(side, waiting, progress, regions.tops[side], True)
        times = sorted_times(side, waiting, progress)
        at_once = later_is_sure(side, block, buffers, regions)
        at, left_out, right_out = _correlate_block(
            side, block, buffers, regions, at_once, rules, now, tally, response,
            left_out, right_out, at,
        )  # fmt: skip
        if at_once:
            response[RESPONSE_SUM] -= lateness_of_targets(times, recent, 1 - side)
        remember_times(recent, side, times)
        merge_block(buffers, side, block)
        progress.waiting[side] = 0
    let_go(buffers, progress, regions, rules, tally)
    forget_times(recent, progress, rules)
    progress.evaluated_at[0] = now
    return at, left_out, right_out


@compiled
def _correlate_block(
    side, block, buffers, regions, at_once, rules, now, tally, response, left_out, right_out, at
):
    """Correlate a block with the targets, pair of classes by pair of classes.

    Parameters and returns as `lazy.correlate_block`, with

    Parameters
    ----------
    block : Block
        With the classes of base events, ascending by midpoint.
    at_once : bool
        As `take_runs`.
    """
    ranges = new_ranges(block.keys.size)
    tops = regions.tops[side]
    ages = Ages(np.empty(0, np.float64), 0)
    for k2 in range(buffers.ends.shape[1]):
        targets = classed_targets(buffers, 1 - side, k2, regions.target_tops[1 - side])
        if targets.start == targets.stop:
            continue
        if not at_once:
            ages = age_scan(targets, block, now)
        for k1 in range(block.offsets.size - 1):
            begin, end = block.offsets[k1], block.offsets[k1 + 1]
            if begin == end:
                continue
            limits = (tops[k1 - 1] + 1 if k1 > 0 else 0, tops[k1])
            band = regions.bands[side, k1, k2]
            candidates, early, late = midpoint_ranges(block, begin, end, targets, band, ranges)
            if rules.pairs:
                left_out = grown(left_out, at, at + candidates + 1)
                right_out = grown(right_out, at, at + candidates + 1)
            at = take_runs(
                side, block, begin, end, ranges, targets, limits, ages, at_once, now, rules, tally,
                response, left_out, right_out, at,
            )  # fmt: skip
            for column, probes in ((FIRST, early), (SHELL, late)):
                if probes:
                    at = probe_short_runs(
                        side, block, begin, end, ranges, column, probes, targets, now, rules, tally,
                        response, left_out, right_out, at,
                    )  # fmt: skip
    return at, left_out, right_out
