"""The timestamps of a side in SQL, for each model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from coincide.units import TIME_LIMIT
from spark_plugin.dataframes.columns import NOT_FINITE, literal, ticks
from spark_plugin.worker.timestamps.columns import TimestampColumns
from spark_plugin.worker.timestamps.intervals import IntervalColumns


@dataclass(frozen=True)
class TimestampSql:
    """What makes events of rows.

    Parameters
    ----------
    low, high : str
        Where supports begin and end, over the source: bigint, ticks, as `EventFrame.columns` has them.
    shape : str
        Shapes of events that can match, over ``low``, ``high``: bigint.
    midpoint : str
        Their keys, half ticks, likewise.
    faults : tuple of (str, str)
        What rows can be that are no events, ``"null"`` or one of `INVALID_REASONS`, and the condition on
        ``low`` and ``high`` for it. The first one that is met counts.
    """

    low: str
    high: str
    shape: str
    midpoint: str
    faults: tuple[tuple[str, str], ...]


@singledispatch
def timestamp_sql(columns: TimestampColumns) -> TimestampSql:
    """The timestamps of a side; each model registers its own."""
    raise NotImplementedError(columns)


@timestamp_sql.register
def _(columns: IntervalColumns) -> TimestampSql:
    low, high = map(ticks, columns.scales)
    not_finite = literal(NOT_FINITE)
    too_long = "false" if columns.longest is None else f"high - low > {literal(columns.longest)}"
    faults = (
        ("null", "low IS NULL OR high IS NULL"),
        # Not IN: the RAPIDS Accelerator has it for lists of literals only.
        (finiteness(columns), f"low = {not_finite} OR high = {not_finite}"),
        ("range", f"NOT ({in_range('low')} AND {in_range('high')})"),
        ("order", "low > high"),
        ("length", too_long),
    )
    return TimestampSql(low, high, "high - low", "low + high", faults)


def finiteness(columns: TimestampColumns) -> str:
    """What is wrong with a time that is `NOT_FINITE`."""
    floats = any(scale.column.family == "float" for scale in columns.scales)
    return "not_finite" if floats else "range"


def in_range(name: str) -> str:
    """SQL of whether a column is within the limits of time."""
    return f"{name} > {literal(-TIME_LIMIT)} AND {name} < {literal(TIME_LIMIT)}"
