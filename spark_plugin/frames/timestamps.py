"""The timestamps and places of a side in SQL, for each model, and the closed form of two intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.corrected import (
    CorrectedColumns,
    check_clock_key,
    common_kind,
    is_text_key,
)
from coincide.engine.events.histograms import HistogramColumns
from coincide.engine.events.intervals import AroundColumns, AroundRowsColumns, IntervalColumns
from coincide.engine.events.places import Coordinate
from coincide.engine.events.schemas import check_label, check_width
from coincide.engine.events.span_ends import OPEN_END
from coincide.engine.events.spans import SpanColumns
from coincide.engine.events.time_columns import TimeColumn, TimeScale
from coincide.engine.events.timestamp_names import TimestampNames, lasting
from coincide.engine.events.timestamps import TimestampColumns
from coincide.model.condition import Window
from coincide.model.errors import SchemaError
from coincide.model.probability import DECISION_SLACK
from coincide.model.units import TIME_LIMIT
from spark_plugin.frames.columns import (
    NOT_FINITE,
    arrow_type,
    can_be_key,
    can_be_label,
    encode,
    field_of,
    literal,
    quoted,
    spark_time_column,
    ticks,
)
from spark_plugin.frames.float_ticks import reads_decimals, with_ticks
from spark_plugin.tasks.wire import place_names

_ID, _TIME = "coincide_template_id", "coincide_time"
_NUMBER, _OFFSET = "coincide_template", "coincide_offset"
_BEFORE, _AFTER = "coincide_before", "coincide_after"
_LOW, _HIGH = "coincide_low", "coincide_high"
_LENGTH, _LEAN = "coincide_length", "coincide_lean"
_KEY, _START, _END, _UNTIL = "coincide_key", "coincide_start", "coincide_end", "coincide_until"
_DRIFT, _WIDTH, _NEXT = "coincide_drift", "coincide_width", "_next"


@dataclass(frozen=True)
class TimestampSql:
    """What makes events of rows."""

    low: str
    high: str
    extras: tuple[str, ...]
    shape: str
    midpoint: str
    faults: tuple[tuple[str, str], ...]
    places: tuple[tuple[str, str], ...] = ()
    is_somewhere: str = "true"
    shortest: int = 0  # Length of a valid event at least, ticks
    lacking: tuple[tuple[str, str], ...] = ()  # Which rows lack what, over the source


def side_sql(columns: TimestampColumns) -> TimestampSql:
    """The timestamps and places of a side."""
    times, names = timestamp_sql(columns), place_names(len(columns.coordinates.given))
    if not names:
        return times
    missing = " OR ".join(f"isnan({name})" for name in names)
    # To Spark, NaN is above all else.
    known = [f"nanvl({name}, {_double_sql(0.0)})" for name in names]
    limits = zip(known, columns.coordinates.limits, strict=True)
    far = " OR ".join(f"abs({name}) > {_double_sql(limit)}" for name, limit in limits)
    return replace(
        times,
        # A missing coordinate comes last: it does not excuse an impossible time.
        faults=(*times.faults, ("place", far), ("null", missing)),
        places=tuple(zip(names, map(_value, columns.coordinates.given), strict=True)),
        is_somewhere=f"NOT ({missing} OR {far})",
    )


def _value(each: Coordinate) -> str:
    if isinstance(each, str):
        return f"coalesce(CAST({quoted(each)} AS DOUBLE), double('NaN'))"
    return _double_sql(each)


def _double_sql(number: float) -> str:
    return f"double('{number!r}')".replace("'inf'", "'Infinity'").replace("'-inf'", "'-Infinity'")


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
    if isinstance(columns, SpanColumns):
        own, its = columns.clocks
        low = low if own is None else _LOW
        high = _end_of_span(columns, high) if its is None else _HIGH
    not_finite = literal(NOT_FINITE)
    shortest = columns.shortest
    too_short = f"high - low < {literal(shortest)}" if shortest else "low > high"
    too_long = "false" if columns.longest is None else f"high - low > {literal(columns.longest)}"
    faults = (
        ("null", "low IS NULL OR high IS NULL"),
        # Not IN: the RAPIDS Accelerator has it for lists of literals only.
        (finiteness(columns), f"low = {not_finite} OR high = {not_finite}"),
        ("range", f"NOT ({in_range('low')} AND {in_range('high')})"),
        (columns.disorder, too_short),
        ("length", too_long),
    )
    lacking = _lacking(columns, low) if isinstance(columns, SpanColumns) else ()
    return TimestampSql(
        low, high, (), "high - low", "low + high", faults, shortest=shortest, lacking=lacking
    )


def _lacking(columns: SpanColumns, low: str) -> tuple[tuple[str, str], ...]:
    """Spans without a time that have a start: as `SpanColumns.read` has it."""
    lost = [
        _is_lost(clock, name)
        for name, clock in zip((_LOW, _HIGH), columns.clocks, strict=True)
        if clock is not None
    ]
    found = [("no_segment", " OR ".join(lost))] if lost else []
    if not columns.open_ends:
        end = columns.of_ends[1].column.name
        found.append(("no_end", f"{low} IS NOT NULL AND {quoted(end)} IS NULL"))
    return tuple(found)


def _is_lost(columns: CorrectedColumns, time: str) -> str:
    """SQL of whether a stamp has no time by its clock."""
    return f"({quoted(columns.scale.column.name)} IS NOT NULL AND {time} IS NULL)"


def _end_of_span(columns: SpanColumns, end: str) -> str:
    """SQL of when a span ends, of the column of its end or of its length: as `SpanEnds` has it."""
    if columns.length is not None:
        until = f"least(greatest({_LOW} + {_AFTER}, {literal(-TIME_LIMIT)}), {literal(TIME_LIMIT)})"
        # What is out of range stays, and says what is wrong.
        end = (
            f"CASE WHEN NOT ({in_range(_AFTER)}) THEN {_AFTER} WHEN NOT ({in_range(_LOW)}) THEN {_LOW}"
            f" WHEN {_AFTER} IS NOT NULL THEN {until} END"
        )
    return f"coalesce({end}, {literal(OPEN_END)})" if columns.open_ends else end


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
    return _about_stamps(columns, *(_moved(literal(end)) for end in columns.beyond))


@timestamp_sql.register
def _(columns: CorrectedColumns) -> TimestampSql:
    found = _about_stamps(columns, _LOW, _HIGH)
    return replace(found, lacking=(("no_segment", _is_lost(columns, _LOW)),))


def _about_stamps(columns: TimestampColumns, low: str, high: str) -> TimestampSql:
    """The SQL of intervals that are made of stamps."""
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
    """SQL of a time that is so much later; one that is out of range stays, and says what is wrong."""
    later = f"greatest({_TIME} + {ticks}, {literal(-TIME_LIMIT)})"
    return f"IF({in_range(_TIME)}, {later}, {_TIME})"


@singledispatch
def with_timestamps(columns: TimestampColumns, source: DataFrame) -> DataFrame:
    """The source, with what the SQL of its timestamps needs in addition to its columns."""
    return source


@with_timestamps.register
def _(columns: IntervalColumns, source: DataFrame) -> DataFrame:
    made = _made(columns)
    if made:
        _check_free(source, *made)
        source = with_ticks(source, made)
    if isinstance(columns, SpanColumns):
        for name, clock in zip((_LOW, _HIGH), columns.clocks, strict=True):
            source = source if clock is None else _with_end(source, columns, clock, name)
    return source


def _with_end(
    source: DataFrame, columns: SpanColumns, clock: CorrectedColumns, name: str
) -> DataFrame:
    """The source with the starts or the ends of spans put right: `PutRight`."""
    _check_free(source, name)
    found, (low, high), lines = _on_lines(clock, source)
    goes_on = name == _HIGH and columns.open_ends
    known = f"CASE WHEN {low} = {high} THEN {low} END"
    end = f"IF({_TIME} IS NULL, {literal(OPEN_END)}, {known})" if goes_on else known
    return found.selectExpr("*", f"{end} AS {name}").drop(_TIME, *lines)


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


@with_timestamps.register
def _(columns: CorrectedColumns, source: DataFrame) -> DataFrame:
    _check_free(source, _LOW, _HIGH)
    found, (low, high), lines = _on_lines(columns, source)
    return found.selectExpr("*", f"{low} AS {_LOW}", f"{high} AS {_HIGH}").drop(_TIME, *lines)


def _on_lines(
    columns: CorrectedColumns, source: DataFrame
) -> tuple[DataFrame, tuple[str, str], list[str]]:
    """The source with `_TIME` and its lines, SQL of the earliest and the latest time, columns of lines."""
    keys, is_clock = [], []
    for i, ((name, _), key) in enumerate(zip(columns.given.by, columns.keys, strict=True)):
        side, kind = (
            columns.scale.column.side,
            field_of(source, columns.scale.column.side, name).dataType,
        )
        common = common_kind(side, name, arrow_type(kind), key.type)
        is_text = is_text_key(common)
        own = f"CAST({quoted(name)} AS STRING)" if is_text else encode(quoted(name), kind)
        is_clock.append(f"{own} = {_KEY}{i}")
        keys.append(key.cast(pa.string()) if is_text else _on_wire(key.cast(common)))
    lines = _lines(columns, keys)
    _check_free(source, _TIME, *lines.column_names)
    timed = with_ticks(source, {_TIME: columns.scale})
    # A time has one segment at most, the last that starts before it.
    is_line = " AND ".join([*is_clock, f"{_TIME} >= {_START}", f"{_TIME} < {_UNTIL}"])
    frame = source.sparkSession.createDataFrame(lines)
    joined = timed.join(F.broadcast(frame), F.expr(is_line), "left")
    own, later = (
        f"{_TIME} + CAST(rint({_OFFSET}{one} + {_DRIFT}{one} * ({_TIME} - {_START}{one})) AS BIGINT)"
        for one in ("", _NEXT)
    )
    ends = []
    for choice, sign in (("least", "-"), ("greatest", "+")):
        first, second = f"({own} {sign} {_WIDTH})", f"({later} {sign} {_WIDTH}{_NEXT})"
        found = f"{choice}({first}, IF({_TIME} > {_END}, {second}, {first}))"
        # What is out of range stays, and says what is wrong; what has no line is null.
        ends.append(
            f"CASE WHEN NOT ({in_range(_TIME)}) THEN {_TIME} WHEN {_START} IS NOT NULL THEN"
            f" greatest({found}, {literal(-TIME_LIMIT)}) END"
        )
    return joined, (ends[0], ends[1]), lines.column_names


def _on_wire(key: pa.Array) -> pa.Array:
    """Values as `encode` has those of a column: null for what Spark does not have, such as nanoseconds."""
    kind = key.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        micros = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")
        whole = key.cast(micros, safe=False)
        is_whole = pc.equal(whole.cast(kind, safe=False), key)
        return pc.if_else(is_whole, whole.view(pa.int64()), None)
    if pa.types.is_date32(kind):
        return key.view(pa.int32()).cast(pa.int64())
    return key.cast(pa.int64()) if pa.types.is_boolean(kind) else key


def _lines(columns: CorrectedColumns, keys: list[pa.Array]) -> pa.Table:
    """The segments of clocks: where each begins to hold and ceases to, its line, and that of the next."""
    ends, starts, stops, offsets, drifts, widths = columns.segments
    is_last = np.isin(np.arange(1, starts.size + 1), ends)
    later = {name: np.append(of[1:], of[:1]) for name, of in (
        (_START, starts), (_OFFSET, offsets), (_DRIFT, drifts), (_WIDTH, widths),
    )}  # fmt: skip
    return pa.table({
        **{f"{_KEY}{i}": key for i, key in enumerate(keys)},
        _START: starts, _OFFSET: offsets, _DRIFT: drifts, _WIDTH: widths, _END: stops,
        _UNTIL: np.where(is_last, stops + 1, later[_START]),
        **{f"{name}{_NEXT}": of for name, of in later.items()},
    })  # fmt: skip


def _of_its_type(scale: TimeScale, source: DataFrame) -> TimeScale:
    """How half-widths become ticks, whose column may be a float of 32 bits or a decimal."""
    field = field_of(source, scale.column.side, scale.column.name)
    if isinstance(field.dataType, (T.FloatType, T.DecimalType)):
        return replace(scale, column=spark_time_column(scale.column.side, field))
    return scale


def _made(columns: IntervalColumns) -> dict[str, TimeScale]:
    """Ends of intervals that need columns of their own, each once."""
    lower, upper = columns.scales
    if isinstance(columns, SpanColumns):
        own, its = columns.clocks
        if columns.length is not None:
            return {**({_LOW: lower} if own is None else {}), _AFTER: columns.length}
        if own is not None or its is not None:
            plain = ((_LOW, lower, own), (_HIGH, upper, its))
            return {name: scale for name, scale, clock in plain if clock is None}
    ends = {_LOW: lower} if lower == upper else {_LOW: lower, _HIGH: upper}
    return {name: scale for name, scale in ends.items() if reads_decimals(scale)}


def _check_free(source: DataFrame, *names: str) -> None:
    taken = [name for name in names if name in map(str.lower, source.columns)]
    if taken:
        raise SchemaError(f"the column name {taken[0]!r} is reserved. Rename the column.")


def finiteness(columns: TimestampColumns) -> str:
    """What is wrong with a time that is `NOT_FINITE`."""
    floats = any(scale.column.family == "float" for scale in read_scales(columns))
    return "not_finite" if floats else "range"


def read_scales(columns: TimestampColumns) -> tuple[TimeScale, ...]:
    """How the columns of times, and of how long events last, become ticks."""
    return columns.of_ends if isinstance(columns, SpanColumns) else columns.scales


def in_range(name: str) -> str:
    """SQL of whether a column is within the limits of time."""
    return f"{name} > {literal(-TIME_LIMIT)} AND {name} < {literal(TIME_LIMIT)}"


def spark_clocks(side: str, names: TimestampNames, source: DataFrame) -> list[TimeColumn]:
    """What the clocks of a side mean as times: `coincide.engine.events.timestamp_names.arrow_clocks`."""
    for name in names.templates:
        kind = field_of(source, side, name).dataType
        check_label(side, name, kind.simpleString(), can_be_label(kind))
    for name in names.clock_keys:
        kind = field_of(source, side, name).dataType
        check_clock_key(side, name, kind.simpleString(), can_be_key(kind))
    for name in names.widths:
        kind = field_of(source, side, name).dataType
        check_width(side, name, kind.simpleString(), isinstance(kind, T.NumericType))
    found = [spark_time_column(side, field_of(source, side, name)) for name in names.clocks]
    if names.duration is None:
        return found
    return lasting(found, spark_time_column(side, field_of(source, side, names.duration)))


def window_probability(s: Column, l1: Column, l2: Column, lo: int, hi: int) -> Column:
    """P(lo <= T_right - T_left <= hi), double: `coincide.model.probability.window_probability`."""
    first, last = F.lit(lo), F.lit(hi)
    exact = F.when((s >= first) & (s <= last), 1.0).otherwise(0.0)
    found = _trapezoid_cdf(last - s, l1, l2) - _trapezoid_cdf(first - s, l1, l2)
    return F.when((l1 == 0) & (l2 == 0), exact).otherwise(found)


def reaches(probability: Column, window: Window) -> Column:
    """Whether a probability qualifies: `coincide.model.probability.qualifies`."""
    return probability >= F.lit(window.confidence - DECISION_SLACK)


def _trapezoid_cdf(z: Column, l1: Column, l2: Column) -> Column:
    # Branches are evaluated in order: where u could overflow, or a divisor be 0, an earlier one is met.
    u, v = (z + l2), (l1 - z)
    shorter, longer = F.least(l1, l2), F.greatest(l1, l2)
    area = _double(l1) * _double(l2)
    return (
        F.when(z <= -l2, 0.0)
        .when(z >= l1, 1.0)
        .when(u <= shorter, F.lit(0.5) * (_double(u) * _double(u)) / area)
        .when(u <= longer, _double(F.lit(2) * u - shorter) / (F.lit(2.0) * _double(longer)))
        .otherwise(F.lit(1.0) - F.lit(0.5) * (_double(v) * _double(v)) / area)
    )


def _double(whole: Column) -> Column:
    return whole.cast("double")
