"""Files in no order: tasks read and pack them, and find what tables give."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    JoinReport,
    SequenceReport,
    Spatial,
    Temporal,
    TimingCondition,
    causality,
    causality_tables,
    correlate,
    correlate_tables,
    sequence_tables,
    sequences,
    spark_errors_as_ours,
    within,
)
from coincide.engine.join.arguments import JoinArguments
from spark_plugin.ways import limits
from spark_plugin.ways.exchange.packed_files import file_sides
from spark_plugin.ways.join_sides import event_frames
from spark_plugin.ways.limits import PlannerLimits
from tests.helpers.rows import lists_in_order, tuples

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]

EXCHANGE = CorrelateOptions(way="exchange", slices=5, invalid="raise")


def events(seed: int, size: int = 300, **types: pa.DataType) -> pa.Table:
    """Events in no order, of some keys, some without a time or a key."""
    rng = np.random.default_rng(seed)
    at, lacks = rng.integers(0, 5_000, size), rng.random(size) < 0.05
    texts = np.array(["", "a", "é", "b" * 40])[rng.integers(0, 4, size)]
    table = pa.table({
        "id": np.arange(size) + 1_000 * seed,
        "min_time": pa.array(at, pa.int64(), mask=lacks),
        "max_time": pa.array(at + rng.integers(0, 40, size), pa.int64(), mask=lacks),
        "key": pa.array(rng.integers(0, 4, size), pa.int32(), mask=rng.random(size) < 0.05),
        "text": pa.array(texts, mask=rng.random(size) < 0.05),
        "value": rng.normal(size=size), "x": rng.random(size) * 9, "y": rng.random(size) * 9,
    })  # fmt: skip
    for name, kind in types.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    return table


def stored(spark: SparkSession, folder: Path, table: pa.Table, **more: Any) -> DataFrame:
    """A table in two files of several row groups, some without rows that have events."""
    folder.mkdir()
    half = table.num_rows // 3
    pq.write_table(table.slice(0, half), folder / "a.parquet", row_group_size=7, **more)
    pq.write_table(table.slice(half), folder / "b.parquet", row_group_size=64, **more)
    return spark.read.parquet(str(folder))


def both(spark: SparkSession, folder: Path, **types: pa.DataType) -> tuple[Any, Any]:
    """Two sides as files, and as tables."""
    tables = [events(seed, **types) for seed in (1, 2)]
    frames = [stored(spark, folder / str(i), table) for i, table in enumerate(tables)]
    return frames, tables


def reads_of_spark(frame: DataFrame) -> int:
    """How many files' scans are in a plan of Spark's."""
    return str(frame._jdf.queryExecution().optimizedPlan().toString()).count("parquet")


WITHIN: dict[str, Any] = {"within": (-20, 60), "confidence": 0.4}
QUESTIONS: dict[str, dict[str, Any]] = {
    "pairs": {"probability": True},
    "by a number": {"by": "key"},
    "by a text": {"by": ["text"]},
    "by both": {"by": ["text", "key"], "right_columns": ["id", "value", "text"]},
    "counts": {"emit": "counts", "by": "key"},
    "lists": {"emit": "lists"},
    "best": {"emit": "best", "by": "key"},
    "sums": {"emit": "aggregates", "aggregates": {"n": "count", "most": ("value", "max")}},
    "left": {"how": "left", "by": "text"},
    "anti": {"how": "anti"},
    "right": {"how": "right", "by": "key"},
    "where": {"where": "left_value < right_value"},
    "mutual": {"matching": "mutual"},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_tasks_find_in_files_what_tables_give(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    frames, tables = both(spark, tmp_path)
    asked = {**WITHIN, **QUESTIONS[name]}
    found = correlate(*frames, **asked, options=EXCHANGE)
    assert reads_of_spark(found) == 0
    assert lists_in_order(found.toArrow()) == lists_in_order(correlate_tables(*tables, **asked))


@pytest.mark.parametrize(
    "types",
    [
        {"min_time": pa.timestamp("ms"), "max_time": pa.timestamp("ms")},
        {"min_time": pa.timestamp("us", "UTC"), "max_time": pa.timestamp("us", "UTC")},
        {"min_time": pa.float64(), "max_time": pa.float64(), "key": pa.int8()},
        {"key": pa.date32(), "text": pa.large_string(), "value": pa.float32()},
    ],
)
def test_types_of_files_are_those_of_tables(
    spark: SparkSession, tmp_path: Path, types: dict[str, pa.DataType]
) -> None:
    frames, tables = both(spark, tmp_path, **types)
    asked = {"by": ["key", "text"], "left_columns": ["id", "min_time", "value"]}
    if pa.types.is_timestamp(types.get("min_time", pa.int64())):
        asked |= {"within": ("-20ms", "60ms"), "confidence": 0.4}
        options = CorrelateOptions(way="exchange", slices=5)
    else:
        asked |= WITHIN
        options = CorrelateOptions(way="exchange", slices=5, unit="us", tick="us")
    found = correlate(*frames, **asked, options=options)
    assert reads_of_spark(found) == 0
    table = found.toArrow()
    expected = correlate_tables(*tables, **asked, options=options)
    assert lists_in_order(table) == lists_in_order(expected.cast(table.schema))
    assert table.num_rows


def test_a_side_that_does_more_goes_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    frames, tables = both(spark, tmp_path)
    filtered = frames[1].where("id % 2 = 0")
    expected = correlate_tables(tables[0], filtered.toArrow(), **WITHIN)
    for by, reads in (((), 1), ("key", 2)):  # tasks of both sides hash keys alike
        found = correlate(frames[0], filtered, **WITHIN, by=by, options=EXCHANGE)
        assert reads_of_spark(found) == reads
        if not by:
            assert lists_in_order(found.toArrow()) == lists_in_order(expected)


def test_renamed_columns_are_read_as_files_call_them(spark: SparkSession, tmp_path: Path) -> None:
    (left, right), tables = both(spark, tmp_path)
    left = left.selectExpr("id AS number", "min_time", "max_time", "key AS id")
    found = correlate(left, right, **WITHIN, left_columns="number", options=EXCHANGE)
    assert reads_of_spark(found) == 0
    expected = correlate_tables(*tables, **WITHIN).rename_columns(["left_number", "right_id"])
    assert lists_in_order(found.toArrow()) == lists_in_order(expected)


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sides of any size are exchanged without a planning job, so that tasks count their rows."""
    few = PlannerLimits(small_bytes=0, both_bytes=0, large_bytes=1, least_large=1 << 40)
    monkeypatch.setattr(limits, "LIMITS", few)


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("operator", ["correlate", "causality", "sequences"])
def test_a_report_counts_the_rows_that_tasks_read(
    spark: SparkSession, tmp_path: Path, operator: str
) -> None:
    frames, tables = both(spark, tmp_path)
    kind: Any = SequenceReport if operator == "sequences" else JoinReport
    reports = kind(), kind()
    if operator == "sequences":
        asked: dict[str, Any] = {"windows": [(-20, 60)], "confidence": 0.6, "by": "text"}
        found = sequences(frames, **asked, report=reports[0])
        expected = sequence_tables(tables, **asked, report=reports[1])
    elif operator == "causality":
        condition = CausalityCondition([Temporal(0, 200), Spatial(2)])
        asked = {"cause_time": "max_time", "cause_place": ("x", "y")}
        found = causality(*frames, condition, **asked, report=reports[0])
        expected = causality_tables(*tables, condition, **asked, report=reports[1])
    else:
        asked = {"within": (-20, 60), "confidence": 0.6, "by": "text"}
        found = correlate(*frames, **asked, report=reports[0])
        expected = correlate_tables(*tables, **asked, report=reports[1])
    assert "rows" not in str(reports[0])  # no job has counted
    assert reads_of_spark(found) == 0
    assert lists_in_order(found.toArrow()) == lists_in_order(expected)
    told, wanted = (report.summary() for report in reports)
    if operator == "sequences":
        assert told.streams == wanted.streams
    else:
        assert (told.left, told.right) == (wanted.left, wanted.right)
        assert told.counters.pairs == expected.num_rows


def test_invalid_rows_are_an_error_or_are_dropped(spark: SparkSession, tmp_path: Path) -> None:
    frames, _ = both(spark, tmp_path)
    wrong = pa.table({"id": [7, 8], "min_time": [9, 20], "max_time": [3, 25]})
    bad = stored(spark, tmp_path / "bad", wrong)
    with pytest.raises(DataError, match="min_time"):
        correlate(bad, frames[1], **WITHIN, options=EXCHANGE).collect()
    options = CorrelateOptions(way="exchange", invalid="drop")
    with pytest.warns(DroppedRowsWarning):
        found = correlate(bad, frames[1], **WITHIN, options=options)
    assert reads_of_spark(found) == 0
    assert {row["left_id"] for row in found.collect()} <= {8}


def test_a_file_that_changes_after_planning_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    frames, tables = both(spark, tmp_path)
    found = correlate(*frames, **WITHIN, options=EXCHANGE)
    path = tmp_path / "0" / "b.parquet"
    pq.write_table(tables[0].slice(0, 50), path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match="has changed since planning"), spark_errors_as_ours():
        found.collect()


@pytest.mark.parametrize("emit", ["pairs", "counts"])
def test_causes_and_effects_of_files(spark: SparkSession, tmp_path: Path, emit: Any) -> None:
    frames, tables = both(spark, tmp_path)
    condition = CausalityCondition([Temporal(0, 200), Spatial(2)])
    asked: dict[str, Any] = {
        "cause_time": "max_time", "cause_place": ("x", "y"), "by": "key", "emit": emit,
    }  # fmt: skip
    found = causality(*frames, condition, **asked, options=EXCHANGE)
    assert reads_of_spark(found) == 0
    assert lists_in_order(found.toArrow()) == lists_in_order(
        causality_tables(*tables, condition, **asked)
    )


@pytest.mark.parametrize("by", ["text", ()])
@pytest.mark.parametrize("how", ["inner", "anti"])
@pytest.mark.parametrize("where", [None, "a_value < b_value and c_id > 10"])
def test_sequences_of_files(
    spark: SparkSession, tmp_path: Path, by: Any, how: Any, where: str | None
) -> None:
    frames, tables = both(spark, tmp_path)
    asked: dict[str, Any] = {
        "windows": [(0, 60), (-30, 30)], "confidence": 0.3, "by": by, "how": how,
        "names": ["a", "b", "c"], "where": where,
    }  # fmt: skip
    options = CorrelateOptions(slices=4, slice_rows=50)
    found = sequences([*frames, frames[0]], **asked, options=options)
    assert reads_of_spark(found) == 0
    assert lists_in_order(found.toArrow()) == lists_in_order(
        sequence_tables([*tables, tables[0]], **asked)
    )


def test_what_spark_alone_understands_goes_through_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    times = {"ms": pa.array([5], pa.timestamp("ms")), "us": pa.array([5_000], pa.timestamp("us"))}
    left, right = (
        stored(spark, tmp_path / unit, pa.table({"id": [i], "t": [i], "k": key}))
        for i, (unit, key) in enumerate(times.items())
    )
    asked: dict[str, Any] = {"left_time": "t", "right_time": "t", "within": (0, 5)}
    exact = CorrelateOptions(way="exchange", slices=2)
    # Keys of one type to Spark, and of two to Arrow.
    found = correlate(left, right, **asked, by="k", options=exact)
    assert tuples(found.toArrow(), "left_id", "right_id") == [(0, 1)]
    by_step = sequences([left, right], [(0, 5)], time="t", by="k").toArrow()
    assert tuples(by_step, "a_id", "b_id") == [(0, 1)]
    # Columns that a schema of the reader calls differently, or has in addition.
    schema = "ID bigint, t bigint, note string"
    read = spark.read.schema(schema).parquet(str(tmp_path / "ms"))
    found = correlate(read, right, **asked, left_columns=["ID", "note"], options=exact)
    assert tuples(found.toArrow()) == [(0, None, 1)]


def test_a_task_reads_rows_of_few_bytes_at_once(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": range(40), "t": range(40), "doc": ["x" * 4_000_000] * 40})
    frame = stored(spark, tmp_path / "docs", table, use_dictionary=False)
    asked: dict[str, Any] = {"left_time": "t", "right_time": "t", "within": (0, 0)}
    arguments = JoinArguments(
        TimingCondition(within(0, 0), 1.0), left_time="t", right_time="t",
        left_columns=["id", "doc"], right_columns=["id"],
    )  # fmt: skip
    side, _ = file_sides(event_frames((frame, frame.alias("other")), arguments), arguments)
    assert side is not None
    assert side.at_once < 20
    found = correlate(frame, frame.alias("other"), **asked, left_columns=["doc"], options=EXCHANGE)
    assert found.selectExpr("sum(length(left_doc))").head()[0] == 160_000_000
