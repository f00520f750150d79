"""A side that is silent holds the other one up, unless something says how far it has come."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import correlate_streams
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.spark_streams import stream_of, streamed, write_files

pytestmark = pytest.mark.spark
BEGIN = datetime(2024, 1, 1, tzinfo=UTC).timestamp()


def seconds(*times: float) -> pa.Array:
    return pa.array([round((BEGIN + t) * 10**6) for t in times], pa.timestamp("us", "UTC"))


def test_what_lets_rows_out(spark: SparkSession, tmp_path: Path) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    tables = {
        "left": [pa.table({"id": [1, 2], "t": seconds(0, 100)}),
                 pa.table({"id": [3], "t": seconds(200)})],
        "right": [pa.table({"id": [7], "t": seconds(1)})] * 2,
        "clock": [pa.table({"t": seconds(150)})] * 2,
    }  # fmt: skip
    tables["right"][1] = tables["right"][1].slice(0, 0)
    schema = "id bigint, t timestamp"
    left, right = (
        stream_of(spark, write_files(tmp_path / side, tables[side]), schema)
        for side in ("left", "right")
    )
    clock = stream_of(spark, write_files(tmp_path / "clock", tables["clock"]), "t timestamp")

    def joined(name: str, **more: Any) -> DataFrame:
        found = correlate_streams(
            left, right, within=("0s", "2s"), left_time="t", right_time="t", how="left",
            left_delay="5s", right_delay="5s", name=name, **more,
        )  # fmt: skip
        return found.select(F.lit(name).alias("name"), "left_id", "right_id")

    # One watermark holds for all joins of a query: they share it.
    both = joined("idle", idle_after="30s").unionAll(joined("clock", right_clock=clock))
    rows, progress = streamed(both, "silent")
    assert sorted(rows, key=str) == sorted(
        [(name, *ids) for name in ("idle", "clock") for ids in ((1, 7), (2, None))], key=str
    )
    seen = [each["observedMetrics"]["clock_left"]["latest"] for each in progress]
    assert ":03:20" in max(each for each in seen if each)  # in whatever zone
    assert not any(each.startswith("9999") for each in seen if each)
    rows, _ = streamed(joined("waits"), "waiting")
    assert rows == []


def test_a_clock_a_day_fast_silences_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """It is set aside; progress counts what comes out, and tells of no time that no row has."""
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    fast = 86_400 + 11
    tables = {
        "left": [pa.table({"id": [1, 2, 3], "t": seconds(10, fast, 20)}),
                 pa.table({"id": [4, 5], "t": seconds(200, 201)})],
        "right": [pa.table({"id": [7], "t": seconds(21)}), pa.table({"id": [8], "t": seconds(203)})],
    }  # fmt: skip
    left, right = (
        stream_of(spark, write_files(tmp_path / side, tables[side]), "id bigint, t timestamp")
        for side in ("left", "right")
    )

    def joined(name: str, **more: Any) -> DataFrame:
        return correlate_streams(
            left, right, within=("0s", "2s"), left_time="t", right_time="t", how="left",
            left_delay="2s", right_delay="2s", name=name, late="rows", **more,
        )  # fmt: skip

    rows, progress = streamed(joined("ahead", left_ahead="1h"), "with_ahead")
    assert sorted(rows, key=str) == sorted(
        [(1, None, None), (2, None, "left"), (3, 7, None)], key=str
    )
    told = [each["observedMetrics"] for each in progress]
    assert sum(each["ahead_late"]["left_ahead"] for each in told) == 1
    assert sum(each["ahead_late"]["left"] for each in told) == 0
    assert sum(each["ahead_output"]["rows"] for each in told) == len(rows)
    clocks = filter(None, (each["ahead_left_clock"]["latest"] for each in told))
    assert [latest[-6:] for latest in clocks] == [":00:20", ":03:21"]  # in whatever zone
    assert not any("ahead_right_clock" in each for each in told)
    times = [each["eventTime"] for each in progress if "min" in each["eventTime"]]
    assert times
    assert not any("1970" in time[name] for time in times for name in ("min", "avg", "max"))
