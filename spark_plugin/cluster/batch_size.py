"""How much Spark hands to its Python workers at once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.errors import PySparkException

from spark_plugin.cluster.connect import bytes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
SPARKS_DEFAULT = "10000"
BETTER = "100000"
BYTES_SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"
_MOST_BYTES = 1 << 28

_log = logging.getLogger("coincide")
_told: WeakSet[Any] = WeakSet()
"""Sessions that were looked at."""


def advise_batch_size(spark: SparkSession) -> None:
    """Say once a session, at level INFO, that larger batches are faster, if it has Spark's default.

    Sessions that `coincide` starts have the larger one; one that has any other was given it by somebody.
    """
    if spark in _told:
        return
    _told.add(spark)
    if _setting(spark, SETTING) == SPARKS_DEFAULT:
        _log.info(
            "correlate: %s is %s; %s would let joins of many rows take less time",
            SETTING, SPARKS_DEFAULT, BETTER,
        )  # fmt: skip


def bounds_batch_bytes(spark: SparkSession) -> bool:
    """Whether rows of any size come in batches of bounded size.

    Spark 4.1 has a bound of 64 MiB, unless it is told otherwise.
    """
    size = bytes_of(_setting(spark, BYTES_SETTING))
    return size is not None and 0 < size <= _MOST_BYTES


def _setting(spark: SparkSession, name: str) -> str:
    """A setting, or Spark's default, which it tells only those who name no other; empty if it has none."""
    try:
        return spark.conf.get(name) or ""
    except PySparkException:
        return ""
