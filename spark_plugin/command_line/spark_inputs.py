"""Inputs as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import DataError
from coincide.units import NANOSECONDS_PER_UNIT
from spark_plugin.command_line.input_checks import (
    check_for_spark,
    has_plain_subfolders,
    path_columns,
)
from spark_plugin.command_line.problems import Problem
from spark_plugin.dataframes.arrow_types import carried_type, spark_type
from spark_plugin.dataframes.columns import decode, quoted, with_file_name
from spark_plugin.ways.files.footers import read_footers
from spark_plugin.worker.files.credentials import NOT_FOR_SPARK, holds_settings
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.source import Source, reading

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

_GLOB_CHARACTERS = str.maketrans({character: "\\" + character for character in "\\{}[]*?,"})
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def spark_frame(
    spark: SparkSession,
    given: ArrowInput,
    columns: list[str],
    types: Mapping[str, pa.DataType] | None = None,
) -> DataFrame:
    """One input as a DataFrame.

    Parameters
    ----------
    spark : SparkSession
    given : ArrowInput
    columns : list of str
        The columns that will be needed.
    types : mapping of str to pa.DataType or None
        For columns of which no file tells the type.

    Raises
    ------
    Problem, CoincideError
        If the input cannot be read or lacks a column; for URIs Spark finds out itself.
    """
    check_for_spark(given, columns)
    if given.source.file_format == "parquet":
        return with_file_name(_parquet(spark, given, columns, types or {}), columns)
    return _arrow(spark, given, columns, types or {})


def _paths(source: Source) -> list[str]:
    """As Spark wants them: no character read as a glob, no file system other than this one's."""
    if source.is_uri:
        return [source.text]
    return ["file://" + path.translate(_GLOB_CHARACTERS) for path in source.paths]


def _parquet(
    spark: SparkSession, given: ArrowInput, columns: list[str], types: Mapping[str, pa.DataType]
) -> DataFrame:
    source = given.source
    if source.is_uri:
        if holds_settings(source.text):
            raise Problem(f"{source.side}: {source.text} {NOT_FOR_SPARK}")
        return spark.read.parquet(*_paths(source))
    # Spark has no nanoseconds: it reads such columns as integers, if it is told to.
    spark.conf.set(_NANOS_AS_LONG, "true")
    subfolders = str(has_plain_subfolders(source)).lower()
    frame = spark.read.option("recursiveFileLookup", subfolders).parquet(*_paths(source))
    told = given.told(columns)
    _refuse_beyond_microseconds(given, told)
    unknown = [
        field for field in given.typed(columns, types) if field.type != told.field(field.name).type
    ]
    changed = {
        f.name: _microseconds(source.side, f.name, f.type)
        for f in told
        if _is_fine(f.type) or pa.types.is_duration(f.type)
    } | {field.name: _nothing(source.side, field) for field in unknown}
    # Spark Connect refuses to change no column.
    return frame.withColumns(changed) if changed else frame


def _refuse_beyond_microseconds(given: ArrowInput, needed: pa.Schema) -> None:
    from spark_plugin.ways.files.dataframe_checks import refuse_beyond_microseconds

    own = path_columns(given.source)
    coarse = [
        field.name
        for field in needed
        if pa.types.is_timestamp(field.type) and field.type.unit in ("s", "ms")
        if field.name not in own
    ]
    if coarse:
        files = given.source.found
        refuse_beyond_microseconds(files, read_footers(files, coarse), coarse, "use --engine local")


def _nothing(side: str, field: pa.Field) -> Column:
    """Spark would take a column without a type for integers."""
    from pyspark.sql import functions as F

    return F.lit(None).cast(_spark_kind(side, field.with_type(carried_type(field.type))))


def _is_fine(kind: pa.DataType) -> bool:
    return (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns"


def _microseconds(side: str, name: str, kind: pa.DataType) -> Column:
    """Nanoseconds as a timestamp, or integers as a duration; an error where that would lose time."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    value = F.col(quoted(name))
    if kind.unit != "ns":
        whole = f"({quoted(name)} * {NANOSECONDS_PER_UNIT[kind.unit] // 1000}L)"
        return F.expr(decode(whole, T.DayTimeIntervalType()))
    refused = F.raise_error(F.lit(_too_fine(side, name))).cast("bigint")
    micros = F.when(value % 1000 == 0, F.expr(f"{quoted(name)} div 1000")).when(
        value.isNotNull(), refused
    )
    if pa.types.is_duration(kind):
        return micros * F.expr(decode("1L", T.DayTimeIntervalType()))
    instant = F.timestamp_micros(micros)
    return instant if kind.tz is not None else instant.cast("timestamp_ntz")


def _too_fine(side: str, name: str) -> str:
    return (
        f"{side}.{name} has times finer than 1 us, which Spark cannot hold; use --engine local"
        " --unit ns, or round them"
    )


def _arrow(
    spark: SparkSession, given: ArrowInput, columns: list[str], types: Mapping[str, pa.DataType]
) -> DataFrame:
    from pyspark.sql import types as T

    side = given.source.side
    table = given.table(columns, types)
    schema = pa.schema([field.with_type(carried_type(field.type)) for field in table.schema])
    struct = T.StructType([T.StructField(field.name, _spark_kind(side, field)) for field in schema])
    for field in table.schema:
        if _is_fine(field.type) and pc.any(pc.not_equal(_rest(table[field.name]), 0)).as_py():
            raise DataError(_too_fine(side, field.name))
    with reading(given.source):
        table = table.cast(pa.schema([field.with_nullable(True) for field in schema]))
    return spark.createDataFrame(table, schema=struct)


def _rest(column: pa.ChunkedArray) -> pa.ChunkedArray:
    ticks = column.cast(pa.int64())
    return pc.subtract(ticks, pc.multiply(pc.divide(ticks, 1000), 1000))


def _spark_kind(side: str, field: pa.Field) -> DataType:
    """Spark's type for a column; timestamps without a zone stay wall-clock times."""
    kind = spark_type(field.type)
    if kind is None:
        raise Problem(
            f"{side}.{field.name} is {field.type}, which Spark cannot take over; cast it, or use"
            " --engine local"
        )
    return kind
