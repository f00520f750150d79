"""Region transitions of a stream of events, by bucket of their queries and streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import Ids, narrow_type
from coincide.engine.transitions.arguments import EventColumns
from coincide.engine.transitions.crossing_rows import Batch, check_exact, decided, told_times
from coincide.model.ordering import stable_order
from coincide.model.transitions import (
    NONE,
    Crossings,
    Transitions,
    alternating_order,
    decided_by_the_clock,
    last_of_each,
)
from spark_plugin.tasks.monitors import Monitors, StreamMonitor, columns_of_row, row_of
from spark_plugin.tasks.transitions import QUERY, STREAM, EventRows


class DecidedEvents(NamedTuple):
    """Events of a slice and the last ones before it that count, and what they decide; the last ones now."""

    events: Batch
    found: Transitions
    last: Batch
    repeated: int


def decided_events(last: Batch | None, new: Batch, columns: EventColumns) -> DecidedEvents:
    """What events decide, in any order, none of which is before the last ones of their query and stream."""
    events = Batch.joined([*([] if last is None else [last]), new])
    keys = _numbers(events.ids)
    crossings = events.crossings
    order = stable_order(crossings.max_time)
    order = order[stable_order(crossings.kind[order].astype(np.int64))]
    order = order[stable_order(crossings.latest[order], keys[order])]
    keys = keys[order]
    order = order[alternating_order(keys, crossings.latest[order], crossings.kind[order], NONE)]
    events = events.rows(order)
    step = decided(keys, events.crossings, columns, events, np.arange(len(events)))
    events = step.of(events)
    return DecidedEvents(
        events, step.transitions, events.rows(last_of_each(step.keys)), step.repeated
    )


@dataclass(frozen=True)
class TransitionMonitors(Monitors):
    """Monitors of region transitions."""

    columns: EventColumns

    def monitor(self, state: bytes | None) -> TransitionsOfBucket:
        """A new monitor, or one with what it remembers."""
        return TransitionsOfBucket(self.columns, state)


class TransitionsOfBucket(StreamMonitor):
    """Remembers the last event of each query and stream."""

    def __init__(self, columns: EventColumns, state: bytes | None) -> None:
        self._columns = columns
        self._last: Batch | None = None
        if state is not None:
            known = columns_of_row(state)
            numbers = (known[name].to_numpy(zero_copy_only=False) for name in Crossings._fields)
            # Stays are noted in place.
            crossings = Crossings(*(each.copy() for each in numbers))
            self._last = Batch((known[QUERY], known[STREAM]), crossings)

    def take(self, rows: pa.Table) -> Iterator[list[pa.Array]]:
        """The output columns that the events of one slice, in any order, make known."""
        new = EventRows(self._columns).read(rows)
        check_exact(new, self._columns)
        step = decided_events(self._last, new, self._columns)
        self._last = step.last
        yield self._rows(step.events, step.found)

    def pass_time(self, until: int) -> Iterator[list[pa.Array]]:
        """The stays that are certain, as no event is to come that begins before some ticks."""
        if self._last is not None:
            found = decided_by_the_clock(self._last.crossings, until, self._columns.rule)
            self._last.crossings.told[found.row] = True
            yield self._rows(self._last, found)

    def waits_for(self) -> int | None:
        """Up to which ticks no stay can be certain that is not yet."""
        if self._last is None or self._last.crossings.told.all():
            return None
        crossings = self._last.crossings
        return int(crossings.min_time[~crossings.told].min()) + self._columns.rule.within

    def _rows(self, events: Batch, found: Transitions) -> list[pa.Array]:
        """The output columns of what was found among events."""
        ids = events.ids[: len(self._columns.arguments.ids)]
        columns = [Gather(each, narrow_type(each.type))(found.row) for each in ids]
        kinds = pa.array(found.transition.astype(np.int64))
        # Whether the clock or the next event tells of a stay depends on micro-batches.
        return [*columns, kinds, *told_times(events.crossings, found, ends_stays=False)]

    def state(self) -> bytes:
        """All that it has to remember."""
        assert self._last is not None
        query, stream = self._last.ids
        numbers = zip(Crossings._fields, map(pa.array, self._last.crossings), strict=True)
        return row_of({QUERY: query, STREAM: stream, **dict(numbers)})


def _numbers(ids: tuple[pa.Array, pa.Array]) -> np.ndarray:
    """Numbers of queries and streams, which say nothing of those of other slices."""
    (_, query), (streams, stream) = (Ids.none(column.type).numbered(column) for column in ids)
    return query * len(streams.known) + stream
