"""The probability join of DataFrames, and of Parquet files on Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coincide.engine.events.frames import kind_of
from coincide.engine.events.keys import Keys
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.arguments import TIMES, JoinArguments
from coincide.engine.join.join import correlate_tables
from coincide.engine.join.pair_arguments import GivenWindow, check_second, condition_of
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.reports.join_report import JoinReport
from coincide.model.aggregates import Aggregates, Including, Weights
from coincide.model.condition import Confidence, TimingCondition
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, SchemaError, argument
from coincide.model.options import (
    LARGEST_GROUP,
    Backend,
    CorrelateOptions,
    Emit,
    How,
    Matching,
    Prefer,
    Ties,
)
from coincide.model.relations import SpanRelation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from coincide.engine.files.finding import Given
    from coincide.engine.reports.join_report import JoinSummary


@documented(correlate_tables)
def correlate(
    left: DataFrame,
    right: DataFrame | None = None,
    condition: TimingCondition | SpanRelation | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: Keys = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    pair_columns: str | Sequence[str] = (),
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    where: GivenWhere = None,
    prefer: Prefer = "probability",
    k: int = 1,
    matching: Matching | None = None,
    largest_group: int = LARGEST_GROUP,
    ties: Ties = "order",
    aggregates: Aggregates | None = None,
    weights: Weights | None = None,
    including: Including | None = None,
) -> DataFrame:
    """Join two DataFrames of events by satisfaction probability.

    A pair qualifies when P(lo <= T_right - T_left <= hi) reaches the confidence threshold, each
    timestamp being uniform on its interval, or distributed as its template histogram, independently of
    the other.

    The join itself runs when you use the result. Planning may run Spark jobs at once: it collects small
    sides, and a planning job measures other sides and refuses invalid rows. No planning job runs in three
    cases. Both sides are large, Spark knows their sizes, and the confidence is at least 0.5. One side is
    much larger than the other, small one. The DataFrames only read Parquet files on this machine that lie
    in order of time: they are joined like `correlate_files` does. An invalid row that no planning job has
    seen is an error of Spark's when you use the result. Then only `report` tells of nulls, and of a join
    without pairs.

    Parameters
    ----------
    left, right : DataFrame
        Events: time columns (timestamp, timestamp_ntz, integers or floats), key columns, output
        columns. One side may be streaming, if the other one is broadcast and lengths are declared.
        Without `right` the stream `left` is joined with itself: left is every event, right every other
        one. ``emit="pairs"`` gives each unordered pair once; if both orders qualify, the event whose
        timestamp ends earlier is left. All else looks at all other events.
    condition, within, confidence, left_time, right_time, by
        As in `coincide.correlate_tables`.
    left_columns, right_columns
        As in `coincide.correlate_tables`. Rows of DataFrames have no number, so that a side
        without ``"id"`` needs names here.
    how
        As in `coincide.correlate_tables`. With ``right`` and ``full`` both sides are computed once more,
        but for ``emit="best"``.
    emit, probability, pair_columns, backend, options
        As in `coincide.correlate_tables`.
    report : JoinReport, optional
        Receives what the rows were and, once the DataFrame was computed, what was found.
    where, prefer, k, matching, largest_group, ties, aggregates, weights, including
        As in `coincide.correlate_tables`.

    Returns
    -------
    DataFrame
        Columns `by`, ``left_...``, ``right_...`` (or ``matches``), delta, ``probability``, ``rank``.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If a planning job finds invalid rows, and ``options.invalid`` is ``"raise"``.
    BackendError
        If the backend is not possible. Whether a worker has a GPU shows when the DataFrame is computed:
        then such an error comes from Spark, as a PythonException.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning
        About rows that a planning job has seen. For other rows only the summary of `report` warns. A
        warning of an empty result says that no timestamps are short enough for the confidence, no times
        near enough for the window, or, of few rows, no keys equal.
    """
    from spark_plugin.frames.keyed_rows import must_be_frame
    from spark_plugin.ways.correlation import plan_correlation
    from spark_plugin.ways.files.join import direct_frame
    from spark_plugin.ways.files.plain_frames import plan_plain_frames

    JoinReport.check(report)
    check_second(right)
    times = (left_time, left_time if right is None else right_time)
    arguments = JoinArguments(
        condition_of(condition, within, confidence, times, weights), left_time=left_time,
        right_time=right_time, weights=weights, including=including,
        by=by, left_columns=left_columns, right_columns=right_columns, how=how,
        emit=emit, probability=probability, pair_columns=pair_columns, backend=backend,
        options=options, is_one_stream=right is None, where=where, prefer=prefer, k=k,
        matching=matching, largest_group=largest_group, ties=ties, aggregates=aggregates,
    )  # fmt: skip
    for side, given in (("left", left), ("right", right)):
        if side == "left" or given is not None:
            must_be_frame(given, side, "correlate_tables")
    direct = plan_plain_frames(left, right, arguments, counts=report is not None)
    if direct is not None:
        return direct_frame(left.sparkSession, direct, report)
    planned = plan_correlation(left, right, arguments, observe=report is not None)
    planned.tell(report)
    return planned.dataframe


@documented(correlate_tables)
def correlate_files(
    spark: SparkSession,
    left: Given,
    right: Given | None = None,
    condition: TimingCondition | SpanRelation | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    report: JoinReport | None = None,
    **arguments: Any,
) -> DataFrame | JoinSummary:
    """Join two sets of Parquet files by satisfaction probability.

    Where the files lie in time order, or nearly so, each task reads the row groups of its slice itself:
    no exchange, and no row passes through the JVM before it is a match. Else the files are read by
    Spark and joined as by `coincide.correlate`: by broadcast or by exchange.

    Parameters
    ----------
    spark : SparkSession
    left, right : str, path or sequence of them
        Files, folders (with all below) or globs; paths or URIs that PyArrow understands. Workers must
        see them under the same names. Without `right` the events of `left` are joined with themselves,
        like `coincide.correlate` does. If two events have the same timestamp, the one in the lower row is
        left; files count in the order of their names.
    condition, within, confidence
        As in `coincide.correlate_tables`.
    output : str or path, optional
        A folder to write Parquet files to, which appears whole or not at all.
    overwrite : bool
        Whether an older folder of results may be replaced.
    report : JoinReport, optional
        Receives what the rows were and what was found; with a DataFrame once that was computed.
    **arguments
        ``left_time``, ``right_time``, ``by``, ``left_columns``, ``right_columns``, ``how``,
        ``emit``, ``probability``, ``backend``, ``options``, ``where``: as `coincide.correlate`
        takes them.

    Returns
    -------
    DataFrame or JoinSummary
        The matches, computed when they are asked for; or, with `output`, what was written.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As `coincide.correlate`; for a file that lacks a column which others have, or that cannot be
        read. Invalid rows are found when slices are read: without `output` such an error comes from
        Spark when the DataFrame is computed.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning
        With `output`. A DataFrame's by the direct way are not known before it was computed: the
        report's summary gives them then.
    """
    from spark_plugin.ways.files.join import FilesJoin

    JoinReport.check(report)
    if output is None and overwrite:
        raise ConditionError(
            f"{argument('overwrite', True)} needs an output to replace. Remove it."
        )
    _check_places(spark, left, right)
    sides = ("left",) if right is None else ("left", "right")
    times = [arguments.get(f"{side}_time", TIMES) for side in sides]
    meant = condition_of(condition, within, confidence, times, arguments.get("weights"))
    asked = JoinArguments(meant, is_one_stream=right is None, **arguments)
    job = FilesJoin(spark, left, right, asked)
    return job.dataframe(report) if output is None else job.written(output, overwrite, report)


def _check_places(spark: object, left: object, right: object) -> None:
    """Refuse what is in the place of another argument."""
    if isinstance(spark, (str, os.PathLike)):
        raise SchemaError(
            f"spark, the first argument, must be a SparkSession (found {kind_of(spark)}). Without"
            " Spark use `coincide join` for files, and correlate_tables for tables."
        )
    check_second(right)
    for side, given in (("left", left), ("right", right)):
        if not isinstance(given, (str, os.PathLike, Sequence)) and (side, given) != ("right", None):
            raise SchemaError(
                f"{side} must be a file, a folder, a glob, or several of them (found"
                f" {kind_of(given)}). Use correlate for DataFrames, and correlate_tables for"
                " tables."
            )
