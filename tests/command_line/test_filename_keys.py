"""A file a sensor: the file's name as a key, by every way and of every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    BorderOptions,
    CorrelateOptions,
    border_crossing_tables,
    correlate_files,
    correlate_tables,
)
from coincide.command_line import run
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.rows import sorted_table

NAMES = ["s 07%+é", "s8"]
NEAR: dict[str, Any] = {"within": 5, "confidence": 1.0, "left_time": "t", "right_time": "t"}


def write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".csv":
        csv.write_csv(table, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, path)


def sides(folder: Path, ending: str) -> tuple[list[str], pa.Table]:
    """Globs of both sides, a file a sensor; and the pairs of equal names."""
    random = np.random.default_rng(3)
    tables: list[list[pa.Table]] = [[], []]
    for i, side in enumerate("lr"):
        for name in NAMES:
            table = pa.table(
                {"id": random.permutation(60), "t": np.sort(random.integers(0, 400, 60))}
            )
            write(table, folder / side / f"{name}.{ending}")
            key = pa.array([f"{name}.{ending}"] * 60)
            tables[i].append(table.append_column("filename", key))
    left, right = map(pa.concat_tables, tables)
    expected = correlate_tables(left, right, by="filename", **NEAR)
    assert expected.num_rows > 100
    return [str(folder / side / f"*.{ending}") for side in "lr"], sorted_table(expected)


@pytest.mark.parametrize("ending", ["csv", "arrow", "parquet"])
def test_joins_in_one_process(ending: str, tmp_path: Path) -> None:
    inputs, expected = sides(tmp_path, ending)
    assert sorted_table(correlate_tables(*inputs, by="filename", **NEAR)).equals(expected)
    for way in ("exchange", "files") if ending == "parquet" else ("auto",):
        words = [
            "join",
            *inputs,
            "-o",
            str(tmp_path / "o.parquet"),
            "--overwrite",
            "--engine",
            "local",
        ]
        words += [
            "--left-time",
            "t",
            "--right-time",
            "t",
            "--mutual-deadline",
            "5",
            "--confidence",
            "1",
        ]
        assert run([*words, "--by", "filename", "--way", way]) == 0
        assert sorted_table(pq.read_table(tmp_path / "o.parquet")).equals(expected)


def test_a_column_of_that_name_is_taken(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "t": [0, 0], "filename": ["a", "b"]})
    for ending in ("csv", "parquet"):
        write(table, tmp_path / f"x.{ending}")
        path = str(tmp_path / f"x.{ending}")
        found = correlate_tables(path, path, by="filename", **NEAR)
        assert sorted(found["filename"].to_pylist()) == ["a", "b"]


def test_borders_and_transitions(tmp_path: Path) -> None:
    for name, values in (("a", [0, 5, 0]), ("b", [5, 0, 5])):
        write(pa.table({"time": [0, 10, 20], "value": values}), tmp_path / "r" / f"{name}.csv")
    write(pa.table({"query_id": [1], "lower": [1], "upper": [9]}), tmp_path / "q.csv")
    output = str(tmp_path / "o.parquet")
    words = ["-o", output, "--engine", "local", "--overwrite", "--stream", "filename"]
    readings, queries = str(tmp_path / "r" / "*.csv"), str(tmp_path / "q.csv")
    assert run(["borders", readings, queries, *words]) == 0
    found = pq.read_table(output)
    assert sorted(zip(found["filename"].to_pylist(), found["event"].to_pylist(), strict=True)) == [
        ("a.csv", "I"), ("a.csv", "O"), ("b.csv", "I"), ("b.csv", "O")
    ]  # fmt: skip
    told = border_crossing_tables(readings, queries, stream="filename", options=BorderOptions())
    assert told.num_rows == 4
    for name in "ab":
        write(
            pa.table({"query_id": [1, 1], "event": ["I", "O"], "t": [0, 10]}),
            tmp_path / "e" / f"{name}.parquet",
        )
    events = ["transitions", str(tmp_path / "e" / "*.parquet"), "--within", "20", "--time", "t"]
    assert run([*events, *words]) == 0
    assert sorted(pq.read_table(output)["filename"].to_pylist()) == ["a.parquet", "b.parquet"]


def test_causality(tmp_path: Path) -> None:
    inputs, expected = sides(tmp_path, "csv")
    output = str(tmp_path / "o.parquet")
    words = ["causality", *inputs, "-o", output, "--engine", "local", "--by", "filename"]
    assert run([*words, "--cause-time", "t", "--effect-time", "t", "--delta", "-5", "5"]) == 0
    found = pq.read_table(output).select(["filename", "cause_id", "effect_id"])
    assert sorted_table(found).rename_columns(expected.column_names).equals(expected)


@pytest.mark.spark
@pytest.mark.parametrize("way", ["files", "exchange"])
def test_on_spark(spark: SparkSession, way: Any, tmp_path: Path) -> None:
    inputs, expected = sides(tmp_path, "parquet")
    options = CorrelateOptions(way=way)
    found = correlate_files(spark, *inputs, by="filename", options=options, **NEAR)
    assert sorted_table(found.toArrow()).to_pylist() == expected.to_pylist()


@pytest.mark.spark
def test_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    inputs, expected = sides(tmp_path, "parquet")
    spark.dataSource.register(CoincideSource)
    reader = spark.read.format("coincide").options(
        left=inputs[0], right=inputs[1], by="filename", within="-5,5", confidence="1", left_time="t",
        right_time="t",
    )  # fmt: skip
    assert sorted_table(reader.load().toArrow()).to_pylist() == expected.to_pylist()
