"""What the log says of running streams: a silent side that holds the other up, and late rows."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from coincide.model.errors import first_line, several
from spark_plugin.cluster.connect import context_of
from spark_plugin.ways.streaming.packs import AHEAD

_log = logging.getLogger("coincide")
_PATIENCE = 60.0
"""Seconds without a row of one side, while the other has some."""
_PERIOD = 0.5
"""Seconds between two looks."""
_watchers: WeakKeyDictionary[SparkSession, Watcher] = WeakKeyDictionary()


@dataclass(frozen=True)
class Watched:
    """What is watched: an operator, the arguments of each input by name, and whether inputs wait."""

    operator: str
    delays: dict[str, str]
    aheads: dict[str, str]
    waits: bool = False
    cure: str = "idle_after or {}_clock"  # what helps where an input is silent


def watch(spark: SparkSession, name: str, watched: Watched) -> None:
    """Watch what has a name in Spark's progress."""
    if context_of(spark) is None:
        return  # a thread of a client of Spark Connect may keep its process from ending
    watcher = _watchers.get(spark)
    if watcher is None:
        watcher = _watchers[spark] = Watcher()
        # Not a listener: the JVM's thread of each query would open a connection to Python to say that
        # it begins, and keep it, with a thread here, when the query has ended.
        looking = partial(_look_at, weakref.ref(spark), watcher)
        threading.Thread(target=looking, name="coincide-streams", daemon=True).start()
    watcher.names[name] = watched


def _look_at(session: weakref.ref[SparkSession], watcher: Watcher) -> None:
    """Let a watcher look at the queries of a session until that is stopped."""
    while True:
        time.sleep(_PERIOD)
        spark = session()
        if spark is None or spark.sparkContext._jsc is None:
            return
        try:
            watcher.look(spark.streams.active)
        except Exception as error:
            if spark.sparkContext._jsc is not None:
                _log.warning("streams are no longer watched: %s", first_line(error))
            return
        del spark


@dataclass
class _Run:
    """A running stream: when each side had rows last, and what was said of it."""

    last: list[float]
    is_said: list[bool]
    has_late: set[str] = field(default_factory=set)
    has_ahead: set[str] = field(default_factory=set)
    has_too_long: set[str] = field(default_factory=set)


class Watcher:
    """Looks at the queries of a session."""

    def __init__(self) -> None:
        self.names: dict[str, Watched] = {}
        self._runs: dict[tuple[Any, str], _Run] = {}
        self._queries: dict[Any, tuple[StreamingQuery, str]] = {}

    def look(self, active: Sequence[StreamingQuery]) -> None:
        """Look at what is new of queries that run, or have run when it looked last."""
        running = {query.runId: query for query in active}
        for run, query in running.items():
            self._queries.setdefault(run, (query, ""))
        for run, (query, until) in list(self._queries.items()):
            last = query.lastProgress
            if last is not None and last["timestamp"] > until:
                self._queries[run] = query, last["timestamp"]
                for each in filter(None, query.recentProgress):
                    if each["timestamp"] > until:
                        self.take(run, each["observedMetrics"])
            if run not in running:
                self._forget(run)

    def take(self, run: Any, metrics: Mapping[str, Any]) -> None:
        """Look at the rows of a micro-batch."""
        now = time.monotonic()
        for name, watched in self.names.items():
            late = metrics.get(f"{name}_late")
            if late is None:
                continue
            count = len(watched.delays)
            found = self._runs.setdefault((run, name), _Run([now] * count, [False] * count))
            _say_late(found, watched, late)
            _say_ahead(found, watched, late)
            sides = [metrics.get(f"{name}_{side}") for side in watched.delays]
            _say_too_long(found, watched, sides)
            counts = [row["rows"] for row in sides if row is not None]
            if watched.waits and len(counts) == len(sides):
                _say_silent(found, watched, counts, now)

    def _forget(self, ended: Any) -> None:
        del self._queries[ended]
        self._runs = {run: told for run, told in self._runs.items() if run[0] != ended}


def _say_late(run: _Run, watched: Watched, late: Row) -> None:
    for side, delay in watched.delays.items():
        if late[side] and side not in run.has_late:
            run.has_late.add(side)
            _log.warning(
                "%s: %s came later than its delay allows, and took no part. A longer %s takes such"
                " rows. If one row far ahead made them late, %s sets it aside. Spark's progress counts"
                " all of them",
                watched.operator, several(late[side], f"{side} row"), delay, watched.aheads[side],
            )  # fmt: skip


def _say_ahead(run: _Run, watched: Watched, late: Row) -> None:
    for side, ahead in watched.aheads.items():
        if late[f"{side}{AHEAD}"] and side not in run.has_ahead:
            run.has_ahead.add(side)
            _log.warning(
                "%s: set aside %s, too far ahead of the others for %s. Spark's progress counts all"
                " such rows",
                watched.operator, several(late[f"{side}{AHEAD}"], f"{side} row"), ahead,
            )  # fmt: skip


def _say_too_long(run: _Run, watched: Watched, rows: Sequence[Row | None]) -> None:
    for side, row in zip(watched.delays, rows, strict=True):
        # It is counted only where times can be too long.
        too_long = row["too_long"] if row is not None and "too_long" in row else 0
        if too_long and side not in run.has_too_long:
            run.has_too_long.add(side)
            _log.warning(
                "%s: found %s longer than any match can be with this window and confidence. Lower the"
                " confidence, or widen the window. Spark's progress counts all such rows",
                watched.operator, several(too_long, f"{side} row"),
            )  # fmt: skip


def _say_silent(run: _Run, watched: Watched, rows: list[int], now: float) -> None:
    has_rows = {side for side, count in zip(watched.delays, rows, strict=True) if count}
    for i, side in enumerate(watched.delays):
        if side in has_rows:
            run.last[i], run.is_said[i] = now, False
        elif has_rows and now - run.last[i] >= _PATIENCE and not run.is_said[i]:
            run.is_said[i] = True
            _log.warning(
                "%s: %s has had no rows for %.0f s, so rows of %s wait. Give %s if it may be silent",
                watched.operator, side, now - run.last[i],
                " and ".join(each for each in watched.delays if each in has_rows),
                watched.cure.format(side),
            )  # fmt: skip
