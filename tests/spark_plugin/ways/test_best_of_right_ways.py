"""The best left match of each right event on every way: the rows and columns of `correlate_tables`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    JoinReport,
    TimingCondition,
    correlate,
    correlate_files,
    correlate_streams,
    correlate_tables,
    overlapping,
    register_source,
    spans,
    stream_tables,
    within,
)
from coincide.command_line import run
from tests.helpers.joins import local_files_join
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import frame

CONDITION = TimingCondition(within(-20, 60), 0.5)
GIVEN: dict[str, Any] = {
    "how": "right", "emit": "best", "by": [("key", "of")], "left_columns": ["id", "size"],
    "right_columns": ["id"], "where": "left_size <= right_size", "probability": True,
    "pair_columns": "delta", "prefer": ["nearest", "-size"], "k": 2,
}  # fmt: skip
WORDS = [
    *("--within", "-20", "60", "--confidence", "0.5", "--how", "right", "--emit", "best"),
    *("--by", "key=of", "--left-columns", "id,size", "--right-columns", "id", "--probability"),
    *(
        "--where",
        GIVEN["where"],
        "--pair-columns",
        "delta",
        "--prefer",
        "nearest,-size",
        "--k",
        "2",
    ),
]
NAMES = ["key", "left_id", "left_size", "right_id", "delta", "probability", "rank"]


def events(n: int, seed: int, key: str, kind: pa.DataType) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 3000, n))
    return pa.table({
        "min_time": pa.array(low, mask=rng.random(n) < 0.04),
        "max_time": low + rng.choice([0, 10, 90], n, p=[0.6, 0.3, 0.1]),
        "id": np.arange(n), "size": rng.integers(0, 3, n),
        key: pa.array(rng.integers(0, 3, n), kind, mask=rng.random(n) < 0.05),
    })  # fmt: skip


SIDES = events(160, 1, "key", pa.int64()), events(120, 2, "of", pa.int32())


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    found = correlate_tables(*SIDES, CONDITION, **GIVEN)
    assert found.column_names == NAMES
    assert found["left_id"].null_count > 20
    assert found["rank"].to_pylist().count(2) > 10
    assert min(each for each in found["delta"].to_pylist() if each is not None) < 0
    return found


def written(folder: Path) -> list[str]:
    paths = [folder / "left.parquet", folder / "right.parquet"]
    for path, table in zip(paths, SIDES, strict=True):
        pq.write_table(table, path, row_group_size=16)
    return [str(path) for path in paths]


@pytest.mark.spark
@pytest.mark.parametrize("way", ["exchange", "broadcast-left", "broadcast-right", "auto"])
def test_of_frames(spark: SparkSession, small_slices: None, expected: pa.Table, way: str) -> None:
    frames = [frame(spark, table).repartition(3) for table in SIDES]
    options = CorrelateOptions(way=way, slices=6 if way == "exchange" else None)  # type: ignore[arg-type]
    report = JoinReport()
    table = correlate(*frames, CONDITION, options=options, report=report, **GIVEN).toArrow()
    assert table.column_names == NAMES
    assert table["key"].type == pa.int64()
    assert in_order(table) == in_order(expected)
    told = report.summary()
    assert (told.left.rows, told.right.rows, told.sides) == (160, 120, ("left", "right"))
    assert "with left and right swapped" in told.why
    if way.startswith("broadcast"):
        small = {"broadcast-left": "right", "broadcast-right": "left"}[way]
        assert f"swapped, {small} to every worker" in told.why


@pytest.mark.spark
@pytest.mark.parametrize(
    "way", ["exchange", "broadcast-left", "broadcast-both", "files", "broadcast-right"]
)
def test_aggregates_of_right_events(
    spark: SparkSession, small_slices: None, tmp_path: Path, way: str
) -> None:
    """Every way gives those of tables, to the bit."""
    given: dict[str, Any] = {
        "by": [("key", "of")], "confidence": 0.5, "within": (-20, 60), "how": "right",
        "emit": "aggregates", "right_columns": ["id"], "left_time": ("min_time", "max_time"),
        "aggregates": {
            "n": "count", "size": ("size", "sum"), "low": ("delta", "min"), "usual": ("delta", "mean"),
        },
    }  # fmt: skip
    wanted = correlate_tables(*SIDES, **given)
    assert wanted.column_names == ["key", "right_id", "n", "size", "low", "usual"]
    options = CorrelateOptions(way=way, slices=6 if way in ("exchange", "files") else None)  # type: ignore[arg-type]
    if way == "files":
        found = correlate_files(spark, *written(tmp_path), options=options, **given)
    else:
        frames = [frame(spark, each).repartition(3) for each in SIDES]
        found = correlate(*frames, options=options, **given)
    table = found.toArrow()  # type: ignore[union-attr]
    assert table.schema.types == wanted.schema.types
    assert in_order(table) == in_order(wanted)


@pytest.mark.spark
@pytest.mark.parametrize(
    "way", ["exchange", "broadcast-left", "broadcast-right", "broadcast-both", "files"]
)
def test_a_right_key_may_be_called_as_an_output_column(
    spark: SparkSession, small_slices: None, tmp_path: Path, way: str
) -> None:
    """The output has the left name of a key, so `left_id` of the right side is no second column."""
    tables = SIDES[0], SIDES[1].rename_columns({"of": "left_id"})
    given: dict[str, Any] = {"by": [("key", "left_id")], "confidence": 0.5, "within": (-20, 60)}
    options = CorrelateOptions(way=way, slices=6 if way in ("exchange", "files") else None)  # type: ignore[arg-type]
    for how, emit in (("right", "best"), ("full", "pairs"), ("right", "pairs")):
        given |= {"how": how, "emit": emit}
        wanted = correlate_tables(*tables, **given)
        if way == "files":
            paths = [tmp_path / name for name in ("left.parquet", "right.parquet")]
            for path, table in zip(paths, tables, strict=True):
                pq.write_table(table, path, row_group_size=16)
            found = correlate_files(spark, *map(str, paths), options=options, **given).toArrow()
        else:
            frames = [frame(spark, table).repartition(3) for table in tables]
            found = correlate(*frames, options=options, **given).toArrow()
        assert found.column_names == ["key", "left_id", "right_id"]
        assert in_order(found) == in_order(wanted)


@pytest.mark.spark
def test_of_files_on_spark(spark: SparkSession, tmp_path: Path, expected: pa.Table) -> None:
    paths = written(tmp_path)
    given = {**GIVEN, "options": CorrelateOptions(way="files", slices=5)}
    report = JoinReport()
    found = correlate_files(spark, *paths, CONDITION, report=report, **given).toArrow()
    assert found.column_names == NAMES
    assert in_order(found) == in_order(expected)
    assert (report.summary().left.rows, report.summary().right.rows) == (160, 120)
    reads = [spark.read.parquet(path) for path in paths]
    plain = correlate(*reads, CONDITION, report=report, **given).toArrow()
    assert in_order(plain) == in_order(expected)
    assert (report.summary().way, report.summary().left.rows) == ("files", 160)
    done = correlate_files(spark, *paths, CONDITION, output=tmp_path / "out", **given)
    table = pq.read_table(tmp_path / "out")
    assert table.column_names == NAMES
    assert in_order(table) == in_order(expected)
    assert (done.left.rows, done.right.rows, done.sides) == (160, 120, ("left", "right"))
    register_source(spark)
    words = {
        "within": "-20,60", "confidence": "0.5", "by": "key=of", "left_columns": "id,size",
        "right_columns": "id", "where": GIVEN["where"], "probability": "true", "slices": "3",
        "how": "right", "emit": "best", "prefer": "nearest,-size", "k": "2",
        "pair_columns": "delta", "left": paths[0], "right": paths[1],
    }  # fmt: skip
    source = spark.read.format("coincide").options(**words).load()
    assert in_order(source.toArrow()) == in_order(expected)


def test_of_files_in_one_process(tmp_path: Path, expected: pa.Table) -> None:
    options = CorrelateOptions(way="files", slices=5)
    job = local_files_join(*written(tmp_path), CONDITION, options=options, **GIVEN)
    found = pa.Table.from_batches(job.batches(), job.schema)
    assert found.schema.equals(expected.schema)
    assert in_order(found) == in_order(expected)
    assert (job.summary.left.rows, job.summary.right.rows) == (160, 120)


def test_files_without_a_pair_are_explained_from_left_to_right(tmp_path: Path) -> None:
    given = {**GIVEN, "where": None}
    job = local_files_join(*written(tmp_path), TimingCondition(within(5000, 6000), 0.5), **given)
    pa.Table.from_batches(job.batches(), job.schema)
    direct = job.summary.no_pairs
    given = {**given, "how": "left"}
    del given["prefer"]
    other = local_files_join(*written(tmp_path), TimingCondition(within(5000, 6000), 0.5), **given)
    pa.Table.from_batches(other.batches(), other.schema)
    assert direct is not None
    assert direct == other.summary.no_pairs


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("csv", ["--engine", "local"]), ("parquet", ["--engine", "local", "--way", "files"]),
        pytest.param("parquet", ["--engine", "spark"], marks=pytest.mark.spark),
        pytest.param("parquet", ["--way", "exchange", "--slices", "3"], marks=pytest.mark.spark),
    ],
    ids=str,
)  # fmt: skip
def test_on_the_command_line(
    tmp_path: Path, expected: pa.Table, ending: str, words: list[str]
) -> None:
    paths = written(tmp_path)
    if ending == "csv":
        paths = [str(tmp_path / "left.csv"), str(tmp_path / "right.csv")]
        for path, table in zip(paths, SIDES, strict=True):
            pyarrow.csv.write_csv(table, path)
    out = tmp_path / "out.parquet"
    assert run(["join", *paths, "-o", str(out), *WORDS, *words]) == 0
    table = pq.read_table(out)
    assert table.column_names == NAMES
    assert in_order(table) == in_order(expected)


def test_the_preferred_column_is_one_of_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = SIDES
    alone = {**GIVEN, "where": None, "prefer": "-size", "k": 1}
    found = correlate_tables(left, right.drop_columns("size"), CONDITION, **alone)
    assert found.equals(correlate_tables(left, right, CONDITION, **alone))
    paths = written(tmp_path)
    pq.write_table(left.drop_columns("size"), paths[0])
    words = ["--within", "0", "9", "--confidence", "0.5", "--how", "right", "--emit", "best"]
    words += ["--prefer", "-size", "--engine", "spark", "-o", str(tmp_path / "out")]
    assert run(["join", *paths, *words]) == 2
    assert "left has no column 'size'" in capsys.readouterr().err


def test_ends_of_overlaps_have_the_type_of_left_starts() -> None:
    sides = [
        pa.table({
            "id": [1], "start": pa.array([begin], pa.timestamp(unit)),
            "end": pa.array([begin + 4], pa.timestamp(unit)),
        })
        for begin, unit in ((10, "ms"), (12_000, "us"))
    ]  # fmt: skip
    time = spans("start", "end")
    asked: dict[str, Any] = {"left_time": time, "right_time": time, "emit": "best"}
    asked["pair_columns"] = ["overlap_start"]
    found = [
        correlate_tables(*sides, overlapping(), how=how, **asked)["overlap_start"]
        for how in ("right", "left")
    ]
    assert found[0].equals(found[1])


@pytest.mark.spark
def test_streams_refuse_it_in_words(spark: SparkSession) -> None:
    with pytest.raises(ConditionError, match="In streams swap the sides"):
        stream_tables(CONDITION, left_delay=1, right_delay=1, how="right", emit="best")
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "timestamp AS t")
    with pytest.raises(ConditionError, match="slices of streams are closed for left events"):
        correlate_streams(
            stream, stream, within=("0s", "1s"), left_time="t", right_time="t", left_delay="1s",
            right_delay="1s", how="right", emit="best",
        )  # fmt: skip
