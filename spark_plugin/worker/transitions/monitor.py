"""Region transitions of a stream of events: Tran-Seq as an object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from coincide.errors import ConditionError, SchemaError
from coincide.options import CorrelateOptions
from coincide.region_transitions.ordering import time_order
from coincide.region_transitions.watches import Repeated
from coincide.units import Duration
from spark_plugin.worker.arrow.frames import TABLES, arrow_table, is_nothing, offers_arrow
from spark_plugin.worker.arrow.schemas import other_types, with_first_types
from spark_plugin.worker.arrow.time_words import time_words
from spark_plugin.worker.reports.lateness import warn_of_late
from spark_plugin.worker.transitions.arguments import SIDE, TransitionArguments
from spark_plugin.worker.transitions.columns import EventColumns
from spark_plugin.worker.transitions.open_watches import OpenWatches
from spark_plugin.worker.transitions.reading import Batch, read_events
from spark_plugin.worker.transitions.reports import (
    TransitionCounts,
    TransitionSummary,
    warn_of_both,
)


class TransitionMonitor:
    """Finds region transitions of events that come bit by bit.

    Tran-Seq (section 6.4 of the BMQ paper). What is kept is the last event of each query and stream.
    A push takes time for the events pushed and, about 0.1 µs each, for the ids of queries and of streams
    that are known; an advance for the events kept. Events in order give the same rows however they are
    cut into pushes, and the rows of `coincide.transition_tables`. It pickles.

    Parameters
    ----------
    within, confidence, query, stream, event, time, repeated, options
        As of `coincide.transition_tables`.

    Raises
    ------
    ConditionError
        If an argument makes no sense.
    """

    def __init__(
        self,
        *,
        within: Duration,
        confidence: float | None = None,
        query: str = "query_id",
        stream: str | None = "stream_id",
        event: str = "event",
        time: str | Sequence[str] = ("min_time", "max_time"),
        repeated: Repeated = "raise",
        options: CorrelateOptions = CorrelateOptions(),
    ) -> None:
        self._arguments = TransitionArguments(
            within, confidence, query, stream, event, time, repeated, options
        )
        self._columns: EventColumns | None = None
        self._first: pa.Schema | None = None
        self._watches: OpenWatches | None = None
        self._clock: int | None = None
        self._latest: int | None = None
        self._counts = TransitionCounts()
        self._rounded = 0.0
        self._behind = 0

    def push(self, events: Any) -> pa.Table:
        """Take events, and hand out what they decide.

        Parameters
        ----------
        events : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
            Those of one query and stream in order of the midpoints of their timestamps, also across
            pushes. None that begins before the time that `advance` was given. The first table, which
            may be empty, says of which types the columns are. An empty list is nothing, and says nothing.

        Returns
        -------
        pa.Table
            As of `coincide.transition_tables`; without columns while their types are not known.

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
            Of events that came too late, where ``invalid="drop"`` leaves them out.
        ToldTwiceWarning
            Once, if events are told as crossed and as stayed.
        """
        if is_nothing(events):
            return pa.table({}) if self._columns is None else self._columns.schema.empty_table()
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
        return self._pass_time(self._resolved("advance").instant("time", time))

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
        columns = self._resolved("flush")
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
            None if self._columns is None else self._columns.tick,
        )

    def _take(self, events: Any, in_order: bool) -> pa.Table:
        """Take events, those of one query and stream in order or else to be sorted."""
        if not offers_arrow(events):
            raise SchemaError(
                f"{SIDE} must be {TABLES}; found {type(events).__name__}. .collect() makes one of a"
                " Polars LazyFrame, .toArrow() of a Spark DataFrame"
            )
        names = self._arguments.columns
        table = arrow_table(SIDE, events, names, self._arguments.clocks, self._first)
        table = with_first_types(table, self._first)
        columns = EventColumns.of(table.schema, self._arguments)
        if self._columns not in (None, columns):
            raise SchemaError(
                other_types(
                    SIDE, self._first, table.schema,
                    lambda schema: EventColumns.of(schema, self._arguments) == self._columns,
                )
            )  # fmt: skip
        reading = read_events(table, columns, self._clock)
        batch, self._behind = reading.batch, reading.behind
        watches = OpenWatches(columns) if self._watches is None else self._watches
        rows, counts = watches.take(batch if in_order else _sorted(batch))
        if counts.dropped:
            self._behind = max(self._behind, watches.behind)
        self._columns, self._watches = columns, watches
        self._first = self._first or pa.schema([table.schema.field(name) for name in names])
        self._counts += replace(counts, events=reading.rows)
        self._counts += TransitionCounts(dropped=reading.dropped)
        self._rounded = max(self._rounded, reading.rounded)
        if len(batch):
            latest = int(batch.crossings.max_time.max())
            self._latest = latest if self._latest is None else max(latest, self._latest)
        return rows

    def _warn(self, before: TransitionCounts) -> None:
        """Warn of late events of a push, and once of what is told twice."""
        now, columns = self._counts, self._resolved("push")
        late = now.dropped.get("late", 0) - before.dropped.get("late", 0)
        cure = (
            "Push events in order of their times, as a BorderMonitor(..., delay={delay}) gives them"
        )
        warn_of_late(SIDE, now.events - before.events, late, self._behind, columns.tick, cure)
        if not before.both:
            warn_of_both(now)

    def _pass_time(self, until: int) -> pa.Table:
        assert self._watches is not None
        if self._clock is not None and until < self._clock:
            scale = self._resolved("advance").times.scales[1]
            raise ConditionError(
                f"the clock cannot go back from {time_words(self._clock, scale)} to"
                f" {time_words(until, scale)}"
            )
        rows, counts = self._watches.pass_time(until)
        self._clock = until
        self._counts += counts
        return rows

    def _resolved(self, method: str) -> EventColumns:
        if self._columns is None:
            raise ConditionError(
                f"{method}() knows no columns yet: push events first, or a table without rows"
            )
        return self._columns


def transitions_of_table(
    events: Any, until: Any, monitor: TransitionMonitor
) -> tuple[pa.Table, TransitionSummary]:
    """All that a new monitor finds in events of any order, and what it tells of them."""
    found = [monitor._take(events, in_order=False), monitor.flush(until)]
    return pa.concat_tables(found), monitor.summary()


def _sorted(batch: Batch) -> Batch:
    order = time_order(batch.crossings.latest)
    return batch if order is None else batch.rows(order)
