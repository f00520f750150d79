"""Region transitions: of a stream of events, Tran-Seq as an object, and of a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.events.frames import Numbers, is_nothing
from coincide.engine.events.pushes import Pushes
from coincide.engine.events.schemas import Ids, as_times
from coincide.engine.events.ticks import time_words
from coincide.engine.reports.warnings import warn_of_late
from coincide.engine.transitions.arguments import SIDE, EventColumns, TransitionArguments
from coincide.engine.transitions.crossing_rows import (
    HINT,
    Batch,
    PairIds,
    decided,
    described,
    read_events,
    told_times,
)
from coincide.engine.transitions.reports import (
    TransitionCounts,
    TransitionReport,
    TransitionSummary,
    warn_of_both,
)
from coincide.model.condition import Confidence
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, DataError, several
from coincide.model.options import CorrelateOptions
from coincide.model.ordering import latest_so_far, stable_order
from coincide.model.transitions import (
    TRANSITIONS,
    Crossings,
    Repeated,
    Transitions,
    decided_by_the_clock,
    first_of_each,
    last_of_each,
    time_order,
)
from coincide.model.units import Duration


class TransitionMonitor:
    """Finds region transitions of events that come bit by bit.

    Tran-Seq (section 6.4 of the BMQ paper). What is kept is the last event of each query and stream.
    A push takes time for the events pushed and, about 0.1 µs each, for the ids of queries and of streams
    that are known; an advance for the events kept. Events in order give the same rows however they are
    cut into pushes, and the rows of `coincide.transition_tables`. It pickles.

    Parameters
    ----------
    within, confidence, query, stream, event, time, repeated, options
        As in `coincide.transition_tables`.

    Raises
    ------
    ConditionError
        If an argument makes no sense.
    """

    def __init__(
        self,
        *,
        within: Duration,
        confidence: Confidence | None = None,
        query: str = "query_id",
        stream: str | None = "stream_id",
        event: str = "event",
        time: str | Sequence[str] = ("min_time", "max_time"),
        repeated: Repeated = "raise",
        options: CorrelateOptions = CorrelateOptions(),
    ) -> None:
        arguments = TransitionArguments(
            within, confidence, query, stream, event, time, repeated, options
        )
        columns_of = partial(EventColumns.of, arguments=arguments)
        self._pushes = Pushes(
            SIDE, arguments.columns, Numbers(arguments.clocks), columns_of, options.invalid
        )
        self._watches: OpenWatches | None = None
        self._clock: int | None = None
        self._latest: int | None = None
        self._counts = TransitionCounts()
        self._rounded = 0.0
        self._behind = 0

    def push(self, events: Any) -> pa.Table:
        """Take events, and return what they decide.

        Parameters
        ----------
        events : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
            Those of one query and stream in order of the midpoints of their timestamps, also across
            pushes. None that begins before the time that `advance` was given. The first table, which
            may be empty, says of which types the columns are. An empty list is nothing, and says nothing.

        Returns
        -------
        pa.Table
            As in `coincide.transition_tables`. There are no columns while their types are not known.

        Raises
        ------
        SchemaError
            If a column is missing, of a type that cannot serve, or of another than in the first push.
        DataError
            If events are invalid, late or repeated, and are to be refused. Nothing of the push is
            taken then.
        ConditionError
            If units do not go together, or timestamps are intervals and there is no confidence.

        Warns
        -----
        LateRowsWarning
            About events that came too late, if ``invalid="drop"`` skips them.
        AmbiguousCrossingsWarning
            Once, if events are reported as crossed and as stayed.
        """
        if is_nothing(events):
            columns = self._pushes.columns
            return pa.table({}) if columns is None else columns.schema.empty_table()
        before = self._counts
        found = self._take(events, in_order=True)
        self._warn(before)
        return found

    def advance(self, time: Any) -> pa.Table:
        """Move the clock: no event is still to come that could lie before this time.

        Parameters
        ----------
        time : int, float, datetime, numpy.datetime64 or pa.Scalar
            As the time columns hold it.

        Returns
        -------
        pa.Table
            The stays that have become certain: P(T + within < time) reaches the confidence.

        Raises
        ------
        ConditionError
            If it is no such time or lies before the one that was given before, or nothing was pushed yet.
        """
        return self._pass_time(self._pushes.known("advance").instant("time", time))

    def flush(self, until: Any = None) -> pa.Table:
        """End of the data: `advance` to a time, by default to the largest max_time pushed.

        What is undecided then stays so, and is counted by `summary`. More may be pushed.

        Parameters
        ----------
        until : int, float, datetime, numpy.datetime64 or pa.Scalar, optional
            As the time columns hold it.

        Returns
        -------
        pa.Table

        Raises
        ------
        ConditionError
            As `advance`.
        """
        columns = self._pushes.known("flush")
        if until is not None:
            return self._pass_time(columns.instant("until", until))
        known = [time for time in (self._latest, self._clock) if time is not None]
        return self._pass_time(max(known)) if known else columns.schema.empty_table()

    def summary(self) -> TransitionSummary:
        """What was found so far, and what is undecided."""
        return TransitionSummary(
            self._counts,
            0 if self._watches is None else self._watches.undecided,
            self._rounded,
            None if self._pushes.columns is None else self._pushes.columns.tick,
        )

    def _take(self, events: Any, in_order: bool) -> pa.Table:
        """Take events, those of one query and stream in order or else to be sorted."""
        table, columns = self._pushes.read(events)
        batch, read, self._behind = read_events(table, columns, self._clock)
        watches = OpenWatches(columns) if self._watches is None else self._watches
        rows, counts = watches.take(batch if in_order else _sorted(batch), ends_stays=not in_order)
        if counts.dropped:
            self._behind = max(self._behind, watches.behind)
        self._pushes.keep(table, columns)
        self._watches = watches
        self._counts += counts + TransitionCounts(read.rows, read.invalid)
        self._rounded = max(self._rounded, read.rounded)
        if len(batch):
            latest = int(batch.crossings.max_time.max())
            self._latest = latest if self._latest is None else max(latest, self._latest)
        return rows

    def _warn(self, before: TransitionCounts) -> None:
        """Warn of late events of a push, and once of what is reported twice."""
        now, columns = self._counts, self._pushes.known("push")
        late = now.dropped.get("late", 0) - before.dropped.get("late", 0)
        cure = (
            "Push events in order of their times, like BorderMonitor(..., delay={delay}) gives them"
        )
        warn_of_late(SIDE, now.events - before.events, late, self._behind, columns.tick, cure)
        if not before.both:
            warn_of_both(now)

    def _pass_time(self, until: int) -> pa.Table:
        assert self._watches is not None
        if self._clock is not None and until < self._clock:
            scale = self._pushes.known("advance").times.scales[1]
            raise ConditionError(
                f"the clock cannot go back from {time_words(self._clock, scale)} (found"
                f" {time_words(until, scale)}). Give a later time."
            )
        rows, counts = self._watches.pass_time(until)
        self._clock = until
        self._counts += counts
        return rows


def transitions_of_table(
    events: Any, until: Any, monitor: TransitionMonitor
) -> tuple[pa.Table, TransitionSummary]:
    """All that a new monitor finds in events of any order, and what it tells of them."""
    found = [monitor._take(events, in_order=False), monitor.flush(until)]
    return pa.concat_tables(found), monitor.summary()


def _sorted(batch: Batch) -> Batch:
    order = time_order(batch.crossings.latest)
    return batch if order is None else batch.rows(order)


_BATCH_ROWS = 1_000_000


class OpenWatches:
    """The last event of each query and stream, on which the next one is decided."""

    def __init__(self, columns: EventColumns) -> None:
        self._columns = columns
        self._ids = PairIds(*(Ids.none(kind) for kind in columns.id_kinds))
        none = np.zeros(0, np.int64)
        self._keys = none  # ascending, and the events in their order
        self._events = Crossings.of(none.astype(np.int8), none, none)
        # From the last batch that had late events: by how many ticks the latest was late.
        self.behind = 0

    def __len__(self) -> int:
        return self._keys.size

    @property
    def undecided(self) -> int:
        """Watches whose stay was not given out."""
        return int((~self._events.told).sum())

    def take(self, batch: Batch, *, ends_stays: bool) -> tuple[pa.Table, TransitionCounts]:
        """What new events decide. A refused batch leaves everything as it was."""
        # In a stream a stay comes out when the clock or the next event tells it. Rows are the same
        # however the clock moves: no stay has an end here.
        ids, keys = self._ids.keyed(batch.ids)
        order = stable_order(ids.compact(keys))
        keys, events = keys[order], batch.crossings.rows(order)
        starts = first_of_each(keys)
        places = np.searchsorted(self._keys, keys[starts])
        is_open = np.zeros(starts.size, bool)
        inside = places < len(self)
        is_open[inside] = self._keys[places[inside]] == keys[starts[inside]]
        if is_open.any():  # each goes before the new ones of its key; no row of the batch is its
            before = starts[is_open]
            events = events.with_inserted(before, self._events.rows(places[is_open]))
            keys, order = np.insert(keys, before, keys[before]), np.insert(order, before, -1)

        behind = latest_so_far(keys, events.latest) - events.latest
        is_late = behind > 0
        late = int(is_late.sum())
        if late:
            self._refuse_late(batch, order, is_late)
            keys, events, order = keys[~is_late], events.rows(~is_late), order[~is_late]
            self.behind = int(behind.max()) // 2

        latest = events.latest[last_of_each(keys)]
        _, keys, events, found, repeated = decided(keys, events, self._columns, batch, order)
        last = last_of_each(keys)
        self._ids = ids
        rows = self._rows(keys, events, found, ends_stays=ends_stays)
        self._keep(keys[last], events.rows(last)._replace(latest=latest), places, is_open)
        counts = TransitionCounts(dropped={"late": late} if late else {}, repeated=repeated)
        return rows, counts + TransitionCounts.of(found)

    def _keep(
        self, keys: np.ndarray, events: Crossings, places: np.ndarray, is_open: np.ndarray
    ) -> None:
        """Put events of ascending keys in their places, or before what is there."""
        for column, values in zip(self._events, events, strict=True):
            column[places[is_open]] = values[is_open]
        if not is_open.all():
            new, before = ~is_open, places[~is_open]
            self._keys = np.insert(self._keys, before, keys[new])
            self._events = self._events.with_inserted(before, events.rows(new))

    def pass_time(self, until: int) -> tuple[pa.Table, TransitionCounts]:
        """The stays that a time decides, before which no event is to come: ticks."""
        found = decided_by_the_clock(self._events, until, self._columns.rule)
        rows = self._rows(self._keys, self._events, found)
        self._events.told[found.row] = True
        return rows, TransitionCounts.of(found)

    def _rows(
        self, keys: np.ndarray, events: Crossings, found: Transitions, *, ends_stays: bool = True
    ) -> pa.Table:
        """The rows of the result, found among events of these keys."""
        schema, tick = self._columns.schema, self._columns.times.scales[0].tick
        *own_times, _, _ = schema.types[-8:]
        words = pa.array(TRANSITIONS)
        batches = []
        for start in range(0, found.row.size, _BATCH_ROWS):
            part = found.rows(slice(start, start + _BATCH_ROWS))
            kinds = pa.DictionaryArray.from_arrays(pa.array(part.transition), words)
            *times, shortest, longest = told_times(events, part, ends_stays=ends_stays)
            columns = [
                *self._ids.of(keys[part.row])[: schema.names.index("transition")],
                kinds.dictionary_decode(),
                *(as_times(t, kind, tick) for t, kind in zip(times, own_times, strict=True)),
                *(shortest, longest),
            ]
            batches.append(pa.record_batch(columns, schema=schema))
        return pa.Table.from_batches(batches, schema)

    def _refuse_late(self, batch: Batch, order: np.ndarray, behind: np.ndarray) -> None:
        if self._columns.arguments.options.invalid == "drop":
            return
        example = described(batch, int(order[np.argmax(behind)]), self._columns)
        raise DataError(
            f"{SIDE}: {several(int(behind.sum()), 'row')} come after a later event of their query"
            f" and stream (found {example}). Push events in order of their times, give all at once"
            f" to transition_tables, or {HINT}."
        )


def transition_tables(
    events: Any,
    *,
    within: Duration,
    confidence: Confidence | None = None,
    until: Any = None,
    query: str = "query_id",
    stream: str | None = "stream_id",
    event: str = "event",
    time: str | Sequence[str] = ("min_time", "max_time"),
    repeated: Repeated = "raise",
    options: CorrelateOptions = CorrelateOptions(),
    report: TransitionReport | None = None,
) -> pa.Table:
    """Find transitions and stays among border-crossing events, in this process.

    The region transition events of the BMQ paper (section 6.2), on uncertain timestamps. Let Δ be the
    time from an event to the next one of its query and stream. Given that Δ is not negative, it is a
    transition when P(Δ <= within) reaches the confidence, and a stay when P(Δ > within) does. So above
    a confidence of 0.5 it is one of the two or neither, and up to 0.5 one or both. A last event, which
    nothing follows, is a stay when P(T + within < until) reaches the confidence.

    Parameters
    ----------
    events : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        Border crossings, in any order. Those of one query and stream are taken in order of the
        midpoints of their timestamps; of equal ones the row that comes first is the first.
    within : int or str
        The longest dwell time of a transition, 0 or more: ticks, or with a unit, as ``"3min"``.
    confidence : float or str, optional
        The confidence threshold ct, 0 < ct <= 1, such as 0.9 or ``"90%"``; needed where timestamps are
        intervals. Up to 0.5 an event may be reported as crossed and as stayed. This is counted (`both`),
        with a warning.
    until : int, float, datetime, numpy.datetime64 or pa.Scalar, optional
        The time up to which the data are known, as the time columns hold it: no event that is missing
        lies before it. By default the largest max_time of all events. For crossings give
        ``report.summary().last_reading`` of their `BorderReport`, as readings go on after the last one.
    query, stream : str
        Columns of the region and of what moves, of any type that can be a key. A `stream` of None: all
        events belong to one, and the result has no such column.
    event : str
        Column of the words I (the stream enters the region) and O (it leaves it).
    time : str or (str, str)
        The min and max column of the timestamps; one name for exact instants.
    repeated : {"raise", "first", "last"}
        What to do with an I after an I, or an O after an O. An error; or skip it, so that the first one
        counts; or begin its dwell time again, so that the one before can only be a stay.
    options : CorrelateOptions
        Its `unit`, `tick` and `invalid`. Events with nulls, other words or impossible times are refused
        or, with ``invalid="drop"``, skipped and counted.
    report : TransitionReport, optional
        Receives what was found, left out, and is undecided.

    Returns
    -------
    pa.Table
        The columns of query and stream; ``transition``, one of I>O, O>I, I>!O and O>!I; and the first
        event's ``first_min_time``, ``first_max_time``. Then come ``min_time``, ``max_time``, when it came
        true: for a transition the second event's, for a stay the first event's and `within`. Times are
        timestamps, or int64 ticks where the columns hold numbers. ``next_min_time``, ``next_max_time`` are
        those of the event that ended it. ``min_duration_us``, ``max_duration_us``: int64 ticks from the
        first event to that one, at least and at most; the names say the unit, and none for bare ticks.
        These four are null where no end is known, and of stays of a `TransitionMonitor`. Rows of one query
        and stream are in order of their first events.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or timestamps are intervals and there is no confidence.
    DataError
        If events are invalid or repeated, and are to be refused.

    Warns
    -----
    DroppedRowsWarning, RoundedTimesWarning, AmbiguousCrossingsWarning
    """
    TransitionReport.check(report)
    monitor = TransitionMonitor(
        within=within, confidence=confidence, query=query, stream=stream, event=event, time=time,
        repeated=repeated, options=options,
    )  # fmt: skip
    found, summary = transitions_of_table(events, until, monitor)
    TransitionReport.tell(summary, report)
    return found


for _each in (TransitionMonitor, TransitionMonitor.push):
    documented(transition_tables)(_each)
