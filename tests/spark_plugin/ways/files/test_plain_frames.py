"""DataFrames that are nothing but reads of Parquet files go the direct way by themselves, others do not."""

from __future__ import annotations

import datetime as dt
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide import (
    CorrelateOptions,
    JoinReport,
    TimingCondition,
    correlate,
    within,
)
from coincide.engine.files.planning import NotDirect
from coincide.model.errors import SchemaError
from spark_plugin.frames import plain_reads
from tests.helpers.planning import set_limits
from tests.helpers.rows import sorted_table
from tests.spark_plugin.ways.files.test_direct_join import stream
from tests.spark_plugin.ways.files.test_direct_spark import CONDITION, expected

pytestmark = pytest.mark.spark


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "left 100%.parquet", tmp_path / "right.parquet"
    for seed, path in enumerate(paths):
        table = stream(2000, seed)
        keys = pa.array([i % 5 for i in range(2000)])
        pq.write_table(table.append_column("key", keys), path, row_group_size=500)
    return paths


NEEDED = ["id", "min_time", "max_time"]


def plain_read(frame: DataFrame, needed: Sequence[str] = NEEDED) -> tuple[str, ...] | None:
    """The files that a DataFrame reads as they are."""
    found = plain_reads.plain_read(frame, needed)
    return None if found is None else found.paths


def read(spark: SparkSession, sides: tuple[Path, Path]) -> list[DataFrame]:
    return [spark.read.parquet(str(path)) for path in sides]


def way_of(left: DataFrame, right: DataFrame, **arguments: Any) -> str:
    """The way that is planned."""
    report = JoinReport()
    correlate(left, right, **{"condition": CONDITION, **arguments}, report=report)
    way = report._so_far.way
    assert way is not None
    return way


PLAIN: dict[str, Callable[[DataFrame], DataFrame]] = {
    "the read itself": lambda frame: frame,
    "columns": lambda frame: frame.select("max_time", "min_time", "id"),
    "dropped columns": lambda frame: frame.drop("key"),
    "a name": lambda frame: frame.alias("events").select("events.*"),
    "a column renamed and back": lambda frame: frame.withColumnRenamed("id", "n").toDF(
        *("id" if name == "id" else name for name in frame.columns)
    ),
    "computed columns beside": lambda frame: frame.select(
        "*",
        "_metadata.file_name",
        F.col("id").cast("string").alias("text"),
        F.rand().alias("chance"),
    ),
}


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN.keys())
def test_a_plain_read_is_joined_directly(
    spark: SparkSession, sides: tuple[Path, Path], make: Callable[[DataFrame], DataFrame]
) -> None:
    left, right = map(make, read(spark, sides))
    assert plain_read(left) == (str(sides[0]),)
    report = JoinReport()
    found = correlate(left, right, CONDITION, report=report)
    assert sorted_table(found.toArrow().cast(expected(sides).schema)) == sorted_table(
        expected(sides)
    )
    assert report.summary().way == "files"
    assert report.summary().left.rows == 2000


def test_a_named_read_is_joined_directly(
    spark: SparkSession, sides: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    left, right = read(spark, sides)
    with caplog.at_level(logging.INFO, "coincide"):
        way = way_of(left.alias("named").select("id", "min_time", "max_time"), right)
    assert way == "files"
    (told,) = [each for each in caplog.messages if each.startswith("correlate: ")]
    assert told.startswith("correlate: by files, ")


def test_a_view_is_no_plain_read(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    read(spark, sides)[0].createOrReplaceTempView("of_files")
    assert plain_read(spark.table("of_files"), ["id", "min_time", "max_time"]) is None


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
        pa.struct([("x", pa.list_(pa.dictionary(pa.int32(), pa.string())))]),
    ],
)
def test_dictionaries_within_others_are_read_by_spark(
    spark: SparkSession, sides: tuple[Path, Path], kind: pa.DataType
) -> None:
    table = pq.read_table(sides[0])
    value = ["a"] if pa.types.is_list(kind) else {"x": ["a"]}
    table = table.append_column("tags", pa.array([value] * table.num_rows, kind))
    pq.write_table(table, sides[0], row_group_size=500)
    left, right = read(spark, sides)
    assert way_of(left, right) == "files"
    assert way_of(left, right, left_columns=["id", "tags"]) != "files"


def test_that_nobody_looks_is_told_unless_there_is_a_report(
    spark: SparkSession, sides: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    left, right = read(spark, sides)
    with caplog.at_level(logging.INFO, "coincide"):
        correlate(left, right, CONDITION)
        told = len(caplog.messages)
        assert caplog.messages[-1].endswith("of nulls and of a join without pairs")
        correlate(left, right, CONDITION, report=JoinReport())
    assert not any("JoinReport()" in each for each in caplog.messages[told:])


MORE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a filter": lambda frame: frame.where("id >= 0"),
    "a limit": lambda frame: frame.limit(5000),
    "a sample": lambda frame: frame.sample(0.99, 1),
    "a hint": lambda frame: frame.hint("broadcast"),
    "a cast": lambda frame: frame.withColumn("id", F.col("id").cast("string")),
    "a cast below a new name": lambda frame: (
        frame.withColumn("n", F.col("id") + 1).drop("id").withColumnRenamed("n", "id")
    ),
    "a field of a struct": lambda frame: frame.withColumn("id", F.struct("id")).withColumn(
        "id", F.col("id.id")
    ),
    "a union": lambda frame: frame.unionAll(frame),
    "no doubles": lambda frame: frame.distinct(),
    "a new order": lambda frame: frame.orderBy("id"),
    "a repartition": lambda frame: frame.repartition(2),
    "a column twice": lambda frame: frame.select("*", "id"),
    "metadata": lambda frame: frame.drop("id").withColumn("id", F.col("_metadata.file_name")),
    "memory": lambda frame: frame.sparkSession.createDataFrame(frame.toArrow()),
}


@pytest.mark.parametrize("make", MORE.values(), ids=MORE.keys())
def test_anything_more_is_no_plain_read(
    spark: SparkSession, sides: tuple[Path, Path], make: Callable[[DataFrame], DataFrame]
) -> None:
    assert plain_read(make(spark.read.parquet(str(sides[0])))) is None


def test_what_is_cached_is_no_plain_read(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    frame = spark.read.parquet(str(sides[0])).cache()
    try:
        assert plain_read(spark.read.parquet(str(sides[0]))) is None
    finally:
        frame.unpersist()
    assert plain_read(spark.read.parquet(str(sides[0]))) is not None


def test_what_is_cached_once_it_was_run_is_no_plain_read(
    spark: SparkSession, sides: tuple[Path, Path]
) -> None:
    """A DataFrame that was run remembers what was cached then."""
    left, right = read(spark, sides)
    before = correlate(left, right, CONDITION).count()
    left.count()
    assert plain_read(left) is not None
    left.cache().count()
    try:
        pq.write_table(stream(1000, 7), sides[0])
        assert plain_read(left) is None
        assert correlate(left, right, CONDITION).count() == before
    finally:
        left.unpersist()
    assert plain_read(left) is not None


def test_options_and_doubles_are_no_plain_reads_and_folders_are(
    spark: SparkSession, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    path = str(sides[0])
    assert plain_read(spark.read.option("mergeSchema", "true").parquet(path)) is None
    assert plain_read(spark.read.parquet(path, path)) is None
    part = tmp_path / "parts" / "day=1"
    part.mkdir(parents=True)
    shutil.copy(path, part / "a.parquet")
    whole = spark.read.parquet(str(part.parent))
    assert plain_read(whole, ["id", "day"]) == (str(part / "a.parquet"),)
    assert plain_read(whole, ["id", "min_time"]) == (str(part / "a.parquet"),)
    assert plain_read(whole.where("day = 1"), ["id"]) == (str(part / "a.parquet"),)
    assert plain_read(whole.where("day = 1 AND id > 0"), ["id"]) is None
    assert plain_read(spark.read.parquet(str(part))) == (str(part / "a.parquet"),)
    assert plain_read(spark.read.format("json").load(path)) is None
    odd = tmp_path / "odd"
    odd.mkdir()
    shutil.copy(path, odd / "a[1].parquet")  # PyArrow would take the name for a pattern
    assert plain_read(spark.read.parquet(str(odd))) is None


def test_what_spark_lists_and_does_not_read(
    spark: SparkSession, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "summarized"
    folder.mkdir()
    shutil.copy(sides[0], folder / "a.parquet")
    summary = pq.read_metadata(folder / "a.parquet")
    summary.set_file_path("a.parquet")
    summary.write_metadata_file(str(folder / "_metadata"))
    assert plain_read(spark.read.parquet(str(folder))) == (str(folder / "a.parquet"),)
    hidden = folder / "_b.parquet"
    shutil.copy(sides[0], hidden)
    assert plain_read(spark.read.schema("id BIGINT").parquet(str(hidden)), ["id"]) is None


def test_a_table_of_a_catalog_is_no_plain_read(
    spark: SparkSession, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "table"
    folder.mkdir()
    shutil.copy(sides[0], folder / "a.parquet")
    spark.sql(f"CREATE TABLE of_a_catalog USING parquet LOCATION '{folder}'")
    try:
        assert plain_read(spark.table("of_a_catalog")) is None
    finally:
        spark.sql("DROP TABLE of_a_catalog")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION"),
        ("spark.sql.legacy.parquet.datetimeRebaseModeInRead", "LEGACY"),
    ],
)
def test_settings_by_which_spark_reads_otherwise(
    spark: SparkSession, sides: tuple[Path, Path], name: str, value: str
) -> None:
    spark.conf.set(name, value)
    try:
        assert plain_read(spark.read.parquet(str(sides[0]))) is None
    finally:
        spark.conf.unset(name)
    assert plain_read(spark.read.parquet(str(sides[0]))) is not None


def test_columns_that_are_found_by_ids_are_read_by_spark(
    spark: SparkSession, sides: tuple[Path, Path]
) -> None:
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    try:
        frame = spark.read.parquet(str(sides[0]))
        assert plain_read(frame) is not None
        fields = [
            T.StructField(f.name, f.dataType, f.nullable, {"parquet.field.id": i})
            for i, f in enumerate(frame.schema.fields)
        ]
        named = spark.read.schema(T.StructType(fields)).parquet(str(sides[0]))
        assert plain_read(named) is None
    finally:
        spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


def test_what_was_planned_otherwise_stays_so(
    spark: SparkSession, sides: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = read(spark, sides)
    assert way_of(*frames, options=CorrelateOptions(way="exchange")) != "files"
    module = "spark_plugin.ways.files.plain_frames.is_accelerated"
    monkeypatch.setattr(module, lambda spark: True)
    assert way_of(*frames) != "files"


def test_a_given_schema_is_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    """With a schema of another type Spark casts, or fills nulls: it alone knows how."""
    path = tmp_path / "small.parquet"
    rows = {"id": pa.array([1], pa.int32()), "min_time": [1], "max_time": [1]}
    pq.write_table(pa.table(rows), path)
    given = spark.read.schema("id BIGINT, min_time BIGINT, max_time BIGINT").parquet(str(path))
    assert plain_read(given) is not None  # the plan does not tell
    assert way_of(given, given) != "files"
    assert correlate(given, given, CONDITION).schema["left_id"].dataType.simpleString() == "bigint"


def test_columns_left_out_are_not_found_in_the_files(
    spark: SparkSession, sides: tuple[Path, Path]
) -> None:
    left, right = read(spark, sides)
    with pytest.raises(SchemaError, match="left has no column 'id'"):
        correlate(left.drop("id"), right, CONDITION)


@pytest.mark.parametrize("way", ["exchange", "broadcast-right"])
def test_a_named_way_is_gone(spark: SparkSession, sides: tuple[Path, Path], way: Any) -> None:
    options = CorrelateOptions(way=way)
    assert way_of(*read(spark, sides), options=options) == way.removesuffix("-right")


def test_what_is_dropped_unseen_is_counted_by_a_look(
    spark: SparkSession, sides: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a report the direct way does not count invalid rows."""
    set_limits(monkeypatch, both_bytes=-1)  # whose plan has a range, too
    left, right = read(spark, sides)
    drop = CorrelateOptions(invalid="drop")
    plan = correlate(left, right, CONDITION, options=drop)._jdf.queryExecution().toString()
    assert "range" not in plan.lower()
    assert way_of(left, right, options=drop) == "files"


def test_the_direct_way_can_be_asked_for(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, right = read(spark, sides)
    direct = CorrelateOptions(way="files")
    assert way_of(left, right, options=direct) == "files"
    with pytest.raises(NotDirect, match="right is a DataFrame that does more than read local"):
        correlate(left, right.where("id > 3"), CONDITION, options=direct)


def test_a_file_that_changes_is_an_error(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, right = read(spark, sides)
    found = correlate(left, right, CONDITION)
    pq.write_table(stream(2000, 7), sides[0], row_group_size=500)
    with pytest.raises(PythonException, match="has changed since planning"):
        found.count()


def test_invalid_rows_are_told_where_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"id": [1], "min_time": [2], "max_time": [1]}), path)
    frame = spark.read.parquet(str(path))
    with pytest.raises(PythonException, match="min above max in min_time and max_time"):
        correlate(frame, frame, CONDITION).count()
    named = frame.withColumnsRenamed({"min_time": "begin", "max_time": "end"})
    with pytest.raises(PythonException, match=r"left: .*min above max in begin and end"):
        correlate(named, frame, CONDITION, left_time=("begin", "end")).count()
    with pytest.raises(SchemaError, match=r"left has no column 'from' .found 'id', 'begin', 'end'"):
        correlate(named, frame, CONDITION, left_time=("from", "end"))


def test_files_without_order_are_exchanged(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "shuffled.parquet"
    table = stream(800, 1)
    order = [(i * 237) % 800 for i in range(800)]
    pq.write_table(table.take(order), path, row_group_size=10)
    frame = spark.read.parquet(str(path))
    options = CorrelateOptions(slices=8)
    assert plain_read(frame) is not None
    assert way_of(frame, frame, options=options) != "files"


def test_wall_clocks_read_as_instants_are_read_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "walls.parquet"
    wall = pa.array([dt.datetime(2020, 2, 29, 1)], pa.timestamp("us"))
    pq.write_table(pa.table({"id": [1], "min_time": wall, "max_time": wall}), path)
    spark.conf.set("spark.sql.parquet.inferTimestampNTZ.enabled", "false")
    try:
        frame = spark.read.parquet(str(path))
        condition = TimingCondition(within("-300us", "100us"), 0.7)
        assert way_of(frame, frame, condition=condition) != "files"
    finally:
        spark.conf.unset("spark.sql.parquet.inferTimestampNTZ.enabled")
