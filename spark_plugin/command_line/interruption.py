"""SIGINT and SIGTERM end a command, even where their exception is swallowed on its way."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from spark_plugin.command_line.exit_codes import TERMINATED

_received: list[int] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGTERM into an exit that cleans up, and keep in mind that it or SIGINT came."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.clear()
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, _interrupt)}
    # Not where someone has it ignored, as shells do for what runs in the background.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def raise_if_interrupted() -> None:
    """Raise what a signal has raised before.

    A callback from compiled code, such as the compiler's own, prints and drops exceptions: a first
    join, whose kernels are being compiled, would go on as if nothing had come.
    """
    if _received:
        _raise(_received[0])


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    logging.disable()  # what breaks on the way out is no news
    _received.append(number)
    _raise(number)


def _raise(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(TERMINATED)
