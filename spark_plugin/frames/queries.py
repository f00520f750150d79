"""Queries that run while a join is planned, and tables that are sent to every worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from coincide.model.errors import ConditionError
from spark_plugin.cluster.connect import MESSAGE_SETTING, context_of, message_bytes
from spark_plugin.tasks.wire import Shipment, as_stream

_log = logging.getLogger("coincide")
_queries: ContextVar[list[str] | None] = ContextVar("queries of planning", default=None)


def note_query(what: str) -> None:
    """Note that a query runs, and what it computes. Call it in the thread that plans."""
    queries = _queries.get()
    if queries is not None:
        queries.append(what)


@contextmanager
def queries_logged() -> Iterator[None]:
    """Tell the log of the queries that run inside, if any do."""
    queries: list[str] = []
    token = _queries.set(queries)
    try:
        yield
    finally:
        _queries.reset(token)
    if queries:
        times = "once" if len(queries) == 1 else f"{len(queries)} times"
        _log.info("correlate: planning ran Spark %s: %s", times, ", ".join(queries))


_PLAN_BYTES = 1 << 20
"""Room for all else in a plan."""


def ship(table: pa.Table, spark: SparkSession, what: str, instead: str) -> Shipment:
    """Send a table; without broadcasts (Spark Connect) it travels with the plan."""
    content = as_stream(table)
    context = context_of(spark)
    if context is not None:
        return Shipment(context.broadcast(content))
    most = message_bytes(spark)
    if most is not None and len(content) + _PLAN_BYTES > most:
        raise ConditionError(
            f"{what} has {len(content):,} bytes. Spark Connect sends it with the plan, and the"
            f" server takes {most:,} ({MESSAGE_SETTING}). Start the server with more, or"
            f" {instead}."
        )
    return Shipment(content)


class LateBroadcast:
    """A broadcast that is looked up when its value is needed; `find` gives it."""

    # Spark opens the processor of a stream a first time in a process that has no broadcasts.

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def __reduce__(self) -> tuple[type[LateBroadcast], tuple[Callable[[], Any]]]:
        find, number = self._find().__reduce__()  # Spark notes who needs it
        return LateBroadcast, (partial(find, *number),)

    @property
    def value(self) -> bytes:
        """Its value."""
        found: bytes = self._find().value
        return found
