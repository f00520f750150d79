"""One row per left event with aggregates of its matches, whose pairs need not be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from coincide.engine.events import rows as row_sizes
from coincide.engine.events.rows import cuts, total_bytes
from coincide.engine.join.aggregates import (
    Answer,
    DeltaEnd,
    Key,
    Values,
    Work,
    answer_of,
    values_of_pairs,
    weighed_of,
)
from coincide.engine.join.delta import DELTA
from coincide.engine.join.emission import Emission, MakeBatch
from coincide.engine.join.spec import Pairing
from coincide.engine.pairs.source import Rows
from coincide.model.aggregates import Aggregate, columns_of
from coincide.model.counters import JoinCounters, offsets_of
from coincide.model.range_sums import Found, Prepared, found_of
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from coincide.model.threads import in_order
from cpu_fallback.aggregates.kernels import aggregate_pairs, tables_of

_MOST_HELD = 32
"""Numbers that are held for each right event at a time, 256 bytes: for more ranges are walked again."""
_PIECE = 1 << 21
"""Numbers that are held of pairs at a time. Their sums may wrap around: differences of an event do not."""


Columns = dict[Key, Values]
"""Columns of right events that are aggregated, by name."""


M = TypeVar("M")
Make = Callable[[Aggregate, Work, Answer], M]
"""From an aggregate, what is added up for it and its answer to what is made of what is found."""


class Answered(NamedTuple):
    """An aggregate by left row: numbers, and which events have none."""

    answer: Answer
    numbers: np.ndarray
    nulls: np.ndarray

    @classmethod
    def of(cls, answer: Answer, rows: int) -> Answered:
        """What this many left rows have as long as no match is found."""
        shape = (rows,) if answer.words == 1 else (rows, answer.words)
        return cls(answer, np.zeros(shape, answer.kind), np.full(rows, not answer.is_count))

    def put(self, rows: np.ndarray, found: Found) -> None:
        """Take what was found of some left rows."""
        self.numbers[rows], self.nulls[rows] = self.answer.of(found, rows)

    def sizes(self, rows: np.ndarray) -> np.ndarray | None:
        """Bytes of the values of some rows; None where all are small and alike."""
        sizes, is_there = self.answer.sizes, ~self.nulls[rows]
        if sizes is None:
            return None
        found = np.zeros(rows.size, np.int64)
        found[is_there] = sizes[self.numbers[rows[is_there]]]
        return found

    def taken(self, at: np.ndarray | slice, kind: pa.DataType) -> pa.Array:
        """Some rows as a column of the output."""
        numbers, nulls = self.numbers[at], self.nulls[at]
        if pa.types.is_null(kind):
            return pa.nulls(nulls.size)
        if not nulls.any():
            return self.answer.column(numbers)
        places = np.cumsum(~nulls) - 1
        return self.answer.column(numbers[~nulls]).take(pa.array(places, mask=nulls))


class _Answers(NamedTuple):
    """By left row how many matches there are, and aggregates by name."""

    counts: np.ndarray
    columns: dict[str, Answered]
    counters: JoinCounters


class Aggregates(Emission):
    """One row per left event, in the order of left."""

    orders_rows = True

    def __init__(self, pairing: Pairing, schema: pa.Schema) -> None:
        super().__init__(pairing, schema)
        self._asked = self._spec.aggregates
        names = columns_of(self._asked)
        self._columns: Columns = dict(zip(names, map(Values, self._right.payload), strict=True))
        # Where texts come out, batches are made as they are taken.
        given = columns_of([each for each in self._asked if each.gives_values])
        self._sizes = self._sizes[LEFT], total_bytes(self._columns[name].sizes for name in given)

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
        own, _ = self._sizes
        texts = [column.sizes(rows) for column in answers.columns.values()]
        sizes = total_bytes([None if own is None else own[rows], *texts])
        for first, last in cuts(sizes, rows.size, row_sizes.BATCH_BYTES):
            part = rows[first:last]
            is_run = part[-1] - part[0] + 1 == part.size
            at = slice(part[0], part[-1] + 1) if is_run else part
            yield partial(self._batch_of, part, at)

    def _batch_of(self, rows: np.ndarray, at: np.ndarray | slice) -> pa.RecordBatch:
        columns = self._answers.columns
        fields = self.schema.types[len(self._left_columns) :]
        named = zip(self._asked, fields, strict=True)
        return self._batch(rows, [columns[each.name].taken(at, kind) for each, kind in named])

    @remembered
    def _answers(self) -> _Answers:
        counts, counters = np.zeros(len(self._left), np.int64), JoinCounters()
        columns: dict[str, Answered] = {}
        for work in self._works(lambda _aggregate, _work, answer: answer):
            found = {each.name: Answered.of(each, counts.size) for each in work.made}
            counters = work.counters(self._done(work, counts, found))
            columns |= found
        return _Answers(counts, columns, replace(counters, pairs=int(counts.sum())))

    def _done(
        self, work: Finding[Answer], counts: np.ndarray, columns: dict[str, Answered]
    ) -> JoinCounters:
        """Put what is found of runs of base positions where their left rows are."""

        def put(run: tuple[int, int]) -> list[JoinCounters]:
            rows, found, answers, counted = self._met(work, run)
            counts[rows] = found.counts
            for answer in answers:
                columns[answer.name]._replace(answer=answer).put(rows, found)
            return [counted]

        return sum(in_order(put, work.runs, self._spec.threads), JoinCounters())

    def _met(
        self, work: Finding[M], run: tuple[int, int]
    ) -> tuple[np.ndarray, Found, list[M], JoinCounters]:
        """The left rows of a run that have matches, and what is found of them."""
        found, made, counted = work.of(*run)
        rows, met = self.join.left_order[slice(*run)], np.flatnonzero(found.counts)
        if met.size < rows.size:
            found, rows = Found(*(each[met] for each in found)), rows[met]
        return rows, found, made, counted

    def _works(self, make: Make[M]) -> Iterator[Finding[M]]:
        """What finds all aggregates: by ranges, a few at a time, and by pairs what needs these."""
        pairing, columns, ranged = self.pairing, self._columns, self.pairing.ranged
        by_pairs: list[Aggregate] = []
        pack: list[Aggregate] = []
        held = 0
        for each in self._asked:
            cost = _Ranges.cost(pairing, columns, each) if ranged is not None else None
            if cost is None or cost > _MOST_HELD:
                by_pairs.append(each)
                continue
            if held + cost > _MOST_HELD:
                yield _Ranges(pairing, columns, pack, make)
                pack, held = [], 0
            pack.append(each)
            held += cost
        if pack:
            yield _Ranges(pairing, columns, pack, make)
        if by_pairs:
            yield _OfPairs(pairing, columns, by_pairs, make, self._batch_pairs)


class _Ranges(Generic[M]):
    """Aggregates by ranges of targets, which a backend finds without a pair."""

    def __init__(
        self, pairing: Pairing, columns: Columns, asked: Sequence[Aggregate], make: Make[M]
    ) -> None:
        assert pairing.ranged is not None
        self._source, self._threads = pairing.ranged, pairing.spec.threads
        self._previous = pairing.previous
        self._work = Work(columns, len(pairing.right))
        self.made = [make(each, self._work, _answer(each, self._work, pairing)) for each in asked]

    @staticmethod
    def cost(pairing: Pairing, columns: Columns, aggregate: Aggregate) -> int | None:
        """Numbers that it holds of each right event; None of what only pairs tell."""
        if aggregate.is_weighted or (aggregate.is_of_pairs and not _is_end(aggregate)):
            return None
        work = Work(columns, len(pairing.right))
        _answer(aggregate, work, pairing)
        return work.cost

    @property
    def runs(self) -> Iterable[tuple[int, int]]:
        """Runs of base positions."""
        _ = self._prepared  # before threads share it
        n, step = self._source.left_order.size, self._source.best_rows
        return ((start, min(start + step, n)) for start in range(0, n, step))

    @remembered
    def _prepared(self) -> Prepared:
        order, codes = self._source.right_order, self._work.codes(self._source.right_order)
        before = self._work.before(order, threads=self._threads)
        return Prepared(before, codes, tables_of(codes))

    def of(self, start: int, stop: int) -> tuple[Found, list[M], JoinCounters]:
        """What is found of the base positions start ... stop, and what it means."""
        found, counters = self._source.aggregated(start, stop, self._prepared)
        if self._previous is not None:
            own = self._previous[self._source.left_order[start:stop]]
            offsets, rows = offsets_of(own >= 0), own[own >= 0]
            given = self._work.before(rows), self._work.codes(rows)
            aggregate_pairs(offsets, 0, rows.size, *given, found)
        return found, self.made, counters

    def counters(self, counted: JoinCounters) -> JoinCounters:
        """What was looked at, by what was counted of all runs."""
        return counted


def _is_end(aggregate: Aggregate) -> bool:
    """Whether the first or last match alone tells it, though pairs have a value each."""
    return aggregate.column == DELTA and aggregate.function in ("min", "max")


def _answer(aggregate: Aggregate, work: Work, pairing: Pairing) -> Answer:
    """An aggregate by ranges."""
    if aggregate.column == DELTA:
        return DeltaEnd(aggregate, work, pairing)
    return answer_of(aggregate, work, pairing)


def with_previous(
    rows: Rows, offsets: np.ndarray, left: np.ndarray, previous: np.ndarray
) -> tuple[Rows, np.ndarray]:
    """Pairs with those of the last right events before the window, which come first; and their offsets."""
    has_one = previous >= 0
    places = offsets[:-1][has_one]
    own, others = (
        np.insert(each, places, more[has_one])
        for each, more in zip(rows, (left, previous), strict=True)
    )
    return (own, others), offsets + offsets_of(has_one)


class _OfPairs(Generic[M]):
    """Aggregates of pairs, some of which are made at a time."""

    def __init__(
        self,
        pairing: Pairing,
        columns: Columns,
        asked: Sequence[Aggregate],
        make: Make[M],
        batch_pairs: int,
    ) -> None:
        self._pairing, self._columns, self._asked, self._make = pairing, columns, asked, make
        _ = pairing.previous  # before threads share it
        self._batch_pairs = batch_pairs
        none = np.empty(0, np.int64)
        # Also makes, before threads share it, what is made once of right events.
        self.made = self._made(self._work((none, none)))

    @property
    def runs(self) -> Iterable[tuple[int, int]]:
        """As in `_Ranges`, and so is all that follows."""
        return self._pairing.join.chunks(self._batch_pairs)

    def of(self, start: int, stop: int) -> tuple[Found, list[M], JoinCounters]:
        join = self._pairing.join
        rows = join.pairs(start, stop, join.left_order, join.right_order)
        offsets = join.offsets[start : stop + 1] - join.offsets[start]
        if self._pairing.previous is not None:
            left = join.left_order[start:stop]
            rows, offsets = with_previous(rows, offsets, left, self._pairing.previous[left])
        work = self._work(rows)
        made = self._made(work)
        found = found_of(stop - start, work.lanes, work.compared)
        take_pairs(work, offsets, rows[RIGHT], found)
        return found, made, JoinCounters()

    def counters(self, _: JoinCounters) -> JoinCounters:
        return self._pairing.join.counters

    def _work(self, rows: Rows) -> Work:
        names = dict.fromkeys(str(each.column) for each in self._asked if each.is_of_pairs)
        values: Columns = {
            name: values_of_pairs(self._pairing.value_of(name, *rows)) for name in names
        }
        values |= self._weighed(values, rows)
        return Work(self._columns, len(self._pairing.right), values)

    def _weighed(self, values: Columns, rows: Rows) -> Columns:
        """What is made of probabilities of pairs, and of values of these pairs or of right events."""
        asked = [each for each in self._asked if each.is_weighted]
        if not asked:
            return {}
        weights = self._pairing.value_of("probability", *rows)
        of_pairs: dict[Key | None, np.ndarray] = dict.fromkeys(values, np.arange(weights.size))
        columns = {**self._columns, **values}
        keys = dict.fromkeys(key for each in asked for key in weighed_of(each, columns))
        return {
            key: key.of(
                weights,
                None if key.column is None else columns[key.column],
                of_pairs.get(key.column, rows[RIGHT]),
            )
            for key in keys
        }

    def _made(self, work: Work) -> list[M]:
        answers = (answer_of(each, work, self._pairing) for each in self._asked)
        return [self._make(each, work, a) for each, a in zip(self._asked, answers, strict=True)]


Finding = _Ranges[M] | _OfPairs[M]


def take_pairs(work: Work, offsets: np.ndarray, right_rows: np.ndarray, found: Found) -> None:
    """Take pairs, of events that begin at `offsets`, into what was found, some at a time."""
    size, step = right_rows.size, max(1, _PIECE // (1 + work.cost))
    for first in range(0, size, step):
        last = min(first + step, size)
        orders = right_rows[first:last], np.arange(first, last)
        aggregate_pairs(offsets, first, last, work.before(*orders), work.codes(*orders), found)
