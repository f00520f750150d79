"""How much Spark hands to its Python workers at once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from spark_plugin.cluster.connect import bytes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
SPARKS_DEFAULT = "10000"
BETTER = "100000"
BYTES_SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"
UNBOUNDED = "2147483647"
"""The one value of it for which Spark does not compute the size of a batch after each of its rows."""
_MOST_BYTES = 1 << 28

_log = logging.getLogger("coincide")
_told: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""What sessions were told."""


def advise_batch_size(spark: SparkSession, *, are_narrow: bool) -> None:
    """Say once a session, at level INFO, which settings would be faster.

    Of the number of rows only instead of Spark's default: any other was chosen by somebody. Of their bytes
    instead of any bound, each of which costs the same.

    Parameters
    ----------
    spark : SparkSession
    are_narrow : bool
        Whether rows have few bytes each, so that a bound on their number is one on their bytes.
    """
    records = _setting(spark, SETTING)
    if records == SPARKS_DEFAULT:
        _tell(spark, SETTING, records, "%s would let joins of many rows take less time", BETTER)
    if are_narrow and bounds_batch_bytes(spark):
        _tell(
            spark, BYTES_SETTING, _setting(spark, BYTES_SETTING),
            "Spark computes the size of a batch after each row for it, which %s would spare joins of rows"
            " as narrow as these", UNBOUNDED,
        )  # fmt: skip


def _tell(spark: SparkSession, setting: str, value: str, advice: str, better: str) -> None:
    told = _told.setdefault(spark, set())
    if setting not in told:
        told.add(setting)
        _log.info(f"correlate: %s is %s; {advice}", setting, value, better)


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
