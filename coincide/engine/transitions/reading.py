"""From a table to crossings: ids, kinds and ticks; invalid rows refused, or left out and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import Ids, column_of
from coincide.engine.events.sides import example_row, readable
from coincide.engine.events.ticks import contiguous, time_words
from coincide.engine.events.time_columns import INVALID_REASONS
from coincide.engine.events.timestamps import ReadTimes, describe_invalid
from coincide.engine.transitions.arguments import SIDE, EventColumns
from coincide.model.borders.crossings import EVENTS
from coincide.model.errors import ConditionError, DataError
from coincide.model.transitions import Crossings

HINT = "leave such rows out with options=CorrelateOptions(invalid='drop')"


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


@dataclass(frozen=True)
class Reading:
    """What was read of a table."""

    batch: Batch
    rows: int
    dropped: dict[str, int] = field(default_factory=dict)
    rounded: float = 0.0
    behind: int = 0


def read_events(table: pa.Table, columns: EventColumns, clock: int | None) -> Reading:
    """The events of a table."""
    arguments, times = columns.arguments, columns.times.read(table)
    *ids, words = (contiguous(column_of(table, SIDE, n)) for n in (*arguments.ids, arguments.event))
    query, stream = ids if arguments.stream else (ids[0], pa.array(np.zeros(len(words), np.int64)))
    codes = pc.index_in(words, value_set=pa.array(EVENTS, words.type))
    faults = _faults(times, (query, stream, words), codes, clock)
    if faults and arguments.options.invalid == "raise":
        raise DataError(_complaint(table, columns, faults, clock))
    max_time = times.max_time
    min_time = max_time - times.shapes
    kinds = codes.fill_null(0) if codes.null_count else codes
    crossings = Crossings.of(kinds.to_numpy().astype(np.int8), min_time, max_time)
    batch, valid = Batch((query, stream), crossings), None
    if faults:
        valid = ~np.logical_or.reduce(list(faults.values()))
        batch = batch.rows(np.flatnonzero(valid))
    check_exact(batch, columns)
    dropped = {reason: int(mask.sum()) for reason, mask in faults.items()}
    behind = (
        0 if clock is None or "late" not in faults else clock - int(min_time[faults["late"]].min())
    )
    return Reading(batch, table.num_rows, dropped, times.rounded(valid), behind)


def _faults(
    times: ReadTimes, columns: tuple[pa.Array, ...], codes: pa.Array, clock: int | None
) -> dict[str, np.ndarray]:
    """Masks of invalid rows by reason, each row under its first one; empty where all are valid."""
    is_known = not codes.null_count and not any(column.null_count for column in columns)
    early = None
    if clock is not None and len(codes):
        early = times.max_time - times.shapes < clock
    if is_known and times.are_valid and (early is None or not early.any()):
        return {}
    null = times.null.copy()
    for column in columns:
        null |= _mask(pc.is_null(column))
    reasons = [("null", null), ("event", _mask(pc.is_null(codes))), *times.faults()]
    if early is not None:
        reasons.append(("late", early))
    found: dict[str, np.ndarray] = {}
    seen = np.zeros(null.size, bool)
    for reason, mask in reasons:
        own = mask & ~seen
        if own.any():
            found[reason] = found[reason] | own if reason in found else own
            seen |= own
    return found


def _mask(values: pa.Array) -> np.ndarray:
    return np.asarray(values.to_numpy(zero_copy_only=False), bool)


def _complaint(
    table: pa.Table, columns: EventColumns, faults: dict[str, np.ndarray], clock: int | None
) -> str:
    names, found = columns.arguments.columns, {}
    for reason, mask in faults.items():
        one = table.slice(int(np.argmax(mask)), 1)
        example = example_row({name: readable(one.column(name)[0]) for name in names})
        found[reason] = int(mask.sum()), example
    null = [name for name in names if table.column(name).null_count]
    return words_of_invalid(columns, found, null, clock)


def words_of_invalid(
    columns: EventColumns,
    faults: Mapping[str, tuple[int, str]],
    null: Sequence[str],
    clock: int | None = None,
) -> str:
    """What is wrong with invalid events, and what to do."""
    messages = []
    for reason, (count, example) in faults.items():
        if reason in INVALID_REASONS:
            messages.append(describe_invalid(columns.times, reason, count, example))
            continue
        messages.append(
            f"{SIDE}: {_words(columns, reason, null, clock)} in {rows_in_words(count)}, for example"
            f" {example}. Mend the data, or {HINT}"
        )
    return "; ".join(messages)


def _words(columns: EventColumns, reason: str, null: Sequence[str], clock: int | None) -> str:
    if reason == "null":
        return f"nulls in {' and '.join(null)}"
    if reason == "event":
        return f"words other than 'I' and 'O' in {columns.arguments.event}"
    assert reason == "late"
    assert clock is not None
    scale = columns.times.scales[0]
    return f"times in {scale.column.name} before {time_words(clock, scale)}, to where the clock had gone,"


def check_exact(batch: Batch, columns: EventColumns) -> None:
    """Refuse intervals where there is no confidence to decide them with."""
    if columns.arguments.confidence is not None:
        return
    crossings = batch.crossings
    uncertain = crossings.min_time != crossings.max_time
    if uncertain.any():
        example = described(batch, int(np.argmax(uncertain)), columns)
        raise ConditionError(
            f"{SIDE}: the timestamps are intervals in {rows_in_words(int(uncertain.sum()))}, for example"
            f" {example}; dwell times between them are uncertain. Say how certain a transition or stay"
            " must be, for example confidence=0.9; above 0.5 none is told as both"
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


def words_of_repeated(count: int, example: str) -> str:
    """What is wrong with events that repeat the one before them, and what to do."""
    return (
        f"{SIDE}: {rows_in_words(count)} with events that repeat the one before, I after I or O after O,"
        f" for example {example}. I and O of one query and stream alternate: mend the data, or let the"
        " first or the last of a run count, by repeated='first' or repeated='last'"
    )


def rows_in_words(count: int) -> str:
    """As "1 row" and "1,000 rows"."""
    return f"{count:,} row{'' if count == 1 else 's'}"


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
