"""How much Spark gives its Python workers at once, and jobs side by side while one waits for the driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.util import inheritable_thread_target

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
_logged: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""What sessions were logged."""


def advise_batch_size(spark: SparkSession, *, are_narrow: bool) -> None:
    """Say once a session, at level INFO, which settings would be faster."""
    # Only in place of Spark's default number of rows: any other was chosen by somebody.
    records = _setting(spark, SETTING)
    if records == SPARKS_DEFAULT:
        _tell(spark, SETTING, records, "%s would make joins of many rows faster", BETTER)
    if are_narrow and bounds_batch_bytes(spark):
        _tell(
            spark, BYTES_SETTING, _setting(spark, BYTES_SETTING),
            "Spark computes the size of a batch after each of its rows. %s avoids that, and makes"
            " joins of narrow rows faster", UNBOUNDED,
        )  # fmt: skip


def _tell(spark: SparkSession, setting: str, value: str, advice: str, better: str) -> None:
    logged = _logged.setdefault(spark, set())
    if setting not in logged:
        logged.add(setting)
        _log.info(f"correlate: %s is %s. {advice}", setting, value, better)


def bounds_batch_bytes(spark: SparkSession) -> bool:
    """Whether rows of any size come in batches of bounded size: Spark 4.1 has a bound of 64 MiB."""
    size = bytes_of(_setting(spark, BYTES_SETTING))
    return size is not None and 0 < size <= _MOST_BYTES


def _setting(spark: SparkSession, name: str) -> str:
    """A setting, or Spark's default, which it tells only those who name no other; empty if it has none."""
    try:
        return spark.conf.get(name) or ""
    except PySparkException:
        return ""


_Found = TypeVar("_Found")


def at_once(spark: SparkSession, jobs: Sequence[Callable[[], _Found]]) -> list[_Found]:
    """What each job gives, the first run here, others in threads; of several errors that of the first."""
    own, *others = jobs
    if not others:
        return [own()]
    inheriting: Any = inheritable_thread_target(spark)
    # With PYSPARK_PIN_THREAD=false it gives the session back: such threads have no properties.
    if inheriting is not spark:
        others = [inheriting(job) for job in others]
    with ThreadPoolExecutor(len(others)) as pool:
        started = [pool.submit(job) for job in others]
        return [own(), *(each.result() for each in started)]
