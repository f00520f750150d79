"""What two streams cannot do is refused when the join is made, with what to do instead."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import BackendError, ConditionError, CorrelateOptions, correlate, correlate_streams
from spark_plugin.ways.streaming.arguments import STATE_STORE

pytestmark = pytest.mark.spark
STORE = next(iter(STATE_STORE))
USUAL: dict[str, Any] = {
    "within": (-300, 300), "confidence": 0.8, "left_time": "t", "right_time": "t",
    "left_delay": "1s", "right_delay": "1s", "options": CorrelateOptions(unit="ms"),
}  # fmt: skip


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    rate = spark.readStream.format("rate").load()
    return rate.selectExpr(
        "value AS id", "unix_millis(timestamp) AS t", "unix_millis(timestamp) + value AS later",
        "timestamp", "CAST(unix_seconds(timestamp) AS BIGINT) AS bare",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"matching": "mutual"}, "Remove it. For the best match .* emit='best'"),
        ({"howw": "left"}, "there is no argument 'howw'. Use one of correlate's: .*left_time"),
        ({"options": CorrelateOptions(unit="ms", way="exchange")}, "way='exchange'.*Remove it"),
        ({"options": CorrelateOptions(unit="ms", slices=5)}, "Use slice_length"),
        (
            {"options": CorrelateOptions(unit="ms", devices="all"), "backend": "gpu"},
            r"a task has the one that Spark gives it\. Remove it",
        ),
        ({"options": CorrelateOptions(), "left_delay": 5, "right_delay": 5}, "unit='ms'"),
        (
            {"confidence": 0.4, "left_time": ("t", "later")},
            r"Declare the longest.*left_longest='1s'",
        ),
        (
            {"within": (None, 0), "emit": "best", "prefer": "last"},
            "bounds no time, so events would wait for ever. Give both ends",
        ),
        ({"left_delay": -1}, "left_delay cannot be negative"),
        ({"right_delay": None}, "right_delay is missing"),
        ({"late": "drop"}, "late must be one of count, rows"),
        ({"slice_length": 1}, "slice_length=1 is too short.* at least 38 ticks"),
        ({"key_buckets": 0}, "key_buckets must be an int of at least 1"),
        ({"name": ""}, "name must be a text"),
    ],
)
def test_arguments(events: DataFrame, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        correlate_streams(events, events, **{**USUAL, **change})


def test_sides(spark: SparkSession, events: DataFrame) -> None:
    static = spark.createDataFrame([(1, 2)], "id bigint, t bigint")
    with pytest.raises(ConditionError, match=r"right is a static DataFrame.*Use correlate,"):
        correlate_streams(events, static, **USUAL)
    with pytest.raises(ConditionError, match=r"left_clock must be .*\(found a static DataFrame\)"):
        correlate_streams(events, events, left_clock=static, **USUAL)
    with pytest.raises(ConditionError, match=r"right_clock must be .*\(found bigint, timestamp\)"):
        correlate_streams(events, events, right_clock=events.select("id", "timestamp"), **USUAL)
    with pytest.raises(ConditionError, match="Use correlate_streams"):
        correlate(events, events, within=5, left_time="t", right_time="t")


def test_operators_behind_each_other(events: DataFrame) -> None:
    first = correlate_streams(events, events, **USUAL).selectExpr("left_id AS id", "left_id AS t")
    with pytest.raises(ConditionError, match=r"right comes out of another.* a topic or folder"):
        correlate_streams(events, first, **USUAL)


@pytest.mark.parametrize("name", ["right_delay", "idle_after", "right_clock"])
def test_one_stream_has_no_right_side(events: DataFrame, name: str) -> None:
    asked = {**USUAL, name: events.select("timestamp") if name == "right_clock" else "1s"}
    del asked["right_time"]
    if name != "right_delay":
        del asked["right_delay"]
    with pytest.raises(ConditionError, match=f"{name} needs a second stream"):
        correlate_streams(events, **asked)
    with pytest.raises(ConditionError, match="Use correlate_streams"):
        correlate(events, within=5, left_time="t")


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        (STORE, "Hdfs", rf"needs RocksDB \(found .*Hdfs\).*spark.conf.set\('{STORE}'"),
        ("spark.sql.streaming.multipleWatermarkPolicy", "max", "rows of the slower side late"),
    ],
)
def test_sessions(
    spark: SparkSession, events: DataFrame, setting: str, value: str, words: str
) -> None:
    spark.conf.set(setting, value)
    try:
        with pytest.raises(ConditionError, match=words):
            correlate_streams(events, events, **USUAL)
    finally:
        spark.conf.unset(setting)


def test_streams_need_what_workers_of_a_state_import(
    events: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf.runtime_version", None)
    with pytest.raises(BackendError, match=r"package protobuf.*pip install 'protobuf>="):
        correlate_streams(events, events, **USUAL)
