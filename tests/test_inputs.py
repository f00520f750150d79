"""Inputs and outputs of the command line: formats, folders and globs, the same on both engines."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from event_model import DataError, SchemaError
from spark_plugin.command_line import run
from spark_plugin.command_line.arrow_inputs import ArrowInput
from spark_plugin.command_line.inputs import find_source, local_path
from spark_plugin.command_line.outputs import RowGroups, UriFile
from spark_plugin.command_line.problems import Problem

MICROS = pa.timestamp("us")
TABLE = pa.table({"id": [1, 2, 3], "min_time": [0, 10, 20], "max_time": [5, 15, 25]})


def read(path: Path | str, columns: list[str] | None = None, **options: object) -> pa.Table:
    given = ArrowInput(find_source("left", str(path), options.pop("file_format", None)), **options)
    return given.table(columns or given.schema.names)


def write_ipc(path: Path, table: pa.Table, stream: bool) -> None:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table)


def csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


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
    with pytest.raises(Problem, match="unknown format"):
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
    with pytest.raises(Problem, match=r"left: cannot read .* as csv: .*'x'"):
        read(tmp_path / "events")


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
    assert source.paths == ["s3a://bucket/events/*.parquet"]
    assert find_source("left", "hdfs://name/events", "parquet").file_format == "parquet"
    with pytest.raises(Problem, match="unknown format"):
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
    with pytest.raises(Problem, match=words):
        find_source("left", str(tmp_path))


def test_a_glob_without_a_match(tmp_path):
    with pytest.raises(Problem, match="no file matches"):
        find_source("right", str(tmp_path / "*.parquet"))


def test_column_that_is_missing_or_stands_twice(tmp_path):
    path = csv(tmp_path / "a.csv", "id,t,t\n1,2,3\n")
    with pytest.raises(SchemaError, match="has no column 'x'; it has id, t, t"):
        read(path, ["x"])
    with pytest.raises(SchemaError, match="2 columns called 't'"):
        read(path, ["t"])


# CSV

TIMES = [
    ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5)),
    ("2026-01-02 03:04:05", datetime(2026, 1, 2, 3, 4, 5)),
    ("2026-01-02T03:04:05.5", datetime(2026, 1, 2, 3, 4, 5, 500_000)),
    ("2026-01-02 03:04:05.000001", datetime(2026, 1, 2, 3, 4, 5, 1)),
    ("1969-12-31 23:59:59.999999", datetime(1969, 12, 31, 23, 59, 59, 999_999)),
    ("2026-01-02 03:04", datetime(2026, 1, 2, 3, 4)),
    ("2026-01-02", datetime(2026, 1, 2)),
]
ZONED = [
    ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("2026-01-02 03:04:05.25+02:00", datetime(2026, 1, 2, 1, 4, 5, 250_000, tzinfo=UTC)),
    ("2026-01-02T03:04:05-0130", datetime(2026, 1, 2, 4, 34, 5, tzinfo=UTC)),
    ("2026-01-02T03:04:05+01", datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)),
]
MIXED = """id,name,ok,day,score,time,zoned
1,"a ""quoted"", b",true,2026-01-02,1.5,2026-01-02T03:04:05.5,2026-01-02T03:04:05Z
2,,false,,NaN,,
,"",,2026-01-03,,2026-01-02 03:04:05,2026-01-02 03:04:05+02:00
-9007199254740993, é ,true,2026-01-02,-1e300,1969-12-31 23:59:59.999999,1969-12-31T23:59:59.5Z
"""


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
    with pytest.raises(Problem, match="000000001"):
        read(path)
    assert read(path, nanoseconds=True).schema.field("time").type == pa.timestamp("ns")


def test_csv_nan_is_no_null_and_empty_text_is(tmp_path):
    table = read(csv(tmp_path / "a.csv", MIXED))
    assert table["score"].null_count == 1
    assert table["name"].to_pylist() == ['a "quoted", b', None, None, " é "]


# Both engines


@pytest.fixture(scope="module")
def spark():
    from spark_plugin.session import local_session

    return local_session("local[2]", "coincide-tests")


def spark_read(spark, path: Path, columns: list[str] | None = None) -> pa.Table:
    from spark_plugin.command_line.spark_inputs import spark_frame

    source = find_source("left", str(path))
    names = columns or ArrowInput(source).schema.names
    return spark_frame(spark, source, names).select(*names).toArrow()


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


def assert_same(spark, path: Path) -> None:
    ours, theirs = read(path), spark_read(spark, path)
    assert sorted_rows(ours) == sorted_rows(theirs)
    for field in ours.schema:
        assert theirs.schema.field(field.name).type == field.type


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        MIXED,
        "time\n" + "\n".join(text for text, _ in TIMES) + "\n",
        "time\n" + "\n".join(text for text, _ in ZONED) + "\n",
        "id\r\n1\r\n\r\n2\r\n",
        "a,b\n10:00:00,\n11:00:00,\n",
        "id,a b,c.d\n1,2,3\n",
    ],
    ids=["mixed", "times", "zoned", "windows", "times of day", "odd names"],
)
def test_csv_is_the_same_on_both_engines(tmp_path, spark, text):
    path = csv(tmp_path / "a.csv", text)
    if "c.d" in text:
        assert spark_read(spark, path, ["id"]).equals(read(path, ["id"]))
        return
    assert_same(spark, path)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("id\n1\n", "id\nx\n"),
        ("id\n1\n", "other\n2\n"),
        ("time\n2026-01-02T03:04:05\n", "time\n2026-01-02T03:04:05.000000001\n"),
        ("time\n2026-01-02T03:04:05\n", "time\nyesterday\n"),
        ("time\n2026-01-02T03:04:05\n", "time\n2026-01-02T03:04:05Z\n"),
    ],
    ids=["no number", "other header", "too fine", "no time", "zone"],
)
def test_csv_that_changes_its_mind_is_refused_by_both_engines(
    tmp_path, spark, capsys, first, second
):
    folder = tmp_path / "left"
    folder.mkdir()
    csv(folder / "a.csv", first)
    csv(folder / "b.csv", second)
    name = first.split()[0]
    options = ["--left-time", name, "--right-time", name, "--left-columns", name]
    options += ["--right-columns", name, "--within", "0", "1", "--confidence", "1"]
    for engine in ("local", "spark"):
        words = ["join", str(folder), str(folder), "-o", str(tmp_path / "out"), "--engine", engine]
        assert run([*words, *options]) == 2, engine
        said = capsys.readouterr()
        assert len(said.err.splitlines()) == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["left"]


@pytest.mark.spark
def test_folders_and_partitions_are_the_same_on_both_engines(tmp_path, spark):
    for day in (1, 2):
        (tmp_path / "events" / f"day={day}").mkdir(parents=True)
        pq.write_table(TABLE, tmp_path / "events" / f"day={day}" / "a.parquet")
    assert_same(spark, tmp_path / "events")


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a[1]{x},*.parquet", "a b.parquet", "a%20b.parquet", "é.csv"])
def test_odd_names_are_the_same_on_both_engines(tmp_path, spark, name):
    path = tmp_path / name
    if name.endswith("csv"):
        csv(path, "id\n1\n")
    else:
        pq.write_table(TABLE, path)
    pq.write_table(TABLE, tmp_path / "axb.parquet")
    assert_same(spark, path)


@pytest.mark.spark
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_in_parquet_become_microseconds_on_spark(tmp_path, spark, zone):
    path = tmp_path / "a.parquet"
    values = pa.array([-1_000, None, 1_767_323_045_000_001_000]).cast(pa.timestamp("ns", zone))
    pq.write_table(pa.table({"id": [1, 2, 3], "time": values, "other": values}), path)
    found = spark_read(spark, path, ["id", "time"])
    assert found["time"].equals(pa.chunked_array([values.cast(pa.timestamp("us", zone))]))


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_finer_than_a_microsecond_is_refused(tmp_path, spark, capsys, name):
    path = tmp_path / name
    values = pa.array([-1_000, -999]).cast(pa.timestamp("ns"))
    table = pa.table({"id": [1, 2], "time": values})
    if name == "a.parquet":
        pq.write_table(table, path)
    else:
        write_ipc(path, table, stream=False)
    words = ["join", str(path), str(path), "-o", str(tmp_path / "out"), "--left-time", "time"]
    words += ["--right-time", "time", "--mutual-deadline", "1us", "--confidence", "1"]
    for more in ([], ["--engine", "local"]):
        assert run([*words, *more]) == 2
        said = capsys.readouterr().err
        assert "finer than 1 us" in said
        assert "--unit ns" in said
        assert len(said.splitlines()) == 1
    assert run([*words, "--engine", "local", "--unit", "ns"]) == 0
    assert ds.dataset(tmp_path / "out").to_table().num_rows == 4


@pytest.mark.spark
def test_arrow_on_spark(tmp_path, spark):
    path = tmp_path / "a.arrow"
    table = pa.table(
        {
            "id": pa.array([1, 2, None], pa.uint32()),
            "name": pa.array(["a", "b", "a"]).dictionary_encode(),
            "time": pa.array([0, 1, None]).cast(MICROS),
            "zoned": pa.array([0, 1, None]).cast(pa.timestamp("ms", "Europe/Rome")),
            "list": [[1], [], None],
        }
    )
    write_ipc(path, table, stream=True)
    found = spark_read(spark, path)
    assert found.schema.field("time").type == MICROS
    assert found.schema.field("zoned").type == pa.timestamp("us", "UTC")
    assert found["id"].to_pylist() == [1, 2, None]
    assert found["name"].to_pylist() == ["a", "b", "a"]
    assert found["time"].to_pylist() == table["time"].to_pylist()
    assert found["zoned"].cast(pa.int64()).to_pylist() == [0, 1000, None]
    assert found["list"].to_pylist() == [[1], [], None]


# One file in another file system


def remote(folder: Path) -> fs.FileSystem:
    return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())


def test_uri_file_takes_its_place_at_the_end(tmp_path):
    (tmp_path / "out").mkdir()
    with UriFile("x://out/a.parquet", remote(tmp_path), "out/a.parquet", overwrite=False) as output:
        with RowGroups(output, TABLE.schema) as groups:
            groups.write(TABLE.to_batches()[0])
        assert not (tmp_path / "out" / "a.parquet").exists()
        output.commit()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.parquet"]
    assert pq.read_table(tmp_path / "out" / "a.parquet").equals(TABLE)
    with pytest.raises(Problem, match="exists already"):
        UriFile("x://out/a.parquet", remote(tmp_path), "out/a.parquet", overwrite=False)


def test_uri_file_leaves_nothing_after_a_failure(tmp_path):
    output = UriFile("x://a.parquet", remote(tmp_path), "a.parquet", overwrite=False)

    def fail() -> None:
        with output, RowGroups(output, TABLE.schema) as groups:
            groups.write(TABLE.to_batches()[0])
            raise DataError

    with pytest.raises(DataError):
        fail()
    assert list(tmp_path.iterdir()) == []
