"""Border crossings of a stream of readings, as an object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from coincide.engine.backends import check_backend, load_backend
from coincide.engine.borders.arguments import QUERIES, READINGS, BorderArguments
from coincide.engine.borders.ids import QueryIds
from coincide.engine.borders.readings import (
    Queries,
    ReadingColumns,
    Readings,
    query_table,
    read_queries,
    read_readings,
)
from coincide.engine.borders.reports import ONE_STREAM_AGAIN, BorderSummary, Sight, why_none
from coincide.engine.events.frames import is_nothing
from coincide.engine.events.intervals import instant_of
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.pushes import Pushes
from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import Ids, as_times, of_one_type, one_array
from coincide.engine.events.ticks import contiguous
from coincide.engine.reports.warnings import warn_of_late, warn_of_repeated
from coincide.engine.resilient import GPU, Resilient
from coincide.model.borders.crossings import (
    EVENTS,
    Counting,
    Crossings,
    PointCrossings,
    Taken,
    in_time,
)
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.monitor import Monitor, Search, Wanted
from coincide.model.borders.options import BorderOptions, BorderWords, with_words
from coincide.model.errors import (
    ConditionError,
    DataError,
    MemoryBudgetError,
    SchemaError,
    argument,
    several,
)
from coincide.model.options import Backend
from coincide.model.threads import all_cores
from coincide.model.units import Duration, size_of


class BorderMonitor:
    """Tells when streams of readings cross the borders of queries, batch by batch.

    The BMQ processor (section 4 of its paper): a stream table and sorted borders. Streams may have any
    number of readings in a push. Those of one stream must come in order of time: a reading that is not
    later than those before it is skipped and counted. So of several at one time the first counts. With a
    `delay` readings may come in disorder, and of several at one time the last one counts.
    However readings are cut into pushes, the crossings are the same. It pickles.

    Parameters
    ----------
    queries : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        As in `coincide.border_crossing_tables`. These are the first ones, and there may be none.
    stream, time, values, query, closed_column, options, words
        As in `coincide.border_crossing_tables`.
    delay : int, str or timedelta, optional
        How long after its time a reading may come, such as ``"5s"``; an int counts ticks. A reading comes
        at the largest time that has come so far, of all streams. Readings wait until they are older than
        this, and are then taken in order of time; what comes later still is left out, counted, and kept
        for `take_late`. None: readings are taken as they come.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `coincide.border_crossing_tables`.
    """

    def __init__(
        self,
        queries: Any,
        *,
        stream: str | None = "stream_id",
        time: str = "time",
        values: str | Sequence[str] = ("value",),
        query: str = "query_id",
        closed_column: str | None = None,
        delay: Duration | None = None,
        options: BorderOptions = BorderOptions(),
        **words: Unpack[BorderWords],
    ) -> None:
        options = with_words(options, words)
        self.arguments = BorderArguments(stream, time, values, query, options, closed_column)
        threads = options.threads or all_cores()
        self._monitor = Monitor(
            self.arguments.dimensions, options, NewSearch(options.backend, threads)
        )
        columns_of = partial(ReadingColumns.of, arguments=self.arguments)
        names = self.arguments.columns
        self._pushes = Pushes(READINGS, names, self.arguments.numbers, columns_of, options.invalid)
        self._streams: Ids | None = None
        self._ids: QueryIds | None = None
        self._rows = SideCounts()
        self._queries = self._empty = self._came_late = 0
        if delay is not None and size_of(delay) < 0:
            raise ConditionError(
                f"{argument('delay')} is how long after its time a reading may come, so it cannot"
                f" be negative (found {delay!r})."
            )
        self._delay = delay
        self._waiting: Waiting | None = None
        self._late: list[pa.Table] = []
        self._clock: int | None = None
        self._sight = Sight.none(self.arguments.dimensions)
        self.add(queries)

    @property
    def nbytes(self) -> int:
        """Bytes of the index and of the stream table, ids apart."""
        return self._monitor.nbytes

    def add(self, queries: Any) -> None:
        """Add queries. A stream that is in the range of one has entered it without an event.

        Readings that wait for their delay meet the queries that there are when they are taken.

        Parameters
        ----------
        queries : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
            As the first ones, with other ids than all live ones. An empty list adds nothing.

        Raises
        ------
        SchemaError
            If a column is missing, of a type that cannot serve, or ids have another type than before.
        DataError
            If a query makes no sense, or its id is that of a live one; with hysteresis also if more
            than 2³¹ were added in all. None is added then.
        """
        if self._ids is not None and is_nothing(queries):
            return
        found = read_queries(query_table(queries, self.arguments), self.arguments)
        ids = QueryIds(found.ids.type) if self._ids is None else self._ids
        if ids.kind != found.ids.type:
            raise SchemaError(
                f"{QUERIES}.{self.arguments.query} has changed its type from {ids.kind} (found"
                f" {found.ids.type}). Cast it."
            )
        _refuse_known(found, ids)
        # An id that was removed may come again, as another query: each row has a number of its own.
        runs = ids.runs_with(found.ids, self._monitor.queries)
        numbers = self._monitor.add(found.lower, found.upper, found.closed)
        ids.runs, self._ids = runs, ids
        self._queries += numbers.size
        self._empty += found.empty

    def remove(self, ids: Any) -> None:
        """Remove queries: no crossing of theirs is reported any more.

        Parameters
        ----------
        ids : sequence, or pa.Array
            Ids of live queries.

        Raises
        ------
        SchemaError
            If they have another type than the queries' ids, or are one text, whose letters would be ids.
        DataError
            If one is not live. None is removed then, nor if memory lacks.
        """
        assert self._ids is not None
        if isinstance(ids, str | bytes):
            raise SchemaError(
                f"ids to remove must be a sequence of ids (found {ids!r}). Write [{ids!r}]."
            )
        try:
            given = contiguous(pa.chunked_array([_array(ids, self._ids.kind)]))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SchemaError(
                f"the ids to remove must have the type of the ids of queries, {self._ids.kind}"
                f" (found others: {error})."
            ) from None
        numbers = self._ids.live(given)
        unknown = np.flatnonzero(numbers < 0)
        if unknown.size:
            raise DataError(
                f"{unknown.size:,} of the ids to remove belong to no query (found"
                f" {given[int(unknown[0])].as_py()!r}). Remove live queries only."
            )
        numbers = np.unique(numbers)
        removals = self._ids.removals(numbers)  # first: neither may go without the other
        held = self._monitor.remove(numbers)
        self._ids.remove(removals)
        self._queries -= numbers.size
        self._empty -= numbers.size - held

    def push(self, readings: Any) -> pa.Table:
        """Take readings, and return the crossings that they show.

        What it gives can be pushed to `coincide.stream_tables` as it comes: with a `delay`, in order of
        `max_time` over all pushes, so that a ``left_delay`` of 0 loses none. Without one, crossings of a
        push may lie before those of the push before by as much as readings do.

        Parameters
        ----------
        readings : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
            The first table, which may be empty, says of which types the columns are. An empty list is
            nothing, and says nothing.

        Returns
        -------
        pa.Table
            As in `coincide.border_crossing_tables`. They come in order of `max_time`, and without columns
            while their types are not known.

        Raises
        ------
        SchemaError
            If a column is missing, of a type that cannot serve, or of another than in the first push.
        ConditionError
            If the delay is no whole number of ticks.
        DataError
            If readings are invalid, and are to be refused. Nothing of the push is taken then.

        Warns
        -----
        LateRowsWarning
            About readings that came too late, and those that repeat a time.
        """
        if is_nothing(readings):
            return pa.table({}) if self._pushes.columns is None else self.schema.empty_table()
        table, columns = self._pushes.read(readings)
        read, before = read_readings(table, columns), replace(self._monitor.taken)
        if self._delay is not None and self._waiting is None:
            none = read.rows_of(np.zeros(0, np.int64))
            self._waiting = Waiting(columns.tick.count(self._delay), none)
        self._pushes.keep(table, columns)
        if self._waiting is None:
            found = self._in_time(self._crossings(read), read)
            late, behind = self._behind(read.times, before)
        else:
            waiting, rows, behind = self._waiting.arrived(read)
            found, late = self._release(*waiting.released()), rows.size
            self._keep_late(table, rows if read.valid is None else np.flatnonzero(read.valid)[rows])
        self._rows += read.counts
        self._warn(before, late, read.counts.rows, behind)
        return found

    def advance(self, time: Any) -> pa.Table:
        """Let time pass without readings, as for streams that fall silent.

        Parameters
        ----------
        time : int, float, datetime, numpy.datetime64 or pa.Scalar
            As the time column holds it. Readings that are more than the delay before it are late from now
            on. A clock that is later already stays.

        Returns
        -------
        pa.Table
            The crossings of readings that need not wait any more; none without a `delay`.

        Raises
        ------
        ConditionError
            If it is no such time, or nothing was pushed yet.
        """
        columns = self._pushes.known("advance")
        clock = instant_of("time", time, columns.scale, self.arguments.time_options)
        if self._waiting is None:
            return self.schema.empty_table()
        return self._told_release(*self._waiting.moved(clock).released())

    def flush(self) -> pa.Table:
        """The crossings of all readings that wait. What comes before the latest one is late from now on.

        Raises
        ------
        ConditionError
            If nothing was pushed yet.
        """
        self._pushes.known("flush")
        if self._waiting is None:
            return self.schema.empty_table()
        return self._told_release(*self._waiting.ended())

    def take_late(self) -> pa.Table:
        """The late readings since they were last taken, as they were pushed.

        Raises
        ------
        ConditionError
            If there is no `delay`, or nothing was pushed yet.
        """
        self._pushes.known("take_late")
        if not self._late:
            raise ConditionError(
                "a monitor without a delay keeps no late readings. Make a BorderMonitor(...,"
                f" {argument('delay', '5s')})."
            )
        late = pa.concat_tables(self._late, promote_options="permissive")
        self._late = [late.slice(0, 0)]
        return late

    def batches(self, readings: Any) -> Iterator[pa.RecordBatch]:
        """The crossings of readings in any order, by streams and times: taken at once, told one by one."""
        table, columns = self._pushes.read(readings)
        read = read_readings(table, columns)
        self._pushes.keep(table, columns)
        found = self._crossings(read, "last")
        self._rows += read.counts
        return self._batches(read, found)

    def _keep_late(self, table: pa.Table, rows: np.ndarray) -> None:
        if rows.size or not self._late:
            columns = {name: contiguous(table.column(name)) for name in self.arguments.columns}
            self._late.append(pa.table(columns).take(pa.array(rows)))
            self._came_late += rows.size

    def _release(self, waiting: Waiting, due: Readings) -> pa.Table:
        """The crossings of readings that waited; of one stream and time the last that came counts."""
        found = self._in_time(self._crossings(due, "last"), due)
        self._waiting = waiting
        return found

    def _told_release(self, waiting: Waiting, due: Readings) -> pa.Table:
        before = replace(self._monitor.taken)
        found = self._release(waiting, due)
        self._warn_of_repeated(before)
        return found

    def _in_time(self, found: Iterator[Crossings], readings: Readings) -> pa.Table:
        parts = in_time(found, self.arguments.options.batch_events)
        return pa.Table.from_batches(self._batches(readings, parts), self.schema)

    def _behind(self, times: np.ndarray, before: Taken) -> tuple[int, int]:
        """Without a delay: how many readings of a push are late, and how far behind the clock."""
        late, behind = self._monitor.taken.late - before.late, 0
        if late:
            clocks = np.maximum.accumulate(times)
            clocks = clocks if self._clock is None else np.maximum(clocks, self._clock)
            behind = int((clocks - times).max())
        if times.size:
            latest = int(times.max())
            self._clock = latest if self._clock is None else max(latest, self._clock)
        return late, behind

    def _warn(self, before: Taken, late: int, rows: int, behind: int) -> None:
        """Warn of readings of a push that are left out, and of those that it took."""
        cure = "Use BorderMonitor(..., delay={delay}), which accepts them"
        warn_of_late(READINGS, rows, late, behind, self._pushes.known("push").tick, cure)
        self._warn_of_repeated(before)

    def _warn_of_repeated(self, before: Taken) -> None:
        """Warn of readings, of those that were taken since, of whose time another one counts."""
        taken = self._monitor.taken
        repeated, seen = taken.repeated - before.repeated, taken.readings - before.readings
        warn_of_repeated(READINGS, seen, repeated, ONE_STREAM_AGAIN)

    def inside(self) -> pa.Table:
        """Which streams are inside which queries, after all that was pushed and waits no more.

        Returns
        -------
        pa.Table
            The query and the stream column, in no particular order.
        """
        assert self._ids is not None
        streams = self._streams or Ids.none(pa.null())
        kinds = [self._ids.kind, *(streams.kind for _ in self.arguments.streams)]
        names = [self.arguments.query, *self.arguments.streams]
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        batches = []
        for of_streams, queries in self._monitor.inside():
            whose = [streams.of(of_streams) for _ in self.arguments.streams]
            batches.append(pa.record_batch([self._ids.of(queries), *whose], schema=schema))
        return pa.Table.from_batches(batches, schema)

    def summary(self) -> BorderSummary:
        """What became of all readings so far, and what was found."""
        found, columns = BorderSummary.of(self._monitor, self._rows), self._pushes.columns
        return replace(
            found,
            late=found.late + self._came_late,
            waiting=0 if self._waiting is None else self._waiting.readings.times.size,
            queries=self._queries,
            empty=self._empty,
            tick=None if columns is None else columns.tick,
            time_kind=None if columns is None else columns.time_kinds[0],
            why_none=self._why_none(),
        )

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the output columns."""
        assert self._ids is not None
        columns = self._pushes.known("schema")
        times = columns.time_kinds[: self.arguments.made_times]
        streams = [columns.stream_kind for _ in self.arguments.streams]
        kinds = [self._ids.kind, *streams, pa.string(), *times]
        return pa.schema(list(zip(self.arguments.made, kinds, strict=True)))

    def _crossings(self, readings: Readings, counting: Counting = "first") -> Iterator[Crossings]:
        if self._streams is None:
            self._streams = Ids.none(readings.streams.type)
        self._streams, numbers = self._streams.numbered(readings.streams)
        self._monitor.streams.reserve(len(self._streams.known))
        return self._monitor.push(numbers, readings.times, readings.values, counting=counting)

    def _batches(self, readings: Readings, found: Iterable[Crossings]) -> Iterator[pa.RecordBatch]:
        assert self._ids is not None
        streams = Gather(readings.streams, readings.streams.type)
        words = pa.array(EVENTS)
        schema, tick = self.schema, self._pushes.known("push").tick
        own_times = schema.types[-self.arguments.made_times :]
        for part in found:
            events = pa.DictionaryArray.from_arrays(pa.array(part.events), words)
            times = [part.min_times, part.max_times]
            times += [] if part.instants is None else [part.instants]
            yield pa.record_batch(
                [
                    self._ids.of(part.queries),
                    *(streams(part.rows) for _ in self.arguments.streams),
                    events.dictionary_decode(),
                    *(
                        as_times(pa.array(t), f, tick)
                        for t, f in zip(times, own_times, strict=True)
                    ),
                ],
                schema=schema,
            )
        if not self._has_events:
            assert self._streams is not None
            _, numbers = self._streams.numbered(readings.streams)
            self._sight = self._sight.of_more(numbers, readings.values)

    @property
    def _has_events(self) -> bool:
        return self._monitor.entered + self._monitor.left > 0

    def _why_none(self) -> tuple[str, ...]:
        """Why no crossing was found, if none was."""
        if self._has_events or not self._rows.rows:
            return ()
        assert self._ids is not None
        numbers, *ranges = self._monitor.ranges.live_ranges()
        queries = Queries(self._ids.of(numbers), *ranges)
        return why_none(self._sight.seen, queries, self.arguments)


def _refuse_known(found: Queries, ids: QueryIds) -> None:
    known = ids.live(found.ids) >= 0
    count = int(known.sum())
    if count:
        example = found.ids[int(np.argmax(known))].as_py()
        raise DataError(
            f"{QUERIES}: {several(count, 'row')} have ids of live queries (found {example!r})."
            " Remove these queries first, or use other ids."
        )


def _array(ids: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    return ids.cast(kind) if isinstance(ids, pa.Array) else pa.array(list(ids), kind)


@dataclass
class NewSearch:
    """Makes searches on a backend; it pickles.

    Where a GPU's memory has not done once, all that follow are on the CPU.
    """

    backend: Backend
    threads: int

    def __post_init__(self) -> None:
        check_backend(self.backend)

    def __call__(
        self, index: BorderIndex, values: np.ndarray, kinds: np.ndarray, near: np.ndarray | None
    ) -> Search:
        """A search of points among the borders of an index."""

        def search_on(package: str) -> Search:
            given = index, values, kinds, near
            search: Search = import_module(package).BorderSearch(*given, threads=self.threads)
            return search

        def search_or_stay(package: str) -> Search:
            if package != GPU:
                self.backend = "cpu"
            return search_on(package)

        package = load_backend(self.backend).__name__
        return _ResilientSearch(search_or_stay) if package == GPU else search_on(package)


@dataclass(frozen=True, eq=False)
class Waiting:
    """Readings that came, and are not yet as old as the delay."""

    delay: int
    readings: Readings
    clock: int | None = None

    def arrived(self, readings: Readings) -> tuple[Waiting, np.ndarray, int]:
        """After readings in order of their arrival."""
        # One is late if its time is more than the delay before the clock. A gap says nothing of
        # where its stream is, and so comes never too late.
        if not readings.times.size:
            return self, np.zeros(0, np.int64), 0
        clocks = np.maximum.accumulate(readings.times)
        if self.clock is not None:
            clocks = np.maximum(clocks, self.clock)
        behind = clocks - readings.times
        is_late = (behind > self.delay) & ~np.isnan(readings.values).any(axis=1)
        late = np.flatnonzero(is_late)
        kept = readings.rows_of(np.flatnonzero(~is_late)) if late.size else readings
        both = _joined(self.readings, kept)
        waiting = replace(self, readings=both, clock=int(clocks[-1]))
        return waiting, late, int(behind[late].max(initial=0))

    def moved(self, clock: int) -> Waiting:
        """With a clock that is at least so late."""
        return replace(self, clock=clock if self.clock is None else max(clock, self.clock))

    def released(self) -> tuple[Waiting, Readings]:
        """What still waits, and the readings before which none can come: older than the delay."""
        times = self.readings.times
        bound = -np.inf if self.clock is None else self.clock - self.delay
        is_due = times < bound
        due, rest = (self.readings.rows_of(np.flatnonzero(mask)) for mask in (is_due, ~is_due))
        return replace(self, readings=rest), due

    def ended(self) -> tuple[Waiting, Readings]:
        """Nothing that waits any more, and all that did; what comes before the clock is late then."""
        none = self.readings.rows_of(np.zeros(0, np.int64))
        clock = None if self.clock is None else self.clock + self.delay
        return replace(self, readings=none, clock=clock), self.readings


def _joined(first: Readings, second: Readings) -> Readings:
    if not first.times.size:
        return second
    streams = one_array(of_one_type([first.streams, second.streams]))
    return Readings(
        streams,
        np.concatenate([first.times, second.times]),
        np.concatenate([first.values, second.values]),
    )


class _ResilientSearch(Resilient[Search]):
    """A search on either backend: both agree in order, so that chunks that were taken stay valid."""

    def __init__(self, make: Callable[[str], Search]) -> None:
        self._searches: list[Search] = []

        def noted(package: str) -> Search:
            self._searches.append(make(package))
            return self._searches[-1]

        super().__init__(noted)

    @property
    def retrieved(self) -> int:
        """As `Search`, and so is all that follows."""
        return sum(search.retrieved for search in self._searches)

    @property
    def segments(self) -> np.ndarray:
        return self._do(lambda search: search.segments)

    def found(
        self, start: int, stop: int, wanted: Wanted, processing: int, most: int
    ) -> Iterator[PointCrossings]:
        search = self._made
        try:
            for chunk in search.found(start, stop, wanted, processing, most):
                start = chunk.stop
                yield chunk
            return
        except MemoryBudgetError as error:
            problem = self._problem_of_gpu(search, error)
        del search
        self._take_over(problem)
        yield from self._made.found(start, stop, wanted, processing, most)
