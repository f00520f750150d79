"""What the log says of running streams: a silent side that holds the other up, and late rows."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from coincide.model.errors import several
from spark_plugin.cluster.connect import context_of

_log = logging.getLogger("coincide")
_PATIENCE = 60.0
"""Seconds without a row of one side, while the other has some."""
_watchers: WeakKeyDictionary[SparkSession, Watcher] = WeakKeyDictionary()


@dataclass(frozen=True)
class Watched:
    """What is watched: its operator, for each input the argument for its delay, and whether inputs wait."""

    operator: str
    delays: dict[str, str]
    waits: bool = False


def watch(spark: SparkSession, name: str, watched: Watched) -> None:
    """Watch what has a name in Spark's progress."""
    if context_of(spark) is None:
        return  # a listener in a client of Spark Connect keeps its process from ending
    watcher = _watchers.get(spark)
    if watcher is None:
        watcher = _watchers[spark] = Watcher()
        spark.streams.addListener(watcher)
    watcher.names[name] = watched


@dataclass
class _Run:
    """A running stream: when each side had rows last, and what was said of it."""

    last: list[float]
    is_said: list[bool] = field(default_factory=lambda: [False, False])
    has_late: set[str] = field(default_factory=set)


class Watcher(StreamingQueryListener):
    """Listens to the queries of a session."""

    def __init__(self) -> None:
        self.names: dict[str, Watched] = {}
        self._runs: dict[tuple[Any, str], _Run] = {}

    def onQueryStarted(self, event: Any) -> None:
        """Nothing is known yet."""

    def onQueryIdle(self, event: Any) -> None:
        """Both sides are silent."""

    def onQueryProgress(self, event: Any) -> None:
        """Look at the rows of a micro-batch."""
        metrics, now = event.progress.observedMetrics, time.monotonic()
        for name, watched in self.names.items():
            late = metrics.get(f"{name}_late")
            if late is None:
                continue
            run = self._runs.setdefault((event.progress.runId, name), _Run([now, now]))
            _say_late(run, watched, late)
            sides = [metrics.get(f"{name}_{side}") for side in watched.delays]
            if watched.waits and None not in sides:
                _say_silent(run, watched, [row["rows"] for row in sides], now)

    def onQueryTerminated(self, event: Any) -> None:
        """Forget the query."""
        self._runs = {run: told for run, told in self._runs.items() if run[0] != event.runId}


def _say_late(run: _Run, watched: Watched, late: Row) -> None:
    for side, delay in watched.delays.items():
        if late[side] and side not in run.has_late:
            run.has_late.add(side)
            _log.warning(
                "%s: %s came later than its delay allows, and took no part. A longer %s takes such"
                " rows. Spark's progress counts all of them",
                watched.operator, several(late[side], f"{side} row"), delay,
            )  # fmt: skip


def _say_silent(run: _Run, watched: Watched, rows: list[int], now: float) -> None:
    sides = list(watched.delays)
    for i, side in enumerate(sides):
        if rows[i]:
            run.last[i], run.is_said[i] = now, False
        elif rows[1 - i] and now - run.last[i] >= _PATIENCE and not run.is_said[i]:
            run.is_said[i] = True
            _log.warning(
                "%s: %s has had no rows for %.0f s, so rows of %s wait. Give idle_after or"
                " %s_clock if it may be silent",
                watched.operator, side, now - run.last[i], sides[1 - i], side,
            )  # fmt: skip
