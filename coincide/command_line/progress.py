"""What is shown on stderr while a join works, if someone is looking."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from coincide.engine.files.credentials import without_credentials

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress as RichProgress

_POLL_SECONDS = 0.3
_MANY_ROWS = 10**9
"""They take minutes, and as many GB or less, as columns pack."""


class Progress:
    """One line that says what is being done; silent unless stderr is a terminal."""

    def __init__(self, hide: Callable[[str], str] = without_credentials) -> None:
        self._hide = hide
        self._rich: RichProgress | None = None
        self._task: Any = None
        self._slice: tuple[int, int] | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as RichProgress

            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
            )
            self._rich = RichProgress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._rich.add_task("starting", total=None)
            self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._rich is not None:
            self._rich.stop()

    def note(self, number: int, count: int) -> None:
        """The slice that begins, from 1, and how many there are."""
        self._slice = number, count

    def tell_many(self, rows: int) -> None:
        """Say that an answer will have a great many rows, also where no terminal shows the progress."""
        if rows < _MANY_ROWS:
            return
        said = (
            f"coincide: {rows:,} rows will be written. Ctrl-C ends it without an output;"
            " --max-pairs sets a bound."
        )
        if self._rich is None:
            print(said, file=sys.stderr, flush=True)
        else:
            self._rich.console.print(said, soft_wrap=True, highlight=False)

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Say what is being done, and how much of it is."""
        if self._rich is not None:
            shown = self._hide(text)
            if self._slice is not None:
                number, slices = self._slice
                shown = f"{shown}, slice {number:,} of {slices:,}"
                if total is None:
                    done, total = number - 1, slices
            self._rich.update(self._task, description=shown, completed=done, total=total)

    @contextmanager
    def following(self, spark: SparkSession, text: str) -> Iterator[None]:
        """Show the tasks of Spark's running stages; on Spark Connect only that it works."""
        self.show(text)
        context = getattr(spark, "_sc", None)
        if self._rich is None or context is None:
            yield
            return
        stop = threading.Event()
        follower = threading.Thread(target=self._follow, args=(context, text, stop), daemon=True)
        follower.start()
        try:
            yield
        finally:
            stop.set()
            follower.join(timeout=2)

    def _follow(self, context: Any, text: str, stop: threading.Event) -> None:
        tracker = context.statusTracker()
        while not stop.wait(_POLL_SECONDS):
            try:
                stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
            except Exception:
                return  # the session is gone
            stages = [stage for stage in stages if stage is not None]
            done = sum(stage.numCompletedTasks for stage in stages)
            total = sum(stage.numTasks for stage in stages)
            if total:
                self.show(f"{text}: {done} of {total} tasks", done, total)
