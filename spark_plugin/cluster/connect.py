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
    text = spark.conf.get(MESSAGE_SETTING) or ""
    told = _SIZE.fullmatch(text)
    return int(told[1]) * 1024 ** _POWERS.index(told[2].lower()) if told else None
