"""States of left events of which tasks see some matches, and their aggregates once they are together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from coincide.engine.events import rows as row_sizes
from coincide.engine.events.rows import cuts, total_bytes
from coincide.engine.events.schemas import narrowed, one_array
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import INTERVALS
from coincide.engine.join.aggregate_parts import (
    COUNT,
    PRODUCTS,
    SPECIALS,
    WEIGHTS,
    Part,
    factors_of,
    is_end,
    parts_of,
    state_fields,
    words_of,
)
from coincide.engine.join.aggregate_rows import Aggregates, Answered, Finding, take_pairs
from coincide.engine.join.aggregate_types import aggregate_fields, kinds_of, readable_type
from coincide.engine.join.aggregates import (
    Answer,
    Key,
    Numbers,
    Truths,
    Values,
    Weighed,
    Work,
    answer_of,
    weighed_of,
)
from coincide.engine.join.spec import AnySpec, InTime, Pairing
from coincide.model.aggregates import Aggregate, columns_of
from coincide.model.counters import JoinCounters
from coincide.model.range_sums import Found, found_of
from coincide.model.threads import in_order
from cpu_fallback.aggregates.digits import Digits
from cpu_fallback.aggregates.states import BITS, extent, put_words, told_sums

_ROWS = 1 << 14
"""Left events whose states are made in one go."""

Tell = Callable[[Found, np.ndarray], pa.Array]
"""From what was found of left rows to a column of their states."""


class _Told:
    """The parts of an aggregate that a task gives."""

    def __init__(self, aggregate: Aggregate, work: Work, answer: Answer) -> None:
        self.answer, self._work, self._function = answer, work, aggregate.function
        self.is_end = is_end(aggregate)
        self.parts: dict[Part, Tell] = {COUNT: lambda found, _: pa.array(found.counts)}
        keys: list[Key] = [] if aggregate.column is None else [aggregate.column]
        if aggregate.is_weighted:
            keys = [*weighed_of(aggregate, work.columns)]
        for factor, key in zip(factors_of(aggregate), keys, strict=True):
            # Values of pairs of which only the first and last are sought have no column.
            values = work.columns.get(key)
            kind = pa.int64() if values is None else values.kind
            for word in words_of(aggregate, kind):
                self.parts[Part(word, aggregate.column, factor)] = self._tell(word, key, kind)

    def _tell(self, word: str, key: Key, kind: pa.DataType) -> Tell:
        work = self._work
        if word == "there":
            valid = work.valid(key) if key in work.columns else lambda found: found.counts
            return lambda found, _: pa.array(valid(found))
        if word in ("numbers", "squares"):
            numbers, lanes = work.numbers(key, has_squares=self._function == "std")
            how = numbers.digits
            if word == "numbers":
                lanes, first = slice(lanes.start, lanes.start + how.places), how.first
            else:
                lanes, first = slice(lanes.start + how.places, lanes.stop), 2 * how.first
            return lambda found, _: _in_words(*told_sums(found.sums[:, lanes], how.width, first))
        if word in SPECIALS:
            specials = work.specials(key)
            if specials is None:
                return lambda found, _: pa.array(np.zeros(found.counts.size, np.int64))
            at = specials.start + SPECIALS.index(word)
            return lambda found, _: pa.array(found.sums[:, at])
        return lambda *given: self.answered(*given).taken(slice(None), kind)

    def answered(self, found: Found, left_rows: np.ndarray) -> Answered:
        """The answer of left rows."""
        numbers, has_none = self.answer.of(found, left_rows)
        return Answered(self.answer, numbers, np.broadcast_to(has_none, left_rows.size))

    def sizes(self, found: Found, left_rows: np.ndarray) -> np.ndarray | None:
        """Bytes of extremes of left rows; None where all are small and alike."""
        if self.is_end or self.answer.sizes is None:
            return None
        return self.answered(found, left_rows).sizes(np.arange(left_rows.size))


def _in_words(words: np.ndarray, starts: np.ndarray) -> pa.Array:
    offsets = (starts * words.itemsize).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.binary(), starts.size - 1, buffers)


class AggregateStates(Aggregates):
    """Rows of states, in the columns of `state_fields`: those of a left event add up, however many."""

    def __init__(self, pairing: Pairing, schema: pa.Schema) -> None:
        super().__init__(pairing, schema)
        self._kinds = schema.types[len(self._left_columns) :]
        of_right = (each.type for each in self._right.payload)
        columns = dict(zip(columns_of(self._asked), of_right, strict=True))
        self._all_parts = list(parts_of(self._asked, columns))
        self._counters = JoinCounters()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        told: set[Part] = set()
        for work in self._works(_Told):
            # What several find counts once.
            parts = {part for each in work.made for part in each.parts} - told
            told |= parts
            counted = JoinCounters()
            found = in_order(partial(self._told, work, parts), work.runs, self._spec.threads)
            for batches, counters in found:
                yield from batches
                counted += counters
            pairs = counted.pairs if COUNT in parts else self._counters.pairs
            self._counters = replace(work.counters(counted), pairs=pairs)

    @property
    def counters(self) -> JoinCounters:
        """As in every `Emission`."""
        return self._counters

    def _told(
        self, work: Finding[_Told], parts: set[Part], run: tuple[int, int]
    ) -> list[tuple[list[pa.RecordBatch], JoinCounters]]:
        """The states of a run of base positions."""
        rows, found, made, counters = self._met(work, run)
        batches = []
        for first in range(0, rows.size, _ROWS):
            at = slice(first, first + _ROWS)
            some = rows[at], Found(*(each[at] for each in found))
            batches += [*self._states(*some, made, parts), *self._ends(*some, made)]
        return [(batches, replace(counters, pairs=int(found.counts.sum())))]

    def _states(
        self, rows: np.ndarray, found: Found, made: Sequence[_Told], parts: set[Part]
    ) -> Iterator[pa.RecordBatch]:
        sizes = total_bytes(each.sizes(found, rows) for each in made)
        for first, last in cuts(sizes, rows.size, row_sizes.BATCH_BYTES):
            own, some = rows[first:last], Found(*(each[first:last] for each in found))
            columns: dict[Part, pa.Array] = {}
            for told in made:
                for part in told.parts.keys() & parts - columns.keys():
                    columns[part] = told.parts[part](some, own)
            yield self._batch_of_states(
                own, {self._all_parts.index(p): columns[p] for p in columns}
            )

    def _ends(
        self, rows: np.ndarray, found: Found, made: Sequence[_Told]
    ) -> Iterator[pa.RecordBatch]:
        """The right events that are first or last here, as they came: of these, one is so of all."""
        right, size = self._right, total_bytes(each.sizes for each in self._columns.values())
        for told in made:
            if not told.is_end:
                continue
            _, ends, has_none = told.answered(found, rows)
            own, ends = rows[~has_none], ends[~has_none]
            sizes = None if size is None else size[ends]
            for first, last in cuts(sizes, own.size, row_sizes.BATCH_BYTES):
                at = ends[first:last]
                columns = [pa.array(right.max_time[at]), pa.array(right.min_time[at])]
                columns += [each.column.take(pa.array(at)) for each in self._columns.values()]
                named = dict(enumerate(columns, len(self._all_parts)))
                yield self._batch_of_states(own[first:last], named)

    def _batch_of_states(self, rows: np.ndarray, columns: dict[int, pa.Array]) -> pa.RecordBatch:
        kinds = enumerate(self._kinds)
        return self._batch(
            rows, [columns[i] if i in columns else pa.nulls(rows.size, kind) for i, kind in kinds]
        )


# Together


class _Sums(Numbers):
    """Sums that come from tasks, as digits, shape (n, lanes)."""

    def __init__(self, values: Values, how: Digits, sums: np.ndarray) -> None:
        super().__init__(values, how)
        self._sums = Truths(sums)

    def fill(self, order: np.ndarray, before: np.ndarray, at: int) -> None:
        """As `Summand`."""
        self._sums.fill(order, before, at)


class _OfStates(Work):
    """What is added up and compared of states."""

    def __init__(self, columns: Mapping[Key, Values], parts: Mapping[Part, pa.Array]) -> None:
        super().__init__(columns, terms=1)
        self._parts = parts

    def total(self, key: Key, *parts: Part) -> slice:
        """The lanes of whole numbers."""
        told = [self._parts[each].fill_null(0).to_numpy() for each in parts]
        word = " ".join(each.word for each in parts)
        _, at = self._summand(key, word, lambda: Truths(np.stack(told, axis=1)))
        return slice(at, at + len(parts))

    def valid(self, column: Key) -> Callable[[Found], np.ndarray]:
        """As in `Work`."""
        lanes = self.total(column, _part("there", column))
        return lambda found: np.ascontiguousarray(found.sums[:, lanes.start])

    def numbers(self, column: Key, *, has_squares: bool) -> tuple[Numbers, slice]:
        """As in `Work`."""
        values, word = self.columns[column], "squares" if has_squares else "numbers"
        told = [_words_of(self._parts[_part("numbers", column)])]
        if has_squares:
            told.append(_words_of(self._parts[_part("squares", column)]))
        # Digits of squares begin at twice the first place, and are twice as many. Whole sums begin at 0.
        ends = [extent(*each) for each in told]
        first = min(low // times for times, (low, _) in enumerate(ends, 1))
        first = first if values.is_float else min(0, first)
        count = max(-(-(high - times * first) // times) for times, (_, high) in enumerate(ends, 1))
        how = Digits(BITS, BITS * first, max(1, count), has_squares)
        sums = np.zeros((told[0][1].size - 1, how.lanes), np.int64)
        for times, each in enumerate(told, 1):
            put_words(*each, times * first, sums[:, (times - 1) * how.places :])
        numbers = _Sums(values, how, sums)
        _, at = self._summand(column, word, lambda: numbers)
        return numbers, slice(at, at + numbers.lanes)

    def specials(self, column: Key) -> slice:
        """As in `Work`."""
        return self.total(column, *(_part(word, column) for word in SPECIALS))

    def compared_values(self, column: Key, word: str) -> Values:
        """As in `Work`."""
        return Values(self._parts[_part(word, column)])


def _part(word: str, key: Key) -> Part:
    """The part that tells what a work calls by a key."""
    if isinstance(key, Weighed):
        return Part(word, key.column, PRODUCTS if key.is_value else WEIGHTS)
    return Part(word, key)


def _words_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Words, and where those of each row begin; a null has no words."""
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    words = np.frombuffer(data or b"", np.int16)
    return words, starts.astype(np.int64) // words.itemsize


class Together:
    """Aggregates of left events from their states."""

    def __init__(self, spec: AnySpec, kinds: Sequence[pa.DataType]) -> None:
        # The types of the columns that are aggregated, as they came to the tasks.
        self._spec, self._asked = spec, spec.aggregates
        self._kinds = dict(zip(columns_of(self._asked), kinds, strict=True))
        self._parts = list(parts_of(self._asked, self._kinds))
        self._states = pa.schema(state_fields(self._asked, self._kinds))
        self.fields = aggregate_fields(self._asked, self._kinds)

    def of(self, offsets: np.ndarray, states: pa.Table) -> list[pa.Array]:
        """The aggregates of events whose rows of states begin at `offsets`."""
        rows, events = states.num_rows, offsets.size - 1
        table = narrowed(states.rename_columns(self._states.names), self._states)
        columns = [one_array(column) for column in table.columns]
        parts = dict(zip(self._parts, columns, strict=False))
        ends = columns[len(parts) :]
        work = _OfStates(self._values(ends[2:]), parts)
        counts = work.total(COUNT.word, COUNT)
        times = InTime(_side(rows, ends), self._spec)
        answers = [answer_of(each, work, times) for each in self._asked]
        found = found_of(events, work.lanes, work.compared)
        take_pairs(work, offsets, np.arange(rows), found)
        found = found._replace(counts=np.ascontiguousarray(found.sums[:, counts.start]))
        every = np.arange(events)
        results = []
        for answer, field in zip(answers, self.fields, strict=True):
            column = Answered.of(answer, events)
            column.put(every, found)
            results.append(column.taken(slice(None), field.type))
        return results

    def _values(self, ends: Sequence[pa.Array]) -> dict[Key, Values]:
        """Columns of the rows of states, where there are some; else their types alone."""
        kinds = dict(zip((each.column for each in self._asked), self._all_kinds, strict=True))
        # Tasks tell of the weights of each column by themselves, as if some had nulls.
        found: dict[Key, Values] = {
            name: Values(pa.nulls(1, readable_type(kind)))
            for name, kind in kinds.items()
            if name is not None
        }
        found |= {
            key: Values(pa.nulls(1, pa.float64()))
            for each in self._asked
            if each.is_weighted
            for key in weighed_of(each, found)
        }
        return found | dict(zip(self._kinds, map(Values, ends), strict=False))

    @property
    def _all_kinds(self) -> list[pa.DataType]:
        return kinds_of(self._asked, self._kinds)


def _side(rows: int, ends: Sequence[pa.Array]) -> Side:
    """The right events among rows of states."""
    if not ends:
        nothing = np.zeros(rows, np.int64)
        return Side(nothing, nothing, INTERVALS, None, [], [])
    high, low = (each.fill_null(0).to_numpy() for each in ends[:2])
    return Side(high, high - low, INTERVALS, None, [], list(ends[2:]))
