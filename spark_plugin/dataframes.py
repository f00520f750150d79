"""Spark columns: schema checks, times to ticks, and every other column to int64 and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from event_model.errors import SchemaError
from event_model.units import TIME_LIMIT
from spark_plugin.tables import check_name
from spark_plugin.time_columns import NOT_FINITE, TimeColumn, TimeScale

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_NTZ_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_MICROSECOND = "INTERVAL '0.000001' SECOND"
_TOO_LARGE = 2**63 - 1


def field_of(frame: DataFrame, side: str, name: str) -> T.StructField:
    """A top-level field by name.

    Raises
    ------
    SchemaError
        If it is missing or stands twice.
    """
    check_name(side, name, frame.columns)
    alike = [other for other in frame.columns if other.lower() == name.lower()]
    if len(alike) > 1 and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        raise SchemaError(
            f"{side} has columns that Spark cannot tell apart: {', '.join(alike)}; rename all but one"
        )
    return next(field for field in frame.schema.fields if field.name == name)


def column(frame: DataFrame, name: str) -> Column:
    """A top-level column by name, dots and all."""
    return frame["`" + name.replace("`", "``") + "`"]


def spark_time_column(side: str, field: T.StructField) -> TimeColumn:
    """What a Spark column means as a time.

    Raises
    ------
    SchemaError
        If the type is no time.
    """
    kind = field.dataType
    if isinstance(kind, T.TimestampType):
        return TimeColumn(side, field.name, "timestamp", 1000)
    if isinstance(kind, T.TimestampNTZType):
        return TimeColumn(side, field.name, "timestamp_ntz", 1000)
    if isinstance(kind, _INTEGERS):
        return TimeColumn(side, field.name, "integer")
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return TimeColumn(side, field.name, "float")
    raise SchemaError(
        f"{side}.{field.name} is {kind.simpleString()}; a time column must be a timestamp, an integer or"
        " a float. Cast it"
    )


def can_be_key(kind: T.DataType) -> bool:
    """Whether equality on a Spark type is exact and means what it says."""
    inexact = (T.FloatType, T.DoubleType, T.ArrayType, T.MapType, T.StructType, T.NullType)
    collated = isinstance(kind, T.StringType) and kind != T.StringType()
    return not isinstance(kind, (*inexact, T.VariantType)) and not collated


def ticks(value: Column, scale: TimeScale) -> Column:
    """A time column in ticks: bigint, null where the value is null.

    What is no time comes out of range: `NOT_FINITE` for NaN and infinities, the largest bigint for
    values whose ticks a bigint cannot hold. Guarded, since ANSI mode would raise on their overflow.
    """
    if scale.column.family == "float":
        number = value.cast("double")
        scaled = F.rint(number * float(scale.factor))
        return (
            F.when(F.abs(scaled) < float(TIME_LIMIT), scaled.cast("bigint"))
            .when(F.isnan(number) | (F.abs(number) == float("inf")), NOT_FINITE)
            .when(number.isNotNull(), _TOO_LARGE)
        )
    whole = to_int64(value, scale.column.family)
    if scale.factor == 1:
        return whole
    fits = whole.between(1 - scale.limit, scale.limit - 1)
    return F.when(fits, whole * int(scale.factor)).when(whole.isNotNull(), _TOO_LARGE)


def to_int64(value: Column, family: str) -> Column:
    """A timestamp in microseconds, or an integer, as bigint; the session time zone has no say."""
    if family == "timestamp":
        return F.unix_micros(value)
    if family == "timestamp_ntz":
        # Differences of wall-clock times are taken without a zone: no daylight saving in between.
        return F.call_function("div", value - F.expr(_NTZ_EPOCH), F.expr(_MICROSECOND))
    return value.cast("bigint")


def crosses_as_int64(kind: T.DataType) -> bool:
    """Whether a column of this type goes through the Python worker as bigint."""
    return _codec(kind) is not None


def wire_type(kind: T.DataType) -> T.DataType:
    """The type in which a column goes through the Python worker.

    Raises
    ------
    SchemaError
        If Spark's Arrow cannot carry it.
    """
    if crosses_as_int64(kind):
        return T.LongType()
    try:
        to_arrow_type(kind)
    except PySparkException as error:
        raise SchemaError(
            f"columns of type {kind.simpleString()} cannot go through Spark's Arrow; cast them, for"
            " example to a string"
        ) from error
    return kind


def can_be_hashed(kind: T.DataType) -> bool:
    """Whether Spark's hash functions take a type."""
    if isinstance(kind, T.ArrayType):
        return can_be_hashed(kind.elementType)
    if isinstance(kind, T.StructType):
        return all(can_be_hashed(field.dataType) for field in kind.fields)
    return not isinstance(kind, (T.MapType, T.VariantType))


def encode(value: Column, kind: T.DataType) -> Column:
    """A column in its wire type."""
    codec = _codec(kind)
    return value if codec is None else codec[0](value)


def decode(value: Column, kind: T.DataType) -> Column:
    """A wire column in its own type."""
    codec = _codec(kind)
    return value if codec is None else codec[1](value)


_Codec = tuple[Callable[[Column], Column], Callable[[Column], Column]]


def _codec(kind: T.DataType) -> _Codec | None:
    if isinstance(kind, T.LongType):
        return (lambda c: c), (lambda c: c)
    if isinstance(kind, (*_INTEGERS, T.BooleanType)):
        return (lambda c: c.cast("bigint")), (lambda c: c.cast(kind))
    if isinstance(kind, T.DateType):
        return (lambda c: F.unix_date(c).cast("bigint")), (
            lambda c: F.date_from_unix_date(c.cast("int"))
        )
    if isinstance(kind, T.TimestampType):
        return F.unix_micros, F.timestamp_micros
    if isinstance(kind, T.TimestampNTZType):
        return (lambda c: to_int64(c, "timestamp_ntz")), (
            lambda c: F.expr(_NTZ_EPOCH) + c * F.expr(_MICROSECOND)
        )
    return None


def key_kinds(frame: DataFrame, side: str, by: Sequence[str]) -> list[tuple[str, bool]]:
    """For each key its type in words and whether it can be a key."""
    kinds = [field_of(frame, side, name).dataType for name in by]
    return [(kind.simpleString(), can_be_key(kind)) for kind in kinds]
