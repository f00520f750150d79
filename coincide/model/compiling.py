"""A line for who waits while Numba works: a first join may take half a minute before it begins."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from numba.core import event

PATIENCE_SECONDS = 2.0
"""So long in all nothing is said."""
WORDS = "compiling, once: later runs start at once"


class Telling(event.Listener):
    """Says once in a process that Numba makes code, where that takes long."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._depth, self._spent, self._begun = 0, 0.0, 0.0
        self._told = False
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """A kernel begins, perhaps for another one."""
        self._depth += 1
        if self._depth > 1 or self._told:
            return
        self._begun = time.monotonic()
        left = PATIENCE_SECONDS - self._spent
        if left <= 0:
            self._tell()
            return
        self._timer = threading.Timer(left, self._tell)
        self._timer.daemon = True
        self._timer.start()

    def on_end(self, event: Any) -> None:
        """It is done."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._spent += time.monotonic() - self._begun

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self.say(WORDS)


def _to_terminal(words: str) -> None:
    # What draws a bar there takes standard error over meanwhile, and shows the line above it.
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"coincide: {words}", file=sys.stderr)


TELLING = Telling(_to_terminal)


def listen() -> None:
    """Hear of what Numba does from now on."""
    event.register("numba:compile", TELLING)
