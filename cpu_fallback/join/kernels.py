"""The kernels of the interval join: count, fill, best. Numba, one thread, no GIL.

Each walks a block of base events in order, a run of some hundred at a time. Per pair of length classes
four cursors move through the sorted targets of the class: the ends of the outer and of the inner range
(coincide.bands). Targets between the inner cursors qualify unseen; those in the shell are probed
with the formula. This is Algorithm 5 of Lee & Lee (2010) with length classes; with one class it is
theirs. How a run is placed among the targets is in `cpu_fallback.join.placement`.
"""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.probability import (
    DECISION_SLACK,
    distance_from_middle,
    midpoint_probability,
    window_probability,
)
from cpu_fallback.join.placement import group_of, new_scratch, next_group, place_run

SURE, PROBED, PROBED_PAIRS = range(3)
"""Entries of a tally: pairs in inner ranges, targets probed, probed targets that qualified."""


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
        From `coincide.bands.band_table`.
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
    scratch = new_scratch(bands)
    group, i = group_of(base, start), start
    while i < stop:
        group = next_group(base, group, i)
        if group == base.offsets.size - 1:
            counts[i:stop] = 0
            break
        end = place_run(base, targets, bands, scratch, group, i, stop)
        for e in range(i, end):
            sure = qualified = np.int64(0)
            for k2 in range(bands.shape[1]):
                first, inner, shell, last = scratch.spans[e - i, k2]
                sure += shell - inner
                tally[PROBED] += inner - first + last - shell
                qualified += _qualified(base, targets, e, first, inner, lo, hi, confidence)
                qualified += _qualified(base, targets, e, shell, last, lo, hi, confidence)
            tally[SURE] += sure
            tally[PROBED_PAIRS] += qualified
            counts[e] = sure + qualified
        i = end
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
    scratch = new_scratch(bands)
    group, i = group_of(base, start), start
    while i < stop:
        group = next_group(base, group, i)
        if group == base.offsets.size - 1:
            break
        end = place_run(base, targets, bands, scratch, group, i, stop)
        for e in range(i, end):
            at = offsets[e] - origin
            if base_out.size:
                base_out[at : offsets[e + 1] - origin] = base_values[e]
            for k2 in range(bands.shape[1]):
                first, inner, shell, last = scratch.spans[e - i, k2]
                for t in range(first, inner):
                    if _probability(base, targets, e, t, lo, hi) >= confidence - DECISION_SLACK:
                        target_out[at] = target_values[t]
                        at += 1
                target_out[at : at + shell - inner] = target_values[inner:shell]
                at += shell - inner
                for t in range(shell, last):
                    if _probability(base, targets, e, t, lo, hi) >= confidence - DECISION_SLACK:
                        target_out[at] = target_values[t]
                        at += 1
        i = end


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
    best : int64 array, shape (stop - start,), written
        Position of the partner in the target buffer, -1 for none.
    probabilities : float64 array, shape (stop - start,), written
        Its satisfaction probability, NaN for none.

    Returns
    -------
    int64 array, shape (3,)
        The tally of the block.
    """
    tally = np.zeros(3, np.int64)
    best[:] = -1
    probabilities[:] = np.nan
    threshold = confidence - DECISION_SLACK
    scratch = new_scratch(bands)
    group, i = group_of(base, start), start
    while i < stop:
        group = next_group(base, group, i)
        if group == base.offsets.size - 1:
            break
        end = place_run(base, targets, bands, scratch, group, i, stop)
        for e in range(i, end):
            top = threshold
            for k2 in range(bands.shape[1]):
                first, inner, shell, last = scratch.spans[e - i, k2]
                qualified = np.int64(0)
                for t in range(first, last):
                    p = _probability(base, targets, e, t, lo, hi)
                    qualified += p >= threshold
                    if p > top or (
                        p == top and _precedes(base, targets, e, t, best[e - start], lo, hi, ranks)
                    ):
                        top = p
                        best[e - start] = t
                        probabilities[e - start] = p
                tally[SURE] += shell - inner
                tally[PROBED] += inner - first + last - shell
                tally[PROBED_PAIRS] += qualified - (shell - inner)
        i = end
    return tally


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


@compiled(forceinline=True)
def _qualified(base, targets, i, start, stop, lo, hi, confidence):
    """How many of the targets start ... stop qualify with base event i."""
    found = np.int64(0)
    for t in range(start, stop):
        found += _probability(base, targets, i, t, lo, hi) >= confidence - DECISION_SLACK
    return found


@compiled(forceinline=True)
def _probability(base, targets, i, t, lo, hi):
    return midpoint_probability(
        base.midpoints[i], base.lengths[i], targets.midpoints[t], targets.lengths[t], lo, hi
    )


@compiled
def _precedes(base, targets, i, t, other, lo, hi, ranks):
    if other < 0:
        return True
    distance = distance_from_middle(base.midpoints[i], targets.midpoints[t], lo, hi)
    best = distance_from_middle(base.midpoints[i], targets.midpoints[other], lo, hi)
    return distance < best or (distance == best and ranks[t] < ranks[other])
