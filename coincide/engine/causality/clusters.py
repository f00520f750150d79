"""Clusters of events that causes and effects connect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coincide.engine.causality.arguments import Place, names_of_coordinates
from coincide.engine.causality.labels import ClusterArguments, cluster_table
from coincide.engine.causality.tables import causal_table
from coincide.engine.events.keys import is_all_columns, names_of
from coincide.engine.events.time_names import GivenTimes, all_columns, timestamp_names
from coincide.engine.join.pair_arguments import EVENT
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.reports.reports import JoinReport, check_report, tell
from coincide.model.causality.condition import CausalityCondition
from coincide.model.options import CorrelateOptions


def clusters(
    events: Any,
    condition: CausalityCondition,
    *,
    time: GivenTimes = "time",
    place: Place = (),
    by: str | Sequence[str] = (),
    case_fold: bool = False,
    columns: str | Sequence[str] = ("id",),
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    where: GivenWhere = None,
) -> pa.Table:
    """Find which events of a table are connected by pairs that meet a condition, in this process.

    Two events are a pair where they meet it in either order, and of one cluster where a chain of pairs
    leads from one to the other.

    Parameters
    ----------
    events : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
    condition : CausalityCondition
    time, place
        As `cause_time` and `cause_place` of `causality_tables`.
    by : str or sequence of str
        Columns that must be equal: a cluster has one value of each.
    case_fold : bool
        Whether texts of `by` are equal if they are so in lower case, letter by letter.
    columns : str or sequence of str
        Columns to hand out; ``"*"`` is all but keys.
    options : CorrelateOptions
        Of these, units, tick, ``invalid``, ``left_longest`` and ``threads`` count here.
    report : JoinReport, optional
        Is told what the rows were.
    where : str or pyarrow.compute.Expression, optional
        What a pair must meet besides to connect its events, as of `causality_tables`. Each pair is looked
        at then; without it those are not whose events are known to be of one cluster.

    Returns
    -------
    pa.Table
        Columns `by`, `columns`, and ``cluster``: int64, the first row of the event's cluster,
        counted from 0 among the rows handed out. One row an event, in their order; null of an event
        without time, place or key.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `causality_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning
    """
    check_report(report)
    arguments = ClusterArguments(
        condition, time, place, by, columns, options, case_fold=case_fold, where=where
    )  # fmt: skip
    times = timestamp_names(EVENT, arguments.time)
    numbers = [*times.clocks, *names_of_coordinates(arguments.coordinates)]
    names = [*all_columns(times), *numbers, *names_of(by)]
    if not is_all_columns(columns):
        names += names_of(columns)
    table = causal_table(EVENT, events, names, numbers, arguments)
    found, summary = cluster_table(table, arguments)
    tell(summary, report)
    return found
