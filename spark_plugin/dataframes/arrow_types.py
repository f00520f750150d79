"""Types of Spark in Arrow: PySpark asks for the zone of timestamps since 4.2, and took UTC before."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

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
