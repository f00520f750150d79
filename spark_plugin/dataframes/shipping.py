"""Sending a table to every worker, on any kind of session."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from coincide.errors import ConditionError
from spark_plugin.cluster.connect import MESSAGE_SETTING, context_of, message_bytes
from spark_plugin.worker.wire.shipment import Shipment, as_stream

_PLAN_BYTES = 1 << 20
"""Room for all else in a plan."""


def ship(table: pa.Table, spark: SparkSession, what: str, instead: str) -> Shipment:
    """Send a table; without broadcasts (Spark Connect) it travels with the plan.

    Parameters
    ----------
    table : pa.Table
    spark : SparkSession
    what, instead : str
        What it is, and what to do where it is too large, in words.

    Raises
    ------
    ConditionError
        If a plan cannot hold it.
    """
    content = as_stream(table)
    context = context_of(spark)
    if context is not None:
        return Shipment(context.broadcast(content))
    most = message_bytes(spark)
    if most is not None and len(content) + _PLAN_BYTES > most:
        raise ConditionError(
            f"{what} takes {len(content):,} bytes; on Spark Connect it travels with the plan, of"
            f" which the server takes {most:,} ({MESSAGE_SETTING}): start the server with more, or"
            f" {instead}"
        )
    return Shipment(content)
