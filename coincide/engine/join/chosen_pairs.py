"""Chosen pairs: the k best of each event, each the other's best, the only one, the best assignment."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from coincide.engine.events.sides import Side, without_payload
from coincide.engine.join.aggregate_rows import Aggregates
from coincide.engine.join.derived_joins import stamps_of
from coincide.engine.join.emission import Best, Counts, Emission, LeftRows, Lists, MakeBatch, Pairs
from coincide.engine.join.spec import AnySpec
from coincide.engine.pairs.source import Rows
from coincide.engine.room import check_candidates, check_most
from coincide.model.errors import DataError, argument
from coincide.model.options import MATCHINGS, Emit, Matching
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from coincide.model.threads import in_order
from cpu_fallback.join.filtering import (
    EARLIER,
    NEVER,
    Groups,
    best_assignment,
    connected_groups,
    least_of_each,
    least_of_targets,
    order_of_pairs,
)

_FEW = 1 << 20
"""Pairs to gather before those are thinned out again that cannot be anybody's best."""


class Matched(Emission):
    """Rows of pairs that are known only when all pairs were looked at."""

    orders_rows = True

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._prepare()  # before threads share it
        yield from super().__iter__()

    def _prepare(self) -> None:
        self._order.prepared(LEFT, RIGHT)

    @property
    def pairs(self) -> int:
        """How many there are."""
        self._prepare()
        return int(self._found[LEFT].size)

    @property
    @abstractmethod
    def _found(self) -> Rows:
        """Left and right rows of the pairs."""

    @property
    def _in_output(self) -> np.ndarray:
        """Left events, by row, that are in the output if they are in no pair: bool array."""
        return np.ones(len(self._left), bool)

    @remembered
    def _output_rows(self) -> Rows:
        """The pairs, and in the order of all left rows those that are in none, with -1 for a match."""
        # In one stream each pair is there in one order.
        left_rows, right_rows = self._found
        if self._spec.is_one_stream:
            left_rows, right_rows = once(self._left, self._right, self._found)
        if not self._spec.keeps_unmatched:
            return left_rows, right_rows
        alone = self._in_output.copy()
        alone[self._found[LEFT]] = False
        lonely = np.flatnonzero(alone)
        left_rows = np.concatenate([left_rows, lonely])
        right_rows = np.concatenate([right_rows, np.full(lonely.size, -1)])
        order = np.argsort(left_rows, kind="stable")
        return left_rows[order], right_rows[order]

    def _runs(self) -> Iterable[tuple[int, int]]:
        """Runs of rows."""
        n, step = self._output_rows[LEFT].size, self._spec.batch_pairs
        return ((start, min(start + step, n)) for start in range(0, n, step))

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        left_rows, right_rows = (rows[start:stop] for rows in self._output_rows)
        alone = right_rows < 0
        pairs = left_rows[~alone], right_rows[~alone]
        at = np.flatnonzero(alone) - np.arange(int(alone.sum()))
        yield from self._matched(pairs, self._measured(pairs), left_rows[alone], at)

    def _pairs_of(self, start: int, stop: int) -> Rows:
        """All pairs of a run of base positions."""
        join = self.join
        left_rows, right_rows = join.pairs(start, stop, join.left_order, join.right_order)
        return left_rows, right_rows


class Mutual(Matched):
    """Pairs in which each event is the other's best match."""

    @remembered
    def _found(self) -> Rows:
        of_left, of_right = self._bests()
        if not self._spec.merits:
            return self._mutual(of_left, of_right)
        # Whoever is an event's best match of all is so in the task that finds the pair.
        best = np.full(len(self._left), -1)
        best[of_left[LEFT]] = of_left[RIGHT]
        return joined([of_left, taken(of_right, best[of_right[LEFT]] != of_right[RIGHT])])

    def _mutual(self, of_left: Rows, of_right: Rows) -> Rows:
        """The pairs that are the best of both their events."""
        best = np.full(len(self._right), -1)
        best[of_right[RIGHT]] = of_right[LEFT]
        return taken(of_left, best[of_left[RIGHT]] == of_left[LEFT])

    def _bests(self) -> tuple[Rows, Rows]:
        """The pair of each left event with its best match, and of each right event with its own."""
        runs = in_order(
            lambda run: [self._bests_of(*run)],
            self.join.chunks(self._batch_pairs),
            self._spec.threads,
        )
        of_left: list[Rows] = []
        of_right: list[Rows] = []
        held, most = 0, 2 * len(self._right) + _FEW
        for left_best, right_best in runs:
            of_left.append(left_best)
            of_right.append(right_best)
            held += right_best[LEFT].size
            if held > most:
                of_right = [self._best(joined(of_right), LEFT)]
                held = of_right[0][LEFT].size
        return joined(of_left), self._best(joined(of_right), LEFT)

    def _bests_of(self, start: int, stop: int) -> tuple[Rows, Rows]:
        """The same for a run of base positions, and for right events with the left ones of the run."""
        rows, order = self._pairs_of(start, stop), self._order
        offsets = self.join.offsets[start : stop + 1] - self.join.offsets[start]
        keys = order.leading(rows)
        for_left = least_of_each(offsets, keys, 1)
        for_right = least_of_targets(rows[RIGHT], keys, len(self._right))
        return self._best(taken(rows, for_left), RIGHT), self._best(taken(rows, for_right), LEFT)

    def _best(self, rows: Rows, of: int) -> Rows:
        return taken(rows, self._order.best(rows, of)[0])


class Unambiguous(Matched):
    """Pairs whose events both have no other match."""

    def _prepare(self) -> None:
        """No match is better than another."""

    @remembered
    def _found(self) -> Rows:
        # A task tells enough to know who has one match, and who has more.
        return self._few if self._spec.merits else self._alone(self._of_single_lefts)

    @remembered
    def _few(self) -> Rows:
        """All pairs of events that have one, and of all others two at least, of either side."""
        number = np.empty(len(self._right), np.int64)
        seen = np.zeros(len(self._right), np.int8)
        parts = []
        runs = list(self.join.chunks(self._batch_pairs))
        found = in_order(lambda run: [self._pairs_of(*run)], runs, self._spec.threads)
        for (start, stop), rows in zip(runs, found, strict=True):
            offsets, counts = self.join.offsets[start:stop], self.join.counts[start:stop]
            places = np.arange(rows[LEFT].size) - np.repeat(offsets - offsets[:1], counts)
            kept = places < 2
            left_over = np.flatnonzero(seen[rows[RIGHT]] < 2)
            for _ in range(2):
                events = rows[RIGHT][left_over]
                # The last one that is written, of an event's several pairs, is the first one.
                number[events[::-1]] = left_over[::-1]
                is_first = (number[events] == left_over) & (seen[events] < 2)
                kept[left_over[is_first]] = True
                seen[events[is_first]] += 1
                left_over = left_over[~is_first]
            parts.append(taken(rows, kept))
        return joined(parts)

    @property
    def _of_single_lefts(self) -> Rows:
        """The pairs of left events that have one."""
        left_rows = self._few[LEFT]
        return taken(self._few, np.bincount(left_rows, minlength=1)[left_rows] == 1)

    def _alone(self, rows: Rows) -> Rows:
        """Those whose right event has no other."""
        return taken(rows, np.bincount(self._few[RIGHT], minlength=1)[rows[RIGHT]] == 1)


def once(left: Side, right: Side, rows: Rows) -> Rows:
    """Pairs of one stream, without those of which the order that is given is there as well."""
    stamps = stamps_of(left), stamps_of(right)
    own, others = (each.ranks[of] for each, of in zip(stamps, rows, strict=True))
    size = 1 + max(own.max(initial=0), others.max(initial=0))
    has_other_order = np.isin(others * size + own, own * size + others)
    return taken(rows, ~has_other_order | (order_of_pairs(*stamps, rows, NEVER) == EARLIER))


def taken(rows: Rows, chosen: np.ndarray) -> Rows:
    """Some of the pairs."""
    return rows[LEFT][chosen], rows[RIGHT][chosen]


def joined(parts: list[Rows]) -> Rows:
    """All pairs of several parts."""
    nothing = np.empty(0, np.int64)
    left, right = (
        np.concatenate([nothing, *(part[side] for part in parts)]) for side in (LEFT, RIGHT)
    )
    return left, right


_OPTIMAL = MATCHINGS["optimal"].said
_EXACT = float(1 << 53)
"""Floats hold all whole numbers up to here."""
_CURE = (
    "Narrow the window, raise the confidence, join by more keys, raise"
    f" {argument('largest_group')}, or use {MATCHINGS['mutual'].said}."
)
_STEPS = float(1 << 40)
"""Probabilities are added in whole 2**-40, which floats add exactly."""


class Optimal(Matched):
    """One pair an event, with the greatest sum of probabilities, or the least of distances."""

    @remembered
    def _found(self) -> Rows:
        self._check_matches()
        check_candidates(int(self.join.counts.sum()), self._spec.max_pairs)
        runs = self.join.chunks(self._batch_pairs)
        parts = in_order(lambda run: [self._pairs_of(*run)], runs, self._spec.threads)
        rows = joined(list(parts))
        # By their ranks, so that events meet in the same order whatever task they are in.
        groups = connected_groups(*(self._order.ranks(side)[rows[side]] for side in (LEFT, RIGHT)))
        self._check_sizes(groups, rows)
        return taken(rows, best_assignment(groups, self._gains(groups, rows)))

    def _gains(self, groups: Groups, rows: Rows) -> np.ndarray:
        if self._spec.choice.word.is_merit:
            steps: np.ndarray = np.floor(self.pairing.probabilities(*rows) * _STEPS + 0.5)
            return np.maximum(steps, 1.0)
        # One pair more gains more than all the distances of a group.
        apart = self._order.preferred(rows)[groups.order].astype(np.float64)
        widest = np.maximum.reduceat(apart, groups.offsets[:-1]) if apart.size else apart
        enough = (widest + 1.0) * groups.sizes.min(axis=1)
        if (enough * groups.sizes.min(axis=1)).max(initial=0.0) > _EXACT:
            raise DataError(
                f"{_OPTIMAL} adds distances exactly, and these are too many"
                " or too long. Count times in a coarser tick, narrow the window, join by more keys, or"
                f" use {MATCHINGS['mutual'].said}."
            )
        gains = np.empty(apart.size)
        gains[groups.order] = np.repeat(enough, np.diff(groups.offsets)) + 1.0 - apart
        return gains

    def _check_matches(self) -> None:
        """Refuse, before any pair is made, an event whose matches alone are too many."""
        counts, most = self.join.counts, self._spec.choice.largest_group
        if counts.max(initial=0) < most:
            return
        row = self.join.left_order[int(counts.argmax())]
        raise DataError(
            f"{_OPTIMAL} takes up to {argument('largest_group', most)}"
            f" matches of an event (found {counts.max():,} of the left event at tick"
            f" {self._left.max_time[row]}). {_CURE}"
        )

    def _check_sizes(self, groups: Groups, rows: Rows) -> None:
        """Refuse groups that would take too long, or too much memory."""
        most, sizes = self._spec.choice.largest_group, groups.sizes.sum(axis=1)
        if sizes.max(initial=0) <= most:
            return
        largest = int(sizes.argmax())
        pairs = groups.order[groups.offsets[largest] : groups.offsets[largest + 1]]
        own = np.unique(rows[LEFT][pairs])
        left = self._left
        raise DataError(
            f"{_OPTIMAL} takes connected groups of up to"
            f" {argument('largest_group', most)} events (found one of {sizes[largest]:,},"
            f" {own.size:,} of them left, at ticks {left.min_time[own].min()} to"
            f" {left.max_time[own].max()}). {_CURE}"
        )


RUN_PAIRS = 1 << 17


class Chosen(Emission):
    """Up to k rows per left event: its best matches, the best one first."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._order.prepared(RIGHT)  # before threads share it
        return super().__iter__()

    def _runs(self) -> Iterable[tuple[int, int]]:
        # Few enough pairs that what is computed of them stays in the processor's cache.
        return self.join.chunks(min(self._batch_pairs, RUN_PAIRS))

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join, spec = self.join, self._spec
        k = spec.choice.k
        rows = join.pairs(start, stop, join.left_order, join.right_order)
        offsets = join.offsets[start : stop + 1] - join.offsets[start]
        few = np.flatnonzero(least_of_each(offsets, self._order.leading(rows), k))
        rows = rows[0][few], rows[1][few]
        best, ranks = self._order.best(rows, RIGHT, k)
        rows = rows[0][best], rows[1][best]
        order = join.left_order[start:stop]
        lonely = np.flatnonzero(join.counts[start:stop] == 0) if spec.keeps_unmatched else few[:0]
        yield from self._matched(
            rows,
            self._measured(rows, rank=ranks),
            order[lonely],
            np.searchsorted(rows[0], order[lonely]),
        )


_SHAPES: dict[Emit, type[Emission]] = {
    "pairs": Pairs,
    "lists": Lists,
    "counts": Counts,
    "best": Best,
    "aggregates": Aggregates,
}
_MATCHINGS: dict[Matching, type[Emission]] = {
    "mutual": Mutual,
    "optimal": Optimal,
    "unambiguous": Unambiguous,
}


def emission_of(left: Side, right: Side, spec: AnySpec, schema: pa.Schema) -> Emission:
    """The output batches of one join of two sides, in the columns of `output_schema`."""
    found = _shape_of(spec)(spec.pairing(left, right), schema)
    if spec.max_pairs is not None and (expected := found.expected) is not None:
        check_most(expected.pairs, spec.max_pairs)
    return found


def count_pairs(left: Side, right: Side, spec: AnySpec, schema: pa.Schema) -> int:
    """How many pairs a join has that are in its output; rows are not made."""
    if spec.choice.one_to_one is not None:
        emission = emission_of(left, right, spec, schema)
        assert isinstance(emission, Matched)
        return emission.pairs
    return spec.pairing(without_payload(left), right).join.counters.pairs


def _shape_of(spec: AnySpec) -> type[Emission]:
    if spec.one_row_per_event:
        return LeftRows
    if spec.choice.one_to_one is not None:
        return _MATCHINGS[spec.choice.one_to_one.word]
    if spec.row.is_best and not spec.choice.is_most_probable:
        return Chosen
    if spec.are_states:
        # Only tasks of Spark need it.
        from coincide.engine.join.aggregate_states import AggregateStates

        return AggregateStates
    return _SHAPES[spec.row.word]
