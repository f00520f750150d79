"""A join used in place of another one: of one stream, of some pairs alone, or with rows in order."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from threading import Lock
from typing import ClassVar

import numpy as np

from coincide.engine.events.sides import PairTest, Side
from coincide.engine.join.spec import Pairing
from coincide.engine.pairs.source import PairSource
from coincide.model.condition import Window
from coincide.model.counters import CountedJoin, JoinCounters, runs_of_about
from coincide.model.remembered import remembered
from coincide.model.threads import in_order, step
from cpu_fallback.join.filtering import (
    ALWAYS,
    EARLIER,
    LATER,
    NESTED,
    NEVER,
    SAME,
    UNSURE,
    Stamps,
    best_of_each,
    kept,
    order_of_pairs,
    passing_of_each,
    runs_taken,
)

ROW_NUMBERS = ("\0group", "\0row")
"""Columns that say which event of a stream a row is, added to those of files."""
Ranks = tuple[np.ndarray, np.ndarray]


def numbered(left: Side, right: Side) -> tuple[Side, Side]:
    """Both sides of a join of one stream, with ranks, which say which event is which."""
    # Ranks that they have already stay. Without identities and ranks their rows are the same.
    if left.ranks is not None and right.ranks is not None:
        return left, right
    if left.identity:
        left, right, ranks = ranked_sides(left, right)
    else:
        ranks = (np.arange(len(left)),) * 2
    return replace(left, ranks=ranks[0]), replace(right, ranks=ranks[1])


def ranked_sides(causes: Side, effects: Side) -> tuple[Side, Side, Ranks]:
    """Parts of one stream in order of identity, and for each event its number in that order."""
    # Events of equal identity are alike in all that is asked of them. Each side has all of them, in
    # whatever order, so that the k-th of one side may be taken for the k-th of the other. Ranks are
    # int64, ascending, and an event has the same one on both sides.
    first, second = (
        np.concatenate([own.to_numpy(), other.to_numpy()])
        for own, other in zip(causes.identity, effects.identity, strict=True)
    )
    is_effect = np.arange(first.size) >= len(causes)
    order = np.lexsort((is_effect, second, first))
    first, second, is_effect = first[order], second[order], is_effect[order]
    begins = np.ones(first.size, bool)
    begins[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    changes = begins.copy()
    changes[1:] |= is_effect[1:] != is_effect[:-1]
    # Where the first event of this identity is, and how many of this side come before this one.
    at = np.arange(first.size)
    ranks = np.maximum.accumulate(np.where(begins, at, 0)) + at
    ranks -= np.maximum.accumulate(np.where(changes, at, 0))
    causes, effects = (
        causes.rows(order[~is_effect]),
        effects.rows(order[is_effect] - len(causes)),
    )
    return causes, effects, (ranks[~is_effect], ranks[is_effect])


def window_once(window: Window, left: Side, right: Side) -> tuple[Window, bool]:
    """The part of a window that holds all pairs as they are given once, and whether it holds no others."""
    if not (left.are_instants and right.are_instants):
        return window, False
    if window.lo > 0 or window.hi < 0:
        return window, True
    least = 0 if _has_ties(left, right) else 1
    if not window.lo + window.hi >= 0 or least > window.hi:
        return window, False
    return replace(window, lo=least), least > 0


def doubt_of_order(window: Window, are_symmetric: bool) -> int:
    """When to decide whether a pair whose right event is the earlier one qualifies in that order, too."""
    if window.is_even:
        return NEVER
    return NESTED if window.lo + window.hi > 0 and are_symmetric else ALWAYS


def stamps_of(side: Side) -> Stamps:
    """The events of a side with ranks."""
    assert side.ranks is not None
    given = side.max_time, side.lengths, side.ranks
    # A kernel is compiled for one kind of arrays: it takes less time to copy one of another kind.
    return Stamps(*(np.require(each, requirements=("C", "W")) for each in given))


def are_two(left: Side, right: Side) -> PairTest:
    """Whether pairs have two events."""
    own, others = stamps_of(left), stamps_of(right)
    return lambda *rows: order_of_pairs(own, others, rows, NEVER) != SAME


def _has_ties(left: Side, right: Side) -> bool:
    """Whether there are two events of one time; those that match nothing do not matter."""
    if left.max_time is right.max_time:
        times = np.sort(_of_matchable(left, left.max_time))
        return bool((times[1:] == times[:-1]).any())
    assert left.ranks is not None
    assert right.ranks is not None
    times, ranks = (
        np.concatenate([_of_matchable(left, own), _of_matchable(right, others)])
        for own, others in ((left.max_time, right.max_time), (left.ranks, right.ranks))
    )
    order = np.argsort(times, kind="stable")
    times, ranks = times[order], ranks[order]
    # An event that is on both sides has one rank.
    return bool(((times[1:] == times[:-1]) & (ranks[1:] != ranks[:-1])).any())


def _of_matchable(side: Side, values: np.ndarray) -> np.ndarray:
    return values if side.matchable is None else values[side.matchable]


_MOST_BITS = 1 << 31
"""With more pairs, those that have passed are not kept, but found again."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Which pairs of a join count."""

    test: PairTest
    itself: np.ndarray | None = None
    """Whether each left row is in a pair with itself, in one stream whose other pairs all count."""


def selection_of(pairing: Pairing, is_stream: bool) -> Selection | None:
    """The pairs that meet `where`; of one stream of two events, in the order asked for. None: all."""
    # Tests refer to a copy of the pairing, which has no join: in a cycle a GPU's memory would wait
    # for the collector.
    pairing = copy(pairing)
    left, right, where = pairing.left, pairing.right, pairing.spec.where
    met = None if where is None else where.between(left, right, pairing.of_condition)
    of_where = None if met is None else Selection(met)
    if not is_stream:
        return of_where
    if pairing.spec.pairs_once:
        return Selection(_given_once(pairing, met))
    itself = pairing.meet_themselves()
    if left.ranks is not right.ranks:
        # A task may lack the right event that a left one is.
        itself &= np.isin(stamps_of(left).ranks, stamps_of(right).ranks)
    if not itself.any():
        return of_where
    test = are_two(left, right)
    if met is None:
        return Selection(test, itself)
    return Selection(lambda *rows: test(*rows) & met(*rows))


class FilteredJoin(CountedJoin):
    """Pairs of a join that pass a test; used like the join.

    Pairs are looked at in runs of bounded size, once to be counted and once more to be written: so
    memory does not grow with those that do not pass, but for a bit each that says whether one has.
    """

    best_rows: ClassVar[int] = 1 << 14

    def __init__(self, pairing: Pairing, join: PairSource, selection: Selection) -> None:
        self._join, self._test, self._itself = join, selection.test, selection.itself
        self.right_order: np.ndarray = join.right_order
        self._merits = copy(pairing).merits  # a copy, as in `selection_of`
        self._batch_pairs, self._threads = pairing.spec.batch_pairs, pairing.spec.threads
        # First pair of each run that was counted, and their end; whether each pair passed.
        self._passed: tuple[np.ndarray, list[np.ndarray]] | None = None

    @property
    def left_order(self) -> np.ndarray:
        """As in the join."""
        return self._join.left_order

    @property
    def counters(self) -> JoinCounters:
        """What the join looked at, and the pairs that are left."""
        found = self._join.counters
        return JoinCounters(found.candidates, found.probed, int(self.offsets[-1]))

    @remembered
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        if self._itself is not None:
            counts = self._join.counts - self._itself[self.left_order]
            return counts, np.array([0, 0, counts.sum()])
        counts = np.zeros(self.left_order.size, np.int64)
        keeps_bits = int(self._join.offsets[-1]) <= _MOST_BITS

        def count(run: tuple[int, int]) -> list[np.ndarray]:
            start, stop = run
            passing = self._tested(start, stop)
            passing_of_each(self._join.offsets[start : stop + 1], passing, counts[start:stop])
            step(stop - start)
            return [np.packbits(passing)] if keeps_bits else []

        runs = list(self._join.chunks(self._batch_pairs))
        bits = list(in_order(count, runs, self._threads))
        if keeps_bits:
            ends = [start for start, _ in runs] + [self.left_order.size]
            self._passed = self._join.offsets[ends], bits
        return counts, np.array([0, 0, counts.sum()])

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As in the join: `cpu_fallback.join.event_join.EventJoin.pairs`."""
        left, right = self._empty(start, stop), self._empty(start, stop)
        for part, first, last in self._parts(start, stop):
            passing = self._passing(first, last)
            own, others = self._join.pairs(first, last, left_values, right_values)
            kept(own, passing, left[part])
            kept(others, passing, right[part])
        return left, right

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the right side only."""
        right = self._empty(start, stop)
        for part, first, last in self._parts(start, stop):
            others = self._join.matches(first, last, right_values)
            kept(others, self._passing(first, last), right[part])
        return right

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The most probable match: `cpu_fallback.join.event_join.EventJoin.best`."""
        best, merits = np.full(stop - start, -1), np.full(stop - start, np.nan)
        for _, first, last in self._parts(start, stop):
            left, right = self.pairs(first, last, *self._positions)
            found = self._merits(self.left_order[left], self.right_order[right])
            chosen = best_of_each(left, right, found, ranks)
            best[left[chosen] - start] = right[chosen]
            merits[left[chosen] - start] = found[0][chosen]
            step(last - first)
        looked_at, pairs = (
            int(join.offsets[stop] - join.offsets[start]) for join in (self._join, self)
        )
        return best, merits, JoinCounters(looked_at, 0, pairs)

    def _empty(self, start: int, stop: int) -> np.ndarray:
        """Room for a number of each pair of a run of base positions."""
        return np.empty(int(self.offsets[stop] - self.offsets[start]), np.int64)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[slice, int, int]]:
        """A run of any size in runs of bounded size, and where the pairs of each are among those of all."""
        offsets = self._join.offsets[start : stop + 1]
        for first, last in runs_of_about(offsets, self._batch_pairs):
            run = start + first, start + last
            begin, end = (self.offsets[list(run)] - self.offsets[start]).tolist()
            yield slice(begin, end), *run

    def _passing(self, start: int, stop: int) -> np.ndarray:
        """Which pairs of the join pass, of a run: bool array."""
        if self._passed is None:
            return self._tested(start, stop)
        return _bits_of(*self._passed, *self._join.offsets[[start, stop]].tolist())

    def _tested(self, start: int, stop: int) -> np.ndarray:
        return self._test(*self._join.pairs(start, stop, self.left_order, self.right_order))

    @remembered
    def _positions(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(self.left_order.size), np.arange(self.right_order.size)


def _bits_of(ends: np.ndarray, bits: list[np.ndarray], first: int, last: int) -> np.ndarray:
    """Whether the pairs first ... last have passed, from the packed bits of each run: bool array."""
    run = int(np.searchsorted(ends, first, side="right")) - 1
    found = [np.zeros(0, np.uint8)]
    while first < last:
        begin, end = ends[run : run + 2].tolist()
        whole = np.unpackbits(bits[run], count=end - begin)
        found.append(whole[first - begin : last - begin])
        first, run = max(first, end), run + 1
    return np.concatenate(found).view(bool)


def _given_once(pairing: Pairing, met: PairTest | None) -> PairTest:
    """Whether the order of a pair of one stream is the one that is given."""
    # It is, if the left event is the earlier, or if the other order does not qualify.
    left, right, spec = pairing.left, pairing.right, pairing.spec

    swapped = right, left, pairing.of_condition_swapped
    met_swapped = None if spec.where is None else spec.where.between(*swapped)
    stamps = stamps_of(left), stamps_of(right)

    def test(own: np.ndarray, others: np.ndarray) -> np.ndarray:
        order = order_of_pairs(*stamps, (own, others), pairing.doubt, spec.shift)
        passing: np.ndarray = order == EARLIER
        if met is None:
            later = np.flatnonzero(order == UNSURE)
        else:
            is_met = met(own, others)
            passing &= is_met
            later = np.flatnonzero(is_met & (order >= LATER))
        if not later.size:
            return passing
        qualifies_too = order[later] == LATER
        unsure = np.flatnonzero(~qualifies_too)
        qualifies_too[unsure] = pairing.meet_swapped(others[later[unsure]], own[later[unsure]])
        if met_swapped is not None:
            both = np.flatnonzero(qualifies_too)
            qualifies_too[both] = met_swapped(others[later[both]], own[later[both]])
        passing[later] = ~qualifies_too
        return passing

    return test


_PAIRS = 1 << 18
"""That are looked up in one go."""


def is_ascending(order: np.ndarray) -> bool:
    """Whether rows are in order already."""
    return bool((order[1:] > order[:-1]).all())


MOST_ORDERED = 1 << 24
"""Pairs of a run of left rows that are put in order at a time: 8 bytes each."""
_RUNS_AT_HAND = 2


class OrderedJoin(CountedJoin):
    """The pairs of a pairing's join by left rows, in place of its base positions.

    It keeps the target position of each pair. With many pairs it keeps those of a run of left rows, which
    are joined once more when they are wanted, and of the run before.
    """

    def __init__(self, pairing: Pairing) -> None:
        self._pairing = pairing
        self._join, self._threads = pairing.join, pairing.spec.threads
        self.right_order: np.ndarray = self._join.right_order
        # The base position, in the join, of each left row.
        self._place = places_of(self._join.left_order)
        self._lock = Lock()
        self._at_hand: dict[int, _Targets] = {}

    @remembered
    def left_order(self) -> np.ndarray:
        """As in the join: here left rows themselves."""
        return np.arange(self._place.size)

    @remembered
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        return self._join.row_counts, np.zeros(3, np.int64)

    @property
    def counters(self) -> JoinCounters:
        """As in the join."""
        return self._join.counters

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As in the join, and so is all that follows."""
        left = np.repeat(left_values[start:stop], self.counts[start:stop])
        return left, self.matches(start, stop, right_values)

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:  # noqa: D102
        first, last = np.searchsorted(self._edges, [start, stop - 1], side="right") - 1
        taken = []
        for run in range(first, last + 1):
            begin, end = self._edges[run : run + 2].tolist()
            part = slice(max(start, begin) - begin, min(stop, end) - begin)
            taken.append(self._run(run).taken(right_values, part))
        return taken[0] if len(taken) == 1 else np.concatenate([right_values[:0], *taken])

    @remembered
    def _edges(self) -> np.ndarray:
        """Where runs of left rows begin, and where the last one ends: int64 array, ascending."""
        # All runs that threads are at work on at a time lie in two of these.
        most = max(MOST_ORDERED, (self._threads + 1) * self._pairing.spec.batch_pairs)
        starts = [start for start, _ in runs_of_about(self.offsets, most)]
        return np.array([*starts, self.left_order.size], np.int64)

    def _run(self, number: int) -> _Targets:
        """The pairs of a run of left rows."""
        with self._lock:
            found = self._at_hand.get(number)
            if found is None:
                found = self._of_all() if self._edges.size == 2 else self._joined_again(number)
                self._at_hand[number] = found
                if len(self._at_hand) > _RUNS_AT_HAND:
                    del self._at_hand[min(self._at_hand)]
            return found

    def _of_all(self) -> _Targets:
        return _Targets.of(self._join, self._place, np.arange(self.right_order.size), self._threads)

    def _joined_again(self, number: int) -> _Targets:
        join = self._pairing.of_left_rows(*self._edges[number : number + 2].tolist()).join
        positions = places_of(self.right_order)[join.right_order]
        return _Targets.of(join, places_of(join.left_order), positions, self._threads)


def places_of(order: np.ndarray) -> np.ndarray:
    """Where each row is in an order of all rows: int64 array."""
    found = np.empty(order.size, np.int64)
    found[order] = np.arange(order.size)
    return found


@dataclass(frozen=True, eq=False)
class _Targets:
    """Target positions of the pairs of a run of left rows, and where those of each row begin."""

    positions: np.ndarray
    firsts: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(
        cls, join: PairSource, places: np.ndarray, targets: np.ndarray, threads: int
    ) -> _Targets:
        """All pairs of a join that has each left row at a place, and other numbers for its targets."""
        found = np.empty(int(join.offsets[-1]), np.int64)
        runs = list(join.chunks(_PAIRS))
        parts = in_order(lambda run: [join.matches(*run, targets)], runs, threads)
        for (start, stop), part in zip(runs, parts, strict=True):
            found[join.offsets[start] : join.offsets[stop]] = part
        return cls(found, join.offsets[places], join.counts[places])

    def taken(self, values: np.ndarray, rows: slice) -> np.ndarray:
        """Values of the targets of some rows, row after row."""
        return runs_taken(values, self.positions, self.firsts[rows], self.counts[rows])
