"""Border crossings: of DataFrames, and of Arrow tables in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.reports import BorderReport
from coincide.engine.borders.tables import border_crossing_tables
from coincide.model.borders.options import BorderOptions, BorderWords, with_words
from coincide.model.docstrings import documented
from coincide.model.units import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@documented(border_crossing_tables)
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

    The same as `coincide.border_crossing_tables`, with the same arguments. The answer is the same where a
    stream has one reading at a time. Each
    stream is brought to one task and put in order of time there. Tasks read the files themselves where
    readings are nothing but Parquet files. Queries are collected at once and go to every worker; all
    else happens when the result is used.

    Parameters
    ----------
    readings : DataFrame
        In any order. Its rows have no order: of readings with the same stream and time that with the least
        values counts, and not the last row. The others are skipped and counted.
    queries : DataFrame, pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        As in `coincide.border_crossing_tables`. On Spark Connect they travel with the plan, which bounds
        their size.
    stream, time, values, query, closed_column, words
        As in `coincide.border_crossing_tables`.
    options : BorderOptions
        With `threads` of None, each task has one. `batch_events` are at most 65,536 here.
    report : BorderReport, optional
        Takes what was found, and what was left out, once the result was computed.

    Returns
    -------
    DataFrame
        The columns of query and stream, ``event``, ``min_time``, ``max_time`` and, with
        ``interpolate=True``, ``crossing_time``. Times have the type of the readings' time where that
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
    from spark_plugin.ways.borders import plan_crossings

    BorderReport.check(report)
    options = with_words(options, words)
    arguments = BorderArguments(stream, time, values, query, options, closed_column)
    planned = plan_crossings(readings, queries, arguments, observe=report is not None)
    return planned.reported_to(report)


@documented(border_crossing_tables, border_crossings)
def border_crossing_streams(
    readings: DataFrame,
    queries: Any,
    *,
    delay: Duration,
    ahead: Duration | None = None,
    clock: DataFrame | None = None,
    slice_length: Duration | None = None,
    key_buckets: int | None = None,
    name: str = "crossings",
    stream: str | None = "stream_id",
    time: str = "time",
    values: str | Sequence[str] = ("value",),
    query: str = "query_id",
    closed_column: str | None = None,
    options: BorderOptions = BorderOptions(),
    **words: Unpack[BorderWords],
) -> DataFrame:
    """Find when a streaming DataFrame of readings crosses the borders of queries.

    All crossings together are those of `coincide.border_crossing_tables` for all readings that are not
    late: each comes out once, and is final. Readings wait in Spark's state by slices of time. When the
    watermark has passed a slice, the monitors of its streams take its readings in order of time. The
    state also holds where each stream is.

    Parameters
    ----------
    readings : DataFrame
        A stream. Its times need a unit. The reading with the least values counts where several have one
        stream and time. Nothing counts the others.
    queries : DataFrame, pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        As in `coincide.border_crossing_tables`. They are collected at once, and are the same after a
        restart.
    delay : int, str or timedelta
        How much later than a newer reading, of any stream, a reading may come. A reading within its
        delay is never late. Longer delays wait longer. Spark's progress counts late readings.
    ahead : int, str or timedelta, optional
        How far ahead of the median of its micro-batch a row may be. One that is further ahead is set
        aside: it takes no part, and Spark's progress counts it.
    clock : DataFrame, optional
        A stream of one timestamp column: readings have come at least so far. Use it for heartbeats.
    slice_length : int, str or timedelta, optional
        Length of slices. None: the delay, and at least 1 s.
    key_buckets : int, optional
        Monitors, which are in different tasks; each has its share of the streams. None: as many as
        ``spark.sql.shuffle.partitions``.
    name : str
        What the counts of rows are called in Spark's progress: ``crossings_readings`` and
        ``crossings_late``. Operators of one query need different names.
    stream, time, values, query, closed_column, options, words
        As in `coincide.border_crossings`.

    Returns
    -------
    DataFrame
        A streaming DataFrame for output mode ``append``, with the columns of
        `coincide.border_crossings`.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or the session cannot keep the state: it needs RocksDB. A query
        that starts from a checkpoint of other arguments or queries fails with it, by way of Spark.
    DataError
        If a query makes no sense. Invalid readings that are to be refused fail the query.
    BackendError
        If the backend is not possible, or Spark is older than 4.1.

    Examples
    --------
    >>> crossings = border_crossing_streams(readings, zones, stream="truck", time="at", delay="10s")
    >>> crossings.writeStream.option("checkpointLocation", "checkpoint").start("crossings")
    """
    from spark_plugin.ways.streaming.borders import crossings_of_stream
    from spark_plugin.ways.streaming.monitors import MonitorArguments

    asked = MonitorArguments(
        operator="border_crossing_streams", side="readings", delay=delay, ahead=ahead, clock=clock,
        slice_length=slice_length, key_buckets=key_buckets, name=name,
    )  # fmt: skip
    options = with_words(options, words)
    arguments = BorderArguments(stream, time, values, query, options, closed_column)
    return crossings_of_stream(readings, queries, arguments, asked)
