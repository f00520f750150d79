"""Inputs and outputs of the command line: formats, folders and globs, the same on both engines."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from coincide import CoincideError, DataError, SchemaError
from coincide.command_line import engines, run
from coincide.command_line.problems import Problem
from coincide.engine.files.finding import find_files, local_path
from coincide.engine.files.source import find_source
from tests.helpers.input_files import MIXED, TABLE, TIMES, ZONED, csv, read, write_ipc

# Formats


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.PQ", "a.csv", "a.csv.gz", "a.arrow", "a.arrows", "a.feather", "a.ipc"]
)
def test_the_name_says_the_format(tmp_path, name):
    path = tmp_path / name
    text = "id,min_time,max_time\n1,0,5\n2,10,15\n3,20,25\n"
    match path.suffixes:
        case [".csv", ".gz"]:
            path.write_bytes(gzip.compress(text.encode()))
        case [".csv"]:
            path.write_text(text)
        case [".feather"]:
            feather.write_feather(TABLE, path)
        case [".arrow"] | [".arrows"] | [".ipc"]:
            write_ipc(path, TABLE, stream=name == "a.arrows")
        case _:
            pq.write_table(TABLE, path)
    assert read(path).equals(TABLE)
    assert read(path, ["max_time", "id"]).column_names == ["max_time", "id"]


def test_format_may_be_given(tmp_path):
    path = csv(tmp_path / "data.txt", "id\n1\n")
    with pytest.raises(DataError, match="unknown format"):
        read(path)
    assert read(path, file_format="csv").to_pylist() == [{"id": 1}]


def test_folder_of_parquet_hides_what_spark_hides(tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(TABLE.slice(0, 1), folder / "part-0.parquet")
    pq.write_table(TABLE.slice(1), folder / "part-1.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").write_text("crc")
    assert read(folder).equals(TABLE)


def test_folder_with_partitions_in_its_paths(tmp_path):
    for day in (1, 2):
        (tmp_path / "events" / f"day={day}").mkdir(parents=True)
        pq.write_table(TABLE, tmp_path / "events" / f"day={day}" / "a.parquet")
    table = read(tmp_path / "events")
    assert table.num_rows == 6
    assert set(table["day"].to_pylist()) == {1, 2}


@pytest.mark.parametrize("pattern", ["part-*.parquet", "part-?.parquet", "part-[0-1].parquet"])
def test_glob(tmp_path, pattern):
    for i in range(2):
        pq.write_table(TABLE.slice(i, 1), tmp_path / f"part-{i}.parquet")
    pq.write_table(TABLE, tmp_path / "other.parquet")
    assert read(tmp_path / pattern)["id"].to_pylist() == [1, 2]


def test_folder_of_csv_takes_types_from_its_first_file(tmp_path):
    (tmp_path / "events").mkdir()
    csv(tmp_path / "events" / "a.csv", "id,min_time\n1,5\n")
    csv(tmp_path / "events" / "b.csv", "min_time,id\n6,2\n")
    assert read(tmp_path / "events").to_pylist() == [
        {"id": 1, "min_time": 5}, {"id": 2, "min_time": 6}
    ]  # fmt: skip
    csv(tmp_path / "events" / "c.csv", "id,min_time\n1,x\n")
    with pytest.raises(DataError, match=r"c\.csv, line 2, column 'min_time': 'x' is no"):
        read(tmp_path / "events", times=("min_time",))


def test_a_name_that_looks_like_a_glob_is_a_name(tmp_path):
    path = tmp_path / "a[1]*.parquet"
    pq.write_table(TABLE, path)
    assert read(path).equals(TABLE)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/../b/", "/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file:/a/b", "/a/b"),
        ("s3://bucket/a", None),
        ("hdfs://name:8020/a", None),
    ],
)
def test_local_path(text, path):
    assert local_path(text) == path


def test_uris_are_left_alone():
    source = find_source("left", "s3a://bucket/events/*.parquet")
    assert source.is_uri
    assert source.given_files is None
    assert find_source("left", "hdfs://name/events", "parquet").file_format == "parquet"
    with pytest.raises(DataError, match="unknown format"):
        find_source("left", "hdfs://name/events")


def test_file_uri(tmp_path):
    pq.write_table(TABLE, tmp_path / "a b.parquet")
    assert read(f"file://{tmp_path}/a%20b.parquet").equals(TABLE)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds no files"),
        ({"_SUCCESS": ""}, "holds no files"),
        ({"a.csv": "id\n1\n", "b.parquet": ""}, "holds files of several formats"),
    ],
)
def test_folders_that_cannot_be_read(tmp_path, files, words):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(CoincideError, match=words):
        find_source("left", str(tmp_path))


def test_a_glob_without_a_match(tmp_path):
    with pytest.raises(DataError, match="no file matches"):
        find_source("right", str(tmp_path / "*.parquet"))


def test_column_that_is_missing_or_stands_twice(tmp_path):
    path = csv(tmp_path / "a.csv", "id,t,t\n1,2,3\n")
    with pytest.raises(SchemaError, match=r"has no column 'x' .found 'id', 't', 't'"):
        read(path, ["x"])
    with pytest.raises(SchemaError, match="2 columns called 't'"):
        read(path, ["t"])


# CSV


@pytest.mark.parametrize(
    ("values", "zone"), [(TIMES, None), (ZONED, "UTC")], ids=["plain", "zoned"]
)
def test_csv_times(tmp_path, values, zone):
    path = csv(tmp_path / "a.csv", "time\n" + "\n".join(text for text, _ in values) + "\n")
    table = read(path)
    assert table.schema.field("time").type == pa.timestamp("us", zone)
    assert table["time"].to_pylist() == [value for _, value in values]


def test_csv_times_finer_than_a_microsecond(tmp_path):
    path = csv(tmp_path / "a.csv", "time\n2026-01-02T03:04:05.000000001\n")
    assert read(path)["time"].type == pa.timestamp("ns")
    days = "2026-01-02T00:00:00\n" * 1_000_000
    path = csv(tmp_path / "a.csv", f"time\n{days}2026-01-02T03:04:05.000000001\n")
    with pytest.raises(DataError, match="000000001"):
        read(path)
    assert read(path, nanoseconds=True).schema.field("time").type == pa.timestamp("ns")


def test_csv_nan_is_no_null_and_empty_text_is(tmp_path):
    table = read(csv(tmp_path / "a.csv", MIXED))
    assert table["score"].null_count == 1
    assert table["name"].to_pylist() == ['a "quoted", b', None, None, " é "]


def test_csv_line_breaks_in_quotes_anywhere(tmp_path):
    rows = 100_000
    lines = (f'{i},"{"x" * (i % 37)}\nline, ""two"" {i}"' for i in range(rows))
    table = read(csv(tmp_path / "a.csv", "id,name\n" + "\n".join(lines) + "\n"))
    assert table["id"].to_pylist() == list(range(rows))
    assert table["name"][-1].as_py().endswith(f'\nline, "two" {rows - 1}')


def test_links_to_folders_are_followed(tmp_path: Path) -> None:
    """As by PyArrow and Spark, so that no way reads other files than another; none for ever."""
    folder, other = tmp_path / "in", tmp_path / "elsewhere"
    for place in (folder, other / "deep"):
        place.mkdir(parents=True)
        pq.write_table(TABLE, place / "a.parquet")
    (folder / "link").symlink_to(other)
    (other / "deep" / "back").symlink_to(folder)
    expected = [str(folder / "a.parquet"), str(folder / "link" / "deep" / "a.parquet")]
    assert list(find_files("left", folder).paths) == expected
    (other / "deep" / "back").unlink()
    assert list(find_files("left", folder).paths) == expected
    assert read(folder).num_rows == 2 * TABLE.num_rows


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost"])
def test_a_uri_of_this_machine_may_be_a_glob(tmp_path: Path, prefix: str) -> None:
    for name in ("part-1.parquet", "part 2.parquet", "part-12.parquet"):
        pq.write_table(TABLE, tmp_path / name)
    source = find_source("left", f"{prefix}{tmp_path}/part-?.parquet")
    assert source.found.paths == (str(tmp_path / "part-1.parquet"),)
    source = find_source("left", f"{prefix}{tmp_path}/part%202.parquet")
    assert source.found.paths == (str(tmp_path / "part 2.parquet"),)


@pytest.mark.parametrize("command", ["join", "causality"])
def test_the_preferred_column_is_checked_before_spark_starts(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def starting(*_: Any) -> None:
        raise Problem("Spark would start now.")

    monkeypatch.setattr(engines, "spark_at_work", starting)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [7], "t": [0], "snr": [1.0], "word": ["x"]}), path)
    own, others, window = {
        "join": (["--left-time", "t"], ["--right-time", "t"], ["--within", "-1", "1"]),
        "causality": (["--cause-time", "t"], ["--effect-time", "t"], ["--delta", "0", "1"]),
    }[command]
    engine = ["--engine", "spark", "--emit", "best", "-o", str(tmp_path / "out")]
    for words in ([path, path, *others], [path]):
        for prefer, said in (
            ("-snr", "Spark would start now"),
            ("word", "--prefer on Spark takes a column of numbers or times (found"),
            ("gone", "has no column 'gone'"),
        ):
            asked = [command, *words, *own, *window, *engine, f"--prefer={prefer}"]
            assert run(asked) == 2
            assert said in capsys.readouterr().err
