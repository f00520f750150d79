"""The probability join: of DataFrames, of Arrow tables in one process, of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coincide.condition import TimingCondition
from coincide.errors import ConditionError, SchemaError
from coincide.options import Backend, CorrelateOptions, Emit, How
from coincide.partners import LARGEST_GROUP, Matching, Prefer
from coincide.sides import SIDES
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.arrow.frames import arrow_table, offers_arrow
from spark_plugin.worker.join import TableJoin
from spark_plugin.worker.reports.reports import JoinReport, check_report, tell
from spark_plugin.worker.shifts import check_told
from spark_plugin.worker.timestamps.names import GivenTimes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_plugin.worker.files.finding import Given
    from spark_plugin.worker.reports.reports import JoinSummary

_TO_SPARK = (
    "spark.createDataFrame(...) makes one of a pandas or an Arrow table, spark.read of files"
)
_TO_ARROW = ".collect() makes one of a Polars LazyFrame, .toArrow() of a Spark DataFrame"


def correlate(
    left: DataFrame,
    right: DataFrame,
    condition: TimingCondition,
    *,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: str | Sequence[str] = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    shifts: Sequence[int | str] | None = None,
    prefer: Prefer = "probability",
    k: int = 1,
    matching: Matching | None = None,
    largest_group: int = LARGEST_GROUP,
) -> DataFrame:
    """Join two DataFrames of events by satisfaction probability.

    A pair qualifies when P(lo <= T_right - T_left <= hi) reaches the confidence threshold, each
    timestamp being uniform on its interval, or distributed as its template histogram, independently of
    the other.

    One small Spark job runs at once, to measure both sides and refuse invalid rows. Where a side is
    small it is collected at once, too. The join itself runs when the result is used.

    Parameters
    ----------
    left, right : DataFrame
        Events: time columns (timestamp, timestamp_ntz, integers or floats), key columns, columns to
        hand out. One side may be streaming, if the other one is broadcast and lengths are declared.
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    left_time, right_time : str, (str, str), Around or Histograms
        The min and max column of the interval timestamps; one name for exact instants;
        ``around("t", "10ms")``, ``resolution("t", "1ms")``; or
        ``histograms("seen_at", template="device", templates=table)``.
    by : str or sequence of str
        Columns that must be equal on both sides. A null equals nothing.
    left_columns, right_columns : str or sequence of str
        Columns to hand out, as ``left_<name>`` and ``right_<name>``. `right_columns` have no meaning,
        and need not exist, with ``how="semi"``, ``how="anti"`` and ``emit="counts"``, which hand out
        nothing of a partner.
    how : {"inner", "left", "semi", "anti"}
        ``left`` keeps left events without a partner, ``semi`` and ``anti`` give one row per left event
        that has, or lacks, a partner.
    emit : {"pairs", "lists", "counts", "best"}
        One row a pair; or one row per left event with arrays (in no particular order), with the number
        of its ``matches``, or with its most probable partner. With ``how="inner"`` events without a
        partner are left out, with ``how="left"`` they have empty arrays, 0, or nulls.
    probability : bool
        Add the satisfaction probability (double), a column or an array.
    backend : {"auto", "cpu", "gpu"}
    options : CorrelateOptions
    report : JoinReport, optional
        Is told what the rows were and, once the DataFrame was computed, what was found.
    shifts : sequence of int and str, optional
        Durations by which right times are moved, such as ``("30s", "-30s", "47s")``, to learn how many
        pairs chance makes: those that qualify then are counted, and the summary of `report`, which is
        needed, has their mean, ``accidental_pairs``, and standard deviation, ``accidental_spread``. Each
        must be longer than the window, and is a Spark job that runs at once.
    prefer : {"probability", "nearest", "first", "last"}
        With ``emit="best"`` or `matching`, which partner is the best one: the most probable, the one whose
        midpoint is nearest to that of the event, or the earliest or latest by its midpoint. Equals are told
        apart by probability and then as docs/meaning.md has it.
    k : int
        With ``emit="best"``, how many partners of each left event at most; of more than one a row has its
        ``rank``, from 1 for the best.
    matching : {"mutual", "optimal"}, optional
        Pairs one to one: those in which each event is the best partner of the other; or the assignment of
        the greatest sum of probabilities, with ``prefer="nearest"`` of the most pairs and then the least
        sum of distances. ``how="left"`` adds the left events that are in none.
    largest_group : int
        Most events, of both sides, that an optimal assignment may have to look at together.

    Returns
    -------
    DataFrame
        Columns `by`, ``left_...``, ``right_...`` (or ``matches``), ``probability``, ``rank``.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    BackendError
        If the backend cannot be. Whether a worker has a GPU is seen when the DataFrame is computed: then
        such an error comes from Spark, as a PythonException.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning
        Of what the first job has seen. It knows of an empty result where no timestamps are short enough
        for the confidence, no times near enough for the window, or, of few rows, no keys equal.
    """
    from pyspark.sql import DataFrame

    from spark_plugin.ways.correlation import plan_correlation

    check_report(report)
    check_told(shifts, report)
    arguments = JoinArguments(
        condition, left_time=left_time, right_time=right_time, by=by, left_columns=left_columns,
        right_columns=right_columns, how=how, emit=emit, probability=probability, backend=backend,
        options=options, shifts=shifts, prefer=prefer, k=k, matching=matching,
        largest_group=largest_group,
    )  # fmt: skip
    if options.way == "direct":
        raise ConditionError(
            "way='direct' reads files, and DataFrames were given: use correlate_files, or another way"
        )
    for side, given in (("left", left), ("right", right)):
        if not isinstance(given, DataFrame):
            raise SchemaError(
                f"{side} must be a Spark DataFrame; found {_kind(given)}. {_TO_SPARK}"
            )
    planned = plan_correlation(left, right, arguments, observe=report is not None)
    planned.tell(report)
    return planned.dataframe


def correlate_tables(
    left: Any,
    right: Any,
    condition: TimingCondition,
    *,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: str | Sequence[str] = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    shifts: Sequence[int | str] | None = None,
    prefer: Prefer = "probability",
    k: int = 1,
    matching: Matching | None = None,
    largest_group: int = LARGEST_GROUP,
) -> pa.Table:
    """Join two tables of events by satisfaction probability, in this process.

    The same join as `coincide.correlate`, with the same arguments, on tables in memory.

    Parameters
    ----------
    left, right : pa.Table, or whatever offers Arrow's C stream (``__arrow_c_stream__``)
        Tables of pandas, Polars, DuckDB and others; a stream that can be read but once is read once.
        Events: time columns (timestamps, integers or floats), key columns, columns to hand out.
    condition : TimingCondition
    left_time, right_time : str, (str, str), Around or Histograms
        As of `coincide.correlate`.
    by : str or sequence of str
        Columns that must be equal on both sides.
    left_columns, right_columns : str or sequence of str
        Columns to hand out, as ``left_<name>`` and ``right_<name>``. `right_columns` have no meaning,
        and need not exist, with ``how="semi"``, ``how="anti"`` and ``emit="counts"``, which hand out
        nothing of a partner.
    how, emit
        As of `coincide.correlate`.
    probability : bool
        Add the satisfaction probability (float64), a column or an array.
    backend : {"auto", "cpu", "gpu"}
    options : CorrelateOptions
    report : JoinReport, optional
        Is told what the rows were and what was found.
    shifts : sequence of int and str, optional
        As of `coincide.correlate`; counted when the rest is done.
    prefer, k, matching, largest_group
        As of `coincide.correlate`.

    Returns
    -------
    pa.Table
        Columns `by`, ``left_...``, ``right_...`` (or ``matches``), ``probability``, ``rank``.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    BackendError
        If the backend is not here.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning, ShortShiftsWarning
    """
    check_report(report)
    check_told(shifts, report)
    arguments = JoinArguments(
        condition, left_time=left_time, right_time=right_time, by=by, left_columns=left_columns,
        right_columns=right_columns, how=how, emit=emit, probability=probability, backend=backend,
        options=options, shifts=shifts, prefer=prefer, k=k, matching=matching,
        largest_group=largest_group,
    )  # fmt: skip
    tables = []
    for side, given, names in zip(SIDES, (left, right), arguments.columns, strict=True):
        if not offers_arrow(given):
            raise SchemaError(
                f"{side} must be a table that offers Arrow's C stream, such as those of pyarrow, pandas,"
                f" Polars and DuckDB; found {_kind(given)}. {_TO_ARROW}"
            )
        tables.append(arrow_table(side, given, names))
    job = TableJoin(tables[0], tables[1], arguments)
    found = pa.Table.from_batches(job.batches(), schema=job.schema)
    assert job.summary is not None
    tell(job.summary, report)
    return found


def correlate_files(
    spark: SparkSession,
    left: Given,
    right: Given,
    condition: TimingCondition,
    *,
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
        see them under the same names.
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    output : str or path, optional
        A folder to write Parquet files to, which appears whole or not at all.
    overwrite : bool
        Whether an older folder of results may be replaced.
    report : JoinReport, optional
        Is told what the rows were and what was found; of a DataFrame once that was computed.
    **arguments
        ``left_time``, ``right_time``, ``by``, ``left_columns``, ``right_columns``, ``how``, ``emit``,
        ``probability``, ``backend``, ``options``, ``shifts``, ``prefer``, ``k``, ``matching``,
        ``largest_group``: as `coincide.correlate` takes them.

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
    job = FilesJoin(spark, left, right, JoinArguments(condition, **arguments))
    return job.dataframe(report) if output is None else job.written(output, overwrite, report)


def _kind(given: object) -> str:
    package, name = type(given).__module__.split(".")[0], type(given).__name__
    return name if package == "builtins" else f"{package}.{name}"
