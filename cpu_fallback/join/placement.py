"""Where base events stand among the sorted targets: the cursors of the kernels, a run at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.bands import INNER_HI, INNER_LO, OUTER_LO
from coincide.compiled import compiled

_RUN = 512
"""Base events placed together: enough to spread what a run costs, few enough to stay in the L1 cache."""

_STEPS_BEFORE_GALLOP = 8


class Scratch(NamedTuple):
    """Working memory of one kernel call.

    Parameters
    ----------
    cursors : int64 array, shape (K1, K2, 4)
        Positions among the targets, by pair of classes, where the search for the next run begins.
    opened : int64 array, shape (K1,)
        The group in which the cursors of a base class stand; -1: none yet.
    starts : int64 array, shape (K1 + 1,)
        First member of each base class in `members`.
    members : int64 array, shape (_RUN,)
        Base events of the run, by class.
    midpoints, reached : int64 arrays, shape (_RUN,)
        Their midpoints, and the targets that these reach.
    spans : int64 array, shape (_RUN, K2, 4)
        Of each event of the run, in order, among the targets of each class: outer first, inner first,
        past inner, past outer.
    """

    cursors: np.ndarray
    opened: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    midpoints: np.ndarray
    reached: np.ndarray
    spans: np.ndarray


@compiled
def new_scratch(bands):
    """Scratch for a band table."""
    return Scratch(
        np.empty(bands.shape, np.int64),
        np.full(bands.shape[0], -1, np.int64),
        np.zeros(bands.shape[0] + 1, np.int64),
        np.empty(_RUN, np.int64),
        np.empty(_RUN, np.int64),
        np.empty(_RUN, np.int64),
        np.empty((_RUN, bands.shape[1], 4), np.int64),
    )


@compiled
def group_of(base, i):
    """The group of base event i, or the one before it."""
    return max(np.searchsorted(base.offsets, i, side="right") - 1, 0)


@compiled(forceinline=True)
def next_group(base, group, i):
    """The group of base event i, at or after `group`; the number of groups for events of none."""
    while group < base.offsets.size - 1 and base.offsets[group + 1] <= i:
        group += 1
    return group


@compiled
def place_run(base, targets, bands, scratch, group, start, stop):
    """Place the next run of base events of a group: fills `scratch.spans`.

    Returns
    -------
    int64
        End of the run, at most `stop`.
    """
    end = min(stop, start + _RUN, base.offsets[group + 1])
    _by_class(base, scratch, start, end)
    for k1 in range(bands.shape[0]):
        first, last = scratch.starts[k1], scratch.starts[k1 + 1]
        if first == last:
            continue
        if scratch.opened[k1] != group:
            scratch.opened[k1] = group
            for k2 in range(bands.shape[1]):
                scratch.cursors[k1, k2, :] = targets.offsets[k2, group]
        for k2 in range(bands.shape[1]):
            _place(targets, bands, scratch, group, k1, k2, first, last)
    return end


@compiled
def _by_class(base, scratch, start, end):
    """Take base events into the scratch, by class: `starts`, `members` and `midpoints`."""
    starts = scratch.starts
    classes = starts.size - 1
    starts[:] = 0
    if classes > 1:
        # Counted two entries on, so that placing the members turns the ends into the starts.
        for i in range(start, end):
            k = base.classes[i]
            if k + 2 <= classes:
                starts[k + 2] += 1
        for k in range(2, classes + 1):
            starts[k] += starts[k - 1]
        for i in range(start, end):
            k = base.classes[i]
            m = starts[k + 1]
            scratch.members[m] = i - start
            scratch.midpoints[m] = base.midpoints[i]
            starts[k + 1] += 1
    else:
        starts[1] = end - start
        for i in range(start, end):
            scratch.members[i - start] = i - start
            scratch.midpoints[i - start] = base.midpoints[i]


@compiled
def _place(targets, bands, scratch, group, k1, k2, first, last):
    """Place the members first ... last, of one class, among the targets of a class."""
    cursor, band = scratch.cursors[k1, k2], bands[k1, k2]
    mids, end = targets.midpoints, targets.offsets[k2, group + 1]
    midpoints, reached = scratch.midpoints[first:last], scratch.reached[: last - first]
    for c in range(4):
        low = c in (OUTER_LO, INNER_LO)
        # Where a shell is empty its two ends are one: `reached` stands.
        if c in (OUTER_LO, INNER_HI) or band[c] != band[c - 1]:
            bound = band[c] if low else band[c] + 1
            cursor[c] = _reach(mids, cursor[c], end, midpoints, bound, reached)
        for m in range(last - first):
            scratch.spans[scratch.members[first + m], k2, c] = reached[m]


@compiled
def _reach(mids, position, end, midpoints, bound, reached):
    """For sorted midpoints, the first target whose midpoint less theirs reaches `bound`.

    Targets are looked for from `position` to `end`. The difference is compared, not a sum: differences
    of times below 2**61 cannot overflow.

    Returns
    -------
    int64
        Where the last one stands.
    """
    n = midpoints.size
    final = _advance(mids, position, end, midpoints[n - 1], bound)
    m = np.int64(0)
    if final - position > _STEPS_BEFORE_GALLOP * n:
        for i in range(n):
            position = _advance(mids, position, final, midpoints[i], bound)
            reached[i] = position
        return final
    # A merge without a branch to mispredict: each step passes a target or places an event.
    while position < final:
        passed = np.int64(mids[position] - midpoints[m] < bound)
        reached[m] = position
        position += passed
        m += 1 - passed
    reached[m:] = final
    return final


@compiled
def _advance(mids, position, end, midpoint, bound):
    """First position from `position` to `end` whose midpoint - `midpoint` reaches `bound`: gallop."""
    step = np.int64(1)
    while position + step <= end and mids[position + step - 1] - midpoint < bound:
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
