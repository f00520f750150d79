"""Transitions of events that come in order of query, stream and midpoint: one watch at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from coincide.region_transitions.kinds import STAYS, TRANSITIONS
from coincide.region_transitions.ties import NONE, alternating_order
from coincide.region_transitions.watches import (
    Crossings,
    Found,
    decided_by_the_clock,
    decided_by_the_next,
    last_of_each,
    repeats,
)
from spark_plugin.worker.transitions.columns import EventColumns
from spark_plugin.worker.transitions.reading import check_exact, described, words_of_repeated
from spark_plugin.worker.transitions.wire import WireEvents
from spark_plugin.worker.wire.runs import Runs, begins


class Decided(NamedTuple):
    """Rows of a result, of the events of a chunk.

    Parameters
    ----------
    events : WireEvents
    found : Found
        Its `row` is one of these events.
    """

    events: WireEvents
    found: Found


class RunningWatch:
    """The watch of the query and stream that is read.

    Kept are its last event, and those of the last midpoint, which others may join.

    Parameters
    ----------
    columns : EventColumns
    until : int or None
        The end of the data, ticks; None where there are no events.
    """

    def __init__(self, columns: EventColumns, until: int | None) -> None:
        self._columns, self._until = columns, until
        self._held: WireEvents | None = None
        self._last: WireEvents | None = None
        self._runs = Runs()
        self.repeated = self.undecided = self.neither = self.both = 0
        self.found = dict.fromkeys(TRANSITIONS, 0)

    def take(self, events: WireEvents) -> list[Decided]:
        """What the next events decide.

        Raises
        ------
        DataError
            If events are repeated, and are to be refused.
        ConditionError
            If timestamps are intervals and there is no confidence.
        """
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
