"""Border crossings of streams of Arrow tables: queries come and go between them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from coincide.borders.crossings import EVENTS, IN, Crossings
from coincide.borders.monitor import Monitor
from coincide.borders.options import BorderOptions, BorderWords, with_words
from coincide.errors import DataError, SchemaError
from coincide.plurals import several
from spark_plugin.worker.arrow.frames import arrow_table
from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.ids import Ids
from spark_plugin.worker.arrow.schemas import other_types, with_first_types
from spark_plugin.worker.arrow.ticks import contiguous
from spark_plugin.worker.borders.arguments import QUERIES, READINGS, BorderArguments
from spark_plugin.worker.borders.queries import Queries, query_table, read_queries
from spark_plugin.worker.borders.query_ids import QueryIds
from spark_plugin.worker.borders.readings import ReadingColumns, Readings, read_readings
from spark_plugin.worker.borders.reports import BorderSummary
from spark_plugin.worker.borders.searching import NewSearch


class BorderMonitor:
    """Tells when streams of readings cross the borders of queries, batch by batch.

    The BMQ processor (section 4 of its paper): a stream table and sorted borders. Streams may have any
    number of readings in a push; those of one stream must come in order of time, and a reading that is
    not later than those before it is left out and counted. However readings are cut into pushes, the
    crossings are the same. It pickles.

    Parameters
    ----------
    queries : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
        The first ones; it may have no rows. As of `coincide.border_crossing_tables`.
    stream, time, values, query, closed_column, options, words
        As of `coincide.border_crossing_tables`.

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
        options: BorderOptions = BorderOptions(),
        **words: Unpack[BorderWords],
    ) -> None:
        options = with_words(options, words)
        self.arguments = BorderArguments(stream, time, values, query, options, closed_column)
        threads = options.threads or len(os.sched_getaffinity(0))
        self._monitor = Monitor(
            self.arguments.dimensions, options, NewSearch(options.backend, threads)
        )
        self._columns: ReadingColumns | None = None
        self._first: pa.Schema | None = None
        self._streams: Ids | None = None
        self._ids: QueryIds | None = None
        self._told = BorderSummary()
        self.add(queries)

    @property
    def nbytes(self) -> int:
        """Bytes of the index and of the stream table, ids apart."""
        return self._monitor.nbytes

    def add(self, queries: Any) -> None:
        """Add queries. A stream that is in the range of one has entered it without an event.

        Parameters
        ----------
        queries : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
            As the first ones, with other ids than all live ones.

        Raises
        ------
        SchemaError
            If a column is missing, of a type that cannot serve, or ids are of another type than before.
        DataError
            If a query makes no sense, or its id is that of a live one; with hysteresis also if more
            than 2³¹ were added in all. None is added then.
        """
        found = read_queries(query_table(queries, self.arguments), self.arguments)
        ids = QueryIds(found.ids.type) if self._ids is None else self._ids
        if ids.kind != found.ids.type:
            raise SchemaError(
                f"{QUERIES}.{self.arguments.query} is {found.ids.type}, and was {ids.kind} before; cast it"
            )
        _refuse_known(found, ids)
        # An id that was removed may come again, as another query: each row has a number of its own.
        runs = ids.runs_with(found.ids, self._monitor.queries)
        numbers = self._monitor.add(found.lower, found.upper, found.closed)
        ids.runs, self._ids = runs, ids
        self._told = replace(
            self._told,
            queries=self._told.queries + numbers.size,
            empty=self._told.empty + found.empty,
        )

    def remove(self, ids: Any) -> None:
        """Remove queries: nothing more is told of them.

        Parameters
        ----------
        ids : sequence, or pa.Array
            Of live queries.

        Raises
        ------
        SchemaError
            If they are of another type than the queries' ids, or one text, whose letters would be ids.
        DataError
            If one is not live. None is removed then, nor if memory lacks.
        """
        assert self._ids is not None
        if isinstance(ids, str | bytes):
            raise SchemaError(
                f"ids to remove must be a sequence of ids; found {ids!r}: write [{ids!r}]"
            )
        try:
            given = contiguous(pa.chunked_array([_array(ids, self._ids.kind)]))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SchemaError(
                f"the ids of queries are {self._ids.kind}; found others ({error})"
            ) from None
        numbers = self._ids.live(given)
        unknown = np.flatnonzero(numbers < 0)
        if unknown.size:
            raise DataError(
                f"{unknown.size:,} of the ids to remove are those of no query, for example"
                f" {given[int(unknown[0])].as_py()!r}"
            )
        numbers = np.unique(numbers)
        removals = self._ids.removals(numbers)  # first: neither may go without the other
        told, held = self._told, self._monitor.remove(numbers)
        self._ids.remove(removals)
        self._told = replace(
            told,
            queries=told.queries - numbers.size,
            empty=told.empty - (numbers.size - held),
        )

    def push(self, readings: Any) -> pa.Table:
        """Take readings, and hand out the crossings that they show.

        Parameters
        ----------
        readings : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
            The first table, which may be empty, says of which types the columns are.

        Returns
        -------
        pa.Table
            As of `coincide.border_crossing_tables`, in order of streams and times.

        Raises
        ------
        SchemaError
            If a column is missing, of a type that cannot serve, or of another than in the first push.
        DataError
            If readings are invalid, and are to be refused. Nothing of the push is taken then.
        """
        names = self.arguments.columns
        table = arrow_table(READINGS, readings, names, self.arguments.numbers)
        table = with_first_types(table, self._first)
        columns = ReadingColumns.of(table.schema, self.arguments)
        if self._columns not in (None, columns):
            raise SchemaError(other_types(READINGS, self._first, table.schema))
        self._first = self._first or pa.schema([table.schema.field(name) for name in names])
        return self.take(read_readings(table, columns), columns)

    def take(
        self, readings: Readings, columns: ReadingColumns, *, in_any_order: bool = False
    ) -> pa.Table:
        """The crossings of readings that have been read."""
        self._columns = columns
        found = self.crossings(readings, in_any_order=in_any_order)
        return pa.Table.from_batches(found, self.schema)

    def inside(self) -> pa.Table:
        """Which streams are inside which queries, after all that was pushed.

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
        taken = self._monitor.taken
        return replace(
            self._told,
            gaps=taken.gaps,
            repeated=taken.repeated,
            late=taken.late,
            retrieved=self._monitor.retrieved,
            tick=None if self._columns is None else self._columns.tick,
        )

    @property
    def schema(self) -> pa.Schema:
        """Of the result."""
        assert self._columns is not None
        assert self._ids is not None
        times = [self._columns.time_kind] * self.arguments.made_times
        streams = [self._columns.stream_kind for _ in self.arguments.streams]
        kinds = [self._ids.kind, *streams, pa.string(), *times]
        return pa.schema(list(zip(self.arguments.made, kinds, strict=True)))

    def crossings(
        self, readings: Readings, *, in_any_order: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The crossings of readings, in batches. They are taken at once, and told while one goes on."""
        if self._streams is None:
            self._streams = Ids.none(readings.streams.type)
        self._streams, numbers = self._streams.numbered(readings.streams)
        self._monitor.streams.reserve(len(self._streams.known))
        found = self._monitor.push(
            numbers, readings.times, readings.values, in_any_order=in_any_order
        )
        self._told = replace(
            self._told,
            readings=self._told.readings + readings.rows,
            dropped=_sum_of(self._told.dropped, readings.dropped),
            rounded=max(self._told.rounded, readings.rounded),
        )
        return self._batches(Gather(readings.streams, readings.streams.type), found)

    def _batches(self, streams: Gather, found: Iterable[Crossings]) -> Iterator[pa.RecordBatch]:
        assert self._ids is not None
        words = pa.array(EVENTS)
        schema = self.schema
        for part in found:
            entered = int((part.events == IN).sum())
            self._told = replace(
                self._told,
                entered=self._told.entered + entered,
                left=self._told.left + part.events.size - entered,
            )
            events = pa.DictionaryArray.from_arrays(pa.array(part.events), words)
            times = [part.min_times, part.max_times]
            times += [] if part.instants is None else [part.instants]
            yield pa.record_batch(
                [
                    self._ids.of(part.queries),
                    *(streams(part.rows) for _ in self.arguments.streams),
                    events.dictionary_decode(),
                    *(pa.array(each).view(schema.types[-1]) for each in times),
                ],
                schema=schema,
            )


def _refuse_known(found: Queries, ids: QueryIds) -> None:
    known = ids.live(found.ids) >= 0
    count = int(known.sum())
    if count:
        example = found.ids[int(np.argmax(known))].as_py()
        raise DataError(
            f"{QUERIES}: ids of live queries in {several(count, 'row')}, for example"
            f" {example!r}; remove these first, or give others"
        )


def _array(ids: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    return ids.cast(kind) if isinstance(ids, pa.Array) else pa.array(list(ids), kind)


def _sum_of(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {why: first.get(why, 0) + second.get(why, 0) for why in {**first, **second}}
