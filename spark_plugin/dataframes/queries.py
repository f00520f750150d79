"""Queries that run while a join is planned, told in one line of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_log = logging.getLogger("coincide")
_told: ContextVar[list[str] | None] = ContextVar("queries of planning", default=None)


def tell_query(what: str) -> None:
    """Note that a query runs, and what it computes. Call it in the thread that plans."""
    told = _told.get()
    if told is not None:
        told.append(what)


@contextmanager
def queries_told() -> Iterator[None]:
    """Tell the log of the queries that run inside, if any do."""
    told: list[str] = []
    token = _told.set(told)
    try:
        yield
    finally:
        _told.reset(token)
    if told:
        times = "once" if len(told) == 1 else f"{len(told)} times"
        _log.info("correlate: planning ran Spark %s: %s", times, ", ".join(told))
