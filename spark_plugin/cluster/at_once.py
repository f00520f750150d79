"""Jobs of Spark side by side: while one waits for the driver, the other has the cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.util import inheritable_thread_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Found = TypeVar("_Found")


def at_once(spark: SparkSession, jobs: Sequence[Callable[[], _Found]]) -> list[_Found]:
    """What each job gives: the first runs here, each other in a thread with the properties of this one.

    Returns when all have ended, or raises then: of several errors that of the first job in order.
    """
    own, *others = jobs
    if not others:
        return [own()]
    inheriting: Any = inheritable_thread_target(spark)
    # With PYSPARK_PIN_THREAD=false it gives the session back: such threads have properties of nobody.
    if inheriting is not spark:
        others = [inheriting(job) for job in others]
    with ThreadPoolExecutor(len(others)) as pool:
        started = [pool.submit(job) for job in others]
        return [own(), *(each.result() for each in started)]
