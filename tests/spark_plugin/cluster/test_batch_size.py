"""Larger batches are advised once, where nobody has chosen their size."""

from __future__ import annotations

import logging

import pytest

from spark_plugin.cluster.batch_size import SETTING, advise_batch_size


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
