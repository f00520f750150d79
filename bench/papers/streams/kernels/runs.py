"""Runs of live targets that a base event can match.

What kernels share: `side` is that of the base events, which are those from `begin` to `end` of a `block`.
`ranges` is an int64 array, shape (n, 4), of the columns below, and `column` the first of two. `now` is in
ticks. Kernels add to `tally` and `response`; pairs go into `left_out` and `right_out`, int64, from `at` on,
and what is returned is the next `at`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.papers.streams.state import EVALUATIONS, RESPONSE_MAX, RESPONSE_SUM, SURE
from coincide.model.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO
from coincide.model.classes import class_of
from coincide.model.compiled import compiled
from coincide.model.sides import LEFT
from coincide.model.timestamps.protocol import max_time_of

FIRST, INNER, SHELL, LAST = range(4)
"""Columns of the ranges of a base event: where its probe and satisfaction regions begin and end.

Positions of targets: outer first, inner first, past inner, past outer."""


class Targets(NamedTuple):
    """The live targets of one class, as `Buffers` has them."""

    keys: np.ndarray  # int64, shape (capacity,)
    shapes: np.ndarray  # int64, shape (capacity,)
    numbers: np.ndarray  # int64, shape (capacity,)
    start: int  # Live positions
    stop: int  # Live positions
    by_key: bool  # Whether keys are those of the timestamps' model; else doubled max_times


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
    """Decide a run of targets of each base event by the formula, Lee & Lee (2010), Algorithm 3."""
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
    """Admit the satisfaction region of each base event unseen."""
    # Parameters and returns as `probe_runs`.
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
        bases, matches = base_out[at : at + size], target_out[at : at + size]
        run = numbers[start : start + size]
        for j in range(size):
            bases[j] = number
            matches[j] = run[j]
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


@compiled(allocates=True, forceinline=True)
def targets_of(buffers, side, k, by_key):
    """The targets of a side's class k, in order of key or, of one class, of max_time."""
    start, stop = buffers.ends[side, k]
    keys, shapes = buffers.keys[side, k], buffers.shapes[side, k]
    return Targets(keys, shapes, buffers.numbers[side, k], start, stop, by_key)


@compiled
def max_time_ranges(side, block, targets, regions, pair_rule, ranges):
    """Positions of the papers' L_H, L_L, R_L and R_H for each event of a block, by binary search."""
    candidates, early, late = 0, 0, 0
    keys, stop = targets.keys, targets.stop
    bands, tops = regions.bands[side], regions.tops[side]
    for i in range(block.keys.size):
        shape = block.shapes[i]
        k = class_of(shape, tops)
        origin = block.keys[i] - pair_rule.lean(side, shape)
        first = first_reaching(keys, targets.start, stop, origin, bands[k, 0, OUTER_LO])
        inner = first_reaching(keys, first, stop, origin, bands[k, 0, INNER_LO])
        shell = first_reaching(keys, inner, stop, origin, bands[k, 0, INNER_HI] + 1)
        last = first_reaching(keys, shell, stop, origin, bands[k, 0, OUTER_HI] + 1)
        ranges[i, FIRST] = first
        ranges[i, INNER] = inner
        ranges[i, SHELL] = shell
        ranges[i, LAST] = last
        candidates += last - first
        early += inner - first
        late += last - shell
    return candidates, early, late


@compiled
def key_ranges(block, begin, end, targets, band, ranges):
    """Positions of one band for the events of one class, by cursors that only move forward."""
    past_inner, past_outer = band[INNER_HI] + 1, band[OUTER_HI] + 1
    keys, stop = targets.keys, targets.stop
    origin = block.keys[begin]
    if keys[stop - 1] - origin <= band[INNER_HI]:
        # No target is too late for any satisfaction region.
        ranges[begin:end, SHELL:] = stop
    else:
        shell = first_reaching(keys, targets.start, stop, origin, past_inner)
        last = first_reaching(keys, shell, stop, origin, past_outer)
        for i in range(begin, end):
            shell = advance(keys, shell, stop, block.keys[i], past_inner)
            last = advance(keys, max(shell, last), stop, block.keys[i], past_outer)
            ranges[i, SHELL] = shell
            ranges[i, LAST] = last
    first = first_reaching(keys, targets.start, stop, origin, band[OUTER_LO])
    inner = first_reaching(keys, first, stop, origin, band[INNER_LO])
    candidates, early, late = 0, 0, 0
    for i in range(begin, end):
        first = advance(keys, first, stop, block.keys[i], band[OUTER_LO])
        inner = advance(keys, max(first, inner), stop, block.keys[i], band[INNER_LO])
        ranges[i, FIRST] = first
        ranges[i, INNER] = inner
        candidates += ranges[i, LAST] - first
        early += inner - first
        late += ranges[i, LAST] - ranges[i, SHELL]
    return candidates, early, late


@compiled(allocates=True)
def new_ranges(events):
    """Room for the ranges of this many base events."""
    return np.empty((events, 4), np.int64)


@compiled(forceinline=True)
def first_reaching(keys, start, stop, origin, bound):
    """First of the ascending positions start ... stop whose key - origin reaches `bound`."""
    # The difference is compared, not a sum: differences of times below 2**61 cannot overflow.
    size = stop - start
    if size <= 0:
        return start
    # Without a branch to mispredict: the answer lies in start ... start + size throughout.
    while size > 1:
        half = size >> 1
        start += half * (keys[start + half - 1] - origin < bound)
        size -= half
    return start + (keys[start] - origin < bound)


@compiled(forceinline=True)
def advance(keys, position, stop, origin, bound):
    """As `first_reaching`, from a cursor that has but few events to go."""
    # Unsigned: an index that cannot be negative needs no check for it.
    one, at, end = np.uint64(1), np.uint64(position), np.uint64(stop)
    # Mostly it moves by no more than a few: two steps without a branch to mispredict.
    if at + one < end:
        step = np.uint64(keys[at] - origin < bound)
        at += step
        at += step & np.uint64(keys[at] - origin < bound)
    while at < end and keys[at] - origin < bound:
        at += one
    return np.int64(at)


@compiled(forceinline=True)
def pair_qualifies(pair_rule, side, base_max, base_shape, target_max, target_shape):
    """Whether a base event on `side` and a target on the other qualify."""
    s, left, right = in_places(side, base_max, base_shape, target_max, target_shape)
    return pair_rule.qualifies(s, left, right)


@compiled(forceinline=True)
def in_places(side, base_max, base_shape, target_max, target_shape):
    """The s and the shapes of a pair, as a rule takes them."""
    # Always with left and right in their places, so that the bits do not depend on who is the base.
    if side == LEFT:
        return target_max - base_max, base_shape, target_shape
    return base_max - target_max, target_shape, base_shape


_AT_ONCE = 4
_OWNER_BITS = np.uint64(32)
_TARGET = np.uint64(2**32 - 1)


@compiled(allocates=True)
def probe_short_runs(
    side, block, begin, end, ranges, column, candidates, targets, now, rules, tally, response,
    left_out, right_out, at,
):  # fmt: skip
    """Decide a run of targets of each base event, as `probe_runs`."""
    # Runs are so short that finding their ends would cost more than probing them. So candidates are
    # listed first, the first few of each run whether they are there or not, and then probed in one
    # loop.
    listed = np.empty(candidates + _AT_ONCE, np.uint64)
    _list_candidates(begin, end, ranges, column, listed)
    base_out, target_out = (left_out, right_out) if side == LEFT else (right_out, left_out)
    pair_rule, pairs, by_key = rules.pair_rule, rules.pairs, targets.by_key
    for c in range(candidates):
        # Unsigned: an index that cannot be negative needs no check for it.
        i, t = listed[c] >> _OWNER_BITS, listed[c] & _TARGET
        base_max = max_time_at(pair_rule, side, block, i, by_key)
        max_time = max_time_at(pair_rule, 1 - side, targets, t, by_key)
        shapes = block.shapes[i], targets.shapes[t]
        found = pair_qualifies(pair_rule, side, base_max, shapes[0], max_time, shapes[1])
        if pairs:
            base_out[at] = block.numbers[i]
            target_out[at] = targets.numbers[t]
        at += found
        if rules.response and found:
            note_response(response, now, base_max, max_time)
    tally[EVALUATIONS] += candidates
    return at


@compiled
def _list_candidates(begin, end, ranges, column, listed):
    """Base event and target of each candidate, in one number."""
    at = np.uint64(0)
    for i in range(begin, end):
        start = ranges[i, column]
        size = ranges[i, column + 1] - start
        first = (np.uint64(i) << _OWNER_BITS) + np.uint64(start)
        for j in range(_AT_ONCE):
            listed[at + np.uint64(j)] = first + np.uint64(j)
        for j in range(_AT_ONCE, size):
            listed[at + np.uint64(j)] = first + np.uint64(j)
        at += np.uint64(size)
