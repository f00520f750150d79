"""Border crossings of Arrow tables, all at once or batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import pyarrow as pa

from coincide.engine.borders.monitor import BorderMonitor as BorderMonitor
from coincide.engine.borders.reports import BorderReport
from coincide.model.borders.options import BorderOptions, BorderWords
from coincide.model.docstrings import documented


def border_crossing_tables(
    readings: Any,
    queries: Any,
    *,
    stream: str | None = "stream_id",
    time: str = "time",
    values: str | Sequence[str] = ("value",),
    query: str = "query_id",
    closed_column: str | None = None,
    options: BorderOptions = BorderOptions(),
    report: BorderReport | None = None,
    **words: Unpack[BorderWords],
) -> pa.Table:
    """Find when streams of readings cross the borders of queries, in this process.

    The border-crossing events of the BMQ paper (Definition 2). A query has a range in each dimension,
    [lower, upper) by default (see `closed`). A stream enters it (event ``I``) where a reading lies in
    the range and the one before it does not, and leaves it (``O``) where it is the other way round. It has
    crossed somewhere between the two readings: the event's timestamp is the interval of their times, and
    can be correlated as it is.

    Parameters
    ----------
    readings : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        In any order. The last of the rows with the same stream and time counts. The others are skipped,
        counted, and warned of.
    queries : as readings
        A column of distinct ids, and one of lower and one of upper borders for each value column: for
        ``x`` they are ``lower_x`` and ``upper_x``; for a single one ``lower`` and ``upper`` will do. Null
        or infinite: the range is open on that side.
    stream : str or None
        Column of readings: what moves, of any type that can be a key. None: all readings belong to
        one stream, and the result has no such column.
    time : str
        Column of readings: when it was read.
    values : str or sequence of str
        One to nine columns of readings; where one of them is null or NaN the reading is a gap, and the
        stream is taken to be where it was.
    query : str
        The column of the ids of queries.
    closed_column : str, optional
        A column of queries that says of each which of its borders its range holds: ``"left"``,
        ``"right"``, ``"both"`` or ``"neither"``; where it is null, the option `closed` says it.
    options : BorderOptions
    report : BorderReport, optional
        Receives what was found, and what was left out.
    words
        Options of `BorderOptions` as arguments of their own, such as ``first="outside"``: they come before
        those in `options`.

    Returns
    -------
    pa.Table
        The columns of query and stream, ``event``, ``min_time``, ``max_time`` and, with
        ``interpolate=True``, ``crossing_time``; in order of times within a stream. Times are timestamps,
        or int64 ticks where the column holds numbers.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense.
    DataError
        If a query makes no sense, or readings are invalid and are to be refused.
    BackendError
        If ``backend="gpu"`` and there is no GPU.

    Warns
    -----
    DroppedRowsWarning, RoundedTimesWarning, LateRowsWarning, NoPairsWarning
    """
    BorderReport.check(report)
    monitor = BorderMonitor(
        queries, stream=stream, time=time, values=values, query=query, closed_column=closed_column,
        options=options, **words,
    )  # fmt: skip
    found = _push_all(monitor, readings)
    BorderReport.tell(monitor.summary(), report)
    return found


for _each in (BorderMonitor, BorderMonitor.push):
    documented(border_crossing_tables)(_each)


@documented(border_crossing_tables)
def inside_tables(
    readings: Any,
    queries: Any,
    *,
    stream: str | None = "stream_id",
    time: str = "time",
    values: str | Sequence[str] = ("value",),
    query: str = "query_id",
    closed_column: str | None = None,
    options: BorderOptions = BorderOptions(),
    **words: Unpack[BorderWords],
) -> pa.Table:
    """Which streams are inside which queries after all readings: who is where.

    For another moment, give the readings up to it.

    Parameters
    ----------
    readings, queries, stream, time, values, query, closed_column, options, words
        As in `coincide.border_crossing_tables`.

    Returns
    -------
    pa.Table
        The columns of query and stream, in no particular order.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As `border_crossing_tables`.
    """
    monitor = BorderMonitor(
        queries, stream=stream, time=time, values=values, query=query, closed_column=closed_column,
        options=options, **words,
    )  # fmt: skip
    _push_all(monitor, readings)
    # Whoever asks who is inside asks for no crossing.
    BorderReport.tell(replace(monitor.summary(), why_none=()), None)
    return monitor.inside()


def _push_all(monitor: BorderMonitor, readings: Any) -> pa.Table:
    found = monitor.batches(readings)
    return pa.Table.from_batches(found, monitor.schema)
