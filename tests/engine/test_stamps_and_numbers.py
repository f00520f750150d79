"""Timestamps on one side and numbers since 1970 on the other: with a unit both are instants."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    SchemaError,
    correlate,
    correlate_files,
    correlate_tables,
)
from coincide.command_line import run
from tests.helpers.spark_cases import frame

START = 1_700_000_000
ASKED: dict[str, Any] = {"within": "225ms", "confidence": 1.0, "left_time": "t", "right_time": "t"}


def sides(kind: Any) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Stamps; numbers of a type; and these as stamps."""
    random = np.random.default_rng(5)
    left, right = (np.sort(random.integers(0, 4000, 300)) * 50 for _ in range(2))
    if kind == pa.int64():
        right = right // 1000 * 1000
    stamps = [
        pa.array((START * 1000 + ms) * 1000, pa.timestamp("us", "UTC")) for ms in (left, right)
    ]
    numbers = pa.array(START + right / 1000).cast(kind)
    ids = np.arange(300)
    return (
        pa.table({"id": ids, "t": stamps[0]}),
        pa.table({"id": ids, "t": numbers}),
        pa.table({"id": ids, "t": stamps[1]}),
    )


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()], ids=str)
@pytest.mark.parametrize("unit", ["right_unit", "unit"])
def test_tables(kind: Any, unit: str) -> None:
    left, numbers, stamps = sides(kind)
    options = CorrelateOptions(**{unit: "s"})
    expected = correlate_tables(left, stamps, **ASKED)
    assert correlate_tables(left, numbers, options=options, **ASKED).equals(expected)
    assert expected.num_rows > 30
    turned = correlate_tables(numbers, left, options=CorrelateOptions(left_unit="s"), **ASKED)
    assert turned.num_rows == expected.num_rows


def test_ticks() -> None:
    left, numbers, _ = sides(pa.int64())
    with pytest.raises(ConditionError, match="Use options=CorrelateOptions"):
        correlate_tables(
            left, numbers, options=CorrelateOptions(right_unit="ns", tick="us"), **ASKED
        )
    with pytest.raises(ConditionError, match="timestamp columns are counted in us"):
        correlate_tables(
            left, numbers, options=CorrelateOptions(left_unit="s", right_unit="s"), **ASKED
        )


def test_what_is_no_instant() -> None:
    left, numbers, _ = sides(pa.int64())
    with pytest.raises(SchemaError, match="Give with right_unit='s' what a number of right counts"):
        correlate_tables(left, numbers, **ASKED)
    clocks = left.set_column(1, "t", left["t"].cast(pa.timestamp("us")))
    with pytest.raises(SchemaError, match="the time zone of the clocks of left"):
        correlate_tables(clocks, numbers, options=CorrelateOptions(right_unit="s"), **ASKED)


@pytest.mark.parametrize(
    "endings", [("csv", "csv"), ("csv", "parquet"), ("parquet", "csv"), ("parquet",) * 2]
)
def test_on_the_command_line(endings: tuple[str, str], tmp_path: Path, capsys: Any) -> None:
    left, numbers, stamps = sides(pa.float64())
    inputs = []
    for name, table, ending in zip("lr", (left, numbers), endings, strict=True):
        inputs.append(str(tmp_path / f"{name}.{ending}"))
        (csv.write_csv if ending == "csv" else pq.write_table)(table, inputs[-1])
    output = tmp_path / "out.parquet"
    words = [
        "join", *inputs, "-o", str(output), "--engine", "local", "--left-time", "t", "--right-time", "t",
        "--mutual-deadline", "225ms", "--confidence", "1",
    ]  # fmt: skip
    assert run(words) == 2
    assert (
        "Give with --right-unit s what a number of right counts since 1970"
        in capsys.readouterr().err
    )
    assert run([*words, "--right-unit", "s"]) == 0
    expected = correlate_tables(left, stamps, **ASKED)
    assert (
        pq.read_table(output)
        .sort_by([(n, "ascending") for n in expected.column_names])
        .equals(expected.sort_by([(n, "ascending") for n in expected.column_names]))
    )


@pytest.mark.spark
@pytest.mark.parametrize("way", ["exchange", "broadcast", "files"])
def test_on_spark(spark: SparkSession, way: Any, tmp_path: Path) -> None:
    left, numbers, stamps = sides(pa.float64())
    expected = correlate_tables(left, stamps, **ASKED)
    options = CorrelateOptions(right_unit="s", way=way)
    if way == "files":
        for name, table in (("l", left), ("r", numbers)):
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=50)
        paths = [str(tmp_path / f"{name}.parquet") for name in "lr"]
        found = correlate_files(spark, *paths, options=options, **ASKED)
    else:
        found = correlate(frame(spark, left), frame(spark, numbers), options=options, **ASKED)
    order = [(name, "ascending") for name in expected.column_names]
    assert found.toArrow().sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()


def test_dates_of_old_and_of_new() -> None:
    """A day before 1970 is a number below 0."""
    left = pa.table({"id": [1], "t": [dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)]})
    right = pa.table({"id": [1], "t": [-3600.125]})
    found = correlate_tables(left, right, options=CorrelateOptions(right_unit="s"), **ASKED)
    assert found.num_rows == 1
