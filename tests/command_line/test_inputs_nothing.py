"""Sides that are empty, and columns that hold nothing, by both engines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from coincide.command_line import run
from tests.helpers.engine_cases import join_words, refusal
from tests.helpers.input_files import MICROS, TABLE, UTC_MICROS, read, write_ipc

NOTHING = pa.table({name: pa.nulls(2) for name in ("id", "key", "min_time", "max_time")})

INPUTS = [(ending, "local") for ending in ("csv", "arrow", "parquet")] + [("parquet", "spark")]
"""Spark reads Parquet alone."""


def write_as(path: Path, table: pa.Table) -> Path:
    if path.suffix == ".csv":
        lines = [",".join(table.column_names)]
        rows = (("" if v is None else str(v) for v in row.values()) for row in table.to_pylist())
        path.write_text("\n".join([*lines, *map(",".join, rows)]) + "\n")
    elif path.suffix == ".arrow":
        write_ipc(path, table, stream=False)
    else:
        pq.write_table(table, path)
    return path


@pytest.mark.spark
@pytest.mark.parametrize(("ending", "engine"), INPUTS)
@pytest.mark.parametrize("rows", [0, 2])
def test_a_side_that_holds_nothing(tmp_path, command_spark, ending, engine, rows):
    nothing = write_as(tmp_path / f"left.{ending}", NOTHING.slice(0, rows))
    stamps = pa.array([0, 10, 20]).cast(UTC_MICROS)
    known = pa.table({"id": [1, 2, 3], "key": [7, 8, 9], "min_time": stamps, "max_time": stamps})
    pq.write_table(known, tmp_path / "right.parquet")
    words = join_words(
        tmp_path, nothing, tmp_path / "right.parquet", "--by", "key", "--how", "left"
    )
    handed = ("--left-columns", "id,min_time", "--right-columns", "id")
    assert run([*words, *handed, "--engine", engine]) == 0
    found = ds.dataset(tmp_path / "out", format="parquet").to_table()
    assert found.schema.types == [pa.int64(), pa.string(), UTC_MICROS, pa.int64()]
    assert found.num_rows == rows


@pytest.mark.spark
@pytest.mark.parametrize(("ending", "engine"), INPUTS)
@pytest.mark.parametrize("window", [("-3", "5"), ("-3s", "5s")], ids=" ".join)
def test_two_sides_that_hold_nothing(tmp_path, command_spark, ending, engine, window):
    nothing = write_as(tmp_path / f"a.{ending}", NOTHING)
    words = ["join", str(nothing), str(nothing), "-o", str(tmp_path / "out"), "--by", "key"]
    words += ["--within", *window, "--confidence", "1", "--left-columns", "min_time"]
    assert run([*words, "--engine", engine]) == 0
    found = ds.dataset(tmp_path / "out", format="parquet").to_table()
    time = MICROS if "s" in window[0] else pa.int64()
    assert found.schema.types == [pa.string(), time, pa.string()]
    assert found.num_rows == 0


@pytest.mark.parametrize("ending", ["csv", "arrow", "parquet"])
def test_files_without_rows_refuse_no_duration(tmp_path, ending):
    """A day without events is joined by the command of all days, whose times are fractions of us."""
    nothing = write_as(tmp_path / f"a.{ending}", NOTHING.slice(0, 0))
    words = ["join", str(nothing), str(nothing), "-o", str(tmp_path / "out"), "--engine", "local"]
    words += ["--unit", "us", "--within", "-9ns", "-1ns", "--confidence", "1"]
    assert run(words) == 0
    assert ds.dataset(tmp_path / "out", format="parquet").to_table().num_rows == 0


@pytest.mark.parametrize("ending", ["csv", "arrow", "parquet"])
def test_a_later_file_tells_the_type(tmp_path, ending):
    (tmp_path / "events").mkdir()
    names = ["id", "key", "min_time", "max_time"]
    write_as(tmp_path / "events" / f"a.{ending}", NOTHING)
    write_as(tmp_path / "events" / f"b.{ending}", pa.table([[1], ["k"], [5], [6]], names=names))
    found = read(tmp_path / "events")
    assert found.schema.types == [pa.int64(), pa.string(), pa.int64(), pa.int64()]
    assert found["max_time"].to_pylist() == [None, None, 6]


@pytest.mark.spark
def test_parquet_in_which_only_some_files_tell_the_type_is_refused_on_spark(
    tmp_path, command_spark, capsys
):
    (tmp_path / "events").mkdir()
    pq.write_table(NOTHING, tmp_path / "events" / "a.parquet")
    pq.write_table(TABLE, tmp_path / "events" / "b.parquet")
    said = refusal(capsys, join_words(tmp_path, tmp_path / "events"))
    assert "must have one type in all files (found int64 in" in said
    assert "null in" in said
    assert "--engine local" in said
