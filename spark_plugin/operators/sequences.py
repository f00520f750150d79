"""Sequences and coincidences of DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coincide.engine.join.pair_arguments import GivenWindow
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.sequences.arguments import (
    CheckTable,
    ColumnsOfAll,
    KeysOfAll,
    SequenceEmit,
    SequenceHow,
    SequencePrefer,
    TimesOfAll,
    WidthOrWindows,
)
from coincide.engine.sequences.coincidences import coincidence_arguments, coincidence_tables
from coincide.engine.sequences.reports import SequenceReport
from coincide.engine.sequences.tables import sequence_arguments, sequence_tables
from coincide.model.condition import Confidence
from coincide.model.docstrings import documented
from coincide.model.options import Backend, CorrelateOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_plugin.tasks.sequences import Question

    Frames = Sequence[DataFrame] | Mapping[str, DataFrame]


@documented(sequence_tables)
def sequences(
    dataframes: Frames,
    windows: Sequence[GivenWindow],
    confidence: Confidence | None = None,
    *,
    total: GivenWindow | None = None,
    names: Sequence[str] | None = None,
    time: TimesOfAll = ("min_time", "max_time"),
    by: KeysOfAll = (),
    columns: ColumnsOfAll = ("id",),
    how: SequenceHow = "inner",
    emit: SequenceEmit = "sequences",
    probability: bool = False,
    link_probability: bool = False,
    where: GivenWhere = None,
    prefer: SequencePrefer = "probability",
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: SequenceReport | None = None,
) -> DataFrame:
    """Find sequences of events of several DataFrames: `sequence_tables` on Spark.

    One exchange brings to each task the first events of a stretch of time, and what events of the other
    streams may follow them. Where all streams but one are small, these go to every worker instead, and that
    one stays in its partitions. Where all only read Parquet files in time order, tasks read the row groups
    that they need. No join follows another. Planning runs a Spark job where Spark cannot tell
    how many rows there are or how far events reach, and with ``invalid="drop"``; and it collects small
    streams.

    Parameters
    ----------
    dataframes : list of DataFrames, or dict of them by name, at least two
        In the order of the steps. One DataFrame may be given several times: it is read and sent
        once, and no event is in a sequence twice.
    windows, confidence, total, names, time, by
        As in `coincide.sequence_tables`.
    columns
        As in `coincide.sequence_tables`. Rows of DataFrames have no number, so that one without ``"id"``
        needs names here.
    how, emit, probability, link_probability, where
        As in `coincide.sequence_tables`.
    prefer
        As in `coincide.sequence_tables`. At last the columns of the events decide, not their rows.
    backend
        As in `coincide.sequence_tables`.
    options
        As in `coincide.sequence_tables`. Each task refuses more sequences than ``max_pairs`` of its own.
        ``slices`` and ``slice_rows`` say how many tasks there are, and ``way`` how events meet: ``"auto"``,
        ``"files"``, ``"broadcast"`` or ``"exchange"``.
    report : SequenceReport, optional
        Receives which way was taken, what the rows were and, once the DataFrame was computed, what was
        found. Links near the end of a slice of an exchange count in two.

    Returns
    -------
    DataFrame
        As `sequence_tables`.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the windows or an argument make no sense, or a DataFrame is streaming.
    DataError
        If a planning job finds invalid rows and ``options.invalid`` is ``"raise"``. Those that no job has
        looked at are an error of Spark's when the result is computed.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning
        About rows that a planning job has seen; else by the summary of `report`.
    """
    arguments = sequence_arguments(
        dataframes, windows, confidence, total=total, names=names, time=time, by=by,
        columns=columns, how=how, emit=emit, probability=probability,
        link_probability=link_probability, where=where, prefer=prefer, backend=backend,
        options=options, check=_check("sequence"),
    )  # fmt: skip
    return _planned(arguments, report)


@documented(coincidence_tables)
def coincidences(
    dataframes: Frames,
    within: WidthOrWindows,
    confidence: Confidence | None = None,
    *,
    at_least: int | None = None,
    names: Sequence[str] | None = None,
    time: TimesOfAll = ("min_time", "max_time"),
    by: KeysOfAll = (),
    columns: ColumnsOfAll = ("id",),
    probability: bool = False,
    where: GivenWhere = None,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: SequenceReport | None = None,
) -> DataFrame:
    """Find sets of events of DataFrames within a width of each other: `coincidence_tables` on Spark.

    One exchange brings to each task the events of a stretch of time, and those near it. The task
    whose stretch has the first member of a set, in the order of the streams, gives it. If sets have
    an event of each stream, and all streams but one are small, these go to every worker instead.

    Parameters
    ----------
    dataframes : list of DataFrames, or dict of them by name, at least two
        Each once.
    within, confidence, at_least, names, time, by
        As in `coincide.coincidence_tables`.
    columns
        As in `coincide.coincidence_tables`. Rows of DataFrames have no number, so that one without ``"id"``
        needs names here.
    probability, where, backend
        As in `coincide.coincidence_tables`.
    options
        As in `coincide.coincidence_tables`. Each task refuses more sets than ``max_pairs`` of its own.
        ``way`` is one of those of `sequences`.
    report : SequenceReport, optional
        Receives which way was taken, what the rows were and, once the DataFrame was computed, what was
        found. Links near the end of a slice of an exchange count in two.

    Returns
    -------
    DataFrame
        As `coincidence_tables`, rows in no order.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or a DataFrame is streaming or given twice.
    DataError
        If a planning job finds invalid rows and ``options.invalid`` is ``"raise"``. Those that no job has
        looked at are an error of Spark's when the result is computed.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning
        About rows that a planning job has seen; else by the summary of `report`.
    """
    arguments = coincidence_arguments(
        dataframes, within, confidence, at_least=at_least, names=names, time=time, by=by,
        columns=columns, probability=probability, where=where, backend=backend, options=options,
        check=_check("coincidence"),
    )  # fmt: skip
    return _planned(arguments, report)


def _check(what: str) -> CheckTable:
    """What refuses all but static DataFrames, to find `what`."""
    from spark_plugin.frames.keyed_rows import check_frame

    why = f"and later rows may end what it begins. Use {what}_streams."
    return lambda given, name: check_frame(given, name, f"{what}_tables", why)


def _planned(question: Question, report: SequenceReport | None) -> DataFrame:
    from spark_plugin.ways.sequences import PlannedTuples

    SequenceReport.check(report)
    planned = PlannedTuples(question, observe=report is not None)
    SequenceReport.tell(planned.known, report, planned.summary if report is not None else None)
    return planned.dataframe
