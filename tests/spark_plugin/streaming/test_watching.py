"""What the log says of a running join of streams."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_plugin.ways.streaming import watching
from spark_plugin.ways.streaming.watching import Watched, Watcher, watch

PAIRED = Watched(
    "correlate_streams", {"left": "left_delay", "right": "right_delay"},
    {"left": "left_ahead", "right": "right_ahead"},
)  # fmt: skip


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    return now


def metrics(
    left: int, right: int, late: tuple[int, int] = (0, 0), ahead: tuple[int, int] = (0, 0)
) -> Any:
    return {
        "x_left": {"rows": left}, "x_right": {"rows": right},
        "x_late": {
            "left": late[0], "right": late[1], "left_ahead": ahead[0], "right_ahead": ahead[1],
        },
    }  # fmt: skip


class Query:
    """A query of Spark, by what the watcher asks of it."""

    def __init__(self, run: str) -> None:
        self.runId, self.recentProgress = run, list[dict[str, Any]]()

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self.recentProgress[-1] if self.recentProgress else None

    def reports(self, metrics: Any) -> None:
        time = f"2026-05-01T00:00:{len(self.recentProgress):02}.000Z"
        self.recentProgress.append({"timestamp": time, "observedMetrics": metrics})


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
        watcher.take("a", metrics(left, right))
        words = said(caplog)
        assert bool(words) == (is_said and waits)
        assert all("right has had no rows" in each and "right_clock" in each for each in words)


def test_one_silent_stream_of_three_is_named_with_its_cure(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "coincide")
    watcher = Watcher()
    names = dict.fromkeys("abc", "delay")
    watcher.names["x"] = Watched(
        "sequence_streams", names, names, waits=True, cure="clock={{'{}': heartbeats}}"
    )
    late = dict.fromkeys(("a", "b", "c", "a_ahead", "b_ahead", "c_ahead"), 0)
    for now, counts, words in (
        (0, (1, 1, 1), []),
        (61, (1, 0, 1), ["b has had no rows for 61 s, so rows of a and c wait. Give clock={'b': heartb"]),
        (62, (0, 0, 1), []),
    ):  # fmt: skip
        clock[0] = float(now)
        rows = {f"x_{name}": {"rows": count} for name, count in zip("abc", counts, strict=True)}
        watcher.take("a", {**rows, "x_late": late})
        told = said(caplog)
        assert len(told) == len(words)
        assert all(word in each for word, each in zip(words, told, strict=True))


def test_late_rows_are_named_once_a_run(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "coincide")
    watcher = Watcher()
    watcher.names["x"] = PAIRED
    one, other = Query("a"), Query("b")
    for query in (one, other):
        query.reports(metrics(1, 1, (0, 2)))
        watcher.look([query])
        assert ["2 right rows came later" in each for each in said(caplog)] == [True]
        query.reports(metrics(1, 1, (0, 2)))
        watcher.look([query])
        assert said(caplog) == []
    other.reports(metrics(1, 1, (1, 0)))
    watcher.look([])  # it has ended since, and said something before
    assert ["1 left row came later" in each and "left_ahead sets it aside" in each
            for each in said(caplog)] == [True]  # fmt: skip
    watcher.look([])
    assert said(caplog) == []


def test_rows_set_aside_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "coincide")
    watcher = Watcher()
    watcher.names["x"] = PAIRED
    for is_said in (True, False):
        watcher.take("a", metrics(5, 5, ahead=(1, 0)))
        words = ["set aside 1 left row, too far ahead" in each for each in said(caplog)]
        assert words == [True] * is_said


def test_rows_longer_than_any_match_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """A side whose times cannot be too long has no such number."""
    caplog.set_level(logging.WARNING, "coincide")
    watcher = Watcher()
    watcher.names["x"] = PAIRED
    for too_long, is_said in ((0, False), (2, True), (2, False)):
        told = metrics(5, 5)
        told["x_right"]["too_long"] = too_long
        watcher.take("a", told)
        words = ["found 2 right rows longer than any match" in each for each in said(caplog)]
        assert words == [True] * is_said


@pytest.mark.spark
def test_queries_that_have_ended_leave_no_thread(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "coincide")
    watch(spark, "x", PAIRED)
    before = threading.active_count()
    names = ("left", "right", "left_ahead", "right_ahead")
    counts = [F.count(F.lit(1)).alias(name) for name in names]
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    for _ in range(4):
        query = rows.observe("x_late", *counts).writeStream.format("noop").start()
        until = time.monotonic() + 60
        while time.monotonic() < until and not any(
            each.startswith("correlate_streams: ") for each in caplog.messages
        ):
            time.sleep(0.1)
        query.stop()
        assert "correlate_streams: " in caplog.text
        caplog.clear()
    assert threading.active_count() <= before
