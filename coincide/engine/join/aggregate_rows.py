"""One row per left event with aggregates of its matches, whose pairs need not be made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events import rows as row_sizes
from coincide.engine.events.rows import cuts, row_bytes, total_bytes
from coincide.engine.join.aggregates import (
    Answer,
    DeltaEnd,
    Values,
    Work,
    answer_of,
    values_of_pairs,
)
from coincide.engine.join.delta import DELTA
from coincide.engine.join.emission import Emission, MakeBatch
from coincide.engine.join.spec import Pairing
from coincide.engine.pairs.source import RangedSource
from coincide.model.aggregates import Aggregate, columns_of
from coincide.model.counters import JoinCounters
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from coincide.model.threads import in_order
from cpu_fallback.aggregates.kernels import Found, Prepared, aggregate_pairs, found_of, tables_of

_RUN = 1 << 14
"""Left events whose matches are aggregated in one go."""
_MOST_LANES = 32
"""Numbers that are added up for each right event: 256 bytes of it, else sums are made of pairs."""
_PIECE = 1 << 21
"""Numbers that are held of pairs at a time."""


class Answers(NamedTuple):
    """All aggregates by left row: how many matches there are, then numbers, and which have none."""

    counts: np.ndarray
    numbers: list[np.ndarray]
    nulls: list[np.ndarray]
    answers: list[Answer]
    counters: JoinCounters


class Aggregates(Emission):
    """One row per left event, in the order of left."""

    orders_rows = True

    def __init__(self, pairing: Pairing, schema: pa.Schema) -> None:
        super().__init__(pairing, schema)
        self._asked = self._spec.aggregates
        names = columns_of(self._asked)
        self._columns = dict(zip(names, map(Values, self._right.payload), strict=True))
        # Values of right events that come out as they are make rows as long as theirs.
        own = (self._columns[c] for each in self._asked if (c := each.column) in self._columns)
        texts = total_bytes(row_bytes(each.column) for each in own)
        self._sizes = self._sizes[LEFT], texts

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        _ = self._answers  # before threads share it
        return super().__iter__()

    @property
    def counters(self) -> JoinCounters:
        """As in every `Emission`."""
        return self._answers.counters

    def _runs(self) -> Iterable[tuple[int, int]]:
        n, step = len(self._left), self._spec.batch_pairs
        return ((start, min(start + step, n)) for start in range(0, n, step))

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        answers = self._answers
        rows = start + self._kept(answers.counts[start:stop])
        own, others = self._sizes
        if own is None and others is None:
            whole = slice(start, stop) if rows.size == stop - start else rows
            yield partial(self._batch_of, rows, whole)
            return
        sizes = np.zeros(rows.size, np.int64) if own is None else own[rows]
        if others is not None:
            sizes = sizes + int(others.max(initial=0))
        for first, last in cuts(sizes, rows.size, row_sizes.BATCH_BYTES):
            yield partial(self._batch_of, rows[first:last], rows[first:last])

    def _batch_of(self, rows: np.ndarray, at: np.ndarray | slice) -> pa.RecordBatch:
        answers = self._answers
        parts = zip(answers.answers, answers.numbers, answers.nulls, strict=True)
        return self._batch(rows, [_column(of, *(each[at] for each in own)) for of, *own in parts])

    @remembered
    def _answers(self) -> Answers:
        ranged = self.pairing.ranged
        if ranged is not None:
            work = _Ranges(self.pairing, ranged, self._columns)
            if work.is_able:
                return self._by_left_rows(work)
        return self._by_left_rows(_OfPairs(self.pairing, self._columns, self._batch_pairs))

    def _by_left_rows(self, work: _Ranges | _OfPairs) -> Answers:
        """All answers of runs of base positions, put where their left rows are."""
        n, order = len(self._left), self.join.left_order
        counts = np.zeros(n, np.int64)
        shapes = [(n,) if each.words == 1 else (n, each.words) for each in work.answers]
        numbers = [np.zeros(s, each.kind) for s, each in zip(shapes, work.answers, strict=True)]
        nulls = [np.zeros(n, bool) for _ in work.answers]

        def put(run: tuple[int, int]) -> list[JoinCounters]:
            found, answers, counted = work.of(*run)
            rows = order[slice(*run)]
            counts[rows] = found.counts
            for i, answer in enumerate(answers):
                numbers[i][rows], is_none = answer.of(found, rows)
                if is_none is not None and is_none.any():
                    nulls[i][rows] = is_none
            return [counted]

        looked_at = sum(in_order(put, work.runs, self._spec.threads), JoinCounters())
        counters = work.counters(looked_at)
        return Answers(counts, numbers, nulls, work.answers, counters)


class _Ranges:
    """Aggregates by ranges of targets, which a backend finds without a pair."""

    def __init__(self, pairing: Pairing, source: RangedSource, columns: dict[str, Values]) -> None:
        self._pairing, self._source = pairing, source
        self._asked = pairing.spec.aggregates
        self._work = Work(columns, len(pairing.right))
        self._are_ends = all(not each.is_of_pairs or _is_end(each) for each in self._asked)
        self.answers = [self._answer(each) for each in self._asked] if self._are_ends else []

    def _answer(self, aggregate: Aggregate) -> Answer:
        if aggregate.column == DELTA:
            return DeltaEnd(aggregate, self._work, self._pairing)
        return answer_of(aggregate, self._work, self._pairing.places_in_time)

    @property
    def is_able(self) -> bool:
        """Whether this is the way: all that is asked for follows from ranges, and takes little memory."""
        return self._are_ends and self._work.lanes <= _MOST_LANES

    @property
    def runs(self) -> Iterable[tuple[int, int]]:
        """Runs of base positions."""
        _ = self._prepared  # before threads share it
        n = self._source.left_order.size
        return ((start, min(start + _RUN, n)) for start in range(0, n, _RUN))

    @remembered
    def _prepared(self) -> Prepared:
        order, threads = self._source.right_order, self._pairing.spec.threads
        codes = self._work.codes(order)
        return Prepared(self._work.before(order, threads=threads), codes, tables_of(codes))

    def of(self, start: int, stop: int) -> tuple[Found, list[Answer], JoinCounters]:
        """What is found of the base positions start ... stop, and what it means."""
        found, counters = self._source.aggregated(start, stop, self._prepared)
        return found, self.answers, counters

    def counters(self, counted: JoinCounters) -> JoinCounters:
        """What was looked at, by what was counted of all runs."""
        return counted


def _is_end(aggregate: Aggregate) -> bool:
    """Whether the first or last match alone tells it, though pairs have a value each."""
    return aggregate.column == DELTA and aggregate.function in ("min", "max")


class _OfPairs:
    """Aggregates of pairs, some of which are made at a time."""

    def __init__(self, pairing: Pairing, columns: dict[str, Values], batch_pairs: int) -> None:
        self._pairing, self._columns, self._batch_pairs = pairing, columns, batch_pairs
        self._asked = pairing.spec.aggregates
        nobody = np.empty(0, np.int64)
        self.answers = self._answers(self._work((nobody, nobody)))

    @property
    def runs(self) -> Iterable[tuple[int, int]]:
        """As in `_Ranges`, and so is all that follows."""
        return self._pairing.join.chunks(self._batch_pairs)

    def of(self, start: int, stop: int) -> tuple[Found, list[Answer], JoinCounters]:
        join = self._pairing.join
        rows = join.pairs(start, stop, join.left_order, join.right_order)
        offsets = join.offsets[start : stop + 1] - join.offsets[start]
        work = self._work(rows)
        answers = self._answers(work)
        found = found_of(stop - start, work.lanes, work.compared)
        size, step = rows[RIGHT].size, max(1, _PIECE // (1 + work.lanes + work.compared))
        for first in range(0, size, step):
            last = min(first + step, size)
            orders = rows[RIGHT][first:last], np.arange(first, last)
            given = work.before(*orders), work.codes(*orders)
            aggregate_pairs(offsets, first, last, *given, found)
        return found, answers, JoinCounters()

    def counters(self, _: JoinCounters) -> JoinCounters:
        return self._pairing.join.counters

    def _work(self, rows: tuple[np.ndarray, np.ndarray]) -> Work:
        names = dict.fromkeys(str(each.column) for each in self._asked if each.is_of_pairs)
        values = {name: values_of_pairs(self._pairing.value_of(name, *rows)) for name in names}
        return Work({**self._columns, **values}, len(self._pairing.right))

    def _answers(self, work: Work) -> list[Answer]:
        return [answer_of(each, work, self._pairing.places_in_time) for each in self._asked]


def _column(answer: Answer, numbers: np.ndarray, nulls: np.ndarray) -> pa.Array:
    if not nulls.any():
        return answer.column(numbers)
    places = np.cumsum(~nulls) - 1
    return answer.column(numbers[~nulls]).take(pa.array(places, mask=nulls))
