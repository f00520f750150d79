"""The timestamps of a side in SQL, for each model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.errors import SchemaError
from coincide.units import TIME_LIMIT
from spark_plugin.dataframes.columns import (
    NOT_FINITE,
    can_be_label,
    literal,
    quoted,
    spark_time_column,
    ticks,
)
from spark_plugin.dataframes.float_ticks import reads_decimals, with_ticks
from spark_plugin.dataframes.named_fields import field_of
from spark_plugin.worker.arrow.schemas import check_label, check_width
from spark_plugin.worker.arrow.time_columns import TimeColumn, TimeScale
from spark_plugin.worker.timestamps.around import AroundColumns
from spark_plugin.worker.timestamps.around_rows import AroundRowsColumns
from spark_plugin.worker.timestamps.columns import TimestampColumns
from spark_plugin.worker.timestamps.histograms import HistogramColumns
from spark_plugin.worker.timestamps.intervals import IntervalColumns
from spark_plugin.worker.timestamps.names import TimestampNames

_ID, _TIME = "coincide_template_id", "coincide_time"
_NUMBER, _OFFSET = "coincide_template", "coincide_offset"
_BEFORE, _AFTER = "coincide_before", "coincide_after"
_LOW, _HIGH = "coincide_low", "coincide_high"
_LENGTH, _LEAN = "coincide_length", "coincide_lean"


@dataclass(frozen=True)
class TimestampSql:
    """What makes events of rows.

    Parameters
    ----------
    low, high : str
        Where supports begin and end, over the source: bigint, ticks, as `EventFrame.columns` has them.
    extras : tuple of str
        Columns of the source that `shape` and `midpoint` need.
    shape : str
        Shapes of events that can match, over ``low``, ``high`` and the extras: bigint.
    midpoint : str
        Their keys, half ticks, likewise.
    faults : tuple of (str, str)
        What rows can be that are no events, ``"null"`` or one of `INVALID_REASONS`, and the condition on
        ``low`` and ``high`` for it. The first one that is met counts.
    places : tuple of (str, str)
        Further columns with the coordinates of an event: names, and SQL over the source of a double, NaN
        where one is missing.
    is_somewhere : str
        Condition on these that an event meets which can match.
    """

    low: str
    high: str
    extras: tuple[str, ...]
    shape: str
    midpoint: str
    faults: tuple[tuple[str, str], ...]
    places: tuple[tuple[str, str], ...] = ()
    is_somewhere: str = "true"


@singledispatch
def timestamp_sql(columns: TimestampColumns) -> TimestampSql:
    """The timestamps of a side; each model registers its own."""
    raise NotImplementedError(columns)


@timestamp_sql.register
def _(columns: IntervalColumns) -> TimestampSql:
    made = _made(columns)
    low, high = (
        next((name for name, own in made.items() if own == scale), ticks(scale))
        for scale in columns.scales
    )
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
    return TimestampSql(low, high, (), "high - low", "low + high", faults)


@timestamp_sql.register
def _(columns: HistogramColumns) -> TimestampSql:
    high = _moved(f"coalesce({_OFFSET}, 0L)")
    faults = (
        ("null", "high IS NULL"),
        (finiteness(columns), f"high = {literal(NOT_FINITE)}"),
        ("range", f"NOT ({in_range('high')})"),
        ("template", "low IS NULL"),
        ("range", f"NOT ({in_range('low')})"),
    )
    midpoint = f"2L * high - {_LEAN}"
    return TimestampSql(f"{high} - {_LENGTH}", high, (_NUMBER, _LEAN), _NUMBER, midpoint, faults)


@timestamp_sql.register
def _(columns: AroundColumns) -> TimestampSql:
    low, high = (_moved(literal(end)) for end in columns.beyond)
    faults = (
        ("null", "high IS NULL"),
        (finiteness(columns), f"high = {literal(NOT_FINITE)}"),
        ("range", f"NOT ({in_range('low')} AND {in_range('high')})"),
    )
    return TimestampSql(low, high, (), "high - low", "low + high", faults)


@timestamp_sql.register
def _(columns: AroundRowsColumns) -> TimestampSql:
    wrong = f"NOT (coalesce({_BEFORE}, -1L) >= 0L AND coalesce({_AFTER}, -1L) >= 0L)"
    for width in (_BEFORE, _AFTER):
        wrong += f" OR {width} >= {literal(TIME_LIMIT)}"
    # By their values the ends say what is wrong: with the time, high does; with half-widths, low.
    early = f"greatest({_TIME} - {_BEFORE}, {literal(-TIME_LIMIT)})"
    late = f"least({_TIME} + {_AFTER}, {literal(TIME_LIMIT)})"
    low = (
        f"CASE WHEN {in_range(_TIME)} THEN IF({wrong}, {literal(TIME_LIMIT)}, {early})"
        f" WHEN {_TIME} IS NOT NULL THEN {literal(-TIME_LIMIT)} END"
    )
    high = f"IF(({in_range(_TIME)}) AND NOT ({wrong}), {late}, {_TIME})"
    too_long = "false" if columns.longest is None else f"high - low > {literal(columns.longest)}"
    faults = (
        ("null", "high IS NULL"),
        (finiteness(columns), f"high = {literal(NOT_FINITE)}"),
        ("width", f"low = {literal(TIME_LIMIT)}"),
        ("range", f"NOT ({in_range('low')} AND {in_range('high')})"),
        ("length", too_long),
    )
    return TimestampSql(low, high, (), "high - low", "low + high", faults)


def _moved(ticks: str) -> str:
    """SQL of a time that is so much later: out of range it says by its value what is wrong with it.

    So it stays as it is there, and nothing else comes to lie at `NOT_FINITE`.
    """
    later = f"greatest({_TIME} + {ticks}, {literal(-TIME_LIMIT)})"
    return f"IF({in_range(_TIME)}, {later}, {_TIME})"


@singledispatch
def with_timestamps(columns: TimestampColumns, source: DataFrame) -> DataFrame:
    """The source, with what the SQL of its timestamps needs besides its columns."""
    return source


@with_timestamps.register
def _(columns: IntervalColumns, source: DataFrame) -> DataFrame:
    made = _made(columns)
    if not made:
        return source
    _check_free(source, *made)
    return with_ticks(source, made)


@with_timestamps.register
def _(columns: HistogramColumns, source: DataFrame) -> DataFrame:
    table = columns.table
    templates = {
        _ID: pa.array(table.ids, pa.string()),
        _NUMBER: pa.array(np.arange(len(table))),
        _OFFSET: pa.array(table.offsets),
        _LENGTH: pa.array(table.lengths),
        _LEAN: pa.array(table.leans),
    }
    _check_free(source, _TIME, *templates)
    frame = source.sparkSession.createDataFrame(pa.table(templates))
    label = f"CAST({quoted(columns.template)} AS STRING)"
    # As text, and in order of bytes, whatever the collation of the column.
    joined = source.join(F.broadcast(frame), F.expr(f"{label} = {_ID}"), "left")
    return with_ticks(joined.drop(_ID), {_TIME: columns.scale})


@with_timestamps.register
def _(columns: AroundColumns, source: DataFrame) -> DataFrame:
    _check_free(source, _TIME)
    return with_ticks(source, {_TIME: columns.scale})


@with_timestamps.register
def _(columns: AroundRowsColumns, source: DataFrame) -> DataFrame:
    widths = (_of_its_type(scale, source) for scale in (columns.before, columns.after))
    made = dict(zip((_TIME, _BEFORE, _AFTER), (columns.scale, *widths), strict=True))
    _check_free(source, *made)
    return with_ticks(source, made)


def _of_its_type(scale: TimeScale, source: DataFrame) -> TimeScale:
    """How half-widths become ticks, whose column may be a float of 32 bits or a decimal."""
    field = field_of(source, scale.column.side, scale.column.name)
    if isinstance(field.dataType, (T.FloatType, T.DecimalType)):
        return replace(scale, column=spark_time_column(scale.column.side, field))
    return scale


def _made(columns: IntervalColumns) -> dict[str, TimeScale]:
    """Ends of intervals that need columns of their own, each once."""
    lower, upper = columns.scales
    ends = {_LOW: lower} if lower == upper else {_LOW: lower, _HIGH: upper}
    return {name: scale for name, scale in ends.items() if reads_decimals(scale)}


def _check_free(source: DataFrame, *names: str) -> None:
    taken = [name for name in names if name in map(str.lower, source.columns)]
    if taken:
        raise SchemaError(f"a column is called {taken[0]!r}, which is needed here; rename it")


def finiteness(columns: TimestampColumns) -> str:
    """What is wrong with a time that is `NOT_FINITE`."""
    floats = any(scale.column.family == "float" for scale in columns.scales)
    return "not_finite" if floats else "range"


def in_range(name: str) -> str:
    """SQL of whether a column is within the limits of time."""
    return f"{name} > {literal(-TIME_LIMIT)} AND {name} < {literal(TIME_LIMIT)}"


def spark_clocks(side: str, names: TimestampNames, source: DataFrame) -> list[TimeColumn]:
    """What the clocks of a side mean as times: `spark_plugin.worker.timestamps.names.arrow_clocks`."""
    for name in names.labels:
        kind = field_of(source, side, name).dataType
        check_label(side, name, kind.simpleString(), can_be_label(kind))
    for name in names.widths:
        kind = field_of(source, side, name).dataType
        check_width(side, name, kind.simpleString(), isinstance(kind, T.NumericType))
    return [spark_time_column(side, field_of(source, side, name)) for name in names.clocks]
