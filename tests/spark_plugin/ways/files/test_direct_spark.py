"""`correlate_files` on Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, TimingCondition, correlate, correlate_files, within
from coincide.engine.files.planning import NotDirect
from coincide.model.errors import ConditionError, DataError, MemoryBudgetError, SchemaError
from spark_plugin.cluster.spark_errors import BeyondMicroseconds
from tests.helpers.comparison import SHAPES, assert_answer, condition_of, ticks_of
from tests.helpers.direct_layouts import write_layout
from tests.helpers.joins import join_files, table_join
from tests.helpers.rows import sorted_table
from tests.helpers.spark_cases import shape_numbers
from tests.helpers.strategies import random_cases
from tests.spark_plugin.ways.files.test_direct_join import large_keys, stream

pytestmark = pytest.mark.spark
CONDITION = TimingCondition(within(-300, 100), 0.7)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "left.parquet", tmp_path / "right.parquet"
    for seed, path in enumerate(paths):
        pq.write_table(stream(5000, seed), path, row_group_size=500)
    return paths


def expected(sides: tuple[Path, Path], condition: TimingCondition = CONDITION) -> pa.Table:
    job = table_join(*(pq.read_table(path) for path in sides), condition)
    return pa.Table.from_batches(job.batches(), job.schema)


@pytest.mark.usefixtures("any_order")
@pytest.mark.parametrize("seed", shape_numbers(first=True))
def test_every_shape_against_the_reference(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    case = next(iter(random_cases(7000 + seed, 1, max_size=40)))
    paths = [
        write_layout(tmp_path / side, ticks_of(rows, case.by), random)
        for side, rows in (("left", case.left), ("right", case.right))
    ]
    how, emit, probability = SHAPES[seed]
    arguments = {"by": case.by, "how": how, "emit": emit, "probability": probability}
    options = CorrelateOptions(slices=3)
    frame = join_files(spark, *paths, condition_of(case), **arguments, options=options, way="files")
    rows = [row.asDict() for row in frame.collect()]
    assert_answer(rows, case, how, emit, probability, by_rows=False)
    sides_as_frames = [spark.read.parquet(f"file://{path}") for path in paths]
    assert frame.schema == correlate(*sides_as_frames, condition_of(case), **arguments).schema


def test_columns_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    """Output columns are what Spark itself reads from the files, types and values."""
    rows = {
        "byte": pa.array([1, None], pa.int8()),
        "flag": pa.array([True, None]),
        "day": pa.array([dt.date(2020, 2, 29), None]),
        "at": pa.array([dt.datetime(2020, 2, 29, 1, 2, 3, 4), None], pa.timestamp("us", "UTC")),
        "wall": pa.array([dt.datetime(2020, 2, 29, 1, 2, 3, 4), None], pa.timestamp("us")),
        "milli": pa.array([5, None], pa.timestamp("ms", "UTC")),
        "text": pa.array(["a b", None]),
        "code": pa.array(["x", None]).dictionary_encode(),
        "raw": pa.array([b"\0\1", None]),
        "price": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
        "share": pa.array([0.5, None], pa.float32()),
        "list": pa.array([[1, 2], None]),
    }
    times = {"min_time": pa.array([0, 5]), "max_time": pa.array([3, 9])}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(times | rows), path)
    names = list(rows)
    arguments = {"left_columns": names, "right_columns": names}
    for emit in ("pairs", "lists"):
        found = join_files(spark, path, path, CONDITION, **arguments, emit=emit, way="files")
        frame = spark.read.parquet(f"file://{path}")
        other = correlate(frame, frame, CONDITION, **arguments, emit=emit)
        assert found.schema == other.schema
        key = lambda row: str(row)  # noqa: E731
        assert sorted(found.collect(), key=key) == sorted(other.collect(), key=key)
        assert found.count() > 1


def test_files_out_and_a_summary(
    spark: SparkSession, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for way in ("files", "exchange"):
        done = join_files(
            spark, *sides, CONDITION, output=out, overwrite=way == "exchange", way=way,
            options=CorrelateOptions(slices=4),
        )  # fmt: skip
        want = expected(sides)
        assert sorted_table(pq.read_table(out)).equals(sorted_table(want))
        assert (done.rows, done.counters.pairs, done.way) == (want.num_rows, want.num_rows, way)
        assert (done.left.rows, done.right.rows, done.slices) == (5000, 5000, 4)
        assert done.size == sum(path.stat().st_size for path in out.glob("*.parquet"))
        assert spark.read.parquet(f"file://{out}").count() == want.num_rows
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "left.parquet",
        "out",
        "right.parquet",
    ]


@pytest.mark.parametrize("way", ["files", "exchange"])
def test_more_pairs_than_are_allowed_leave_no_output(
    spark: SparkSession, sides: tuple[Path, Path], tmp_path: Path, way: Any
) -> None:
    """The limit is for the pairs of all tasks together: each task has fewer."""
    pairs, out = expected(sides).num_rows, tmp_path / "out"
    few = CorrelateOptions(max_pairs=pairs - 1, slices=7, way=way)
    with pytest.raises(
        MemoryBudgetError, match=rf"max_pairs={pairs - 1}\) allows \(found {pairs:,}\)"
    ):
        correlate_files(spark, *sides, CONDITION, output=out, options=few)
    assert not out.exists()
    enough = CorrelateOptions(max_pairs=pairs, slices=7, way=way)
    done = correlate_files(spark, *sides, CONDITION, output=out, options=enough)
    assert done.counters.pairs == pairs


def test_disorder_goes_by_exchange(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    random = np.random.default_rng(3)
    paths = []
    for name in ("left", "right"):
        table = stream(4000, len(name)).take(random.permutation(4000))
        paths.append(tmp_path / f"{name}.parquet")
        pq.write_table(table, paths[-1], row_group_size=100)
    options = CorrelateOptions(slices=16)
    frame = join_files(spark, *paths, CONDITION, options=options)
    want = expected((paths[0], paths[1]))
    assert sorted_table(frame.toArrow().cast(want.schema)).equals(sorted_table(want))
    assert "so Spark reads DataFrames: the files are not in order of time" in caplog.text
    assert "df.sort(" in caplog.text
    with pytest.raises(NotDirect):
        join_files(spark, *paths, CONDITION, options=options, way="files")


def test_what_spark_writes_by_default_goes_as_dataframes(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """INT96 on one side, microseconds on the other, and a year that nanoseconds cannot count."""
    paths = [f"file://{tmp_path / side}" for side in ("left", "right")]
    setting = "spark.sql.parquet.outputTimestampType"
    events = spark.sql(
        "SELECT id, timestamp_micros(id) AS min_time, timestamp_micros(id) AS max_time,"
        " timestamp'9999-12-31 00:00:00Z' AS until FROM range(10)"
    )
    try:
        for path, kind in zip(paths, ("INT96", "TIMESTAMP_MICROS"), strict=True):
            spark.conf.set(setting, kind)
            events.write.parquet(path)
    finally:
        spark.conf.unset(setting)
    condition = TimingCondition(within("0s", "0s"), 1.0)
    found = join_files(spark, *paths, condition, left_columns=["id", "until"])
    untils = found.selectExpr("unix_seconds(left_until) AS s").distinct().collect()
    assert [row.s for row in untils] == [253402214400]
    assert found.count() == 10
    assert "as INT96" in caplog.text
    assert "TIMESTAMP_MICROS" in caplog.text


LAST_SECOND = (2**63 - 1) // 10**6
"""Only those that Spark can count in microseconds; Parquet keeps seconds as milliseconds."""
INSTANTS = {"left_time": "time", "right_time": "time", "options": CorrelateOptions(invalid="drop")}
SAME_TIME = TimingCondition(within("0s", "0s"), 1.0)


def in_seconds(path: Path, *seconds: int, **how: bool) -> Path:
    times = pa.array(seconds, pa.timestamp("s", "UTC"))
    pq.write_table(
        pa.table({"id": range(len(seconds)), "time": times, "other": times}), path, **how
    )
    return path


@pytest.mark.parametrize("way", ["broadcast", "exchange"])
@pytest.mark.parametrize("second", [LAST_SECOND + 1, -LAST_SECOND - 1])
def test_times_that_spark_cannot_read_are_named(
    spark: SparkSession, tmp_path: Path, way: str, second: int
) -> None:
    path = in_seconds(tmp_path / "far.parquet", 5, second)
    near = in_seconds(tmp_path / "near.parquet", 5, 7)
    words = r"right: the column 'time' .*beyond ±9,223,372,036,854,775 in .*far.parquet, .*micros"
    with pytest.raises(BeyondMicroseconds, match=words):
        join_files(spark, near, path, SAME_TIME, way=way, **INSTANTS)
    assert join_files(spark, near, path, SAME_TIME, way="files", **INSTANTS).count() == 1


def test_the_last_times_that_spark_can_read(spark: SparkSession, tmp_path: Path) -> None:
    near = in_seconds(tmp_path / "a.parquet", 5, LAST_SECOND, -LAST_SECOND)
    assert join_files(spark, near, near, SAME_TIME, way="broadcast", **INSTANTS).count() == 1


def test_times_that_spark_cannot_read_and_nobody_needs(spark: SparkSession, tmp_path: Path) -> None:
    path = in_seconds(tmp_path / "a.parquet", 5, LAST_SECOND + 1)
    table = pq.read_table(path)
    pq.write_table(table.set_column(1, "time", pa.array([5, 6], pa.timestamp("s", "UTC"))), path)
    assert join_files(spark, path, path, SAME_TIME, way="broadcast", **INSTANTS).count() == 2


def test_times_that_spark_cannot_read_without_statistics(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = in_seconds(tmp_path / "far.parquet", 5, LAST_SECOND + 1, write_statistics=False)
    words = r"far\.parquet holds times that Spark cannot read, .*microseconds"
    with pytest.raises(BeyondMicroseconds, match=words):
        join_files(spark, path, path, SAME_TIME, way="broadcast", **INSTANTS)
    frame = spark.read.parquet(str(path))
    with pytest.raises(BeyondMicroseconds, match=words):
        correlate(frame, frame, SAME_TIME, **INSTANTS)


def test_text_keys_may_be_stored_in_two_ways(spark: SparkSession, tmp_path: Path) -> None:
    left, right, want = large_keys(tmp_path)
    frame = join_files(spark, left, right, CONDITION, by="key", way="files")
    assert sorted_table(frame.toArrow().cast(want.schema)).equals(sorted_table(want))
    out = tmp_path / "out"
    join_files(spark, left, right, CONDITION, by="key", way="files", output=out)
    assert sorted_table(spark.read.parquet(f"file://{out}").toArrow().cast(want.schema)).equals(
        sorted_table(want)
    )


def test_bad_rows_leave_no_output(spark: SparkSession, tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    bad = tmp_path / "bad.parquet"
    pq.write_table(stream(100, 1), good)
    pq.write_table(pa.table({"id": [1], "min_time": [9], "max_time": [8]}), bad)
    with pytest.raises(DataError, match="right: min above max"):
        join_files(spark, good, bad, CONDITION, output=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.parquet", "good.parquet"]
    frame = join_files(spark, good, bad, CONDITION)
    with pytest.raises(PythonException, match="right: min above max"):
        frame.collect()
    options = CorrelateOptions(invalid="drop")
    done = join_files(spark, good, bad, CONDITION, output=tmp_path / "out", options=options)
    assert (done.right.rows, done.right.invalid) == (1, {"order": 1})


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"way": "fast"}, ConditionError, "way"),
        ({"overwrite": True}, ConditionError, "overwrite=True needs an output"),
        ({"emit": "all"}, ConditionError, "emit"),
        ({"left_columns": "name"}, SchemaError, "left has no column 'name'"),
        ({"output": "/nowhere/at/all"}, DataError, "does not exist. Make it first"),
    ],
)
def test_wrong_arguments(
    spark: SparkSession,
    sides: tuple[Path, Path],
    arguments: dict[str, object],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        join_files(spark, *sides, CONDITION, **arguments)


def test_what_stands_in_the_place_of_another_argument(
    spark: SparkSession, sides: tuple[Path, Path]
) -> None:
    left, right = map(str, sides)
    with pytest.raises(
        SchemaError, match=r"spark, the first argument, must be a SparkSession .found str"
    ):
        correlate_files(left, right, CONDITION)  # type: ignore[arg-type]
    frame = spark.read.parquet(left)
    with pytest.raises(
        SchemaError, match=r"left must be a file.*found pyspark.DataFrame.. Use correlate"
    ):
        correlate_files(spark, frame, right, CONDITION)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match=r"right must be a file.*found pyarrow.Table"):
        correlate_files(spark, left, pq.read_table(right), CONDITION)  # type: ignore[arg-type]
    with pytest.raises(ConditionError, match=r"right must be events \(found a condition\)"):
        correlate_files(spark, left, CONDITION)  # type: ignore[arg-type]
