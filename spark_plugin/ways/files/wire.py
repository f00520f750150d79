"""Columns read from files in the types in which they cross to the JVM, as columns of DataFrames do."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from coincide.engine.events.schemas import narrow_type
from coincide.model.errors import DataError, SchemaError
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import arrow_type


def spark_type(name: str, kind: pa.DataType) -> T.DataType:
    """The Spark type of a column of a file."""
    try:
        return from_arrow_type(kind, prefer_timestamp_ntz=True)
    except (PySparkException, ValueError) as error:
        raise SchemaError(
            f"the column {name!r} is {kind}, which Spark does not know; leave it out, or cast it"
        ) from error


def wire_kind(kind: T.DataType) -> pa.DataType:
    """The Arrow type in which a column of a Spark type crosses."""
    return arrow_type(frames.wire_type(kind))


def on_the_wire(name: str, column: pa.Array, kind: T.DataType) -> pa.Array:
    """A column of a file as it crosses."""
    wire = wire_kind(kind)
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        try:
            microseconds = column.cast(pa.timestamp("us", column.type.tz))
        except pa.ArrowInvalid as error:
            raise DataError(
                f"the column {name!r} has timestamps finer than Spark's microseconds; round them"
            ) from error
        return microseconds.view(pa.int64())
    if isinstance(kind, T.DateType):
        column = column.cast(pa.date32()).view(pa.int32())
    # Wide ones go as they are: each batch of what is handed out is cast to what Spark takes.
    return column if narrow_type(column.type) == wire else column.cast(wire)
