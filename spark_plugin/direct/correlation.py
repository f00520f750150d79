"""`correlate_files`: the probability join of Parquet files on Spark, by the shortest way they allow."""

from __future__ import annotations

import logging
import os
import time
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, get_args

from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from event_model import errors
from event_model.condition import TimingCondition
from event_model.errors import CoincideError, ConditionError, DataError
from event_model.options import CorrelateOptions, check_choice, options_for
from event_model.results import JoinCounters
from event_model.sides import SIDES
from spark_plugin.correlation import BATCH_PAIRS, Correlation, plan_correlation
from spark_plugin.credentials import NOT_FOR_SPARK, holds_settings, without_credentials
from spark_plugin.direct.columns import needed_columns
from spark_plugin.direct.dataframe_checks import check_for_dataframes, spark_errors_as_ours
from spark_plugin.direct.files import Given, find_files, words_of
from spark_plugin.direct.planning import NotDirect, plan_files
from spark_plugin.direct.publishing import OutputFolder
from spark_plugin.direct.slice_join import DirectJoin
from spark_plugin.direct.tasks import BatchTask, FileTask, SliceReport, StepSeconds
from spark_plugin.direct.wire import spark_type
from spark_plugin.output_columns import decoded, output_columns, wire_schema
from spark_plugin.planning import parallelism
from spark_plugin.stage_resources import gpu_profile
from spark_plugin.tables import SideCounts, type_of
from spark_plugin.worker_python import check_workers

Way = Literal["auto", "direct", "broadcast", "exchange"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FilesSummary:
    """What a join of files into files did.

    Parameters
    ----------
    left, right : SideCounts or None
        Rows in; None where declared statistics spared the look.
    counters : JoinCounters or None
    rows, size : int
        Rows of the output, and bytes.
    seconds : float
    slices : int or None
        None where a side went to every worker.
    way : {"direct", "broadcast", "exchange"}
    why : str
        Why this way was taken.
    steps : StepSeconds or None
        Seconds inside the tasks, summed over them; None on the exchange, where Spark mixes the steps.
    """

    left: SideCounts | None
    right: SideCounts | None
    counters: JoinCounters | None
    rows: int
    size: int
    seconds: float
    slices: int | None
    way: str
    why: str
    steps: StepSeconds | None = None


def correlate_files(
    spark: SparkSession,
    left: Given,
    right: Given,
    condition: TimingCondition,
    *,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    way: Way = "auto",
    **arguments: Any,
) -> DataFrame | FilesSummary:
    """Join two sets of Parquet files by satisfaction probability.

    Where the files lie in time order, or nearly so, each task reads the row groups of its slice itself:
    no exchange, and no row passes through the JVM before it is a match. Else the files are read by
    Spark and joined as by `spark_plugin.correlate`: by broadcast or by exchange.

    Parameters
    ----------
    spark : SparkSession
    left, right : str, path or sequence of them
        Files, folders (with all below) or globs; paths or URIs that PyArrow understands. Workers must
        see them under the same names.
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    output : str or path, optional
        A folder to write Parquet files to, which appears whole or not at all.
    overwrite : bool
        Whether an older folder of results may be replaced.
    way : {"auto", "direct", "broadcast", "exchange"}
        Any but ``auto`` forces one. The last two are ways of DataFrames, which Spark reads.
    **arguments
        ``left_time``, ``right_time``, ``by``, ``left_columns``, ``right_columns``, ``how``, ``emit``,
        ``probability``, ``backend``, ``options``: as `spark_plugin.correlate` takes them.

    Returns
    -------
    DataFrame or FilesSummary
        The matches, computed when they are asked for; or, with `output`, what was written.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As `spark_plugin.correlate`; for a file that lacks a column which others have, or that cannot be
        read. Invalid rows are found when slices are read: without `output` such an error comes from
        Spark when the DataFrame is computed.
    """
    check_choice("way", way, get_args(Way))
    if output is None and overwrite:
        raise ConditionError("overwrite=True needs an output to replace; leave it out")
    join, why = None, "as asked"
    options = arguments.pop("options", CorrelateOptions())
    arguments["options"] = options_for(way, options)
    if way in ("auto", "direct"):
        try:
            join = plan_direct(spark, left, right, condition, arguments)
            why = join.plan.describe()
        except NotDirect as closed:
            if way == "direct":
                raise
            why = str(closed)
            _log.warning("correlate_files: by DataFrames, since %s", why)
    if output is None:
        if join is not None:
            return _frame(spark, join)
        return _by_dataframes(spark, left, right, condition, arguments, observe=False).dataframe
    target = OutputFolder(output, overwrite)
    target.check_inputs("left", left)
    target.check_inputs("right", right)
    with target as folder:
        if join is not None:
            started = time.perf_counter()
            reports = written_slices(spark, join, folder.filesystem, folder.aside)
            folder.publish({report.path for report in reports})
            return summary_of(reports, time.perf_counter() - started, why)
        return _written_by_dataframes(spark, left, right, condition, arguments, folder, why)


def plan_direct(
    spark: SparkSession,
    left: Given,
    right: Given,
    condition: TimingCondition,
    arguments: dict[str, Any],
) -> DirectJoin:
    """Plan a direct join for Spark's workers.

    Raises
    ------
    NotDirect
        If the direct way is closed.
    """
    join = plan_files(left, right, condition, parallelism=parallelism(spark), **arguments)
    check_workers(spark)
    options = arguments.get("options", CorrelateOptions())
    spec = replace(
        join.tables.spec,
        threads=options.threads or 1,
        batch_pairs=options.batch_pairs or BATCH_PAIRS,
    )
    _log.info("correlate_files: directly, %s", join.plan.describe())
    return replace(join, tables=replace(join.tables, spec=spec))


def _frame(spark: SparkSession, join: DirectJoin) -> DataFrame:
    tables = join.tables
    by, left, right = (
        tuple((name, spark_type(name, type_of(schema, side, name))) for name in names)
        for side, schema, names in (
            ("left", join.schemas[0], tables.by),
            ("left", join.schemas[0], tables.payload[0]),
            ("right", join.schemas[1], tables.payload[1]),
        )
    )
    columns = output_columns(tables.spec, by, left, right)
    task = BatchTask(join, by, left, right, tuple(column.name for column in columns))
    profile = gpu_profile(spark, tables.spec.backend)
    found = _numbers(spark, join).mapInArrow(task, wire_schema(columns), profile=profile)
    return decoded(found, columns)


def _numbers(spark: SparkSession, join: DirectJoin) -> DataFrame:
    """The numbers of the slices, one in each partition."""
    count = len(join.plan.slices)
    return spark.range(0, count, 1, count)


def written_slices(
    spark: SparkSession, join: DirectJoin, filesystem: fs.FileSystem, folder: str
) -> list[SliceReport]:
    """Let the workers write all slices to a folder, in which files of lost attempts may be left too.

    Raises
    ------
    DataError
        What a slice tells of its data.
    """
    task = FileTask(join, filesystem, folder)
    kind = T.StructType([T.StructField("report", T.StringType())])
    profile = gpu_profile(spark, join.tables.spec.backend)
    rows = _numbers(spark, join).mapInArrow(task, kind, profile=profile).collect()
    reports = sorted((SliceReport.from_json(r["report"]) for r in rows), key=lambda r: r.number)
    _raise_first(reports)
    return reports


def summary_of(reports: list[SliceReport], seconds: float, why: str) -> FilesSummary:
    """The reports of all slices as one summary."""
    return FilesSummary(
        reduce(SideCounts.__add__, (report.left for report in reports)),
        reduce(SideCounts.__add__, (report.right for report in reports)),
        sum((report.counters for report in reports), JoinCounters()),
        sum(report.rows for report in reports),
        sum(report.size for report in reports),
        seconds,
        len(reports),
        "direct",
        why,
        reduce(StepSeconds.__add__, (report.steps for report in reports)),
    )


def _raise_first(reports: list[SliceReport]) -> None:
    """Raise what a slice has told of its data, as if it had happened here."""
    for report in reports:
        if report.error:
            kind = getattr(errors, report.error, CoincideError)
            raise kind(report.text)


def _by_dataframes(
    spark: SparkSession,
    left: Given,
    right: Given,
    condition: TimingCondition,
    arguments: dict[str, Any],
    observe: bool,
) -> Correlation:
    names = needed_columns(arguments)
    for side, given, needed in zip(SIDES, (left, right), names, strict=True):
        check_for_dataframes(spark, side, given, needed)
    with spark_errors_as_ours():
        frames = _spark_frame(spark, "left", left), _spark_frame(spark, "right", right)
        return plan_correlation(*frames, condition, **arguments, observe=observe)


def _spark_frame(spark: SparkSession, side: str, given: Given) -> DataFrame:
    files = find_files(side, given)
    if files.filesystem.type_name == "local":
        return spark.read.parquet(*(f"file://{path}" for path in files.paths))
    for word in words_of(given):
        if holds_settings(word):
            raise DataError(f"{side}: {without_credentials(word)} {NOT_FOR_SPARK}")
    return spark.read.parquet(*words_of(given))


def _written_by_dataframes(
    spark: SparkSession,
    left: Given,
    right: Given,
    condition: TimingCondition,
    arguments: dict[str, Any],
    folder: OutputFolder,
    why: str,
) -> FilesSummary:
    started = time.perf_counter()
    plan = _by_dataframes(spark, left, right, condition, arguments, observe=True)
    with closing(plan), spark_errors_as_ours():
        plan.dataframe.write.mode("append").parquet(folder.uri)
    counters = plan.counters()
    rows, size = folder.publish_all()
    return FilesSummary(
        plan.left, plan.right, counters, rows, size, time.perf_counter() - started, plan.slices,
        plan.way, f"{plan.plan.describe()}; not direct: {why}",
    )  # fmt: skip
