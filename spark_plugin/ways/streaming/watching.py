"""What the log says of running joins of streams: a silent side that holds the other up, and late rows."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from coincide.model.errors import several
from coincide.model.sides import SIDES

_log = logging.getLogger("coincide")
_PATIENCE = 60.0
"""Seconds without a row of one side, while the other has some."""
_watchers: WeakKeyDictionary[SparkSession, Watcher] = WeakKeyDictionary()


def watch(spark: SparkSession, name: str, *, waits: bool) -> None:
    """Watch joins of a name; `waits`: a silent side holds the other one up."""
    watcher = _watchers.get(spark)
    if watcher is None:
        watcher = _watchers[spark] = Watcher()
        spark.streams.addListener(watcher)
    watcher.names[name] = waits


@dataclass
class _Run:
    """A running join: when each side had rows last, and what was said of it."""

    last: list[float]
    is_said: list[bool] = field(default_factory=lambda: [False, False])
    has_late: list[bool] = field(default_factory=lambda: [False, False])


class Watcher(StreamingQueryListener):
    """Listens to the queries of a session."""

    def __init__(self) -> None:
        self.names: dict[str, bool] = {}
        self._runs: dict[tuple[Any, str], _Run] = {}

    def onQueryStarted(self, event: Any) -> None:
        """Nothing is known yet."""

    def onQueryIdle(self, event: Any) -> None:
        """Both sides are silent."""

    def onQueryProgress(self, event: Any) -> None:
        """Look at the rows of a micro-batch."""
        metrics, now = event.progress.observedMetrics, time.monotonic()
        for name, waits in self.names.items():
            late = metrics.get(f"{name}_late")
            if late is None:
                continue
            run = self._runs.setdefault((event.progress.runId, name), _Run([now, now]))
            _say_late(run, [late[side] for side in SIDES])
            sides = [metrics.get(f"{name}_{side}") for side in SIDES]
            if waits and None not in sides:
                _say_silent(run, [row["rows"] for row in sides], now)

    def onQueryTerminated(self, event: Any) -> None:
        """Forget the query."""
        self._runs = {run: told for run, told in self._runs.items() if run[0] != event.runId}


def _say_late(run: _Run, late: list[int]) -> None:
    for i, side in enumerate(SIDES):
        if late[i] and not run.has_late[i]:
            run.has_late[i] = True
            _log.warning(
                "correlate_streams: %s came later than its delay allows, and took no part. A longer"
                " %s_delay takes such rows. Spark's progress counts all of them",
                several(late[i], f"{side} row"), side,
            )  # fmt: skip


def _say_silent(run: _Run, rows: list[int], now: float) -> None:
    for i, side in enumerate(SIDES):
        if rows[i]:
            run.last[i], run.is_said[i] = now, False
        elif rows[1 - i] and now - run.last[i] >= _PATIENCE and not run.is_said[i]:
            run.is_said[i] = True
            _log.warning(
                "correlate_streams: %s has had no rows for %.0f s, so rows of %s wait. Give"
                " idle_after or %s_clock if it may be silent",
                side, now - run.last[i], SIDES[1 - i], side,
            )  # fmt: skip
