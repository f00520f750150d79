"""Queries for a Spark job: of a DataFrame or of any table, collected and checked."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from coincide.errors import SchemaError
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.arrow_types import arrow_schema, carried_type, spark_type
from spark_plugin.dataframes.columns import quoted
from spark_plugin.dataframes.named_fields import field_of
from spark_plugin.dataframes.shipping import ship
from spark_plugin.worker.borders.arguments import QUERIES, BorderArguments
from spark_plugin.worker.borders.queries import (
    Queries,
    query_columns,
    query_table,
    read_queries,
)
from spark_plugin.worker.borders.shipped import ShippedQueries, as_table

_TOO_LARGE = "the table of queries", "ask fewer queries at once, each time of all readings"


@dataclass(frozen=True, eq=False)
class CollectedQueries:
    """Queries in this process.

    Parameters
    ----------
    queries : Queries
    ids : pa.Array
        Theirs, as they cross.
    kind : DataType
        Of their ids on Spark.
    """

    queries: Queries
    ids: pa.Array
    kind: T.DataType

    @classmethod
    def of(cls, given: Any, arguments: BorderArguments) -> CollectedQueries:
        """Collect queries, of a DataFrame by a job.

        Raises
        ------
        SchemaError
            If a column is missing or of a type that cannot serve.
        DataError
            If a query makes no sense.
        """
        if isinstance(given, DataFrame):
            table = _collected(given, arguments)
            kind = field_of(given, QUERIES, arguments.query).dataType
        else:
            table = query_table(given, arguments)
            kind = _spark_kind(table.schema.field(arguments.query))
        queries = read_queries(table, arguments)
        return cls(queries, _on_the_wire(arguments.query, queries.ids, kind), kind)

    def shipped(self, spark: SparkSession) -> ShippedQueries:
        """Send them to every worker.

        Raises
        ------
        ConditionError
            If they are too many for a plan of Spark Connect.
        """
        table = as_table(self.queries, self.ids)
        return ShippedQueries(uuid.uuid4().hex, ship(table, spark, *_TOO_LARGE))


def _collected(frame: DataFrame, arguments: BorderArguments) -> pa.Table:
    names = arguments.query_columns(frame.columns)
    fields = [field_of(frame, QUERIES, name) for name in names]
    frames.check_key(QUERIES, fields[0])
    # Before a job runs for them.
    query_columns(arrow_schema(T.StructType(fields)), arguments)
    with spark_errors_as_ours():
        return frame.selectExpr(*(quoted(field.name) for field in fields)).toArrow()


def _spark_kind(field: pa.Field) -> T.DataType:
    kind = spark_type(carried_type(field.type))
    if kind is None:
        raise SchemaError(
            f"{QUERIES}.{field.name} is {field.type}, which Spark cannot take over; cast it to a string or"
            " an integer"
        )
    return kind


def _on_the_wire(name: str, ids: pa.Array, kind: T.DataType) -> pa.Array:
    """Ids as `columns.encode` has them."""
    try:
        carried = ids.cast(carried_type(ids.type))
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"{QUERIES}.{name} is {ids.type}, and Spark cannot take all of it over ({error}); cast it to a"
            " string"
        ) from None
    if not frames.crosses_as_int64(kind):
        return carried
    return (carried.cast(pa.int32()) if pa.types.is_date32(carried.type) else carried).cast(
        pa.int64()
    )
