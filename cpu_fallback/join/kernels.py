"""The kernels of the join: a walk, whose taker counts, ranks or adds up; and fill. Numba, no GIL.

Each walks a block of base events in order, a run of some hundred at a time. Per pair of classes
four cursors move through the sorted targets of the class: the ends of the outer and of the inner range
(coincide.model.bands). Targets between the inner cursors qualify unseen; those in the shell are probed
with the rule of the timestamps' model (coincide.model.timestamps.protocol). This is Algorithm 5 of Lee &
Lee (2010) with length classes; with one class it is theirs. How a run is placed among the targets is in
`cpu_fallback.join.buffers`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from coincide.model.compiled import compiled, copy_into
from coincide.model.sides import LEFT
from coincide.model.timestamps.protocol import difference, difference_from
from cpu_fallback.join.buffers import group_of, new_scratch, next_group, place_run
from cpu_fallback.join.filtering import NOWHERE, is_better

SURE, PROBED, PROBED_PAIRS = range(3)
"""Entries of a tally: pairs in inner ranges, targets probed, probed targets that qualified."""


class Taker(Protocol):
    """Takes the matches of base events as a walk comes to them: a NamedTuple, compiled as rules are."""

    def take(self, sides, e, row, first, inner, shell, last):
        """Take the matches of base event e, `row` of its block, among targets first ... last of a class."""
        # Those of inner ... shell are in the inner range, the others are to be probed. Returned is
        # how many of the others qualify.


@compiled(allocates=True)
def walk_block(start, stop, sides, taker):
    """Let a taker take the matches of the base events start ... stop; the tally: int64, shape (3,)."""
    sure = probed = probed_pairs = np.int64(0)
    base, scratch = sides.base, new_scratch(sides.bands)
    group, i = group_of(base, start), start
    while i < stop:
        group = next_group(base, group, i)
        if group == base.offsets.size - 1:
            break
        end = place_run(sides, scratch, group, i, stop)
        for e in range(i, end):
            for k2 in range(sides.bands.shape[1]):
                first, inner, shell, last = scratch.spans[e - i, k2]
                sure += shell - inner
                probed += inner - first + last - shell
                probed_pairs += taker.take(sides, e, e - start, first, inner, shell, last)
        i = end
    return np.array((sure, probed, probed_pairs))


def count_block(start, stop, sides, counts):
    """Count the matches of the base events start ... stop, from 0; the tally of the block."""
    return walk_block(start, stop, sides, _Counts(counts[start:stop]))


def best_block(start, stop, sides, ranks, best, merits):
    """Find the most probable match of the base events start ... stop; the tally of the block."""
    # Ties go to the smaller distance from the middle of the window, then to the smaller rank.
    best[:] = -1
    merits[:] = np.nan
    return walk_block(start, stop, sides, _Best(ranks, best, merits))


class _Counts(NamedTuple):
    counts: np.ndarray

    def take(self, sides, e, row, first, inner, shell, last):
        rule, base, targets = sides.rule, sides.base, sides.targets
        qualified = _qualified(rule, base, targets, e, first, inner)
        qualified += _qualified(rule, base, targets, e, shell, last)
        self.counts[row] += shell - inner + qualified
        return qualified


class _Best(NamedTuple):
    ranks: np.ndarray
    best: np.ndarray
    merits: np.ndarray

    def take(self, sides, e, row, first, inner, shell, last):
        if first == last:
            return 0
        rule, base, targets = sides.rule, sides.base, sides.targets
        top, least, found = 0.0, NOWHERE, self.best[row]
        if found >= 0:
            top = self.merits[row]
            least = _distance(rule, base, targets, e, found), self.ranks[found]
        qualified = np.int64(0)
        for t in range(first, last):
            p = _merit(rule, base, targets, e, t)
            qualified += p >= 0.0
            if p < top:
                continue
            place = _distance(rule, base, targets, e, t), self.ranks[t]
            if is_better(p, place, top, least):
                top, least, found = p, place, t
        if found >= 0:
            self.best[row], self.merits[row] = found, top
        return qualified - (shell - inner)


@compiled(allocates=True)
def fill_block(
    start, stop, sides, offsets, origin, base_values, target_values, base_out, target_out
):
    """Write the matches of the base events start ... stop, in order; the tally is that of `walk_block`."""
    tally = np.zeros(3, np.int64)
    scratch, base = new_scratch(sides.bands), sides.base
    group, i = group_of(base, start), start
    while i < stop:
        group = next_group(base, group, i)
        if group == base.offsets.size - 1:
            break
        end = place_run(sides, scratch, group, i, stop)
        for e in range(i, end):
            at, full = offsets[e] - origin, offsets[e + 1] - origin
            if base_out.size:
                base_out[at:full] = base_values[e]
            for k2 in range(sides.bands.shape[1]):
                first, inner, shell, last = scratch.spans[e - i, k2]
                begin = at
                at = _taken(sides, e, first, inner, target_values, target_out, at, full)
                copy_into(target_out[at : at + shell - inner], target_values[inner:shell])
                at += shell - inner
                at = _taken(sides, e, shell, last, target_values, target_out, at, full)
                tally[SURE] += shell - inner
                tally[PROBED] += inner - first + last - shell
                tally[PROBED_PAIRS] += at - begin - (shell - inner)
        i = end
    return tally


@compiled(allocates=True)
def pair_probabilities(rule, left, right, n):
    """Satisfaction probabilities of n pairs."""
    out = np.empty(n, np.float64)
    for i in range(n):
        l1, l2 = left.shape_at(i), right.shape_at(i)
        s = difference(rule, left.key_at(i), l1, right.key_at(i), l2)
        out[i] = rule.probability(s, l1, l2)
    return out


@compiled(allocates=True)
def pair_decisions(rule, left, right, n):
    """Which of n pairs qualify: bool array, shape (n,). Arguments as `pair_probabilities`."""
    out = np.empty(n, np.bool_)
    for i in range(n):
        l1, l2 = left.shape_at(i), right.shape_at(i)
        s = difference(rule, left.key_at(i), l1, right.key_at(i), l2)
        out[i] = rule.qualifies(s, l1, l2)
    return out


@compiled(allocates=True)
def pair_merits(rule, left, right, n):
    """By what pairs that qualify are ranked. Arguments as `pair_probabilities`."""
    merits, distances = np.empty(n, np.float64), np.empty(n, np.uint64)
    for i in range(n):
        l1, l2 = left.shape_at(i), right.shape_at(i)
        s = difference(rule, left.key_at(i), l1, right.key_at(i), l2)
        merits[i] = rule.merit(s, l1, l2)
        distances[i] = rule.distance(s, l1, l2)
    return merits, distances


@compiled(forceinline=True)
def _qualified(rule, base, targets, i, start, stop):
    """How many of the targets start ... stop qualify with base event i."""
    found = np.int64(0)
    for t in range(start, stop):
        found += np.int64(_qualifies(rule, base, targets, i, t))
    return found


@compiled(forceinline=True)
def _taken(sides, i, start, stop, values, out, at, full):
    """Write those of the targets start ... stop that qualify with base event i, from `at` on."""
    # Each is written, and only those that qualify are kept: a branch would be mispredicted at every
    # other one. `full` is where the matches of the event end, as counted; what follows is not its
    # own.
    rule, base, targets = sides.rule, sides.base, sides.targets
    # Once for all: what is written might be what is read here, for all that the compiler knows.
    shape = base.shapes[i]
    own = base.keys[i] + rule.lean(LEFT, shape)
    for t in range(start, stop):
        if at == full:
            break
        out[at] = values[t]
        s = difference_from(rule, own, targets.keys[t], targets.shapes[t])
        at += np.int64(rule.qualifies(s, shape, targets.shapes[t]))
    return at


@compiled(forceinline=True)
def _difference(rule, base, targets, i, t):
    return difference(rule, base.keys[i], base.shapes[i], targets.keys[t], targets.shapes[t])


@compiled(forceinline=True)
def _qualifies(rule, base, targets, i, t):
    s = _difference(rule, base, targets, i, t)
    return rule.qualifies(s, base.shapes[i], targets.shapes[t])


@compiled(forceinline=True)
def _merit(rule, base, targets, i, t):
    s = _difference(rule, base, targets, i, t)
    return rule.merit(s, base.shapes[i], targets.shapes[t])


@compiled(forceinline=True)
def _distance(rule, base, targets, i, t):
    s = _difference(rule, base, targets, i, t)
    return rule.distance(s, base.shapes[i], targets.shapes[t])
