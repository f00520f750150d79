"""A task of region transitions: events by query, stream and midpoint in, transitions and stays out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import narrow_type, of_one_type, one_array
from coincide.engine.reports.metrics import as_bits
from coincide.engine.transitions.arguments import SIDE, EventColumns
from coincide.engine.transitions.reading import (
    Batch,
    check_exact,
    described,
    words_of_invalid,
    words_of_repeated,
)
from coincide.engine.transitions.reports import COUNTED, REASONS
from coincide.model.errors import DataError
from coincide.model.transitions import (
    NONE,
    STAYS,
    TRANSITIONS,
    Crossings,
    Found,
    alternating_order,
    decided_by_the_clock,
    decided_by_the_next,
    last_of_each,
    repeats,
)
from spark_plugin.tasks.counting import Answer, CountingTask, FaultyRows
from spark_plugin.tasks.wire import Runs, begins, chunks

_CHUNK_ROWS = 1 << 18
_CHUNK_BYTES = 64 << 20
"""Events to work on at once."""
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class TransitionTask(CountingTask):
    """Tells transitions and stays of queries and streams, each of which is whole in one partition."""

    counted: ClassVar[tuple[str, ...]] = COUNTED

    columns: EventColumns
    until: int | None
    names: tuple[str, ...]
    metrics: str | None = None
    is_measured: bool = False

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, those of one query and stream in order of their first events."""
        reader, watch = WireReader(self.columns), RunningWatch(self.columns, self.until)
        kinds: list[pa.DataType] | None = None
        for table in chunks(batches, _CHUNK_ROWS, _CHUNK_BYTES):
            events = reader.read(table)
            if self.is_measured and len(events):
                self._refuse_later(int(events.crossings.max_time.max()))
            ids = events.ids[: len(self.columns.arguments.ids)]
            kinds = [narrow_type(column.type) for column in ids]
            yield from _answers(watch.take(events), kinds)
        reader.refuse()
        if kinds is None:
            return
        yield from _answers(watch.end(), kinds)
        numbers = [pa.nulls(1, pa.int64())] * (len(self.names) - len(kinds))
        told = {
            **dict.fromkeys(REASONS, 0),
            **reader.dropped,
            **watch.found,
            "events": reader.rows,
            "repeated": watch.repeated,
            "neither": watch.neither,
            "both": watch.both,
            "undecided": watch.undecided,
            "rounded": as_bits(reader.rounded),
        }
        yield [*(pa.nulls(1, kind) for kind in kinds), *numbers], told

    def _refuse_later(self, latest: int) -> None:
        if self.until is None or latest > self.until:
            raise DataError(
                f"{SIDE} has changed since the largest max_time was found: give a fixed version of it, such"
                " as a cached one, or say until= when the data end"
            )


def _answers(parts: Iterable[Decided], kinds: list[pa.DataType]) -> Iterator[Answer]:
    for events, found in parts:
        ids = [Gather(column, kind) for column, kind in zip(events.ids, kinds, strict=False)]
        for start in range(0, found.row.size, _BATCH_ROWS):
            taken = slice(start, start + _BATCH_ROWS)
            row = found.row[taken]
            numbers = [
                found.transition[taken].astype(np.int64),
                *(events.crossings.min_time[row], events.crossings.max_time[row]),
                *(found.min_time[taken], found.max_time[taken]),
            ]
            yield [*(column(row) for column in ids), *map(pa.array, numbers)], None


QUERY, STREAM, LOW, HIGH, KIND = "query", "stream", "low", "high", "kind"
"""Names of columns: ids, the ends of the timestamp in ticks, `OUT` or `IN` or what is wrong with the event.
Beside them those of `faults`."""

FAULTS = ("event", "not_finite", "range", "order")
FIRST_FAULT, FIRST_NULL = 2, 64
"""In place of the kind of an invalid event stands what is wrong with it: from the first number on, one of
`FAULTS`; from the second one on the needed columns that are null, as bits."""


@dataclass(frozen=True, eq=False)
class WireEvents(Batch):
    """Events in the order of the wire."""

    @classmethod
    def joined(cls, parts: list[WireEvents]) -> WireEvents:
        """Some after the other."""
        if len(parts) == 1:
            return parts[0]
        query, stream = (one_array(of_one_type([part.ids[i] for part in parts])) for i in (0, 1))
        columns = zip(*(part.crossings for part in parts), strict=True)
        return cls((query, stream), Crossings(*map(np.concatenate, columns)))

    def slice(self, start: int, stop: int) -> WireEvents:
        """A run of them."""
        query, stream = (column.slice(start, stop - start) for column in self.ids)
        return WireEvents((query, stream), Crossings(*(c[start:stop] for c in self.crossings)))


class WireReader(FaultyRows):
    """Reads the chunks of one partition, and refuses invalid events or counts them."""

    def __init__(self, columns: EventColumns) -> None:
        super().__init__(KIND, FIRST_FAULT)
        self._columns = columns

    @property
    def dropped(self) -> dict[str, int]:
        """Events left out so far, by reason."""
        found = dict.fromkeys(("null", *FAULTS), 0)
        for code, count in self.counts.items():
            found[_reason(code)] += count
        return found

    def read(self, table: pa.Table) -> WireEvents:
        """The valid events of a chunk."""
        table, kinds = self.valid(table)
        query, stream, low, high = (
            one_array(table.column(name)) for name in (QUERY, STREAM, LOW, HIGH)
        )
        crossings = Crossings.of(kinds.astype(np.int8), low.to_numpy(), high.to_numpy())
        return WireEvents((query, stream), crossings)

    def refuse(self) -> None:
        """Raise if some that were read are to be refused."""
        arguments = self._columns.arguments
        if self.counts and arguments.options.invalid == "raise":
            # Of several codes for nulls the first example stays.
            examples = {_reason(code): self.examples[code] for code in reversed(self.examples)}
            faults = {why: (n, examples[why]) for why, n in self.dropped.items() if n}
            bits = np.bitwise_or.reduce([max(code - _NULL, 0) for code in self.counts])
            null = [name for k, name in enumerate(arguments.columns) if bits >> k & 1]
            raise DataError(words_of_invalid(self._columns, faults, null))


_NULL = FIRST_NULL - FIRST_FAULT


def _reason(code: int) -> str:
    return "null" if code >= _NULL else FAULTS[code]


class Decided(NamedTuple):
    """Rows of a result, of the events of a chunk."""

    events: WireEvents
    found: Found


class RunningWatch:
    """The watch of the query and stream that is read.

    Kept are its last event, and those of the last midpoint, which others may join.
    """

    def __init__(self, columns: EventColumns, until: int | None) -> None:
        self._columns, self._until = columns, until
        self._held: WireEvents | None = None
        self._last: WireEvents | None = None
        self._runs = Runs()
        self.repeated = self.undecided = self.neither = self.both = 0
        self.found = dict.fromkeys(TRANSITIONS, 0)

    def take(self, events: WireEvents) -> list[Decided]:
        """What the next events decide."""
        if not len(events):
            return []
        check_exact(events, self._columns)
        events = WireEvents.joined([part for part in (self._held, events) if part is not None])
        differ = begins(events.ids)
        differ[1:] |= np.diff(events.crossings.latest) != 0
        start = int(np.flatnonzero(differ)[-1])
        self._held = events.slice(start, len(events))
        return self._decided(events.slice(0, start)) if start else []

    def end(self) -> list[Decided]:
        """What is decided at the end of the data; raises as `take`."""
        held, self._held = self._held, None
        decided = [] if held is None else self._decided(held)
        last, self._last = self._last, None
        if last is not None:
            decided.append(self._told(last, self._clock(last.crossings)))
        return decided

    def _decided(self, events: WireEvents) -> list[Decided]:
        """What events decide, of which no later one is at the midpoint of the last."""
        last = self._last
        keys = self._runs.numbered(events.ids)
        goes_on = last is not None and keys[0] == 0
        before = int(last.crossings.kind[0]) if last is not None and goes_on else NONE
        crossings = events.crossings
        order = alternating_order(keys, crossings.latest, crossings.kind, before)
        events = WireEvents(events.ids, crossings.rows(order))
        if last is not None:
            events, keys = WireEvents.joined([last, events]), np.concatenate(([0], keys))
        events, keys = self._without_repeated(events, keys)

        successive = decided_by_the_next(keys, events.crossings, self._columns.rule)
        ends = last_of_each(keys)
        self._last = events.slice(int(ends[-1]), int(ends[-1]) + 1)
        waits = self._clock(events.crossings.rows(ends[:-1]))
        waits = waits._replace(row=ends[:-1][waits.row])
        return [self._told(events, found) for found in (successive, waits)]

    def _without_repeated(
        self, events: WireEvents, keys: np.ndarray
    ) -> tuple[WireEvents, np.ndarray]:
        again = repeats(keys, events.crossings.kind)
        count = int(again.sum())
        self.repeated += count
        arguments = self._columns.arguments
        if count and arguments.repeated == "raise":
            example = described(events, int(np.argmax(again)), self._columns)
            raise DataError(words_of_repeated(count, example))
        if count and arguments.repeated == "first":
            kept = np.flatnonzero(~again)
            query, stream = (column.take(pa.array(kept)) for column in events.ids)
            return WireEvents((query, stream), events.crossings.rows(kept)), keys[kept]
        return events, keys

    def _clock(self, last: Crossings) -> Found:
        """The stays of last events."""
        if self._until is None:
            none = np.zeros(0, np.int64)
            found = Found(none, none.astype(np.int8), none, none)
        else:
            found = decided_by_the_clock(last, self._until, self._columns.rule)
        self.undecided += last.kind.size - found.row.size
        return found

    def _told(self, events: WireEvents, found: Found) -> Decided:
        self.neither += found.neither
        self.both += found.both
        counts = np.bincount(found.transition, minlength=2 * STAYS)
        for word, count in zip(TRANSITIONS, counts.tolist(), strict=True):
            self.found[word] += count
        return Decided(events, found)
