"""Spark columns: schema checks, times to ticks, and every other column to int64 and back."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, SupportsIndex
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema, to_arrow_type

from coincide.engine.events.schemas import check_name
from coincide.engine.events.ticks import (
    FAR,
    HALF,
    SINGLE_BITS,
    SINGLE_DIGITS,
    SINGLE_WHOLE,
)
from coincide.engine.events.time_columns import TimeColumn, TimeScale
from coincide.engine.files.finding import FILENAME, lacks_name
from coincide.model.decimal_ticks import MOST_PLACES
from coincide.model.errors import ConditionError, SchemaError
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_MOST_PLACES = 18
"""Most places of decimals that are times: their product with a day's nanoseconds has 38 digits at most."""
_EPOCH = "DATE '1970-01-01'"
_NTZ_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_MICROSECOND = "INTERVAL '0.000001' SECOND"
NOT_FINITE = -TIME_LIMIT - 1
"""Ticks of a NaN or an infinity, as no other value has them."""


class MidnightType(T.DateType):
    """Dates that are times: on the wire microseconds, as other times are."""


def quoted(name: str) -> str:
    """A column's name in SQL, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def with_file_name(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """What was read of files, with the name of the file of each row if that is asked for and no column."""
    if not lacks_name(names, frame.columns):
        return frame
    from pyspark.sql import functions as F

    # Spark tells the name as a URI has it, in which a plus is no blank.
    name = F.expr("url_decode(replace(_metadata.file_name, '+', '%2B'))")
    return frame.withColumn(FILENAME, name)


def spark_time_column(side: str, field: T.StructField) -> TimeColumn:
    """What a Spark column means as a time."""
    kind = field.dataType
    if isinstance(kind, T.TimestampType):
        return TimeColumn(side, field.name, "timestamp", 1000)
    if isinstance(kind, T.TimestampNTZType):
        return TimeColumn(side, field.name, "timestamp_ntz", 1000)
    if isinstance(kind, T.DecimalType) and kind.scale <= _MOST_PLACES:
        return TimeColumn(side, field.name, "float", is_decimal=True)
    if isinstance(kind, T.DateType):
        return TimeColumn(side, field.name, "timestamp_ntz", NANOSECONDS_PER_UNIT["d"])
    if isinstance(kind, T.DayTimeIntervalType):
        return TimeColumn(side, field.name, "duration", 1000)
    if isinstance(kind, _INTEGERS):
        return TimeColumn(side, field.name, "integer")
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return TimeColumn(side, field.name, "float", is_single=isinstance(kind, T.FloatType))
    raise SchemaError(
        f"{side}.{field.name} must be a timestamp, a date, an interval of days and seconds, an"
        f" integer, a float or a decimal of at most {_MOST_PLACES} places, as it is a time column"
        f" (found {kind.simpleString()}). Cast it, for example with to_timestamp."
    )


def check_microseconds(scale: TimeScale) -> None:
    """Refuse to count timestamps and durations of the output finer than Spark has them."""
    if scale.column.nanoseconds and scale.tick.unit != "us":
        raise ConditionError(
            f"Spark counts its timestamps and intervals in us (found {scale.tick.unit}). Remove"
            " unit and tick, or use the function for tables in one process."
        )


def can_be_key(kind: T.DataType) -> bool:
    """Whether equality on a Spark type is exact and means what it says."""
    inexact = (T.FloatType, T.DoubleType, T.ArrayType, T.MapType, T.StructType, T.NullType)
    collated = isinstance(kind, T.StringType) and kind != T.StringType()
    return not isinstance(kind, (*inexact, T.VariantType)) and not collated


def check_key(side: str, field: T.StructField) -> None:
    """Refuse a column of ids that cannot be compared exactly, or that Spark's Arrow cannot carry."""
    kind = field.dataType
    if not can_be_key(kind):
        raise SchemaError(
            f"{side}.{field.name} has a type that cannot be compared exactly (found"
            f" {kind.simpleString()}). Cast it to a string or an integer."
        )
    wire_type(kind)


def can_be_label(kind: T.DataType) -> bool:
    """Whether values of a Spark type name things: texts, and whole numbers as their digits."""
    return isinstance(kind, (*_INTEGERS, T.StringType))


def ticks(scale: TimeScale, near: str | None = None) -> str:
    """A time column in ticks, bigint; `near` has those of floats that are below 2^62 ticks."""
    # What is no time comes out just out of range: differences cannot overflow, which ANSI mode raises.
    value = quoted(scale.column.name)
    if scale.column.family == "float":
        number, scaled = f"CAST({value} AS DOUBLE)", _scaled(scale)
        near = near or f"CAST(rint({scaled}) AS BIGINT)"
        infinite = f"abs({number}) >= double('Infinity')"  # to Spark, NaN is above all else
        end = literal(TIME_LIMIT)
        # A decimal is whole first, and then divided.
        is_whole_first = scale.column.is_decimal and scale.factor.numerator == 1
        size = number if is_whole_first else scaled
        held = f"greatest({literal(-TIME_LIMIT)}, least({end}, {near}))"
        return (
            f"CASE WHEN abs({size}) < {FAR!r}D THEN {held}"
            f" WHEN {infinite} THEN {literal(NOT_FINITE)} WHEN {value} IS NOT NULL THEN {end} END"
        )
    whole = _whole(value, scale.column)
    if scale.factor == 1:
        end, begin = literal(TIME_LIMIT), literal(-TIME_LIMIT)
        beyond = f"WHEN {whole} >= {end} THEN {end} WHEN {whole} <= {begin} THEN {begin}"
        return f"CASE {beyond} ELSE {whole} END"
    fits = f"{whole} BETWEEN {literal(1 - scale.limit)} AND {literal(scale.limit - 1)}"
    scaled = f"{whole} * {literal(int(scale.factor))}"
    return f"CASE WHEN {fits} THEN {scaled} WHEN {value} IS NOT NULL THEN {literal(TIME_LIMIT)} END"


def rounding(scale: TimeScale) -> str:
    """By how many ticks a float time is changed, as `tables.rounding` has it: double, for valid times."""
    if scale.column.family != "float":
        return "0D"
    scaled = _scaled(scale)
    change = f"abs({scaled} - rint({scaled}))"
    least = f"greatest(abs({scaled}) * {scale.epsilon!r}D, {scale.noise!r}D)"
    found = f"CASE WHEN {change} > {least} THEN {change} ELSE 0D END"
    if not scale.column.is_single:
        return found
    coarse = f"({_scaled(scale, _single_step(scale.column.name))} / 2D)"
    return f"CASE WHEN {coarse} > {HALF!r}D THEN {coarse} ELSE {found} END"


def _single_step(name: str) -> str:
    """As `coincide.engine.events.ticks` has it: double."""
    number = f"CAST({quoted(name)} AS DOUBLE)"
    size = f"abs({number})"
    places = f"least({SINGLE_DIGITS - 1} - floor(log10({size})), {MOST_PLACES}L)"
    power = f"pow(10D, abs({places}))"
    short = (
        f"IF({places} >= 0, rint({number} * {power}) / {power}, rint({number} / {power}) * {power})"
    )
    # The logarithm of a power of two may be a little too small.
    step = f"pow(2D, floor(log2({size}) + 1e-9D) - {SINGLE_BITS})"
    return (
        f"CASE WHEN {size} <= {SINGLE_WHOLE!r}D AND {number} = rint({number}) THEN 0D"
        f" WHEN CAST(CAST({short} AS FLOAT) AS DOUBLE) = {number} THEN 0D ELSE {step} END"
    )


def _scaled(scale: TimeScale, number: str | None = None) -> str:
    """A number, or a float column, in ticks: `coincide.engine.events.ticks.scaled_floats`, to the bit."""
    number = number or f"CAST({quoted(scale.column.name)} AS DOUBLE)"
    up, down = scale.factor.numerator, scale.factor.denominator
    return f"({number} * {float(up)!r}D)" if down == 1 else f"({number} / {float(down)!r}D)"


def literal(number: SupportsIndex) -> str:
    """A bigint in SQL."""
    return f"{number.__index__()}L"


def text(words: str) -> str:
    """A string in SQL."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _whole(value: str, column: TimeColumn) -> str:
    """A time that is no float as it is stored: days, microseconds, or what an integer counts."""
    if column.nanoseconds is None:
        return f"CAST({value} AS BIGINT)"
    if column.nanoseconds == NANOSECONDS_PER_UNIT["d"]:
        kind: T.DataType = T.DateType()
    elif column.family == "duration":
        kind = T.DayTimeIntervalType()
    else:
        kind = T.TimestampType() if column.family == "timestamp" else T.TimestampNTZType()
    return encode(value, kind)


def crosses_as_int64(kind: T.DataType) -> bool:
    """Whether a column of this type goes through the Python worker as bigint."""
    return _codec(kind) is not None


def wire_type(kind: T.DataType) -> T.DataType:
    """The type in which a column goes through the Python worker."""
    if crosses_as_int64(kind):
        return T.LongType()
    try:
        arrow_type(kind)
    except PySparkException as error:
        raise SchemaError(
            f"columns of type {kind.simpleString()} cannot pass through Spark's Arrow. Cast them,"
            " for example to a string."
        ) from error
    return kind


def wire_bytes(value: str, kind: T.DataType) -> int | str | None:
    """Bytes of a value on the wire: a number, SQL where it is each row's own; None: it is not known."""
    if isinstance(kind, (T.StringType, T.BinaryType)):
        return f"coalesce(octet_length({value}), 0)"
    fixed = (T.FloatType, T.DoubleType, T.NullType)
    if crosses_as_int64(kind) or isinstance(kind, fixed):
        return 8
    return 16 if isinstance(kind, T.DecimalType) else None


def can_be_hashed(kind: T.DataType) -> bool:
    """Whether Spark's hash functions take a type."""
    if isinstance(kind, T.ArrayType):
        return can_be_hashed(kind.elementType)
    if isinstance(kind, T.StructType):
        return all(can_be_hashed(field.dataType) for field in kind.fields)
    return not isinstance(kind, (T.MapType, T.VariantType))


def can_be_ordered(kind: T.DataType) -> bool:
    """Whether rows are put in order by a column: of nested ones not all have an order."""
    nested = (T.ArrayType, T.StructType, T.MapType, T.VariantType, T.NullType)
    return not isinstance(kind, nested)


def encode(value: str, kind: T.DataType) -> str:
    """A column in its wire type, in SQL."""
    codec = _codec(kind)
    return value if codec is None else codec[0].format(value)


def decode(value: str, kind: T.DataType) -> str:
    """A wire column in its own type, in SQL."""
    codec = _codec(kind)
    return value if codec is None else codec[1].format(value)


def _codec(kind: T.DataType) -> tuple[str, str] | None:
    """SQL that takes a value to a bigint and back; None for types that cross as they are."""
    if isinstance(kind, T.LongType):
        return "{}", "{}"
    if isinstance(kind, (*_INTEGERS, T.BooleanType)):
        return "CAST({} AS BIGINT)", f"CAST({{}} AS {kind.simpleString()})"
    if isinstance(kind, MidnightType):
        encoded, decoded = _codec(T.TimestampNTZType()) or ("", "")
        return encoded, f"CAST({decoded} AS DATE)"
    if isinstance(kind, T.DateType):
        # Not unix_date and its inverse: the RAPIDS Accelerator has these, and they cost the same.
        return f"CAST(datediff({{}}, {_EPOCH}) AS BIGINT)", f"date_add({_EPOCH}, CAST({{}} AS INT))"
    if isinstance(kind, T.TimestampType):
        return "unix_micros({})", "timestamp_micros({})"
    if isinstance(kind, T.TimestampNTZType):
        # Differences of wall-clock times are taken without a zone: no daylight saving in between.
        micros = f"(({{}} - {_NTZ_EPOCH}) div {_MICROSECOND})"
        return micros, f"({_NTZ_EPOCH} + {{}} * {_MICROSECOND})"
    if isinstance(kind, T.DayTimeIntervalType):
        return f"({{}} div {_MICROSECOND})", f"({{}} * {_MICROSECOND})"
    return None


def key_kinds(frame: DataFrame, side: str, by: Sequence[str]) -> list[tuple[str, bool]]:
    """For each key its type in words and whether it can be a key."""
    kinds = [field_of(frame, side, name).dataType for name in by]
    return [(kind.simpleString(), can_be_key(kind)) for kind in kinds]


_fields: WeakKeyDictionary[DataFrame, dict[str, list[T.StructField]]] = WeakKeyDictionary()


def field_of(frame: DataFrame, side: str, name: str) -> T.StructField:
    """A top-level field by name."""
    alike = _fields_of(frame).get(name.lower(), [])
    named = [field for field in alike if field.name == name]
    if len(named) != 1:
        check_name(side, name, frame.columns)
    if "${" in name:
        raise SchemaError(
            f"{side} has the column {name!r}, and Spark reads ${{ in a name as a variable. Rename"
            " the column."
        )
    if len(alike) > 1 and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        raise SchemaError(
            f"Spark cannot tell some columns of {side} apart, whose names differ only in case"
            f" (found {', '.join(field.name for field in alike)}). Rename all but one, or set"
            " spark.sql.caseSensitive to true."
        )
    return named[0]


def _fields_of(frame: DataFrame) -> dict[str, list[T.StructField]]:
    """All fields by their names in lower case: of many columns each is looked for."""
    known = _fields.get(frame)
    if known is None:
        known = {}
        for each in frame.schema.fields:
            known.setdefault(each.name.lower(), []).append(each)
        _fields[frame] = known  # whole, as other threads see it
    return known


_ZONE: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
)


def arrow_type(kind: T.DataType) -> pa.DataType:
    """The Arrow type of a Spark type."""
    return to_arrow_type(kind, **_ZONE)


def arrow_or_null(kind: T.DataType) -> pa.DataType:
    """The Arrow type of a Spark type; of one that Arrow has none for, null."""
    try:
        return arrow_type(kind)
    except PySparkException:
        return pa.null()


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema; raises as `arrow_type`."""
    return to_arrow_schema(schema, **_ZONE)


def spark_type(name: str, kind: pa.DataType) -> T.DataType:
    """Spark's type for a column of Arrow; timestamps without a zone stay wall-clock times."""
    try:
        found = from_arrow_type(kind, prefer_timestamp_ntz=True)
        arrow_type(found)  # finds decimals that are too long
    except (PySparkException, ValueError) as error:
        raise SchemaError(
            f"the column {name!r} has a type that Spark does not have (found {kind}). Remove it, or"
            " cast it."
        ) from error
    return found


def wire_kind(kind: T.DataType) -> pa.DataType:
    """The Arrow type in which a column of a Spark type crosses."""
    return arrow_type(wire_type(kind))
