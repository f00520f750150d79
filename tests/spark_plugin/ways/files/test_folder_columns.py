"""Columns that folders name, ``day=2026-01-01/``, are columns of files: with the values that Spark has."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CorrelateOptions,
    JoinReport,
    around,
    correlate,
    correlate_tables,
    sequence_tables,
    sequences,
)
from coincide.engine.files.planning import NotDirect
from spark_plugin.frames.plain_reads import plain_read
from tests.helpers.rows import lists_in_order

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]

NONE = "__HIVE_DEFAULT_PARTITION__"


def written(folder: Path, table: pa.Table, *columns: str, group: int = 50) -> None:
    """Write rows to a file for each distinct run of texts of some columns, which only folders tell."""
    texts = [table.column(name).to_pylist() for name in columns]
    places: dict[tuple[str, ...], list[int]] = {}
    for row, told in enumerate(zip(*texts, strict=True)):
        places.setdefault(tuple(NONE if each is None else each for each in told), []).append(row)
    rest = table.drop_columns(list(columns))
    for told, rows in places.items():
        names = [f"{n}={quote(v, safe=' .-+')}" for n, v in zip(columns, told, strict=True)]
        inside = folder.joinpath(*names)
        inside.mkdir(parents=True)
        pq.write_table(rest.take(rows), inside / "a.parquet", row_group_size=group)


def as_spark_reads(frame: DataFrame) -> pa.Table:
    """All rows, read by Spark, with instants in the zone of files."""
    table = frame.toArrow()
    kinds = [
        pa.timestamp("us", "UTC") if str(k).startswith("timestamp") else k
        for k in table.schema.types
    ]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))


_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0*?[]{}\\", exclude_categories=("Cs", "Cc")),
    min_size=1, max_size=6,
).filter(lambda text: text.isprintable() and not set(text) <= set("."))  # fmt: skip
FOLDER_VALUES = {
    "whole": st.integers(-(2**40), 2**40).map(str),
    "long": st.integers(2**70, 2**80).map(str),
    "float": st.floats(-1e6, 1e6).map(repr),
    "date": st.dates().map(str),
    "instant": st.datetimes(dt.datetime(1000, 1, 1)).map(lambda at: f"{at:%Y-%m-%d %H:%M:%S}.5"),
    "text": st.one_of(_TEXTS, st.sampled_from(["null", "a,b", "],file:", "é", "%41", "=", "x=y"])),
}


def drawn(data: st.DataObject, folder: Path) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """Write files, one for each row, in folders that name one to three columns; their names and rows."""
    kinds = data.draw(st.lists(st.sampled_from(sorted(FOLDER_VALUES)), min_size=1, max_size=3))
    names = [f"c {i}" if i == 1 else f"c{i}" for i in range(len(kinds))]
    row = st.tuples(*(st.one_of(st.just(None), FOLDER_VALUES[kind]) for kind in kinds))
    rows = data.draw(st.lists(row, min_size=1, max_size=6, unique=True))
    columns = {name: pa.array([r[i] for r in rows], pa.string()) for i, name in enumerate(names)}
    written(folder, pa.table({"id": range(len(rows)), **columns}), *names)
    return names, rows


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_values_of_folders_are_those_of_spark(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("told") / "events"
    names, _ = drawn(data, folder)
    inferred = data.draw(st.booleans())
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", str(inferred))
    try:
        frame = spark.read.parquet(str(folder))
        expected = as_spark_reads(frame.select("id", *names))
    finally:
        spark.conf.unset("spark.sql.sources.partitionColumnTypeInference.enabled")
    read = plain_read(frame, ["id", *names])
    if pa.null() in expected.schema.types:  # no folder tells a value, so that there is no type
        assert read is None
        return
    assert read is not None
    constants = read.names.constants
    found = pa.concat_tables(
        pa.table(
            [
                pq.read_table(path, partitioning=None)["id"],
                *(constants.column(n, path, 1) for n in names),
            ],
            ["id", *names],
        )
        for path in read.paths
    )
    assert found.schema.types == expected.schema.types
    assert found.sort_by("id").to_pylist() == expected.sort_by("id").to_pylist()


def events(seed: int, size: int = 400) -> pa.Table:
    """Events of three days and four texts, in order of time."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, 6_000, size))
    texts = np.array(["a,b", "null", "Zürich 1", "07"])[rng.integers(0, 4, size)]
    return pa.table({
        "id": np.arange(size) + 1_000 * seed,
        "min_time": at, "max_time": at + rng.integers(0, 40, size),
        "text": pa.array(texts, mask=rng.random(size) < 0.1),
        "part": [None if rng.random() < 0.1 else str(p) for p in at // 1_500],
        "value": rng.normal(size=size),
    })  # fmt: skip


@pytest.fixture
def sides(spark: SparkSession, tmp_path: Path) -> tuple[DataFrame, DataFrame]:
    for seed in (1, 2):
        written(tmp_path / str(seed), events(seed), "part", "text")
    left, right = (spark.read.parquet(str(tmp_path / str(seed))) for seed in (1, 2))
    assert left.schema["part"].dataType.simpleString() == "int"
    return left, right


WITHIN: dict[str, Any] = {"within": (-20, 60), "confidence": 0.4}
QUESTIONS: dict[str, dict[str, Any]] = {
    "a key": {"by": "text"},
    "a key of numbers": {"by": ["part"], "probability": True},
    "both keys": {"by": ["text", "part"], "left_columns": ["id", "value"]},
    "output": {"left_columns": ["part", "id", "text"], "right_columns": ["text"]},
    "only output": {"left_columns": ["part"], "right_columns": ["text"]},
    "a condition": {"where": "left_text <= right_text AND left_part = right_part"},
    "all columns": {"left_columns": "*", "right_columns": "*"},
    "counts": {"emit": "counts", "by": "text"},
    "without a match": {"how": "anti", "by": "text"},
    "both sides": {"how": "full", "by": "part", "left_columns": ["id", "text"]},
    "sums": {
        "emit": "aggregates",
        "by": "text",
        "aggregates": {"n": "count", "m": ("part", "max")},
    },
}


@pytest.mark.parametrize("way", ["files", "exchange", "broadcast-right"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_columns_of_folders_are_as_columns_of_files(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame], name: str, way: Any
) -> None:
    asked = {**WITHIN, **QUESTIONS[name]}
    found = correlate(*sides, **asked, options=CorrelateOptions(way=way, slices=None))
    scans = str(found._jdf.queryExecution().optimizedPlan().toString()).count("parquet")
    assert scans == 0 or way == "broadcast-right"
    expected = correlate_tables(*map(as_spark_reads, sides), **asked)
    table = found.toArrow()
    assert table.num_rows
    assert lists_in_order(table) == lists_in_order(expected.cast(table.schema))


TIMES: dict[str, tuple[list[str | None], dict[str, Any]]] = {
    "whole numbers": (
        [str(i) for i in (*range(0, 400, 7), -5)] + [None],
        {"left_time": "part", "right_time": "part", "within": (-20, 60)},
    ),
    "one end": (
        ["0", "3000", "7000", None],
        {"left_time": ("min_time", "part"), "right_time": ("min_time", "part"),
         "within": (0, 4000), "confidence": 0.3},
    ),
    "dates": (
        [f"2026-0{i}-1{j}" for i in (1, 3, 9) for j in (0, 3)] + [None],
        {"left_time": "part", "right_time": "part", "within": ("0s", "3d")},
    ),
    "instants": (
        [f"2026-0{i}-1{j} 0{j}:30:00.5" for i in (1, 3, 9) for j in (0, 3)] + [None],
        {"left_time": "part", "right_time": "part", "within": ("0s", "3d")},
    ),
    "errors": (
        ["1", "20", None],
        {"left_time": around("min_time", column="part"), "right_time": around("min_time", column="part"),
         "within": (-20, 60), "confidence": 0.6},
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", ["files", "exchange", "auto"])
@pytest.mark.parametrize("name", TIMES)
def test_times_and_errors_of_folders(
    spark: SparkSession, tmp_path: Path, name: str, way: Any
) -> None:
    values, asked = TIMES[name]
    frames = []
    for seed in (1, 2):
        table = events(seed).drop_columns(["text", "part"])
        rng = np.random.default_rng(seed)
        table = table.set_column(2, "max_time", pa.array(rng.integers(0, 50, len(table))))
        parts = pa.array([values[i] for i in np.sort(rng.integers(0, len(values), len(table)))])
        written(tmp_path / str(seed), table.append_column("part", parts), "part")
        frames.append(spark.read.parquet(str(tmp_path / str(seed))))
    longest = 40 if name == "errors" else None  # without it, footers do not bound such events
    drop = CorrelateOptions(invalid="drop", left_longest=longest, right_longest=longest)
    options, report = replace(drop, way=way), JoinReport()
    asked = {"confidence": 1.0, **asked}
    found = correlate(*frames, **asked, options=options, report=report)
    expected = correlate_tables(*map(as_spark_reads, frames), **asked, options=drop)
    table = found.toArrow()
    assert table.num_rows
    assert lists_in_order(table) == lists_in_order(expected.cast(table.schema))
    assert report.summary().way == ("files" if way == "auto" else way)


def test_what_folders_say_goes_before_what_files_say(spark: SparkSession, tmp_path: Path) -> None:
    table = events(1).drop_columns(["text", "part"])
    for day in ("1", "2"):
        inside = tmp_path / "events" / f"part={day}"
        inside.mkdir(parents=True)
        wrong = pa.array([f"of a file {day}"] * len(table))
        pq.write_table(table.append_column("part", wrong), inside / "a.parquet")
    frame = spark.read.parquet(str(tmp_path / "events"))
    asked: dict[str, Any] = {**WITHIN, "by": "part", "left_columns": ["id", "part"]}
    other = frame.alias("other")
    found = correlate(frame, other, **asked, options=CorrelateOptions(way="files"))
    expected = correlate_tables(*map(as_spark_reads, (frame, other)), **asked)
    assert set(found.toArrow()["left_part"].to_pylist()) == {1, 2}
    assert lists_in_order(found.toArrow()) == lists_in_order(expected.cast(found.toArrow().schema))


def test_renamed_columns_of_folders(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    left, right = sides
    left = left.selectExpr("part AS id", "id AS part", "min_time", "max_time", "text AS name")
    asked: dict[str, Any] = {
        **WITHIN, "by": [("name", "text")], "left_columns": ["id", "part"],
        "right_columns": ["id", "part"],
    }  # fmt: skip
    expected = correlate_tables(as_spark_reads(left), as_spark_reads(right), **asked)
    for way in ("files", "exchange"):
        found = correlate(left, right, **asked, options=CorrelateOptions(way=way)).toArrow()
        assert lists_in_order(found) == lists_in_order(expected.cast(found.schema))


def test_sequences_by_columns_of_folders(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    asked: dict[str, Any] = {
        "windows": [(0, 60), (0, 60)],
        "confidence": 0.3,
        "by": ["part", "text"],
    }
    frames = [*sides, sides[0].alias("third")]
    found = sequences(frames, **asked)
    assert "parquet" not in str(found._jdf.queryExecution().optimizedPlan().toString())
    expected = sequence_tables([as_spark_reads(frame) for frame in frames], **asked)
    assert found.count()
    assert lists_in_order(found.toArrow()) == lists_in_order(expected)


@pytest.mark.parametrize("kind", ["binary", "decimal(20,2)"])
def test_a_type_of_folders_that_spark_alone_reads(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    written(tmp_path / "1", events(1), "part", "text")
    schema = f"id bigint, min_time bigint, max_time bigint, part {kind}, text string"
    frame = spark.read.schema(schema).parquet(str(tmp_path / "1"))
    assert plain_read(frame, ["id", "part"]) is None
    read = plain_read(frame, ["id", "text"])
    assert read is not None
    assert "text" in read.names.constants
    asked: dict[str, Any] = {**WITHIN, "by": "part"}
    with pytest.raises(NotDirect, match="left is a DataFrame that does more than read"):
        correlate(frame, frame.alias("b"), **asked, options=CorrelateOptions(way="files"))
    assert correlate(frame, frame.alias("b"), **asked).count()
