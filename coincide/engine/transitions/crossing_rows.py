"""From a table to crossings: ids, kinds and ticks; invalid rows refused, or left out and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.invalid_rows import (
    SideCounts,
    example_row,
    first_faults,
    invalid_rows,
    readable,
)
from coincide.engine.events.schemas import Ids, column_of, of_one_type, one_array
from coincide.engine.events.ticks import contiguous, time_words
from coincide.engine.events.time_columns import INVALID_REASONS
from coincide.engine.events.timestamps import describe_invalid
from coincide.engine.transitions.arguments import SIDE, EventColumns
from coincide.model.borders.crossings import EVENTS
from coincide.model.errors import ConditionError, DataError, argument, option, several
from coincide.model.transitions import (
    STAYS,
    Crossings,
    Transitions,
    decided_by_the_next,
    repeats,
)

HINT = f"skip such rows with {option('invalid', 'drop')}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Events, in the order in which they came."""

    ids: tuple[pa.Array, pa.Array]
    crossings: Crossings

    def __len__(self) -> int:
        return self.crossings.kind.size

    def rows(self, index: np.ndarray) -> Batch:
        """Some of them: an int64 array."""
        query, stream = (column.take(pa.array(index)) for column in self.ids)
        return Batch((query, stream), self.crossings.rows(index))

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        """Some after the other."""
        if len(parts) == 1:
            return parts[0]
        query, stream = (one_array(of_one_type([part.ids[i] for part in parts])) for i in (0, 1))
        columns = zip(*(part.crossings for part in parts), strict=True)
        return cls((query, stream), Crossings(*map(np.concatenate, columns)))

    def slice(self, start: int, stop: int) -> Batch:
        """A run of them, not copied."""
        query, stream = (column.slice(start, stop - start) for column in self.ids)
        return Batch((query, stream), Crossings(*(c[start:stop] for c in self.crossings)))


def read_events(
    table: pa.Table, columns: EventColumns, clock: int | None
) -> tuple[Batch, SideCounts, int]:
    """The events of a table, what its rows were, and by how many ticks the latest was behind the clock."""
    arguments, times = columns.arguments, columns.times.read(table)
    *ids, words = (contiguous(column_of(table, SIDE, n)) for n in (*arguments.ids, arguments.event))
    query, stream = ids if arguments.stream else (ids[0], pa.array(np.zeros(len(words), np.int64)))
    codes = pc.index_in(words, value_set=pa.array(EVENTS, words.type))
    max_time = times.max_time
    min_time = max_time - times.shapes
    late = np.zeros(0, bool) if clock is None else min_time < clock
    valid, dropped = None, {}
    is_known = not codes.null_count and not any(each.null_count for each in (query, stream, words))
    if not (is_known and times.are_valid) or late.any():
        null = np.logical_or.reduce([times.null, *map(_nulls, (query, stream, words))])
        reasons = [("null", null), ("event", _nulls(codes)), *times.faults()]
        reasons += [("late", late)] if late.size else []
        faults = first_faults(iter(reasons), np.zeros_like(null))
        if faults and arguments.options.invalid == "raise":
            lacking = [
                name for name in arguments.columns if column_of(table, SIDE, name).null_count
            ]
            complaint = partial(words_of_invalid, columns, lacking, clock)
            raise invalid_rows(table, arguments.columns, faults, complaint)
        valid = ~np.logical_or.reduce([np.zeros_like(null), *faults.values()])
        dropped = {reason: int(mask.sum()) for reason, mask in faults.items()}
        late = faults.get("late", late[:0])
    kinds = codes.fill_null(0).to_numpy().astype(np.int8)
    batch = Batch((query, stream), Crossings.of(kinds, min_time, max_time))
    if valid is not None:
        batch = batch.rows(np.flatnonzero(valid))
    check_exact(batch, columns)
    counts = SideCounts(table.num_rows, 0, dropped, times.rounded(valid))
    behind = clock - int(min_time[late].min()) if clock is not None and late.any() else 0
    return batch, counts, behind


def told_times(events: Crossings, found: Transitions, *, ends_stays: bool = True) -> list[pa.Array]:
    """The columns of the result after `transition`: int64 ticks, nulls where no end is known."""
    lacks = found.next < 0
    if not ends_stays:
        lacks |= found.transition >= STAYS
    row, end = found.row, np.where(lacks, found.row, found.next)
    low, high = events.min_time[end], events.max_time[end]
    # The next event comes no earlier than the first, also where their timestamps overlap.
    shortest = np.maximum(low - events.max_time[row], 0)
    own = events.min_time[row], events.max_time[row], found.min_time, found.max_time
    ends = low, high, shortest, high - events.min_time[row]
    return [*map(pa.array, own), *(pa.array(each, mask=lacks) for each in ends)]


def _nulls(values: pa.Array) -> np.ndarray:
    return np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False), bool)


def words_of_invalid(
    columns: EventColumns,
    lacking: Sequence[str],
    clock: int | None,
    reason: str,
    count: int,
    example: str,
) -> str:
    """What is wrong with events, some of whose columns lack values, and what to do."""
    if reason in INVALID_REASONS:
        return describe_invalid(columns.times, reason, count, example)
    if reason == "null":
        what = f"nulls in {' and '.join(lacking)}"
    elif reason == "event":
        what = f"words other than 'I' and 'O' in {columns.arguments.event}"
    else:
        assert clock is not None
        scale = columns.times.scales[0]
        before = time_words(clock, scale)
        what = f"times in {scale.column.name} before {before}, where the clock is,"
    return f"{SIDE}: {what} in {several(count, 'row')} (found {example}). Fix the data, or {HINT}."


def check_exact(batch: Batch, columns: EventColumns) -> None:
    """Refuse intervals where there is no confidence to decide them with."""
    if columns.arguments.confidence is not None:
        return
    crossings = batch.crossings
    uncertain = crossings.min_time != crossings.max_time
    if uncertain.any():
        example = described(batch, int(np.argmax(uncertain)), columns)
        raise ConditionError(
            f"{SIDE}: the timestamps are intervals in {several(int(uncertain.sum()), 'row')}, so"
            f" dwell times are uncertain (found {example}). Give how certain a transition or stay"
            f" must be, for example {argument('confidence', 0.9)}. Above 0.5 an event is never"
            " both."
        )


class Decided(NamedTuple):
    """What successive events decide: those that count, of `kept` rows, and how many repeat others."""

    kept: np.ndarray | None  # int64; None: all
    keys: np.ndarray
    crossings: Crossings
    transitions: Transitions
    repeated: int

    def of(self, events: Batch) -> Batch:
        """Those of all events that count."""
        return events if self.kept is None else events.rows(self.kept)


def decided(
    keys: np.ndarray, crossings: Crossings, columns: EventColumns, events: Batch, rows: np.ndarray
) -> Decided:
    """The step of every monitor: events of equal keys are next to each other, in order of time.

    `rows` are those among `events` that messages describe. Nothing is changed if it raises.
    """
    again = repeats(keys, crossings.kind)
    repeated, kept = int(again.sum()), None
    _refuse_repeated(events, rows[again], columns)
    if repeated and columns.arguments.repeated == "first":
        kept = np.flatnonzero(~again)
        keys, crossings = keys[kept], crossings.rows(kept)
    transitions = decided_by_the_next(keys, crossings, columns.rule)
    return Decided(kept, keys, crossings, transitions, repeated)


def _refuse_repeated(batch: Batch, rows: np.ndarray, columns: EventColumns) -> None:
    """Raise if events, by their rows, repeat the one before them, and are to be refused."""
    if rows.size and columns.arguments.repeated == "raise":
        raise DataError(
            f"{SIDE}: {several(rows.size, 'row')} repeat the event before, I after I or O after O"
            f" (found {described(batch, int(rows[0]), columns)}). Fix the data, or count the first"
            f" or the last of a run with {argument('repeated', 'first')} or"
            f" {argument('repeated', 'last')}."
        )


def described(batch: Batch, row: int, columns: EventColumns) -> str:
    """An event in words."""
    arguments, (lower, upper) = columns.arguments, columns.times.scales
    ids = zip(arguments.ids, batch.ids, strict=False)
    crossings = batch.crossings
    return example_row(
        {
            **{name: readable(column[row]) for name, column in ids},
            arguments.event: EVENTS[crossings.kind[row]],
            lower.column.name: time_words(int(crossings.min_time[row]), lower),
            upper.column.name: time_words(int(crossings.max_time[row]), upper),
        }
    )


_STREAM_BITS = 32


@dataclass(frozen=True, eq=False)
class PairIds:
    """Ids of queries and streams, and keys that a pair of them has for good."""

    queries: Ids
    streams: Ids

    def keyed(self, ids: tuple[pa.Array, pa.Array]) -> tuple[PairIds, np.ndarray]:
        """These and those of more rows, with the keys of the rows: int64 array, shape (n,)."""
        queries, query = self.queries.numbered(ids[0])
        streams, stream = self.streams.numbered(ids[1])
        return PairIds(queries, streams), (query << _STREAM_BITS) | stream

    def compact(self, keys: np.ndarray) -> np.ndarray:
        """Smaller numbers in the same order: int64 array."""
        query, stream = _parts(keys)
        return query * len(self.streams.known) + stream

    def of(self, keys: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """Query and stream of keys."""
        query, stream = _parts(keys)
        return self.queries.of(query), self.streams.of(stream)


def _parts(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return keys >> _STREAM_BITS, keys & ((1 << _STREAM_BITS) - 1)
