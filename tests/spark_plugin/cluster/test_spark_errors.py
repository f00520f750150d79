"""What Spark raises, in our words: of jobs, of queries without an end, and of their checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import (
    ConditionError,
    DataError,
    correlate_streams,
    spark_errors_as_ours,
    transitions,
)
from coincide.command_line.spark import _keeping_marks
from spark_plugin.cluster.spark_errors import explain_spark
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.spark_cases import frame
from tests.helpers.spark_streams import stream_of, write_files

pytestmark = pytest.mark.spark
START = datetime(2026, 5, 1, tzinfo=UTC)


def test_errors_of_a_job_are_ours(spark: SparkSession) -> None:
    events = pa.table({"query_id": [1, 1], "stream_id": [1, 1], "event": ["I", "I"], "t": [0, 5]})
    found = transitions(frame(spark, events), time="t", within=3)
    with pytest.raises(DataError, match="1 row repeat") as raised, spark_errors_as_ours():
        found.collect()
    assert isinstance(raised.value.__cause__, PySparkException)
    assert "Traceback" not in str(raised.value)


def marks_of(spark: SparkSession) -> list[str]:
    """The invisible characters of an error that a worker raises, which names an option."""
    events = pa.table({"query_id": [1, 1], "stream_id": [1, 1], "event": ["I", "I"], "t": [0, 5]})
    with pytest.raises(PySparkException) as raised:
        transitions(frame(spark, events), time="t", within=3).collect()
    said = str(raised.value)
    assert "1 row repeat" in said
    assert "'first'" in said
    return [character for character in said if "\u2060" <= character <= "\u2064"]


def test_a_line_of_a_workers_error_can_be_copied(spark: SparkSession) -> None:
    """An invisible mark in it would be bad syntax. Commands, which name options, ask for marks."""
    assert marks_of(spark) == []
    with _keeping_marks(spark):
        assert marks_of(spark) != []
    assert marks_of(spark) == []


def test_failures_pass(spark: SparkSession) -> None:
    failing = F.udf(lambda _: 1 // 0, "bigint")
    with pytest.raises(PySparkException, match="ZeroDivisionError"), spark_errors_as_ours():
        spark.range(1).select(failing("id")).collect()


def joined(spark: SparkSession, folder: Path, **more: Any) -> DataFrame:
    asked: dict[str, Any] = {"within": ("0s", "1s"), **more}
    streams = [stream_of(spark, folder / side, "id bigint, t timestamp") for side in ("a", "b")]
    return correlate_streams(
        *streams, left_time="t", right_time="t", left_delay="1s", right_delay="1s", key_buckets=1,
        **asked,
    )  # fmt: skip


def run(found: DataFrame, folder: Path) -> None:
    """Read all that there is now, and wait for the end."""
    writer = found.writeStream.format("parquet").option("path", str(folder / "found"))
    writer = writer.option("checkpointLocation", str(folder / "state")).trigger(availableNow=True)
    with spark_errors_as_ours():
        writer.start().awaitTermination()


def test_errors_of_a_query_without_an_end_are_ours(spark: SparkSession, tmp_path: Path) -> None:
    for name, value in {**STATE_STORE, "spark.sql.shuffle.partitions": 1}.items():
        spark.conf.set(name, value)
    times = pa.array([START], pa.timestamp("us", "UTC"))
    for number in range(2):
        for side in ("a", "b"):
            rows = pa.table({"id": [number], "t": times})
            write_files(tmp_path / side, [rows] * (number + 1))
        if number == 0:
            run(joined(spark, tmp_path), tmp_path)
    with pytest.raises(ConditionError, match=r"other arguments.*within was"):
        run(joined(spark, tmp_path, within=("0s", "2s")), tmp_path)
    with pytest.raises(
        DataError, match=r"other streams to read \(found 2 in it, and 4 now\)\. Give"
    ):
        run(joined(spark, tmp_path, idle_after="9s"), tmp_path)


def test_a_state_of_another_form_is_another_version() -> None:
    raised = (
        "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match existing"
    )
    assert explain_spark(
        ValueError(f"[STREAM_FAILED] Query [id = 1] {raised} state value schema.")
    ) == (
        True,
        "the checkpoint was begun by another version, whose state has another form (found other columns in"
        " it). Begin with a new checkpoint.",
    )
