"""Clock errors: of DataFrames, and of Arrow tables in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coincide.engine.clocks.arguments import CHANCE, MAX_DRIFT, ClockArguments
from coincide.engine.clocks.tables import clock_error_tables
from coincide.engine.events.keys import Keys
from coincide.engine.reports.join_report import JoinReport
from coincide.model.docstrings import documented
from coincide.model.options import CorrelateOptions
from coincide.model.units import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@documented(clock_error_tables)
def clock_errors(
    left: DataFrame,
    right: DataFrame,
    *,
    max_offset: Duration,
    max_drift: float = MAX_DRIFT,
    by: Keys = (),
    match: Keys = (),
    left_time: str = "time",
    right_time: str = "time",
    chance: float = CHANCE,
    jumps: bool = True,
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
) -> DataFrame:
    """Find how far the clocks of one DataFrame are off those of another, from their events alone.

    The same as `coincide.clock_error_tables`, with the same arguments and the same answer. The events of a
    key are brought to one task, whose memory holds them: about 200 bytes an event. If there are keys, a
    job counts them at once, as `chance` is divided by their number.

    Parameters
    ----------
    left, right : DataFrame
        Events: a column of exact times, key columns.
    max_offset, max_drift, by, match, left_time, right_time, chance, jumps
        As in `coincide.clock_error_tables`.
    options : CorrelateOptions
        As in `coincide.clock_error_tables`. With ``invalid="drop"`` invalid rows are skipped and not
        counted.
    report : JoinReport, optional
        Receives the tick; rows are not counted. Its ``summary()`` warns of limits, after an action.

    Returns
    -------
    DataFrame
        As in `coincide.clock_error_tables`. Rows are in no order. Offsets are day-time intervals where
        times are timestamps, and else doubles.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or a side is streaming.

    Invalid rows that are to be refused fail the job in which the result is computed.

    Warns
    -----
    ClockLimitsWarning
        When the report is asked.
    """
    from spark_plugin.ways.clocks import plan_clocks

    JoinReport.check(report)
    arguments = ClockArguments(
        max_offset=max_offset, max_drift=max_drift, by=by, match=match, left_time=left_time,
        right_time=right_time, chance=chance, jumps=jumps, options=options,
    )  # fmt: skip
    return plan_clocks(left, right, arguments, report)
