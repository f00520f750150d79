"""The probability join of Parquet files, on Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coincide.condition import TimingCondition
from coincide.errors import ConditionError, SchemaError
from spark_plugin.worker.arguments import TIMES, JoinArguments
from spark_plugin.worker.arrow.frames import kind_of
from spark_plugin.worker.conditions import GivenWindow, check_second, condition_of
from spark_plugin.worker.reports.reports import JoinReport, check_report
from spark_plugin.worker.shifts import check_told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_plugin.worker.files.finding import Given
    from spark_plugin.worker.reports.reports import JoinSummary


def correlate_files(
    spark: SparkSession,
    left: Given,
    right: Given | None = None,
    condition: TimingCondition | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: float | None = None,
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
        as by `coincide.correlate`; of events of one and the same timestamp the one in the lower row is
        left, where files are taken in the order of their names.
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    within, confidence
        In place of `condition`, as of `coincide.correlate`.
    output : str or path, optional
        A folder to write Parquet files to, which appears whole or not at all.
    overwrite : bool
        Whether an older folder of results may be replaced.
    report : JoinReport, optional
        Is told what the rows were and what was found; of a DataFrame once that was computed.
    **arguments
        ``left_time``, ``right_time``, ``by``, ``case_fold``, ``left_columns``, ``right_columns``, ``how``,
        ``emit``, ``probability``, ``backend``, ``options``, ``shifts``, ``where``: as `coincide.correlate`
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

    check_report(report)
    if output is None:
        check_told(arguments.get("shifts"), report)
    if output is None and overwrite:
        raise ConditionError("overwrite=True needs an output to replace; leave it out")
    _check_places(spark, left, right)
    sides = ("left",) if right is None else ("left", "right")
    times = [arguments.get(f"{side}_time", TIMES) for side in sides]
    asked = JoinArguments(
        condition_of(condition, within, confidence, times), is_one_stream=right is None, **arguments
    )
    job = FilesJoin(spark, left, right, asked)
    return job.dataframe(report) if output is None else job.written(output, overwrite, report)


def _check_places(spark: object, left: object, right: object) -> None:
    """Refuse what stands in the place of another argument.

    Raises
    ------
    SchemaError, ConditionError
    """
    if isinstance(spark, (str, os.PathLike)):
        raise SchemaError(
            f"spark, the first argument, must be a SparkSession; found {kind_of(spark)}. Without Spark"
            " `coincide join` joins files, and correlate_tables tables"
        )
    check_second(right)
    for side, given in (("left", left), ("right", right)):
        if not isinstance(given, (str, os.PathLike, Sequence)) and (side, given) != ("right", None):
            raise SchemaError(
                f"{side} must be a file, a folder, a glob, or several of them; found {kind_of(given)}."
                " correlate takes DataFrames, correlate_tables tables"
            )
