"""Larger batches are advised once, where no one has set their size."""

from __future__ import annotations

import logging

import pyspark
import pytest
from pyspark.sql import SparkSession

from spark_plugin.cluster.jobs import (
    BYTES_SETTING,
    SETTING,
    UNBOUNDED,
    advise_batch_size,
    bounds_batch_bytes,
)


class Conf(dict[str, str]):
    """Settings."""


class Session:
    """A session with settings."""

    def __init__(self, batch: str) -> None:
        self.conf = Conf({SETTING: batch})


@pytest.mark.parametrize(("batch", "told"), [("10000", 1), ("100000", 0), ("1000", 0), ("0", 0)])
def test_told_once_a_session(caplog: pytest.LogCaptureFixture, batch: str, told: int) -> None:
    session = Session(batch)
    with caplog.at_level(logging.INFO, "coincide"):
        for _ in range(2):
            advise_batch_size(session, are_narrow=True)  # type: ignore[arg-type]
        assert len(caplog.messages) == told
        advise_batch_size(Session(batch), are_narrow=True)  # type: ignore[arg-type]
    assert len(caplog.messages) == 2 * told
    assert all("100000" in message for message in caplog.messages)


@pytest.mark.parametrize(("size", "told"), [("67108864b", 1), ("2147483647", 0), (None, 0)])
def test_sizes_of_narrow_rows_need_not_be_computed(
    caplog: pytest.LogCaptureFixture, size: str | None, told: int
) -> None:
    session = Session("100000")
    if size is not None:
        session.conf[BYTES_SETTING] = size
    with caplog.at_level(logging.INFO, "coincide"):
        advise_batch_size(session, are_narrow=False)  # type: ignore[arg-type]
        assert not caplog.messages
        for _ in range(2):
            advise_batch_size(session, are_narrow=True)  # type: ignore[arg-type]
    assert len(caplog.messages) == told
    assert all(UNBOUNDED in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("told", "is_bounded"),
    [(None, False), ("67108864b", True), ("67108864", True), ("64m", True), ("64MB", True),
     ("256m", True), ("257m", False), ("2g", False), ("2147483647b", False), ("-1b", False),
     ("0b", False), ("300000k", False)],
)  # fmt: skip
def test_whether_batches_are_bounded_by_bytes(told: str | None, is_bounded: bool) -> None:
    session = Session("10000")
    if told is not None:
        session.conf[BYTES_SETTING] = told
    assert bounds_batch_bytes(session) == is_bounded  # type: ignore[arg-type]


@pytest.mark.spark
def test_this_spark_bounds_its_batches(spark: SparkSession) -> None:
    assert bounds_batch_bytes(spark) == (not pyspark.__version__.startswith("4.0."))
