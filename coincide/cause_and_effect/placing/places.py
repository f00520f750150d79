"""Places that many events share: numbered, and of each pair of places the window on delta."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.array_types import Int64s
from coincide.cause_and_effect.deciding import squared_distance, window_between
from coincide.cause_and_effect.limits import UNBOUNDED
from coincide.cause_and_effect.placing.gaps import gap_between, height_between
from coincide.cause_and_effect.placing.searching import gallop
from coincide.compiled import compiled

_SAMPLE = 2048


class Links(NamedTuple):
    """Of each place of a cause the places of effects that it can have, and at what deltas.

    Parameters
    ----------
    starts : int64 array, shape (places of causes + 1,)
        First link of each place.
    targets : int64 array, shape (links,)
        Places of effects.
    windows : int64 array, shape (links, 2)
        Least and most delta, ticks.
    """

    starts: Int64s
    targets: np.ndarray
    windows: np.ndarray


class Places(NamedTuple):
    """The distinct places of a side's events.

    Parameters
    ----------
    numbers : int64 array, shape (n,)
        Place of each event; events at one place have one group. `count` of events that match nothing.
    rows : int64 array, shape (count,)
        An event at each place. Places are sorted by the group of their events.
    """

    numbers: np.ndarray
    rows: np.ndarray


def repeats(points: np.ndarray, group: np.ndarray) -> bool:
    """Whether places repeat, by a sample: half of it or more has been seen before."""
    step = max(1, group.size // _SAMPLE)
    some, codes = (np.ascontiguousarray(each[..., ::step]) for each in (points, group))
    return bool(2 * _numbered(some.view(np.uint64), codes)[1].size <= codes.size)


def numbered_places(points: np.ndarray, group: np.ndarray) -> Places:
    """Number the places of events.

    Parameters
    ----------
    points : Points
    group : int64 array, shape (n,)
        Codes of keys, negative for events that match nothing.
    """
    numbers, rows = _numbered(points.view(np.uint64), group)
    order = np.argsort(group[rows], kind="stable")
    renumbered = np.empty(rows.size + 1, np.int64)
    renumbered[order] = np.arange(rows.size)
    renumbered[rows.size] = rows.size
    return Places(renumbered[numbers], rows[order])


@compiled(allocates=True)
def _numbered(points, group):
    """Numbers of places in the order in which they come, and the first row of each: a hash table.

    Parameters
    ----------
    points : uint64 array, shape (3 or 4, n)
        Bits of the coordinates.
    group : int64 array, shape (n,)
    """
    n = group.size
    slots = 64
    while slots < 2 * n:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    numbers, rows = np.empty(n, np.int64), np.empty(n, np.int64)
    count = 0
    for i in range(n):
        if group[i] < 0:
            numbers[i] = -1
            continue
        key = np.uint64(group[i])
        for d in range(points.shape[0]):
            key = (key ^ points[d, i]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        slot = np.int64(key & np.uint64(slots - 1))
        while table[slot] >= 0 and not _same(points, group, rows[table[slot]], i):
            slot = (slot + 1) & (slots - 1)
        if table[slot] < 0:
            table[slot] = count
            rows[count] = i
            count += 1
        numbers[i] = table[slot]
    for i in range(n):
        if numbers[i] < 0:
            numbers[i] = count
    return numbers, rows[:count].copy()


@compiled(forceinline=True)
def _same(points, group, i, j):
    same = group[i] == group[j]
    for d in range(points.shape[0]):
        same &= points[d, i] == points[d, j]
    return same


def pairs_of_places(own: np.ndarray, others: np.ndarray, groups: int) -> int:
    """How many pairs of places have one group, of the groups of both sides' places."""
    counts = [np.bincount(each, minlength=groups).astype(np.float64) for each in (own, others)]
    return int(np.dot(*counts))


@compiled(allocates=True)
def link_places(rule, own, own_group, others, others_group, margins, least):
    """The links of all pairs of places.

    Parameters
    ----------
    rule : PairRule
    own, others : Points
        Places of causes and of effects.
    own_group, others_group : int64 arrays
        Their groups, ascending.
    margins : (int64, int64)
        By how much windows begin earlier and end later, ticks.
    least : int64
        No window begins before it.

    Returns
    -------
    Links
    """
    starts, first = np.zeros(own_group.size + 1, np.int64), np.int64(0)
    for p in range(own_group.size):
        first = gallop(others_group, first, others_group.size, own_group[p])
        last = gallop(others_group, first, others_group.size, own_group[p] + 1)
        near = 0
        for q in range(first, last):
            near += gap_between(own, p, others, q) <= rule.near
        starts[p + 1] = starts[p] + near
    targets, windows = np.empty(starts[-1], np.int64), np.empty((starts[-1], 2), np.int64)
    count, first = 0, np.int64(0)
    for p in range(own_group.size):
        first = gallop(others_group, first, others_group.size, own_group[p])
        last = gallop(others_group, first, others_group.size, own_group[p] + 1)
        starts[p] = count
        for q in range(first, last):
            gap = gap_between(own, p, others, q)
            if not gap <= rule.near:
                continue
            distance2 = squared_distance(rule.curvature, gap, height_between(own, p, others, q))
            if not distance2 <= rule.bound:
                continue
            lo, hi = window_between(rule, distance2, distance2)
            if lo > hi:
                continue
            lo, hi = max(lo - margins[0], least), min(hi + margins[1], UNBOUNDED)
            if lo <= hi:
                targets[count], windows[count, 0], windows[count, 1] = q, lo, hi
                count += 1
    starts[own_group.size] = count
    return Links(starts, targets[:count].copy(), windows[:count].copy())
