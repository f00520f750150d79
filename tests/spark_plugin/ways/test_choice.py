"""What a way may take is bounded by what the session can carry."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coincide import CorrelateOptions
from spark_plugin.ways.planning_job import as_transported

DEFAULT = CorrelateOptions().broadcast_bytes


@pytest.mark.parametrize(
    ("setting", "most"),
    [(None, DEFAULT), ("0", DEFAULT), ("1g", DEFAULT), ("1m", 1 << 19), ("4096", 2048)],
)
def test_no_more_is_broadcast_than_the_driver_takes(setting: str | None, most: int) -> None:
    told = {} if setting is None else {"spark.driver.maxResultSize": setting}
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: told))
    assert as_transported(spark, CorrelateOptions()).broadcast_bytes == most
