"""What differs where a session is a client of Spark Connect. Imports no pyspark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


MESSAGE_SETTING = "spark.connect.grpc.maxInboundMessageSize"
"""Setting of the server: most bytes of a message, and so of a plan with all that travels with it."""

_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)i?b?", re.IGNORECASE)
_POWERS = ("", "k", "m", "g", "t", "p")


def context_of(spark: SparkSession) -> SparkContext | None:
    """The session's Spark context; None on Spark Connect, which has none."""
    return getattr(spark, "sparkContext", None)


def message_bytes(spark: SparkSession) -> int | None:
    """Most bytes of a plan that the server takes; None where there is no server."""
    if context_of(spark) is not None:
        return None
    return bytes_of(spark.conf.get(MESSAGE_SETTING) or "")


def bytes_of(setting: str) -> int | None:
    """A size as settings of Spark have it, such as ``"64m"``; None if it is no size."""
    told = _SIZE.fullmatch(setting.strip())
    return int(told[1]) * 1024 ** _POWERS.index(told[2].lower()) if told else None


def parallelism(spark: SparkSession) -> int:
    """Tasks at once; where the session cannot say (Spark Connect), what its settings say."""
    context = context_of(spark)
    if context is not None:
        return max(1, context.defaultParallelism)
    fallback = spark.conf.get("spark.sql.shuffle.partitions", "200") or "200"
    return max(1, int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or fallback))
