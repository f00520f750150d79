"""The kernels of a histogram of delays. Numba, one thread, no GIL.

Times are doubled midpoints, sorted within each group, and so are edges: all are half ticks. A bucket
begins at its edge and ends below the next one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.model.compiled import compiled

LANES = 8
"""Edges whose merges run in one loop, so that none of them waits for its loads."""
WHOLE = 1 << 62
"""The mass of one pair."""
LIMB_BITS = 31
"""Bits of the lower limb of a mass; the upper one has those that are left."""
_LIMB = (1 << LIMB_BITS) - 1
_STEP = np.uint64(1)


class Stamps(NamedTuple):
    """Doubled midpoints of one side by group and time, and where each group begins."""

    times: np.ndarray  # int64, shape (n,)
    offsets: np.ndarray  # int64, shape (groups + 1,)


class Supports(NamedTuple):
    """Uncertain times of one side, in an order of their own."""

    rows: np.ndarray  # int64, shape (n,)
    latest: np.ndarray  # int64, shape (n,): ticks
    lengths: np.ndarray  # int64, shape (n,): of the supports, ticks
    shapes: np.ndarray  # int64, shape (n,): those of the model
    offsets: np.ndarray  # int64, shape (groups * classes + 1,)
    longest: np.ndarray  # int64, shape (classes,): lengths


class Masses(NamedTuple):
    """How masses are found: edges, and rules that tell the chance of a difference."""

    edges: np.ndarray  # int64, shape (buckets + 1,): ticks
    at_least: Any  # The rule of a difference of at least 0
    at_most: Any  # The rule of a difference of at most 0
    skips_same: bool  # Whether no row meets itself


@compiled(forceinline=True)
def _lower_bound(values, start, stop, least):
    """The first position between start and stop of a value that is at least this."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def sample_pairs(left, right, edges, stride, counts):
    """Add up the pairs by bucket of one left event in every few."""
    for group in range(left.offsets.size - 1):
        begin, end = right.offsets[group], right.offsets[group + 1]
        first = -(-left.offsets[group] // stride) * stride
        for i in range(first, left.offsets[group + 1], stride):
            at = _lower_bound(right.times, begin, end, left.times[i] + edges[0])
            last = _lower_bound(right.times, at, end, left.times[i] + edges[counts.size])
            for k in range(counts.size):
                if at == last:
                    break
                next_at = _lower_bound(right.times, at, last, left.times[i] + edges[k + 1])
                counts[k] += next_at - at
                at = next_at


@compiled
def count_within(left, right, lowest, highest):
    """How many pairs have a delay from the first edge on and below the other one."""
    total, times, others = np.int64(0), left.times, right.times
    for group in range(left.offsets.size - 1):
        low = high = right.offsets[group]
        end = right.offsets[group + 1]
        for i in range(left.offsets[group], left.offsets[group + 1]):
            while low < end and others[low] < times[i] + lowest:
                low += 1
            while high < end and others[high] < times[i] + highest:
                high += 1
            total += high - low
    return total


@compiled
def bin_pairs(first_group, stop_group, start, stop, left, right, edges, table, counts):
    """Put each pair of the left positions start ... stop into its bucket.

    ``counts`` has shape (groups, buckets), from the first group on. ``table`` is that of `fill_cells`.
    """
    lowest, highest = edges[0], edges[edges.size - 1]
    scale = _scale_of(edges, table)
    times, others = left.times, right.times
    for group in range(first_group, stop_group):
        a, b = max(start, left.offsets[group]), min(stop, left.offsets[group + 1])
        if a >= b:
            continue
        own, end = counts[group - first_group], right.offsets[group + 1]
        low = _lower_bound(others, right.offsets[group], end, times[a] + lowest)
        high = low
        for i in range(a, b):
            while low < end and others[low] < times[i] + lowest:
                low += 1
            high = max(high, low)
            while high < end and others[high] < times[i] + highest:
                high += 1
            for j in range(np.uint64(low), np.uint64(high)):
                delay = others[j] - times[i]
                # Without a sign an index needs no test of it.
                cell = np.uint64(np.int64(float(delay - lowest) * scale))
                k, last = np.uint64(table[cell]), np.uint64(table[cell + _STEP])
                while last - k > _STEP:
                    middle = (k + last) >> _STEP
                    if edges[middle] <= delay:
                        k = middle
                    else:
                        last = middle - _STEP
                own[k + np.uint64(edges[k + _STEP] <= delay)] += 1


@compiled(forceinline=True)
def _scale_of(edges, table):
    """Cells per half tick."""
    return float(table.size - 2) / float(edges[edges.size - 1] - edges[0])


@compiled
def fill_cells(edges, table):
    """For each of many equal cells, and one more: the last bucket that begins in one before it."""
    # Cells are found by the same product as those of pairs, which never falls as delays rise.
    scale, last = _scale_of(edges, table), edges.size - 2
    table[:] = last
    k = np.int64(0)
    for cell in range(table.size):
        while k <= last and np.int64(float(edges[k] - edges[0]) * scale) < cell:
            k += 1
        table[cell] = max(k - 1, 0)


@compiled(forceinline=True)
def _merged(times, others, i, step, edge):
    """The next place among left times, after a step of a merge."""
    return i + np.uint64(times[i] + edge <= others[step - i])


@compiled
def _rest(times, others, i, step, edge, total):
    """How many pairs are below an edge, once a merge is at some step."""
    # `total` is the sum of left places after each step. Steps among left times add 1, 2, 3 and so on to
    # it, and steps among right ones the left events that are not above them.
    n, m = np.uint64(times.size), np.uint64(others.size)
    while i < n and step - i < m:
        i = _merged(times, others, i, step, edge)
        total += i
        step += _STEP
    above = total - ((i * (i + _STEP)) >> _STEP)
    if i == n:
        above += (m - (step - i)) * n
    return np.int64(n * m - above)


@compiled
def count_below(first_group, stop_group, left, right, edges, below):
    """For each group and each of `LANES` edges: how many pairs have a delay below it.

    ``below`` has shape (all groups, LANES). Each takes a merge of right times with moved left ones.
    """
    e0, e1, e2, e3 = edges[0], edges[1], edges[2], edges[3]
    e4, e5, e6, e7 = edges[4], edges[5], edges[6], edges[7]
    for group in range(first_group, stop_group):
        a = left.times[left.offsets[group] : left.offsets[group + 1]]
        b = right.times[right.offsets[group] : right.offsets[group + 1]]
        n, m, step = np.uint64(a.size), np.uint64(b.size), np.uint64(0)
        i0 = i1 = i2 = i3 = i4 = i5 = i6 = i7 = np.uint64(0)
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = np.uint64(0)
        while True:
            most = max(max(max(i0, i1), max(i2, i3)), max(max(i4, i5), max(i6, i7)))
            least = min(min(min(i0, i1), min(i2, i3)), min(min(i4, i5), min(i6, i7)))
            # No merge reaches the end of a side in fewer steps.
            steps = min(n - most, m - (step - least))
            if steps == 0:
                break
            for _ in range(steps):
                i0 = _merged(a, b, i0, step, e0)
                i1 = _merged(a, b, i1, step, e1)
                i2 = _merged(a, b, i2, step, e2)
                i3 = _merged(a, b, i3, step, e3)
                i4 = _merged(a, b, i4, step, e4)
                i5 = _merged(a, b, i5, step, e5)
                i6 = _merged(a, b, i6, step, e6)
                i7 = _merged(a, b, i7, step, e7)
                t0 += i0
                t1 += i1
                t2 += i2
                t3 += i3
                t4 += i4
                t5 += i5
                t6 += i6
                t7 += i7
                step += _STEP
        own = below[group]
        own[0] = _rest(a, b, i0, step, e0, t0)
        own[1] = _rest(a, b, i1, step, e1, t1)
        own[2] = _rest(a, b, i2, step, e2, t2)
        own[3] = _rest(a, b, i3, step, e3, t3)
        own[4] = _rest(a, b, i4, step, e4, t4)
        own[5] = _rest(a, b, i5, step, e5, t5)
        own[6] = _rest(a, b, i6, step, e6, t6)
        own[7] = _rest(a, b, i7, step, e7, t7)


@compiled(forceinline=True)
def _as_mass(probability):
    """A probability as a whole number of parts of `WHOLE`."""
    return min(max(np.int64(probability * float(WHOLE)), np.int64(0)), np.int64(WHOLE))


@compiled
def add_masses(first_group, stop_group, start, stop, left, right, masses, high, low):
    """Spread each pair of the left positions start ... stop over the buckets that it may be in.

    ``high`` and ``low``, of shape (groups, buckets) from the first group on, are the limbs of the masses.
    At most 2^32 pairs can be added to one bucket.
    """
    classes = right.longest.size
    for group in range(first_group, stop_group):
        a, b = max(start, left.offsets[group]), min(stop, left.offsets[group + 1])
        for i in range(a, b):
            for kind in range(classes):
                own = group * classes + kind
                _add_of_one(
                    i, right.offsets[own], right.offsets[own + 1], right.longest[kind], left, right,
                    masses, high[group - first_group], low[group - first_group],
                )  # fmt: skip


@compiled(forceinline=True)
def _add_of_one(i, begin, end, longest, left, right, masses, high, low):
    """The same of one left event and the right positions begin ... end."""
    edges = masses.edges
    last = edges.size - 1
    latest, shape = left.latest[i], left.shapes[i]
    earliest = latest - left.lengths[i]
    k = np.int64(-1)
    for j in range(_lower_bound(right.latest, begin, end, earliest + edges[0]), end):
        if right.latest[j] > latest + edges[last] + longest:
            break
        # Between these the delay of the pair lies.
        lowest = right.latest[j] - right.lengths[j] - latest
        if lowest > edges[last] or (masses.skips_same and left.rows[i] == right.rows[j]):
            continue
        highest = right.latest[j] - earliest
        difference = right.latest[j] - latest
        # The first edge above the lowest delay: near that of the pair before.
        if k < 0:
            k = _lower_bound(edges, np.int64(0), last, lowest)
        while k > 0 and edges[k - 1] > lowest:
            k -= 1
        while k < last and edges[k] <= lowest:
            k += 1
        _spread(k, difference, highest, shape, right.shapes[j], masses, high, low)


@compiled(forceinline=True)
def _spread(k, difference, highest, left, right, masses, high, low):
    """Spread one pair, from the first edge above its lowest delay on."""
    edges = masses.edges
    last = edges.size - 1
    mass = np.int64(WHOLE)
    if k == 0:
        mass = _as_mass(masses.at_least.probability(difference - edges[0], left, right))
        k = 1
    while k <= last and mass > 0:
        beyond = np.int64(0)
        if edges[k] <= highest and k < last:
            at_least = masses.at_least.probability(difference - edges[k], left, right)
            beyond = _as_mass(at_least)
        elif edges[k] <= highest:  # the last bucket has its upper edge, too
            at_most = masses.at_most.probability(difference - edges[k], left, right)
            beyond = np.int64(WHOLE) - _as_mass(at_most)
        beyond = min(beyond, mass)
        high[k - 1] += (mass - beyond) >> LIMB_BITS
        low[k - 1] += (mass - beyond) & _LIMB
        mass = beyond
        k += 1
