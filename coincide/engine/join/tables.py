"""The probability join of Arrow tables, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coincide.engine.events.frames import TABLES, arrow_table, kind_of, needed_names, offers_arrow
from coincide.engine.events.keys import Keys
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TableJoin
from coincide.engine.join.pair_arguments import (
    GivenWindow,
    PairArguments,
    check_second,
    condition_of,
)
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.join.shifts import check_report
from coincide.engine.reports.reports import JoinReport
from coincide.model.condition import TimingCondition
from coincide.model.errors import SchemaError
from coincide.model.match_choice import LARGEST_GROUP, Matching, Prefer
from coincide.model.options import Backend, CorrelateOptions, Emit, How
from coincide.model.sides import SIDES

_TO_ARROW = (
    ".collect() makes one of a LazyFrame, .toArrow() of a Spark DataFrame, pyarrow.table of a dict"
)


def correlate_tables(
    left: Any,
    right: Any = None,
    condition: TimingCondition | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: float | None = None,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: Keys = (),
    case_fold: bool = False,
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    pair_columns: str | Sequence[str] = (),
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    shifts: Sequence[int | str] | None = None,
    where: GivenWhere = None,
    prefer: Prefer = "probability",
    k: int = 1,
    matching: Matching | None = None,
    largest_group: int = LARGEST_GROUP,
) -> pa.Table:
    """Join two tables of events by satisfaction probability, in this process.

    The same join as `coincide.correlate`, with the same arguments, on tables in memory.

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
        Tables of pandas, Polars, DuckDB and others; a stream that can be read but once is read once.
        Events: time columns (timestamps, integers or floats), key columns, output columns. Without
        `right` the stream `left` is joined with itself, as by `coincide.correlate`; of events of one and
        the same timestamp the one in the lower row is left.
    condition : TimingCondition
    within, confidence
        In place of `condition`, as of `coincide.correlate`.
    left_time, right_time : str, (str, str), Around or Histograms
        As of `coincide.correlate`.
    by, case_fold
        As of `coincide.correlate`.
    left_columns, right_columns : str or sequence of str
        Columns for the output, as ``left_<name>`` and ``right_<name>``; ``"*"`` is all but keys.
        `right_columns` have no meaning, and need not exist, with ``how="semi"``, ``how="anti"`` and
        ``emit="counts"``, whose output has nothing of a match.
    how, emit
        As of `coincide.correlate`; with ``how="left"`` rows come in the order of left.
    probability : bool
        Add the satisfaction probability (float64), a column or an array.
    pair_columns : str or sequence of str
        As of `coincide.correlate`.
    backend : {"auto", "cpu", "gpu"}
    options : CorrelateOptions
    report : JoinReport, optional
        Is told what the rows were and what was found.
    shifts : sequence of int and str, optional
        As of `coincide.correlate`; counted when the rest is done.
    where : str or pyarrow.compute.Expression, optional
        As of `coincide.correlate`.
    prefer, k, matching, largest_group
        As of `coincide.correlate`.

    Returns
    -------
    pa.Table
        Columns `by`, ``left_...``, ``right_...`` (or ``matches``), delta, ``probability``, ``rank``.

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
    JoinReport.check(report)
    check_report(shifts, report)
    check_second(right)
    times = (left_time, left_time if right is None else right_time)
    arguments = JoinArguments(
        condition_of(condition, within, confidence, times), left_time=left_time, right_time=right_time,
        by=by, case_fold=case_fold, left_columns=left_columns, right_columns=right_columns, how=how,
        emit=emit, probability=probability, pair_columns=pair_columns, backend=backend,
        options=options, shifts=shifts, is_one_stream=right is None, where=where, prefer=prefer, k=k,
        matching=matching, largest_group=largest_group,
    )  # fmt: skip
    return joined(TableJoin, left, right, arguments, report)


def joined(
    kind: type[TableJoin],
    left: Any,
    right: Any,
    arguments: PairArguments,
    report: JoinReport | None,
) -> pa.Table:
    """The join of two sides as users give them; of one stream the second is None."""
    tables = given_tables(left, right, arguments)
    job = kind(tables[0], None if right is None else tables[1], arguments)
    found = pa.Table.from_batches(job.batches(), schema=job.schema)
    assert job.summary is not None
    JoinReport.tell(job.summary, report)
    return found


def given_tables(left: Any, right: Any, arguments: PairArguments) -> list[pa.Table]:
    """What was given as Arrow tables of the needed columns; one table without `right`."""
    of_sides = arguments.prefixes == SIDES
    tables = []
    inputs = (left,) if right is None else (left, right)
    sides = SIDES if of_sides else arguments.sides
    asked = zip(sides, inputs, arguments.columns, arguments.numbers, strict=False)
    for side, given, names, numbers in asked:
        if not offers_arrow(given):
            called = side if of_sides else f"{side}s"
            raise SchemaError(f"{called} must be {TABLES}; found {kind_of(given)}. {_TO_ARROW}")
        if arguments.is_open:
            names = needed_names(given, names, arguments.words_of_needed)
        drops = arguments.options.invalid == "drop"
        tables.append(arrow_table(side, given, names, numbers, drops=drops))
    return tables
