"""How CSV is read: one set of rules, for PyArrow and for Spark, so that both read the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as csv

if TYPE_CHECKING:
    from pyspark.sql import types as spark

_FIRST_BLOCK_BYTES = 16 << 20
"""The types of the columns come from this much of the first file."""

SPARK_OPTIONS = {
    "header": "true",
    "mode": "FAILFAST",
    "enforceSchema": "false",  # compare the header of every file with the schema
    "escape": '"',
    "nullValue": "",
    "dateFormat": "yyyy-MM-dd",
    # A fraction finer than a microsecond does not parse: Spark would cut it off otherwise.
    "timestampFormat": "yyyy-MM-dd['T'][ ][HH][:mm][:ss][.SSSSSS][XXX][XX][X]",
    "timestampNTZFormat": "yyyy-MM-dd['T'][ ][HH][:mm][:ss][.SSSSSS]",
    "timeZone": "UTC",
}


def csv_schema(stream: pa.NativeFile, nanoseconds: bool) -> pa.Schema:
    """Names and types of the columns, from the beginning of a file.

    Parameters
    ----------
    stream : pa.NativeFile
        The first file, decompressed.
    nanoseconds : bool
        Keep timestamps in nanoseconds; otherwise they are microseconds, like Spark's.
    """
    options = csv.ReadOptions(block_size=_FIRST_BLOCK_BYTES)
    reader = csv.open_csv(stream, read_options=options, convert_options=_convert())
    return pa.schema([field.with_type(_plain(field.type, nanoseconds)) for field in reader.schema])


def csv_table(stream: pa.NativeFile, schema: pa.Schema, columns: list[str]) -> pa.Table:
    """Some columns of one file. A value that does not fit its type is an error."""
    convert = _convert(include_columns=columns, column_types=schema)
    return csv.read_csv(stream, convert_options=convert)


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The schema of `csv_schema` in Spark's types."""
    from pyspark.sql import types

    kinds = {
        pa.int64(): types.LongType(),
        pa.float64(): types.DoubleType(),
        pa.bool_(): types.BooleanType(),
        pa.date32(): types.DateType(),
        pa.timestamp("us"): types.TimestampNTZType(),
        pa.timestamp("us", "UTC"): types.TimestampType(),
    }
    text = types.StringType()
    return types.StructType(
        [types.StructField(field.name, kinds.get(field.type, text)) for field in schema]
    )


def _convert(**more: object) -> csv.ConvertOptions:
    return csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=True,
        true_values=["true", "True", "TRUE"], false_values=["false", "False", "FALSE"], **more,
    )  # fmt: skip


def _plain(kind: pa.DataType, nanoseconds: bool) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns" if nanoseconds else "us", kind.tz)
    if kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32()):
        return kind
    return pa.string()
