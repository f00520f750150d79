"""A join of two streams of tables: events come in push by push, and rows go out when they are final."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from coincide.engine.events.frames import (
    TABLES,
    arrow_table,
    is_nothing,
    needed_names,
    offers_arrow,
)
from coincide.engine.events.intervals import instant_of
from coincide.engine.events.row_numbers import ID, with_row_numbers
from coincide.engine.events.schemas import narrowed, with_like_keys
from coincide.engine.events.ticks import length_words, time_words
from coincide.engine.events.timestamp_names import warn_of_ends
from coincide.engine.join.join import correlate_tables, plan_tables
from coincide.engine.reports.join_report import too_long_words
from coincide.engine.reports.warnings import (
    delay_argument,
    warn_of_ahead,
    warn_of_late,
    warn_of_losses,
)
from coincide.engine.streams.clock import NEVER
from coincide.engine.streams.reading import (
    StreamArguments,
    check_alone,
    given_schema,
    in_schema,
    needed_schema,
    open_names,
)
from coincide.engine.streams.running import Running, StreamSummary
from coincide.model.docstrings import documented
from coincide.model.errors import (
    ConditionError,
    DataError,
    SchemaError,
    UnmatchableRowsWarning,
    argument,
)
from coincide.model.sides import LEFT, RIGHT, SIDES, side_index

_PART = 24
"""A row is set aside by an `ahead` of one in this many of its lead: an hour for a day."""


class StreamJoin:
    """Takes tables of two streams, or of one, in as they come, and gives rows out when they are final.

    Made by `coincide.stream_tables`. All rows that it gives out, together, are those of
    `coincide.correlate_tables` of all rows that were pushed and not late, each once. Calls from several
    threads are taken one after the other. It pickles, and can be copied.

    A refused push takes nothing, and so does a call that is ended by Ctrl-C or for want of memory: it
    can be made again.
    """

    def __init__(self, arguments: StreamArguments, schemas: tuple[Any, Any]) -> None:
        self._arguments = arguments
        warn_of_ends(arguments.join.prefixes, arguments.join.times)
        self._sides, self._columns = arguments.sides, arguments.join.columns
        self._schemas: list[pa.Schema | None] = [None for _ in self._sides]
        # From the first table of each side; to be joined, keys may have to be of a wider type.
        self._given: list[pa.Schema | None] = [None for _ in self._sides]
        self._held: list[list[pa.Table]] = [[] for _ in self._sides]
        self._running: Running | None = None
        self._closed = False
        self._lock = threading.Lock()
        given = [given_schema(*each) for each in zip(SIDES, schemas, strict=True)]
        if self._is_one and given[RIGHT] is not None:
            raise ConditionError(
                f"{argument('right_delay')} is missing, or {argument('right_schema')} names a"
                f" second stream where there is one. Use {argument('left_schema')}."
            )
        for number, schema in enumerate(given):
            if schema is not None:
                self._take(number, schema.empty_table())

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {k: v for k, v in vars(self).items() if k != "_lock"}  # none is written into

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    @documented(correlate_tables)
    def push(self, side: Any = None, events: Any = None) -> pa.Table:
        """Take events of one side, and give out what they make final.

        For one stream it is ``push(events)``.

        Parameters
        ----------
        side : {"left", "right"}
        events : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
            In order of arrival. The first table of a side, which may be empty, says of which types its
            columns are. Until that is known of both sides, by a table or by ``left_schema`` and
            ``right_schema``, events are kept, and what is given out has no columns. An empty list is
            nothing, and says nothing.

        Returns
        -------
        pa.Table
            As in `coincide.correlate_tables`. They are in no particular order.

        Raises
        ------
        ConditionError
            If the side is unknown, or there is but one; if durations and units do not go together.
        SchemaError
            If a column is missing, of a type that cannot serve, or of another than in the first table.
        DataError
            If rows are invalid and ``options.invalid`` is ``"raise"``; after `flush`.

        Warns
        -----
        LateRowsWarning
            About rows that came later than the delay allows.
        AheadRowsWarning
            About rows that were set aside, too far ahead of the last rows.
        UnmatchableRowsWarning
            Once a side, about rows longer than any match can be. `summary` counts them, as `too_long`.
        """
        if self._is_one and events is None:
            side, events = None, side
        elif events is None and not isinstance(side, str):
            raise ConditionError(
                "push takes the side of the events first. Use push('left', events) or"
                f" push('right', events). For one stream, made without {argument('right_delay')},"
                " use push(events)."
            )
        number = self._number(side)
        words = self._sides[number]
        if is_nothing(events):
            with self._lock:
                self._check_open()
                return pa.table({}) if self._running is None else self.schema.empty_table()
        if not offers_arrow(events):
            raise SchemaError(f"{words} events must be {TABLES} (found {type(events).__name__}).")
        join, names = self._arguments.join, self._columns[number]
        if self._running is None and join.is_open:
            names = needed_names(events, names, join.words_of_needed)
        table = arrow_table(
            words, events, names, join.numbers[number], self._schemas[number],
            drops=join.options.invalid == "drop", may_lack=ID if join.numbered[number] else None,
        )  # fmt: skip
        with self._lock:
            self._check_open()
            return self._take(number, table)

    def advance(self, time: Any, side: str | None = None) -> pa.Table:
        """Let time pass without events, as for streams that fall silent.

        Parameters
        ----------
        time : int, float, datetime, numpy.datetime64 or pa.Scalar
            As the time columns hold it. Events that are more than the delay before it are late from now
            on. A clock that is later already stays.
        side : {"left", "right"}, optional
            Whose clock moves; None: both.

        Returns
        -------
        pa.Table
            What this makes final.

        Raises
        ------
        ConditionError
            If it is no such time, the side is unknown, or the columns of a side are not known yet.
        DataError
            After `flush`.
        """
        numbers = (LEFT, RIGHT) if side is None else (self._number(side),)
        with self._lock:
            self._check_open()
            running = self._resolved("advance")
            options, join = self._arguments.join.options, running.plan
            passed = [NEVER, NEVER]
            for number in numbers:
                scale = join.times[number].scales[1]
                passed[number] = instant_of("time", time, scale, options)
            self._running, found = running.advanced((passed[0], passed[1]))
            return found

    def flush(self) -> pa.Table:
        """End of both streams: what was not final. After this nothing more can be pushed.

        Raises
        ------
        ConditionError
            If events were pushed, and the columns of the other side are not known.
        DataError
            After `flush`.
        """
        with self._lock:
            self._check_open()
            if self._running is None and not any(self._held):
                self._closed = True
                return pa.table({})
            self._running, found = self._resolved("flush").finished()
            self._closed = True
            return found

    def take_late(self, side: str | None = None) -> pa.Table:
        """The late rows of a side since they were last taken, as they were pushed.

        For one stream it is ``take_late()``.
        """
        return self._taken_out(side, Running.without_late)

    def take_ahead(self, side: str | None = None) -> pa.Table:
        """The rows of a side that were set aside since they were last taken, as they were pushed.

        These are the rows further ahead of the last rows of their side than ``left_ahead`` or
        ``right_ahead`` allows. For one stream it is ``take_ahead()``.
        """
        return self._taken_out(side, Running.without_ahead)

    def _taken_out(
        self, side: str | None, take: Callable[[Running, int], tuple[Running, pa.Table]]
    ) -> pa.Table:
        number = self._number(side)
        with self._lock:
            if self._running is None:
                schema = self._schemas[number]
                return pa.table({}) if schema is None else schema.empty_table()
            running, rows = take(self._running, number)
            given = self._given[number]
            assert given is not None
            rows = narrowed(rows, pa.schema([given.field(name) for name in rows.column_names]))
            self._running = running
            return rows

    def summary(self) -> StreamSummary:
        """What became of all rows so far, and what was found."""
        with self._lock:
            if self._running is None:
                return StreamSummary(right=None) if self._is_one else StreamSummary()
            return self._running.summary()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the output columns.

        Raises
        ------
        ConditionError
            If the columns of a side are not known yet.
        """
        return self._resolved("schema").plan.schema

    @property
    def _is_one(self) -> bool:
        return len(self._sides) == 1

    def _number(self, side: object) -> int:
        """LEFT or RIGHT; LEFT for one stream, whose side is not given."""
        if not self._is_one:
            return side_index(side)
        if side is not None:
            raise ConditionError(
                f"one stream has no sides (found no {argument('right_delay')}). Use push(events),"
                f" advance(time), take_late() and take_ahead(), or give {argument('right_delay')}."
            )
        return LEFT

    def _take(self, number: int, table: pa.Table) -> pa.Table:
        schema, side = self._schemas[number], self._sides[number]
        if self._arguments.join.numbered[number]:
            table = with_row_numbers(table, self._columns[number], self._rows_of(number))
        if schema is None:
            names = open_names(table.schema, number, self._arguments.join)
            schema = needed_schema(side, table.schema, names)
        table = in_schema(side, table, schema)
        if self._running is not None:
            running, rows = self._running.pushed(number, table)
            self._warn(number, table, self._running, running)
            self._running = running
            return rows
        schemas, held = list(self._schemas), [list(each) for each in self._held]
        schemas[number] = schema
        held[number].append(table)
        if None in schemas:
            check_alone(number, table, self._arguments)
            self._given[number] = schema
            self._schemas, self._held = schemas, held
            return pa.table({})
        self._given[number] = schema
        return self._begin([s for s in schemas if s is not None], held)

    def _rows_of(self, number: int) -> int:
        """The rows of a side that were pushed."""
        if self._running is None:
            return sum(table.num_rows for table in self._held[number])
        return self._running.streams[number].counts.rows

    def _begin(self, found: list[pa.Schema], held: list[list[pa.Table]]) -> pa.Table:
        """Join what waited until the columns of all sides were known."""
        arguments = self._arguments.settled(found)
        join, sides = arguments.join, list(enumerate(self._sides))
        known = with_like_keys(
            [needed_schema(side, found[n], join.columns[n]) for n, side in sides],
            *(join.keys, join.right_keys),
        )
        plan = plan_tables(known[0], known[-1], join).by_rows
        running = Running.of(plan, known, arguments)
        parts = []
        for number, side in sides:
            for waiting in held[number]:
                before = running
                running, rows = before.pushed(number, in_schema(side, waiting, known[number]))
                self._warn(number, waiting, before, running)
                parts.append(rows)
        self._schemas, self._held, self._running = [*known], [[] for _ in known], running
        self._arguments, self._columns = arguments, join.columns
        return pa.concat_tables(parts)

    def _warn(self, number: int, table: pa.Table, before: Running, after: Running) -> None:
        """Warn of skipped rows, before anything is kept: where that is an error, nothing is taken."""
        stream, earlier, side = after.streams[number], before.streams[number], SIDES[number]
        name, plan = self._sides[number], after.plan
        if stream.counts.too_long and not earlier.counts.too_long:
            words = too_long_words(stream.counts, plan.tick)
            warn_of_losses(name, stream.counts.rows, [(UnmatchableRowsWarning, words)])
        late = stream.late_count - earlier.late_count
        delay = after.delays[number]
        lead = stream.clock.lead(delay)
        scale = plan.times[number].scales[1]
        cure = f"Use {side}_delay={{delay}}, which accepts them, or push rows in order of time"
        if lead:  # most of the last rows would be late, so it is not they that moved the clock
            way = length_words(lead, plan.tick, digits=4)
            enough = delay_argument(max(delay, lead // _PART, 1), plan.tick)
            cure = (
                f"A row with the max_time {time_words(stream.clock.now, scale)} moved the clock, {way}"
                f" ahead of the last rows. Use {side}_ahead={enough}, which sets such a row aside,"
                " or correct its time"
            )
        warn_of_late(name, table.num_rows, late, stream.behind, plan.tick, cure)
        ahead = stream.ahead_count - earlier.ahead_count
        if ahead:
            beyond, time = stream.beyond
            furthest = f"max_time {time_words(time, scale)}"
            cure = (
                f"Correct its time, or use {side}_ahead={delay_argument(beyond, plan.tick)} if time"
                " went on so far"
            )
            warn_of_ahead(name, table.num_rows, ahead, beyond, furthest, plan.tick, cure)

    def _resolved(self, method: str) -> Running:
        if self._running is None:
            if self._is_one:
                raise ConditionError(
                    f"{method} needs the columns of the stream, which are unknown yet. Push a"
                    f" table, which may be empty, or give {argument('left_schema')}."
                )
            missing = [side for side, s in zip(SIDES, self._schemas, strict=True) if s is None]
            raise ConditionError(
                f"{method} needs the columns of both sides (found none for"
                f" {' and '.join(missing)}). Push a table, which may be empty, or give"
                f" {missing[0]}_schema=."
            )
        return self._running

    def _check_open(self) -> None:
        if self._closed:
            raise DataError(
                "this stream was flushed and takes no more events. Make a new one with"
                " stream_tables."
            )
