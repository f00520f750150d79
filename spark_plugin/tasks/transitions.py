"""A task of region transitions: events by query, stream and midpoint in, transitions and stays out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import narrow_type, one_array
from coincide.engine.transitions.arguments import SIDE, EventColumns
from coincide.engine.transitions.crossing_rows import (
    Batch,
    check_exact,
    decided,
    told_times,
    words_of_invalid,
)
from coincide.engine.transitions.reports import (
    COUNTED,
    REASONS,
    TransitionCounts,
    TransitionSummary,
)
from coincide.model.errors import DataError, argument
from coincide.model.transitions import (
    NONE,
    Crossings,
    Transitions,
    alternating_order,
    decided_by_the_clock,
    last_of_each,
)
from spark_plugin.tasks.counting import FaultyRows, KeyTask, KeyWork
from spark_plugin.tasks.wire import Runs, begins

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class TransitionTask(KeyTask):
    """Tells transitions and stays of queries and streams, in order of their first events."""

    counted: ClassVar[tuple[str, ...]] = COUNTED

    columns: EventColumns
    until: int | None
    names: tuple[str, ...] = ()
    metrics: str | None = None
    is_measured: bool = False

    def work(self, schema: pa.Schema) -> KeyWork:
        """What takes events."""
        return _TransitionWork(self, schema)


QUERY, STREAM, LOW, HIGH, KIND = "query", "stream", "low", "high", "kind"
"""Names of columns: ids, the ends of the timestamp in ticks, `OUT` or `IN` or what is wrong with the event.
They come with those of `faults`."""

FAULTS = ("event", "not_finite", "range", "order")
FIRST_FAULT, FIRST_NULL = 2, 64
"""In place of the kind of an invalid event is what is wrong with it: from the first number on, one of
`FAULTS`; from the second one on the needed columns that are null, as bits."""


class EventRows(FaultyRows):
    """Events in the chunks of one partition; invalid ones are refused or counted."""

    def __init__(self, columns: EventColumns) -> None:
        super().__init__(KIND, FIRST_FAULT)
        self._columns = columns

    def reason(self, code: int) -> str:
        """Null, or one of `FAULTS`."""
        return "null" if code >= _NULL else FAULTS[code]

    def read(self, table: pa.Table) -> Batch:
        """The valid events of a chunk."""
        table, kinds = self.valid(table)
        query, stream, low, high = (
            one_array(table.column(name)) for name in (QUERY, STREAM, LOW, HIGH)
        )
        crossings = Crossings.of(kinds.astype(np.int8), low.to_numpy(), high.to_numpy())
        return Batch((query, stream), crossings)

    def refuse(self) -> None:
        """Raise if some that were read are to be refused."""
        arguments = self._columns.arguments
        if arguments.options.invalid == "raise" and self.codes:
            # The first example stays where nulls have several codes.
            examples = {self.reason(code): self.examples[code] for code in reversed(self.examples)}
            bits = np.bitwise_or.reduce([max(code - _NULL, 0) for code in self.codes])
            null = [name for k, name in enumerate(arguments.columns) if bits >> k & 1]
            counts = self.counts.invalid
            words = (
                words_of_invalid(self._columns, null, None, why, counts[why], examples[why])
                for why in REASONS
                if why in counts
            )
            raise DataError(" ".join(words))


_NULL = FIRST_NULL - FIRST_FAULT


class _TransitionWork(KeyWork):
    """Takes events by query, stream and midpoint; keeps the last event, and those of the last midpoint."""

    def __init__(self, task: TransitionTask, schema: pa.Schema) -> None:
        self._columns, self._until = task.columns, task.until
        self._is_measured = task.is_measured
        self._reader, self._runs = EventRows(task.columns), Runs()
        ids = [QUERY, STREAM][: len(task.columns.arguments.ids)]
        self._id_kinds = [narrow_type(schema.field(name).type) for name in ids]
        self.kinds = [*self._id_kinds, *[pa.int64()] * (len(task.names) - len(ids))]
        self._held: Batch | None = None
        self._last: Batch | None = None
        self._counts, self._undecided = TransitionCounts(), 0

    def take(self, table: pa.Table) -> Iterator[list[pa.Array]]:
        events = self._reader.read(table)
        if not len(events):
            return
        if self._is_measured:
            self._refuse_later(int(events.crossings.max_time.max()))
        check_exact(events, self._columns)
        events = Batch.joined([part for part in (self._held, events) if part is not None])
        differ = begins(events.ids)
        differ[1:] |= np.diff(events.crossings.latest) != 0
        start = int(np.flatnonzero(differ)[-1])
        self._held = events.slice(start, len(events))
        if start:
            yield from self._decided(events.slice(0, start))

    def end(self) -> Iterator[list[pa.Array]]:
        self._reader.refuse()
        held, self._held = self._held, None
        if held is not None:
            yield from self._decided(held)
        last, self._last = self._last, None
        if last is not None:
            yield from self._rows_of(last, self._clock(last.crossings))

    def summary(self) -> TransitionSummary:
        rows = self._reader.counts
        counts = TransitionCounts(rows.rows, rows.invalid) + self._counts
        return TransitionSummary(counts, self._undecided, rows.rounded)

    def _refuse_later(self, latest: int) -> None:
        if self._until is None or latest > self._until:
            raise DataError(
                f"{SIDE} has changed since the largest max_time was found. Give a fixed version"
                " of it, such as a cached one, or give the end of the data as"
                f" {argument('until')}."
            )

    def _decided(self, events: Batch) -> Iterator[list[pa.Array]]:
        """What events decide, if no later one is at the midpoint of the last."""
        last = self._last
        keys = self._runs.numbered(events.ids)
        goes_on = last is not None and keys[0] == 0
        before = int(last.crossings.kind[0]) if last is not None and goes_on else NONE
        crossings = events.crossings
        order = alternating_order(keys, crossings.latest, crossings.kind, before)
        events = Batch(events.ids, crossings.rows(order))
        if last is not None:
            events, keys = Batch.joined([last, events]), np.concatenate(([0], keys))
        step = decided(keys, events.crossings, self._columns, events, np.arange(len(events)))
        self._counts += TransitionCounts(repeated=step.repeated)
        events, ends = step.of(events), last_of_each(step.keys)
        self._last = events.slice(int(ends[-1]), int(ends[-1]) + 1)
        waits = self._clock(events.crossings.rows(ends[:-1]))
        for found in (step.transitions, waits._replace(row=ends[:-1][waits.row])):
            yield from self._rows_of(events, found)

    def _clock(self, last: Crossings) -> Transitions:
        """The stays of last events."""
        if self._until is None:
            found = Transitions.nothing()
        else:
            found = decided_by_the_clock(last, self._until, self._columns.rule)
        self._undecided += last.kind.size - found.row.size
        return found

    def _rows_of(self, events: Batch, found: Transitions) -> Iterator[list[pa.Array]]:
        """The output columns of what was found among events."""
        self._counts += TransitionCounts.of(found)
        ids = [Gather(ids, kind) for ids, kind in zip(events.ids, self._id_kinds, strict=False)]
        for start in range(0, found.row.size, _BATCH_ROWS):
            part = found.rows(slice(start, start + _BATCH_ROWS))
            kinds = pa.array(part.transition.astype(np.int64))
            times = told_times(events.crossings, part)
            yield [*(column(part.row) for column in ids), kinds, *times]
