"""Inputs as Spark DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from event_model.errors import DataError
from spark_plugin.command_line.arrow_inputs import ArrowInput
from spark_plugin.command_line.csv_files import SPARK_OPTIONS, spark_schema
from spark_plugin.command_line.inputs import Source, reading
from spark_plugin.command_line.problems import Problem
from spark_plugin.dataframes import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_GLOB_CHARACTERS = str.maketrans({character: "\\" + character for character in "\\{}[]*?,"})
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def spark_frame(spark: SparkSession, source: Source, columns: list[str]) -> DataFrame:
    """One input as a DataFrame.

    Parameters
    ----------
    spark : SparkSession
    source : Source
    columns : list of str
        The columns that will be needed.

    Raises
    ------
    Problem, CoincideError
        If the input cannot be read or lacks a column; for URIs Spark finds out itself.
    """
    if source.file_format == "parquet":
        return _parquet(spark, source, columns)
    if source.is_uri:
        raise Problem(
            f"{source.side}: Spark reads {source.file_format} from this machine only; copy"
            f" {source.text} here, or make it Parquet"
        )
    if source.file_format == "csv":
        return _csv(spark, source, columns)
    return _arrow(spark, source, columns)


def _paths(source: Source) -> list[str]:
    """As Spark wants them: no character read as a glob, no file system other than this one's."""
    if source.is_uri:
        return [source.text]
    return ["file://" + path.translate(_GLOB_CHARACTERS) for path in source.paths]


def _parquet(spark: SparkSession, source: Source, columns: list[str]) -> DataFrame:
    if source.is_uri:
        return spark.read.parquet(*_paths(source))
    given = ArrowInput(source)
    given.check_columns(columns)
    fine = {field.name: field.type for field in given.schema if _is_fine(field.type)}
    if not fine:
        return spark.read.parquet(*_paths(source))
    # Spark has no nanoseconds: it reads such columns as integers, if it is told to.
    spark.conf.set(_NANOS_AS_LONG, "true")
    frame = spark.read.parquet(*_paths(source))
    return frame.withColumns(
        {
            name: _microseconds(source.side, name, kind)
            for name, kind in fine.items()
            if name in columns
        }
    )


def _is_fine(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit == "ns"


def _microseconds(side: str, name: str, kind: pa.DataType) -> Column:
    """A column of nanoseconds since 1970 as a timestamp; an error where that would lose time."""
    from pyspark.sql import functions as F

    value = F.col(quoted(name))
    refused = F.raise_error(F.lit(_too_fine(side, name))).cast("bigint")
    micros = F.when(value % 1000 == 0, F.expr(f"{quoted(name)} div 1000")).when(
        value.isNotNull(), refused
    )
    instant = F.timestamp_micros(micros)
    return instant if kind.tz is not None else instant.cast("timestamp_ntz")


def _too_fine(side: str, name: str) -> str:
    return (
        f"{side}.{name} has timestamps finer than 1 us, which Spark cannot hold; use --engine local"
        " --unit ns, or round them"
    )


def _csv(spark: SparkSession, source: Source, columns: list[str]) -> DataFrame:
    given = ArrowInput(source)
    given.check_columns(columns)
    files = ["file://" + file.translate(_GLOB_CHARACTERS) for file in source.files]
    return spark.read.options(**SPARK_OPTIONS).schema(spark_schema(given.schema)).csv(files)


def _arrow(spark: SparkSession, source: Source, columns: list[str]) -> DataFrame:
    table = ArrowInput(source).table(columns)
    fields = [_spark_field(source.side, field, table.column(field.name)) for field in table.schema]
    with reading(source):
        table = table.cast(pa.schema(fields))
    return spark.createDataFrame(table, schema=_struct(table.schema))


def _spark_field(side: str, field: pa.Field, column: pa.ChunkedArray) -> pa.Field:
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        if _is_fine(kind) and pc.any(pc.not_equal(_rest(column), 0)).as_py():
            raise DataError(_too_fine(side, field.name))
        kind = pa.timestamp("us", kind.tz)
    return field.with_type(_signed(kind)).with_nullable(True)


def _rest(column: pa.ChunkedArray) -> pa.ChunkedArray:
    ticks = column.cast(pa.int64())
    return pc.subtract(ticks, pc.multiply(pc.divide(ticks, 1000), 1000))


def _signed(kind: pa.DataType) -> pa.DataType:
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    return wider.get(kind, pa.int64() if kind == pa.uint64() else kind)


def _struct(schema: pa.Schema):  # type: ignore[no-untyped-def]
    """Spark's types for a schema; timestamps without a zone stay wall-clock times."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
