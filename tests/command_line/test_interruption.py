"""A signal is not forgotten where its exception was swallowed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from coincide.command_line.interruption import interruptible, raise_if_interrupted, received


@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)],
)
def test_a_swallowed_signal_is_raised_again(
    number: signal.Signals, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logging.disable", lambda: None)
    given = signal.signal(signal.SIGINT, signal.default_int_handler)
    hung = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(n) for n in numbers]
    try:
        with interruptible():
            raise_if_interrupted()
            with suppress(BaseException):
                os.kill(os.getpid(), number)
            with pytest.raises(error):
                raise_if_interrupted()
        assert [signal.getsignal(n) for n in numbers] == before
        with interruptible():
            raise_if_interrupted()
    finally:
        signal.signal(signal.SIGINT, given)
        signal.signal(signal.SIGHUP, hung)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_another_handler_took(number: signal.Signals) -> None:
    """As PySpark's, while it starts."""
    before = signal.getsignal(number)
    try:
        with interruptible():
            signal.signal(number, lambda *_: None)
            assert received() is None
            os.kill(os.getpid(), number)
            assert received() == received() == number
        with interruptible():
            assert received() is None
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_is_ignored_stays_ignored(number: signal.Signals) -> None:
    """Ctrl-C in the background of a shell, and the end of the terminal below nohup."""
    given = signal.signal(number, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), number)
            raise_if_interrupted()
    finally:
        signal.signal(number, given)
