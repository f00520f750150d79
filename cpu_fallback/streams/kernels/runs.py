"""Runs of targets of a block of base events: taken unseen, or decided one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cpu_fallback.streams.kernels.searching import advance, first_reaching, pair_probability
from cpu_fallback.streams.sides import LEFT
from cpu_fallback.streams.statistics import EVALUATIONS, RESPONSE_MAX, RESPONSE_SUM, SURE
from event_model.compiled import compiled

FIRST, INNER, SHELL, LAST = range(4)
"""Columns of the ranges of a base event: where its probe and satisfaction regions begin and end.

Positions of targets: outer first, inner first, past inner, past outer."""


_NOWHERE = -1


class Targets(NamedTuple):
    """The live targets of one class, as `Buffers` has them.

    Parameters
    ----------
    keys, lengths, numbers : int64 arrays, shape (capacity,)
    start, stop : int
        Live positions.
    low, top : int
        How far a doubled max_time lies above its key, at least and at most: the limits of the class's
        lengths where keys are doubled midpoints, 0 where they are doubled max_times.
    by_midpoint : bool
        Which of the two they are.
    """

    keys: np.ndarray
    lengths: np.ndarray
    numbers: np.ndarray
    start: int
    stop: int
    low: int
    top: int
    by_midpoint: bool


class Ages(NamedTuple):
    """Ages of targets at the streams' time, summed up.

    Parameters
    ----------
    before : float64 array, shape (n + 1,)
        Exclusive scan of the ages, ticks.
    first : int
        Position of the first target in it.
    """

    before: np.ndarray
    first: int


@compiled(forceinline=True)
def max_time_at(events, i, by_midpoint):
    """The max_time of an event of a block or of targets, ticks."""
    return (events.keys[i] + events.lengths[i]) >> 1 if by_midpoint else events.keys[i] >> 1


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
    lo, hi, threshold, pairs = rules.lo, rules.hi, rules.threshold, rules.pairs
    total, longest, evaluated = 0.0, response[RESPONSE_MAX], 0
    for i in range(begin, end):
        start, stop = ranges[i, column], ranges[i, column + 1]
        evaluated += stop - start
        base_max = max_time_at(block, i, targets.by_midpoint)
        length = block.lengths[i]
        for t in range(start, stop):
            max_time = max_time_at(targets, t, targets.by_midpoint)
            p = pair_probability(side, base_max, length, max_time, targets.lengths[t], lo, hi)
            if p >= threshold:
                if pairs:
                    base_out[at] = block.numbers[i]
                    target_out[at] = targets.numbers[t]
                at += 1
                waited = float(now - max(base_max, max_time))
                total += waited
                longest = max(longest, waited)
    tally[EVALUATIONS] += evaluated
    response[RESPONSE_SUM] += total
    response[RESPONSE_MAX] = longest
    return at


@compiled
def take_runs(
    side, block, begin, end, ranges, targets, limits, ages, at_once, now, rules, tally, response,
    left_out, right_out, at,
):  # fmt: skip
    """Admit the satisfaction region of each base event unseen.

    Parameters and returns as `probe_runs`, with

    Parameters
    ----------
    limits : (int, int)
        Of the base events, as `low` and `top` of the targets.
    ages : Ages
        Of the targets.
    at_once : bool
        Whether to note response times as if no target were later than a base event, which `later`
        makes good for a block at once.
    """
    if at_once:
        found = _note_base_events(block, begin, end, ranges, targets, now, response)
    else:
        found = _note_runs(block, begin, end, ranges, targets, limits, ages, now, response)
    tally[SURE] += found
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
def _note_runs(block, begin, end, ranges, targets, limits, ages, now, response):
    """Count the pairs of satisfaction regions, and note how long they have waited."""
    keys, low, top, by_midpoint = targets.keys, targets.low, targets.top, targets.by_midpoint
    found, total, longest = 0, 0.0, response[RESPONSE_MAX]
    # Seen from a base event's key, targets below `near` are not later than it, those from `far` on are.
    near = far = _NOWHERE
    for i in range(begin, end):
        start, stop = ranges[i, INNER], ranges[i, SHELL]
        if start >= stop:
            continue
        found += stop - start
        key, base_max = block.keys[i], max_time_at(block, i, by_midpoint)
        waited = float(now - base_max)
        if keys[stop - 1] + top <= 2 * base_max:
            # No target is later: all these pairs have waited since the base event.
            total += waited * (stop - start)
            longest = max(longest, waited)
            continue
        if near == _NOWHERE:
            near = first_reaching(keys, targets.start, targets.stop, key, limits[0] - top + 1)
            far = near
        near = advance(keys, near, targets.stop, key, limits[0] - top + 1)
        far = advance(keys, far, targets.stop, key, limits[1] - low + 1)
        split, later = min(max(near, start), stop), min(max(far, start), stop)
        total += waited * (split - start)
        for t in range(split, later):
            total += min(waited, float(now - max_time_at(targets, t, by_midpoint)))
        total += ages.before[stop - ages.first] - ages.before[later - ages.first]
        if split > start:
            longest = max(longest, waited)
        elif min(waited, float(now - ((keys[start] + low) >> 1))) > longest:
            longest = max(longest, _longest_wait(targets, start, stop, waited, now))
    response[RESPONSE_SUM] += total
    response[RESPONSE_MAX] = longest
    return found


@compiled
def _note_base_events(block, begin, end, ranges, targets, now, response):
    """As `_note_runs`, but all pairs count as having waited since their base event."""
    found, total, longest = 0, 0.0, response[RESPONSE_MAX]
    for i in range(begin, end):
        start, stop = ranges[i, INNER], ranges[i, SHELL]
        waited = float(now - max_time_at(block, i, targets.by_midpoint))
        found += stop - start
        total += waited * (stop - start)
        if waited > longest and start < stop:
            longest = max(longest, _longest_wait(targets, start, stop, waited, now))
    response[RESPONSE_SUM] += total
    response[RESPONSE_MAX] = longest
    return found


@compiled
def _longest_wait(targets, start, stop, waited, now):
    """The longest response of a run whose base event has waited for so long.

    The earliest max_time stands near the first key: no further off than the lengths differ.
    """
    longest = -np.inf
    for t in range(start, stop):
        if targets.keys[t] - targets.keys[start] > targets.top - targets.low:
            break
        age = float(now - max_time_at(targets, t, targets.by_midpoint))
        longest = max(longest, min(waited, age))
    return longest


@compiled
def age_scan(targets, block, now):
    """The ages of those targets that may be later than some event of a block, summed up.

    Parameters
    ----------
    targets : Targets
    block : Block
        Base events, not empty.
    now : int64
        The streams' time, ticks.

    Returns
    -------
    Ages
    """
    earliest = max_time_at(block, 0, targets.by_midpoint)
    for i in range(1, block.keys.size):
        earliest = min(earliest, max_time_at(block, i, targets.by_midpoint))
    first = first_reaching(targets.keys, targets.start, targets.stop, 2 * earliest, 1 - targets.top)
    before = np.empty(targets.stop - first + 1, np.float64)
    before[0] = 0.0
    for t in range(first, targets.stop):
        age = float(now - max_time_at(targets, t, targets.by_midpoint))
        before[t - first + 1] = before[t - first] + age
    return Ages(before, first)
