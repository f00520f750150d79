"""What the log says of a running join of streams."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from spark_plugin.ways.streaming import watching
from spark_plugin.ways.streaming.watching import Watched, Watcher

PAIRED = Watched("correlate_streams", {"left": "left_delay", "right": "right_delay"})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    return now


def progress(left: int, right: int, late: tuple[int, int] = (0, 0), run: str = "a") -> Any:
    metrics = {
        "x_left": {"rows": left}, "x_right": {"rows": right},
        "x_late": {"left": late[0], "right": late[1]},
    }  # fmt: skip
    return SimpleNamespace(progress=SimpleNamespace(observedMetrics=metrics, runId=run))


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    words = [record.getMessage() for record in caplog.records if record.name == "coincide"]
    caplog.clear()
    return words


@pytest.mark.parametrize("waits", [True, False])
def test_a_silent_side_is_named_once(
    waits: bool, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "coincide")
    watcher = Watcher()
    watcher.names["x"] = replace(PAIRED, waits=waits)
    for now, left, right, is_said in (
        (0, 5, 5, False), (30, 5, 0, False), (61, 5, 0, True), (90, 5, 0, False),
        (100, 5, 1, False), (150, 5, 0, False), (170, 0, 0, False), (171, 1, 0, True),
    ):  # fmt: skip
        clock[0] = float(now)
        watcher.onQueryProgress(progress(left, right))
        words = said(caplog)
        assert bool(words) == (is_said and waits)
        assert all("right has had no rows" in each and "right_clock" in each for each in words)


def test_late_rows_are_named_once_a_run(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "coincide")
    watcher = Watcher()
    watcher.names["x"] = PAIRED
    for run in ("a", "b"):
        watcher.onQueryProgress(progress(1, 1, (0, 2), run))
        assert ["2 right rows came later" in each for each in said(caplog)] == [True]
        watcher.onQueryProgress(progress(1, 1, (0, 2), run))
        assert said(caplog) == []
    watcher.onQueryTerminated(SimpleNamespace(runId="a"))
    watcher.onQueryProgress(progress(1, 1, (1, 0), "b"))
    assert ["1 left row came later" in each for each in said(caplog)] == [True]
