"""Short runs of targets to probe: many base events with a few candidates each."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.sides import LEFT
from coincide.streams.shared import EVALUATIONS
from cpu_fallback.streams.kernels.runs import max_time_at, note_response
from cpu_fallback.streams.kernels.searching import pair_qualifies

_AT_ONCE = 4
_OWNER_BITS = np.uint64(32)
_TARGET = np.uint64(2**32 - 1)


@compiled(allocates=True)
def probe_short_runs(
    side, block, begin, end, ranges, column, candidates, targets, now, rules, tally, response,
    left_out, right_out, at,
):  # fmt: skip
    """Decide a run of targets of each base event, as `probe_runs`.

    Runs are so short that finding their ends would cost more than probing them. So candidates are
    listed first, the first few of each run whether they are there or not, and then probed in one loop.

    Parameters
    ----------
    candidates : int64
        Number of targets in all runs. The output has room for one pair more than these.
    """
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
