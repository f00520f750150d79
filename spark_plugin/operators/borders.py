"""Border crossings: of DataFrames, and of Arrow tables in one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from coincide.borders.options import BorderOptions, BorderWords, with_words
from coincide.errors import SchemaError
from spark_plugin.worker.arrow.frames import arrow_table
from spark_plugin.worker.borders.arguments import READINGS, BorderArguments
from spark_plugin.worker.borders.monitor import BorderMonitor
from spark_plugin.worker.borders.readings import ReadingColumns, read_readings
from spark_plugin.worker.borders.reports import BorderReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def border_crossings(
    readings: DataFrame,
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
) -> DataFrame:
    """Find when streams of readings cross the borders of queries, on Spark.

    The same as `coincide.border_crossing_tables`, with the same arguments and the same answer. Each
    stream is brought to one task and put in order of time there; of streams, a task remembers the one
    that it is at. Queries are collected at once and go to every worker; all else happens when the
    result is used.

    Parameters
    ----------
    readings : DataFrame
        In any order. Of readings of one stream and time, that with the least values counts, and the
        others are left out and counted.
    queries : DataFrame, pa.Table, whatever offers Arrow's C stream, list of dicts, or path
        A column of distinct ids, and one of lower and one of upper borders for each value column: for
        ``x`` they are ``lower_x`` and ``upper_x``; for a single one ``lower`` and ``upper`` will do. Null
        or infinite: the range is open on that side. On Spark Connect they travel with the plan, which
        bounds their size.
    stream : str or None
        Column of readings: what moves, of any type that can be a key. None: all readings are of one
        stream, and the result has no such column.
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
        With `threads` of None, each task has one. `batch_events` are at most 65,536 here.
    report : BorderReport, optional
        Is told what was found, and what was left out, once the result was computed.
    words
        Options of `BorderOptions` as arguments of their own, such as ``first="outside"``: they come before
        those in `options`.

    Returns
    -------
    DataFrame
        The columns of query and stream, ``event``, ``min_time``, ``max_time`` and, with
        ``interpolate=True``, ``crossing_time``. Times are of the type of the readings' time where that
        is a timestamp, and else bigint ticks.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, readings are streaming, or queries are too many for Spark Connect.
    DataError
        If a query makes no sense. Readings that are invalid, and are to be refused, fail the job in which
        the result is computed: then such an error comes from Spark, as a PythonException.
    BackendError
        If ``backend="gpu"`` cannot be.

    Warns
    -----
    DroppedRowsWarning, RoundedTimesWarning, LateRowsWarning, NoPairsWarning
        When the report is asked.
    """
    from pyspark.sql import DataFrame

    from spark_plugin.dataframes.borders.plan import plan_crossings

    BorderReport.check(report)
    options = with_words(options, words)
    arguments = BorderArguments(stream, time, values, query, options, closed_column)
    if not isinstance(readings, DataFrame):
        raise SchemaError(
            f"readings must be a Spark DataFrame; found {type(readings).__name__}. border_crossing_tables"
            " takes tables in memory"
        )
    planned = plan_crossings(readings, queries, arguments, observe=report is not None)
    if report is not None:
        report.take(None, planned.summary)
    return planned.dataframe


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
    [lower, upper) unless `closed` says otherwise. A stream enters it (event ``I``) where a reading lies in
    the range and the one before it does not, and leaves it (``O``) where it is the other way round. It has
    crossed somewhere between the two readings: the event's timestamp is the interval of their times, and
    can be correlated as it is.

    Parameters
    ----------
    readings : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
        In any order. Of readings of one stream and time, that with the least values counts, and the others
        are left out and counted.
    queries : as readings
        A column of distinct ids, and one of lower and one of upper borders for each value column: for
        ``x`` they are ``lower_x`` and ``upper_x``; for a single one ``lower`` and ``upper`` will do. Null
        or infinite: the range is open on that side.
    stream : str or None
        Column of readings: what moves, of any type that can be a key. None: all readings are of one
        stream, and the result has no such column.
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
        Is told what was found, and what was left out.
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
        If ``backend="gpu"`` and there is none.

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
        As of `border_crossing_tables`.

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
    """The crossings of readings in any order."""
    table = arrow_table(READINGS, readings, monitor.arguments.columns, monitor.arguments.numbers)
    columns = ReadingColumns.of(table.schema, monitor.arguments)
    return monitor.take(read_readings(table, columns), columns)
