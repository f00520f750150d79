"""The kernels of the interval join: count, fill, best. Numba, one thread, no GIL.

Each walks a block of base events in order. Per pair of length classes four cursors move through the
sorted targets of the class: the ends of the outer and of the inner range (event_model.bands). Targets
between the inner cursors qualify unseen; those in the shell are probed with the formula. This is
Algorithm 5 of Lee & Lee (2010) with length classes; with one class it is theirs.
"""

from __future__ import annotations

import numpy as np

from event_model.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO
from event_model.compiled import compiled
from event_model.probability import DECISION_SLACK, window_probability

SURE, PROBED, PROBED_PAIRS = range(3)
"""Entries of a tally: pairs in inner ranges, targets probed, probed targets that qualified."""

_STEPS_BEFORE_GALLOP = 8


@compiled
def count_block(start, stop, base, targets, bands, lo, hi, confidence, counts):
    """Count the matches of the base events start ... stop.

    Parameters
    ----------
    start, stop : int64
        Positions in the base buffer.
    base : BaseBuffer
    targets : TargetBuffer
    bands : int64 array, shape (K1, K2, 4)
        From `event_model.bands.band_table`.
    lo, hi : int64
        The window, ticks.
    confidence : float64
        ct.
    counts : int64 array, shape (n,), written
        Matches of each base event.

    Returns
    -------
    int64 array, shape (3,)
        The tally of the block.
    """
    tally = np.zeros(3, np.int64)
    cursors, opened = _new_cursors(bands)
    group = _group_of(base, start)
    for i in range(start, stop):
        group = _next_group(base, group, i)
        if group == base.offsets.size - 1:
            counts[i:stop] = 0
            break
        k1 = base.classes[i]
        _open(cursors, opened, targets, k1, group)
        sure = 0
        probed_pairs = 0
        for k2 in range(bands.shape[1]):
            first, inner, shell, last = _locate(
                cursors, targets, bands, k1, k2, group, base.midpoints[i]
            )
            sure += shell - inner
            tally[PROBED] += inner - first + last - shell
            for t in range(first, inner):
                probed_pairs += (
                    _pair_probability(base, targets, i, t, lo, hi) >= confidence - DECISION_SLACK
                )
            for t in range(shell, last):
                probed_pairs += (
                    _pair_probability(base, targets, i, t, lo, hi) >= confidence - DECISION_SLACK
                )
        tally[SURE] += sure
        tally[PROBED_PAIRS] += probed_pairs
        counts[i] = sure + probed_pairs
    return tally


@compiled
def fill_block(
    start, stop, base, targets, bands, lo, hi, confidence, offsets, origin,
    base_values, target_values, base_out, target_out,
):  # fmt: skip
    """Write the matches of the base events start ... stop, in order.

    Parameters
    ----------
    start, stop, base, targets, bands, lo, hi, confidence
        As `count_block`.
    offsets : int64 array, shape (n + 1,)
        Exclusive scan of the counts.
    origin : int64
        Offset at which the output arrays begin.
    base_values, target_values : int64 arrays
        What to write for a base or target event, by its position in its buffer.
    base_out, target_out : int64 arrays, written
        One entry per match. `base_out` may be empty: then only targets are written.
    """
    cursors, opened = _new_cursors(bands)
    group = _group_of(base, start)
    for i in range(start, stop):
        if offsets[i + 1] == offsets[i]:
            continue
        group = _next_group(base, group, i)
        k1 = base.classes[i]
        _open(cursors, opened, targets, k1, group)
        at = offsets[i] - origin
        if base_out.size:
            base_out[at : offsets[i + 1] - origin] = base_values[i]
        for k2 in range(bands.shape[1]):
            first, inner, shell, last = _locate(
                cursors, targets, bands, k1, k2, group, base.midpoints[i]
            )
            for t in range(first, inner):
                if _pair_probability(base, targets, i, t, lo, hi) >= confidence - DECISION_SLACK:
                    target_out[at] = target_values[t]
                    at += 1
            for t in range(inner, shell):
                target_out[at] = target_values[t]
                at += 1
            for t in range(shell, last):
                if _pair_probability(base, targets, i, t, lo, hi) >= confidence - DECISION_SLACK:
                    target_out[at] = target_values[t]
                    at += 1


@compiled
def best_block(start, stop, base, targets, bands, lo, hi, confidence, ranks, best, probabilities):
    """Find the most probable partner of the base events start ... stop.

    Ties go to the smaller distance from the middle of the window, then to the smaller rank.

    Parameters
    ----------
    start, stop, base, targets, bands, lo, hi, confidence
        As `count_block`.
    ranks : int64 array, shape (targets,)
        Order among targets for ties, by position in the target buffer.
    best : int64 array, shape (n,), written
        Position of the partner in the target buffer, -1 for none.
    probabilities : float64 array, shape (n,), written
        Its satisfaction probability, NaN for none.
    """
    cursors, opened = _new_cursors(bands)
    group = _group_of(base, start)
    for i in range(start, stop):
        best[i] = -1
        probabilities[i] = np.nan
        group = _next_group(base, group, i)
        if group == base.offsets.size - 1:
            continue
        k1 = base.classes[i]
        _open(cursors, opened, targets, k1, group)
        top = confidence - DECISION_SLACK
        for k2 in range(bands.shape[1]):
            first, _, _, last = _locate(cursors, targets, bands, k1, k2, group, base.midpoints[i])
            for t in range(first, last):
                p = _pair_probability(base, targets, i, t, lo, hi)
                if p > top or (
                    p == top and _precedes(base, targets, i, t, best[i], lo + hi, ranks)
                ):
                    top = p
                    best[i] = t
                    probabilities[i] = p


@compiled
def pair_probabilities(min_left, max_left, min_right, max_right, lo, hi):
    """P(lo <= T_right - T_left <= hi) of n pairs.

    Parameters
    ----------
    min_left, max_left, min_right, max_right : int64 arrays, shape (n,)
        Timestamps, ticks.
    lo, hi : int64
        The window, ticks.

    Returns
    -------
    float64 array, shape (n,)
    """
    out = np.empty(min_left.size, np.float64)
    for i in range(out.size):
        out[i] = window_probability(
            max_right[i] - max_left[i],
            max_left[i] - min_left[i],
            max_right[i] - min_right[i],
            lo,
            hi,
        )
    return out


@compiled
def _new_cursors(bands):
    """Cursors per pair of classes, and the group for which those of each base class stand."""
    return np.empty(bands.shape, np.int64), np.full(bands.shape[0], -1, np.int64)


@compiled
def _group_of(base, i):
    return max(np.searchsorted(base.offsets, i, side="right") - 1, 0)


@compiled(forceinline=True)
def _next_group(base, group, i):
    """The group of base event i, at or after `group`; the number of groups for events of none."""
    while group < base.offsets.size - 1 and base.offsets[group + 1] <= i:
        group += 1
    return group


@compiled(forceinline=True)
def _open(cursors, opened, targets, k1, group):
    """Put the cursors of a base class at the start of a group."""
    if opened[k1] != group:
        opened[k1] = group
        for k2 in range(cursors.shape[1]):
            cursors[k1, k2, :] = targets.offsets[k2, group]


@compiled(forceinline=True)
def _locate(cursors, targets, bands, k1, k2, group, midpoint):
    """Move four cursors to a base event: outer first, inner first, past inner, past outer."""
    cursor = cursors[k1, k2]
    band = bands[k1, k2]
    end = targets.offsets[k2, group + 1]
    mids = targets.midpoints
    first = _advance(mids, cursor[0], end, midpoint, band[OUTER_LO])
    inner = _advance(mids, max(first, cursor[1]), end, midpoint, band[INNER_LO])
    shell = _advance(mids, max(inner, cursor[2]), end, midpoint, band[INNER_HI] + 1)
    last = _advance(mids, max(shell, cursor[3]), end, midpoint, band[OUTER_HI] + 1)
    cursor[0] = first
    cursor[1] = inner
    cursor[2] = shell
    cursor[3] = last
    return first, inner, shell, last


@compiled(forceinline=True)
def _advance(mids, position, end, midpoint, bound):
    """First position at or after `position` whose midpoint - `midpoint` reaches `bound`.

    The difference is compared, not a sum: differences of times below 2**61 cannot overflow.
    """
    # Mostly a cursor moves by no more than a few events: two steps without a branch to mispredict.
    if position + 2 <= end:
        step = mids[position] - midpoint < bound
        position += step
        position += step & (mids[position] - midpoint < bound)
    stop = min(end, position + _STEPS_BEFORE_GALLOP)
    while position < stop and mids[position] - midpoint < bound:
        position += 1
    if position < stop or position == end:
        return position
    step = np.int64(_STEPS_BEFORE_GALLOP)
    while position + step < end and mids[position + step] - midpoint < bound:
        position += step
        step *= 2
    low, high = position, min(end, position + step)
    while low < high:
        middle = (low + high) >> 1
        if mids[middle] - midpoint < bound:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(forceinline=True)
def _pair_probability(base, targets, i, t, lo, hi):
    l1 = base.lengths[i]
    l2 = targets.lengths[t]
    # max_right - max_left: a doubled midpoint and a length sum to the doubled max_time.
    s = ((targets.midpoints[t] + l2) - (base.midpoints[i] + l1)) >> 1
    return window_probability(s, l1, l2, lo, hi)


@compiled
def _precedes(base, targets, i, t, other, middle, ranks):
    if other < 0:
        return True
    distance = _gap(targets.midpoints[t] - base.midpoints[i], middle)
    best = _gap(targets.midpoints[other] - base.midpoints[i], middle)
    return distance < best or (distance == best and ranks[t] < ranks[other])


@compiled
def _gap(a, b):
    """|a - b| as uint64, where it always fits."""
    return np.uint64(a) - np.uint64(b) if a >= b else np.uint64(b) - np.uint64(a)
