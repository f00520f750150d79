"""A signal is not forgotten where its exception was swallowed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from coincide.command_line.interruption import interruptible, raise_if_interrupted, received


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_swallowed_signal_is_raised_again(
    number: signal.Signals, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logging.disable", lambda: None)
    given = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    try:
        with interruptible():
            raise_if_interrupted()
            with suppress(BaseException):
                os.kill(os.getpid(), number)
            with pytest.raises(error):
                raise_if_interrupted()
        assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before
        with interruptible():
            raise_if_interrupted()
    finally:
        signal.signal(signal.SIGINT, given)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    given = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGINT)
            raise_if_interrupted()
    finally:
        signal.signal(signal.SIGINT, given)
