"""Causality joins of Arrow tables in one process, and clusters. Needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coincide.cause_and_effect.condition import CausalityCondition
from coincide.errors import SchemaError
from coincide.options import CorrelateOptions, Emit, How
from spark_plugin.worker.arguments import names_of
from spark_plugin.worker.arrow.frames import arrow_table, offers_arrow
from spark_plugin.worker.arrow.time_columns import time_names
from spark_plugin.worker.causality.arguments import (
    CAUSE_AND_EFFECT,
    CausalityArguments,
    Place,
)
from spark_plugin.worker.causality.clusters import EVENT, ClusterArguments, cluster_table
from spark_plugin.worker.causality.join import TableCausality
from spark_plugin.worker.causality.places import names_of_coordinates
from spark_plugin.worker.reports.reports import JoinReport, check_report, tell


def causality_tables(
    causes: Any,
    effects: Any,
    condition: CausalityCondition,
    *,
    cause_time: str | Sequence[str] = "time",
    effect_time: str | Sequence[str] = "time",
    cause_place: Place = (),
    effect_place: Place = (),
    by: str | Sequence[str] = (),
    cause_columns: str | Sequence[str] = ("id",),
    effect_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
) -> pa.Table:
    """Find all pairs of a cause and its effect in two tables, in this process.

    Kwon & Li (2009), Definition 1, over all data: a pair qualifies when it meets every predicate of the
    condition.

    Parameters
    ----------
    causes, effects : pa.Table, or whatever offers Arrow's C stream (``__arrow_c_stream__``)
        Events: time columns (timestamps, integers or floats), coordinates, key columns, columns to
        hand out. In options, units and messages, causes are the left side.
    condition : CausalityCondition
    cause_time, effect_time : str or (str, str)
        One column of exact instants, or the min and max column of interval timestamps.
    cause_place, effect_place : sequence of str and float
        The coordinates, in the order of the condition's space: columns, or numbers that hold for every
        event. A null or NaN matches nothing. () where the condition is on times alone.
    by : str or sequence of str
        Columns that must be equal on both sides. A null equals nothing.
    cause_columns, effect_columns : str or sequence of str
        Columns to hand out, as ``cause_<name>`` and ``effect_<name>``. `effect_columns` have no meaning
        with ``how="semi"``, ``how="anti"`` and ``emit="counts"``.
    how : {"inner", "left", "semi", "anti"}
        ``left`` keeps causes without an effect, ``semi`` and ``anti`` give one row per cause that has, or
        lacks, an effect.
    emit : {"pairs", "lists", "counts"}
        One row a pair; or one row per cause with arrays (in no particular order), or with the number of its
        ``matches``.
    options : CorrelateOptions
        Of these, units, tick, ``invalid``, longest lengths, ``batch_pairs`` and ``threads`` count here.
    report : JoinReport, optional
        Is told what the rows were and what was found.

    Returns
    -------
    pa.Table
        Columns `by`, ``cause_...``, ``effect_...`` (or ``matches``), ``delta`` (T_effect - T_cause
        in ticks, int64; of intervals between their later ends) and, where there are places,
        ``distance`` (float64).

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If rows are invalid, and ``options.invalid`` is ``"raise"``: an impossible time, an infinite
        coordinate, a latitude or longitude out of range.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning
    """
    check_report(report)
    arguments = CausalityArguments(
        condition, cause_time=cause_time, effect_time=effect_time, cause_place=cause_place,
        effect_place=effect_place, by=by, cause_columns=cause_columns, effect_columns=effect_columns,
        how=how, emit=emit, options=options,
    )  # fmt: skip
    tables = [
        _table(side, given, [*times, *names_of_coordinates(place), *arguments.keys, *payload])
        for side, given, times, place, payload in zip(
            CAUSE_AND_EFFECT, (causes, effects), arguments.times, arguments.places,
            arguments.payload, strict=True,
        )
    ]  # fmt: skip
    job = TableCausality(tables[0], tables[1], arguments)
    found = pa.Table.from_batches(job.batches(), schema=job.schema)
    assert job.summary is not None
    tell(job.summary, report)
    return found


def clusters(
    events: Any,
    condition: CausalityCondition,
    *,
    time: str | Sequence[str] = "time",
    place: Place = (),
    by: str | Sequence[str] = (),
    columns: str | Sequence[str] = ("id",),
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
) -> pa.Table:
    """Find which events of a table are connected by pairs that meet a condition, in this process.

    Of two events the earlier is the cause, and of simultaneous ones the one in the lower row. Two
    events are of one cluster where a chain of pairs leads from one to the other, in either direction.

    Parameters
    ----------
    events : pa.Table, or whatever offers Arrow's C stream (``__arrow_c_stream__``)
    condition : CausalityCondition
    time, place
        As `cause_time` and `cause_place` of `causality_tables`.
    by : str or sequence of str
        Columns that must be equal: a cluster has one value of each.
    columns : str or sequence of str
        Columns to hand out.
    options : CorrelateOptions
        Of these, units, tick, ``invalid``, ``left_longest`` and ``threads`` count here.
    report : JoinReport, optional
        Is told what the rows were.

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
    arguments = ClusterArguments(condition, time, place, by, columns, options)
    names = [*names_of_coordinates(arguments.coordinates), *names_of(by), *names_of(columns)]
    table = _table(EVENT, events, [*time_names(EVENT, arguments.time), *names])
    found, summary = cluster_table(table, arguments)
    tell(summary, report)
    return found


def _table(side: str, given: Any, names: Sequence[str]) -> pa.Table:
    if not offers_arrow(given):
        raise SchemaError(
            f"{side}s must be a table that offers Arrow's C stream, such as those of pyarrow, pandas,"
            f" Polars and DuckDB; found {type(given).__name__}"
        )
    return arrow_table(side, given, list(dict.fromkeys(names)))
