"""Runs of targets of a block of base events: taken unseen, or decided one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.compiled import compiled
from coincide.sides import LEFT
from coincide.streams.shared import EVALUATIONS, RESPONSE_MAX, RESPONSE_SUM, SURE
from coincide.timestamps.dispatch import max_time_of
from cpu_fallback.streams.kernels.searching import pair_qualifies

FIRST, INNER, SHELL, LAST = range(4)
"""Columns of the ranges of a base event: where its probe and satisfaction regions begin and end.

Positions of targets: outer first, inner first, past inner, past outer."""


class Targets(NamedTuple):
    """The live targets of one class, as `Buffers` has them.

    Parameters
    ----------
    keys, shapes, numbers : int64 arrays, shape (capacity,)
    start, stop : int
        Live positions.
    by_key : bool
        Whether keys are those of the timestamps' model; else doubled max_times.
    """

    keys: np.ndarray
    shapes: np.ndarray
    numbers: np.ndarray
    start: int
    stop: int
    by_key: bool


@compiled(forceinline=True)
def max_time_at(pair_rule, side, events, i, by_key):
    """The max_time of an event of a block or of targets, ticks."""
    if by_key:
        return max_time_of(pair_rule, side, events.keys[i], events.shapes[i])
    return events.keys[i] >> 1


@compiled
def probe_runs(
    side, block, begin, end, ranges, column, targets, now, rules, tally, response,
    left_out, right_out, at,
):  # fmt: skip
    """Decide a run of targets of each base event by the formula, Lee & Lee (2010), Algorithm 3.

    Parameters
    ----------
    side : int
        Of the base events.
    block : Block
    begin, end : int64
        Base events of the block.
    ranges : int64 array, shape (n, 4)
        By base event.
    column : int
        Column of `ranges` where the run begins; it ends at the next one.
    targets : Targets
    now : int64
        The streams' time, ticks.
    rules : Rules
    tally, response, left_out, right_out : arrays, written
    at : int64
        Pairs that the output holds already.

    Returns
    -------
    int64
        Pairs that the output holds.
    """
    base_out, target_out = (left_out, right_out) if side == LEFT else (right_out, left_out)
    pair_rule, pairs, by_key = rules.pair_rule, rules.pairs, targets.by_key
    evaluated = 0
    for i in range(begin, end):
        start, stop = ranges[i, column], ranges[i, column + 1]
        evaluated += stop - start
        base_max = max_time_at(pair_rule, side, block, i, by_key)
        shape = block.shapes[i]
        for t in range(start, stop):
            max_time = max_time_at(pair_rule, 1 - side, targets, t, by_key)
            if pair_qualifies(pair_rule, side, base_max, shape, max_time, targets.shapes[t]):
                if pairs:
                    base_out[at] = block.numbers[i]
                    target_out[at] = targets.numbers[t]
                at += 1
                if rules.response:
                    note_response(response, now, base_max, max_time)
    tally[EVALUATIONS] += evaluated
    return at


@compiled
def take_runs(
    side, block, begin, end, ranges, targets, now, rules, tally, response, left_out, right_out, at
):
    """Admit the satisfaction region of each base event unseen.

    Parameters and returns as `probe_runs`.
    """
    found = 0
    for i in range(begin, end):
        found += ranges[i, SHELL] - ranges[i, INNER]
    tally[SURE] += found
    if rules.response:
        _note_responses(side, block, begin, end, ranges, targets, now, rules, response)
    if not rules.pairs:
        return at + found
    if side == LEFT:
        return _write_runs(block, begin, end, ranges, targets, left_out, right_out, at)
    return _write_runs(block, begin, end, ranges, targets, right_out, left_out, at)


@compiled
def _write_runs(block, begin, end, ranges, targets, base_out, target_out, at):
    numbers = targets.numbers
    for i in range(begin, end):
        start, size = ranges[i, INNER], ranges[i, SHELL] - ranges[i, INNER]
        number = block.numbers[i]
        # Slices first: indices into them cannot be negative, so the loop is vectorised.
        bases, partners = base_out[at : at + size], target_out[at : at + size]
        run = numbers[start : start + size]
        for j in range(size):
            bases[j] = number
            partners[j] = run[j]
        at += size
    return at


@compiled
def _note_responses(side, block, begin, end, ranges, targets, now, rules, response):
    """Note how long the pairs of satisfaction regions have waited."""
    pair_rule, by_key = rules.pair_rule, targets.by_key
    for i in range(begin, end):
        base_max = max_time_at(pair_rule, side, block, i, by_key)
        for t in range(ranges[i, INNER], ranges[i, SHELL]):
            max_time = max_time_at(pair_rule, 1 - side, targets, t, by_key)
            note_response(response, now, base_max, max_time)


@compiled(forceinline=True)
def note_response(response, now, base_max, target_max):
    """Note how long a pair has waited since the later of its events."""
    waited = float(now - max(base_max, target_max))
    response[RESPONSE_SUM] += waited
    response[RESPONSE_MAX] = max(response[RESPONSE_MAX], waited)
