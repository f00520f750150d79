"""Types of Spark in Arrow, and of Arrow on Spark.

PySpark asks for the zone of timestamps since 4.2, and took UTC before.
"""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema, to_arrow_type

from spark_plugin.worker.arrow.schemas import plain_type

_LONGEST_DECIMAL = 38

_ZONE: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
)


def arrow_type(kind: T.DataType) -> pa.DataType:
    """The Arrow type of a Spark type.

    Raises
    ------
    PySparkException
        If there is none.
    """
    return to_arrow_type(kind, **_ZONE)


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema; raises as `arrow_type`."""
    return to_arrow_schema(schema, **_ZONE)


def carried_type(kind: pa.DataType) -> pa.DataType:
    """The type of Arrow in which Spark takes a column over."""
    kind = plain_type(kind)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_decimal(kind) and kind.precision <= _LONGEST_DECIMAL:
        return pa.decimal128(kind.precision, kind.scale)
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    return wider.get(kind, pa.int64() if kind == pa.uint64() else kind)


def spark_type(kind: pa.DataType) -> T.DataType | None:
    """Spark's type for a column of a `carried_type`; None where it has none.

    Timestamps without a zone stay wall-clock times.
    """
    try:
        found = from_arrow_type(kind, prefer_timestamp_ntz=True)
        arrow_type(found)  # finds decimals that are too long
    except (PySparkException, ValueError):
        return None
    return found
