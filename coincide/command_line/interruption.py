"""How the command ends: exit codes, and signals, even where their exception is swallowed on its way."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SOME_BYTES = 4096
_noted: list[int] = []
"""The reading end of the pipe that the interpreter tells of signals; none outside of a command."""
_received: list[int] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exit that cleans up, and keep in mind that they or SIGINT came."""
    # They are noted below all handlers: PySpark puts one of its own in place while it starts, which
    # talks to the JVM in the middle of another talk, so that anything may come of it.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, _interrupt)}
    # Not where someone has them ignored, as shells do for what runs in the background, and nohup.
    plain = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    for number, handler in plain.items():
        if signal.getsignal(number) is handler:
            before[number] = signal.signal(number, _interrupt)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    _noted.append(reading)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        _noted.remove(reading)
        _received.clear()
        os.close(reading)
        os.close(writing)


def received() -> int | None:
    """The first signal of these that came, whatever became of its exception."""
    for pipe in _noted[-1:]:
        with suppress(BlockingIOError):  # none since we last looked
            _received.extend(n for n in os.read(pipe, _SOME_BYTES) if n in _ENDING)
    return _received[0] if _received else None


def raise_if_interrupted() -> None:
    """Raise what a signal has raised before."""
    # A callback from compiled code, such as the compiler's own, prints and drops exceptions: a
    # first join, whose kernels are being compiled, would go on as if nothing had come.
    number = received()
    if number is not None:
        _raise(number)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that these signals set, instead of raising anything: it ends what would never end."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {
        number: signal.signal(number, lambda *_: asked.set())
        for number in _ENDING
        if signal.getsignal(number) is _interrupt
    }
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        received()
        _received.clear()


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    logging.disable()  # what breaks on the way out is no news
    _raise(number)


def _raise(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(code_of(number))


def code_of(number: int) -> int:
    """The exit code of a command that a signal ended, as shells count."""
    return 128 + number


DONE = 0
OUR_FAILURE = 1
BAD_USE = 2
INTERRUPTED = 130
"""128 plus the number of SIGINT, as shells count."""
READER_GONE = 141
"""128 plus the number of SIGPIPE: who read standard output has enough."""
