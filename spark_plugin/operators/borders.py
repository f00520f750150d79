"""Border crossings: of DataFrames, and of Arrow tables in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.reports import BorderReport
from coincide.model.borders.options import BorderOptions, BorderWords, with_words

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
        In any order.
    queries : DataFrame, pa.Table, whatever offers Arrow's C stream, list of dicts, or path
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
    from spark_plugin.frames.borders import plan_crossings

    BorderReport.check(report)
    options = with_words(options, words)
    arguments = BorderArguments(stream, time, values, query, options, closed_column)
    planned = plan_crossings(readings, queries, arguments, observe=report is not None)
    return planned.reported_to(report)
