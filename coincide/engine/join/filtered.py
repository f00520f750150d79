"""A join of which only some pairs count: those that pass tests beside the condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coincide.engine.events.sides import PairTest, Side
from coincide.engine.in_order import in_order
from coincide.engine.join.one_stream import are_two, stamps_of
from coincide.engine.join.pair_filter import Measure, no_measures
from coincide.engine.join.spec import AnySpec
from coincide.model.results import CountedJoin, JoinCounters, runs_of_about
from cpu_fallback.join.filtering import (
    EARLIER,
    LATER,
    UNSURE,
    best_of_each,
    kept,
    order_of_pairs,
    passing_of_each,
)

PairMerits = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From left and right rows of pairs to the merit and the distance of each, as of `Rule`."""

_MOST_BITS = 1 << 31
"""Of more pairs it is not kept which have passed, but found again."""


class FilteredPairs(CountedJoin):
    """Pairs of a join that pass a test; used like the join.

    Pairs are looked at in runs of bounded size, once to be counted and once more to be handed out: so
    memory does not grow with those that do not pass, but for a bit each that says whether one has.
    """

    def __init__(
        self,
        join: Any,
        test: PairTest,
        batch_pairs: int,
        threads: int,
        itself: np.ndarray | None = None,
    ) -> None:
        self._join, self._test, self._itself = join, test, itself
        self._batch_pairs, self._threads = batch_pairs, threads
        # First pair of each run that was counted, and their end; whether each pair passed.
        self._passed: tuple[np.ndarray, list[np.ndarray]] | None = None

    @property
    def left_order(self) -> np.ndarray:
        """As of the join."""
        order: np.ndarray = self._join.left_order
        return order

    @property
    def right_order(self) -> np.ndarray:
        """As of the join."""
        order: np.ndarray = self._join.right_order
        return order

    @property
    def counters(self) -> JoinCounters:
        """What the join looked at, and the pairs that are left."""
        found: JoinCounters = self._join.counters
        return JoinCounters(found.candidates, found.probed, int(self.offsets[-1]))

    @cached_property
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
        """As of the join: `cpu_fallback.join.event_join.EventJoin.pairs`."""
        left, right = self._empty(start, stop), self._empty(start, stop)
        for part, first, last in self._parts(start, stop):
            passing = self._passing(first, last)
            own, others = self._join.pairs(first, last, left_values, right_values)
            kept(own, passing, left[part])
            kept(others, passing, right[part])
        return left, right

    def partners(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the right side only."""
        right = self._empty(start, stop)
        for part, first, last in self._parts(start, stop):
            others = self._join.partners(first, last, right_values)
            kept(others, self._passing(first, last), right[part])
        return right

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

    @cached_property
    def _positions(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(self.left_order.size), np.arange(self.right_order.size)


class FilteredJoin(FilteredPairs):
    """The same of an `EventJoin`, with the best partner of each event."""

    def __init__(
        self,
        join: Any,
        test: PairTest,
        batch_pairs: int,
        threads: int,
        itself: np.ndarray | None = None,
        *,
        merits: PairMerits,
    ) -> None:
        super().__init__(join, test, batch_pairs, threads, itself)
        self._merits = merits

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The most probable partner: `cpu_fallback.join.event_join.EventJoin.best`."""
        best, merits = np.full(stop - start, -1), np.full(stop - start, np.nan)
        for _, first, last in self._parts(start, stop):
            left, right = self.pairs(first, last, *self._positions)
            found = self._merits(self.left_order[left], self.right_order[right])
            chosen = best_of_each(left, right, found, ranks)
            best[left[chosen] - start] = right[chosen]
            merits[left[chosen] - start] = found[0][chosen]
        looked_at, pairs = (
            int(join.offsets[stop] - join.offsets[start]) for join in (self._join, self)
        )
        return best, merits, JoinCounters(looked_at, 0, pairs)


def _bits_of(ends: np.ndarray, bits: list[np.ndarray], first: int, last: int) -> np.ndarray:
    """Whether the pairs first ... last have passed: bool array."""
    run = int(np.searchsorted(ends, first, side="right")) - 1
    found = [np.zeros(0, np.uint8)]
    while first < last:
        begin, end = ends[run : run + 2].tolist()
        whole = np.unpackbits(bits[run], count=end - begin)
        found.append(whole[first - begin : last - begin])
        first, run = max(first, end), run + 1
    return np.concatenate(found).view(bool)


@dataclass(frozen=True)
class OneStream:
    """What a join of one stream with itself tells of its pairs."""

    doubt: int
    decides: PairTest
    itself: Callable[[], np.ndarray]
    shift: int = 0


def pair_test(
    left: Side,
    right: Side,
    spec: AnySpec,
    stream: OneStream | None,
    measures: tuple[Measure, Measure] = (no_measures, no_measures),
) -> tuple[PairTest | None, np.ndarray | None]:
    """What pairs must pass; None: all pass."""
    where = None if spec.where is None else spec.where.between(left, right, measures[0])
    if stream is None:
        return where, None
    if spec.pairs_once:
        both = None
        if spec.where is not None and where is not None:
            both = where, spec.where.between(right, left, measures[1])
        return given_once(left, right, stream, both), None
    itself = stream.itself()
    if left.ranks is not right.ranks:
        # Of a slice whose right events are dealt to several tasks.
        itself &= np.isin(stamps_of(left).ranks, stamps_of(right).ranks)
    if not itself.any():
        return where, None
    test = are_two(left, right)
    if where is None:
        return test, itself
    return lambda own, others: test(own, others) & where(own, others), None


def given_once(
    left: Side, right: Side, stream: OneStream, where: tuple[PairTest, PairTest] | None
) -> PairTest:
    """Whether the order of a pair of one stream is the one that is given.

    It is, if the left event is the earlier, or if the other order does not qualify.
    """
    stamps = stamps_of(left), stamps_of(right)

    def test(own: np.ndarray, others: np.ndarray) -> np.ndarray:
        order = order_of_pairs(*stamps, (own, others), stream.doubt, stream.shift)
        passing: np.ndarray = order == EARLIER
        if where is None:
            later = np.flatnonzero(order == UNSURE)
        else:
            met = where[0](own, others)
            passing &= met
            later = np.flatnonzero(met & (order >= LATER))
        if not later.size:
            return passing
        qualifies_too = order[later] == LATER
        unsure = np.flatnonzero(~qualifies_too)
        qualifies_too[unsure] = stream.decides(others[later[unsure]], own[later[unsure]])
        if where is not None:
            both = np.flatnonzero(qualifies_too)
            qualifies_too[both] = where[1](others[later[both]], own[later[both]])
        passing[later] = ~qualifies_too
        return passing

    return test
