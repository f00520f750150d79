"""Larger batches are advised once, where nobody has chosen their size."""

from __future__ import annotations

import logging

import pyspark
import pytest
from pyspark.sql import SparkSession

from spark_plugin.cluster.batch_size import (
    BYTES_SETTING,
    SETTING,
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
            advise_batch_size(session)  # type: ignore[arg-type]
        assert len(caplog.messages) == told
        advise_batch_size(Session(batch))  # type: ignore[arg-type]
    assert len(caplog.messages) == 2 * told
    assert all("100000" in message for message in caplog.messages)


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
