"""A terminal says once that kernels are compiled, where that takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event

from coincide.model import compiling
from coincide.model.compiling import WORDS, Telling

START: Any = None


class Clock:
    """Time that does not go on, and a timer that goes off when a test says so."""

    def __init__(self) -> None:
        self.now, self.waiting, self.asked = 0.0, None, []

    def monotonic(self) -> float:
        return self.now

    def timer(self, seconds: float, function: Callable[[], None]) -> Any:
        clock = self

        class Timer:
            daemon = False

            def start(self) -> None:
                clock.asked.append(seconds)
                clock.waiting = function

            def cancel(self) -> None:
                clock.waiting = None

        return Timer()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(compiling.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(compiling.threading, "Timer", clock.timer)
    return clock


def test_one_long_kernel(clock: Clock) -> None:
    said: list[str] = []
    telling = Telling(said.append)
    telling.on_start(START)
    telling.on_start(START)  # a kernel that the first one calls
    assert (clock.asked, said) == ([2.0], [])
    assert clock.waiting is not None
    clock.waiting()
    telling.on_end(START)
    telling.on_end(START)
    assert said == [WORDS]
    telling.on_start(START)
    assert (clock.waiting, said) == (None, [WORDS])


def test_many_short_ones(clock: Clock) -> None:
    said: list[str] = []
    telling = Telling(said.append)
    for _ in range(3):
        assert said == []
        telling.on_start(START)
        clock.now += 0.75
        telling.on_end(START)
        assert clock.waiting is None
    assert clock.asked == [2.0, 1.25, 0.5]
    telling.on_start(START)
    assert said == [WORDS]


def test_kernels_are_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.0)
    said: list[str] = []
    telling = Telling(said.append)
    assert compiling.TELLING in event._registered["numba:compile"]  # by the import of any kernel
    with event.install_listener("numba:compile", telling):
        assert numba.njit(lambda x: x + 1)(np.int64(1)) == 2
    assert said == [WORDS]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_files_hear_nothing(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    compiling.TELLING.say(WORDS)
    assert capsys.readouterr().err == f"coincide: {WORDS}\n" * is_terminal
