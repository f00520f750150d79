"""Both engines take the same from files, or refuse them alike."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from coincide import CoincideError, DataError
from coincide.command_line import run
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.engine_cases import assert_same, join_words, refusal, spark_read, write_times
from tests.helpers.input_files import MICROS, TABLE, UTC_MICROS, csv, read, write_ipc

# Both engines


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
def test_csv_that_changes_its_mind_is_refused(tmp_path, capsys, first, second):
    folder = tmp_path / "left"
    folder.mkdir()
    csv(folder / "a.csv", first)
    csv(folder / "b.csv", second)
    name = first.split()[0]
    options = ["--left-time", name, "--right-time", name, "--left-columns", name]
    options += ["--right-columns", name, "--within", "0", "1", "--confidence", "1"]
    assert run(["join", str(folder), str(folder), "-o", str(tmp_path / "out"), *options]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "lines"),
    [("a.csv", "id,t\n1,0\n"), ("a.tsv", "id\tt\n1\t0\n"), ("a.arrow", None)],
    ids=["csv", "tsv", "arrow"],
)
def test_spark_reads_parquet_alone_and_a_line_makes_it(
    tmp_path, command_spark, capsys, monkeypatch, name, lines
):
    path = tmp_path / name
    if lines is None:
        write_ipc(path, pa.table({"id": [1], "t": [0]}), stream=False)
    else:
        csv(path, lines)
    words = [*join_words(tmp_path, path), "--left-time", "t", "--right-time", "t"]
    monkeypatch.setattr("coincide.command_line.engines.spark_at_work", None)  # never started
    monkeypatch.delenv("SPARK_BUFFER_SIZE", raising=False)  # this is no worker of Spark's
    said = refusal(capsys, words)
    assert "left: Spark reads Parquet only (found" in said
    with pytest.raises(
        DataError,
        match=rf"event: the data source reads Parquet only \(found another format in {path}",
    ) as raised:
        CoincideSource({"left": str(path), "within": "0,1", "confidence": "1"}).schema()
    for text in (said, str(raised.value)):
        line = shlex.split(text[text.index("python -c") :])
        subprocess.run([sys.executable, *line[1:3]], check=True)
        made = ds.dataset(tmp_path / f"{name}.parquet").to_table()
        assert made.to_pylist() == [{"id": 1, "t": 0}]
        shutil.rmtree(tmp_path / f"{name}.parquet")


@pytest.mark.spark
def test_folders_and_partitions_are_the_same_on_both_engines(tmp_path, command_spark):
    for day in (1, 2):
        (tmp_path / "events" / f"day={day}").mkdir(parents=True)
        pq.write_table(TABLE, tmp_path / "events" / f"day={day}" / "a.parquet")
    assert_same(command_spark, tmp_path / "events")


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a[1]{x},*.parquet", "a b.parquet", "a%20b.parquet"])
def test_odd_names_are_the_same_on_both_engines(tmp_path, command_spark, name):
    path = tmp_path / name
    pq.write_table(TABLE, path)
    pq.write_table(TABLE, tmp_path / "axb.parquet")
    assert_same(command_spark, path)


@pytest.mark.spark
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_in_parquet_become_microseconds_on_spark(tmp_path, command_spark, zone):
    path = tmp_path / "a.parquet"
    values = pa.array([-1_000, None, 1_767_323_045_000_001_000]).cast(pa.timestamp("ns", zone))
    pq.write_table(pa.table({"id": [1, 2, 3], "time": values, "other": values}), path)
    found = spark_read(command_spark, path, ["id", "time"])
    assert found["time"].equals(pa.chunked_array([values.cast(pa.timestamp("us", zone))]))


@pytest.mark.spark
@pytest.mark.parametrize("way", ["exchange", "auto"])
def test_milliseconds_that_spark_cannot_read(tmp_path, command_spark, capsys, way):
    path = tmp_path / "a.parquet"
    values = pa.array([5, 2**63 // 1000 + 1], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"id": [1, 2], "min_time": values, "max_time": values}), path)
    words = [*join_words(tmp_path, path), "--invalid", "drop", "--way", way]
    if way == "exchange":
        said = refusal(capsys, words)
        assert "left: the column 'min_time' holds times in milliseconds beyond" in said
        assert said.rstrip().endswith("or use --engine local.")
        words += ["--engine", "local", "--way", "auto"]
    assert run(words) == 0


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_finer_than_a_microsecond_is_refused(tmp_path, command_spark, capsys, name):
    path = tmp_path / name
    values = pa.array([-1_000, -999]).cast(pa.timestamp("ns"))
    table = pa.table({"id": [1, 2], "time": values})
    if name == "a.parquet":
        pq.write_table(table, path)
    else:
        write_ipc(path, table, stream=False)
    words = ["join", str(path), str(path), "-o", str(tmp_path / "out"), "--left-time", "time"]
    words += ["--right-time", "time", "--mutual-deadline", "1us", "--confidence", "1"]
    for engine in ["local", *["spark"] * (name == "a.parquet")]:
        assert run([*words, "--engine", engine]) == 2
        said = capsys.readouterr().err
        assert "finer than 1 us" in said
        assert "--unit ns" in said
        assert len(said.splitlines()) == 1
    assert run([*words, "--engine", "local", "--unit", "ns"]) == 0
    assert ds.dataset(tmp_path / "out").to_table().num_rows == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"id,name\n1,\xff\n",
            "line 2, column 'name': the text is not UTF-8. Give its encoding with --csv-encoding",
        ),
        (b"id,name\n1,2,3\n", "line 2 has 3 cells where the header has 2"),
        (b"id,name\n1\n", "line 2 has 1 cell where the header has 2"),
        (b"", "left: cannot read .* as csv: Empty CSV file"),
    ],
    ids=["undecodable", "long row", "short row", "empty"],
)
def test_csv_that_cannot_be_read_is_refused(tmp_path, content, said):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(CoincideError, match=said):
        read(path, ["id", "name"])


def test_csv_folder(tmp_path):
    (tmp_path / "events").mkdir()
    csv(tmp_path / "events" / "a.csv", 'id,name\n1,"two\r\nlines"\n 2, x\n')
    csv(tmp_path / "events" / "b.csv", "name,id\ny,3\n")
    csv(tmp_path / "_hidden.csv", "id,name\n4,z\n")
    assert read(tmp_path / "events")["id"].to_pylist() == [1, 2, 3]
    assert read(tmp_path / "_hidden.csv").num_rows == 1


# What an engine would misread without a word


@pytest.mark.spark
@pytest.mark.parametrize("name", ["_l.parquet", ".l.parquet", "_*.parquet"])
def test_hidden_parquet_is_refused_on_spark(tmp_path, command_spark, capsys, name):
    for visible in ("_l.parquet", ".l.parquet", "l.parquet"):
        write_times(tmp_path / visible, MICROS)
    said = refusal(capsys, join_words(tmp_path, tmp_path / name))
    assert "names start with _ or . (found " in said
    assert "l.parquet). Rename it" in said
    assert run(join_words(tmp_path, tmp_path / name, None, "--engine", "local")) == 0


@pytest.mark.spark
def test_a_star_stands_for_nothing_hidden(tmp_path, command_spark):
    for name in ("_l.parquet", ".l.parquet", "l.parquet", "_SUCCESS"):
        pq.write_table(TABLE, tmp_path / name)
    for pattern in ("*l.parquet", "*"):
        assert_same(command_spark, tmp_path / pattern)
        assert read(tmp_path / pattern).num_rows == TABLE.num_rows


@pytest.mark.spark
def test_hidden_folder_is_read(tmp_path, command_spark):
    write_times(tmp_path / "_events" / "a.parquet", MICROS)
    assert_same(command_spark, tmp_path / "_events")


@pytest.mark.spark
def test_plain_subfolders_are_read_by_both_engines(tmp_path, command_spark):
    for name in ("a.parquet", "x/b.parquet", "x/y/c.parquet", "_z/d.parquet"):
        path = tmp_path / "events" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(TABLE, path)
    assert_same(command_spark, tmp_path / "events")
    assert read(tmp_path / "events").num_rows == 9


@pytest.mark.spark
@pytest.mark.parametrize(
    "names",
    [
        ["x/a.parquet", "day=1/a.parquet"],
        ["a.parquet", "day=1/a.parquet"],
        ["day=1/x/a.parquet"],
        ["day=1/a.parquet", "hour=1/a.parquet"],
    ],
    ids=" ".join,
)
def test_mixed_subfolders_are_refused_on_spark(tmp_path, command_spark, capsys, names):
    for name in names:
        (tmp_path / "events" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(TABLE, tmp_path / "events" / name)
    said = refusal(capsys, join_words(tmp_path, tmp_path / "events"))
    assert "Give all files the same keys, name them with a glob, or" in said


@pytest.mark.spark
@pytest.mark.parametrize(
    ("first", "second"),
    [(pa.timestamp("ns"), MICROS), (MICROS, pa.timestamp("ns")), (MICROS, pa.timestamp("ms"))],
    ids=str,
)
def test_mixed_units_are_refused_on_spark(tmp_path, command_spark, capsys, first, second):
    write_times(tmp_path / "events" / "a.parquet", first)
    write_times(tmp_path / "events" / "b.parquet", second)
    said = refusal(capsys, join_words(tmp_path, tmp_path / "events"))
    for word in (
        "left: the column 'min_time' must have one type in all files",
        f"(found {second} in",
        f"{first} in",
        "a.parquet",
        "b.parquet",
        "local",
    ):
        assert word in said
    assert run(join_words(tmp_path, tmp_path / "events", None, "--engine", "local")) == 0
    assert ds.dataset(tmp_path / "out").to_table().num_rows == 8
    assert spark_read(command_spark, tmp_path / "events", ["id"]).num_rows == 4


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["spark", "local"])
@pytest.mark.parametrize(
    ("first", "second"),
    [(MICROS, UTC_MICROS), (pa.int64(), UTC_MICROS), (pa.int32(), pa.date32())],
    ids=str,
)
def test_mixed_kinds_are_refused(tmp_path, command_spark, capsys, engine, first, second):
    (tmp_path / "events").mkdir()
    for name, kind in (("a", first), ("b", second)):
        times = pa.array([0, 1], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
        table = pa.table({"id": [1, 2], "min_time": times, "max_time": times})
        pq.write_table(table, tmp_path / "events" / f"{name}.parquet")
    said = refusal(capsys, join_words(tmp_path, tmp_path / "events", None, "--engine", engine))
    assert f"'min_time' must have one type in all files (found {second} in" in said
    assert "Write the files with one type" in said


def test_the_widest_floats_of_all_files(tmp_path):
    for name, kind, value in (("a", pa.float32(), 1.0), ("b", pa.float64(), 1.7e9 + 1 / 3)):
        pq.write_table(pa.table({"t": pa.array([value], kind)}), tmp_path / f"{name}.parquet")
    assert read(tmp_path)["t"].to_pylist() == [1.0, 1.7e9 + 1 / 3]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "kind", "engine"),
    [
        (name, pa.time64("us"), engine)
        for name, engine in (("a.parquet", "spark"), ("a.parquet", "local"), ("a.arrow", "local"))
    ],
    ids=str,
)
def test_types_that_are_no_times_are_refused_by_both_engines(
    tmp_path, command_spark, capsys, monkeypatch, name, kind, engine
):
    values = pa.array([0, 1]).cast(kind)
    table = pa.table({"id": [1, 2], "min_time": values, "max_time": values})
    path = tmp_path / name
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        write_ipc(path, table, stream=False)
    monkeypatch.setattr("coincide.command_line.engines.spark_at_work", None)  # never started
    said = refusal(capsys, join_words(tmp_path, path, None, "--engine", engine))
    assert "left.min_time must be a timestamp, a date, a" in said


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "kind"),
    [(f"a.{end}", kind) for end in ("parquet", "arrow") for kind in (
        pa.duration("ns"), pa.duration("us"), pa.duration("s"), pa.date32(), pa.date64(),
        pa.decimal128(12, 3), pa.uint64(),
    )],
    ids=str,
)  # fmt: skip
def test_dates_durations_and_decimals_are_times_to_both_engines(
    tmp_path, command_spark, name, kind
):
    """Spark has durations of microseconds, and Parquet has none."""
    step = 1000 if kind == pa.duration("ns") else 1
    if pa.types.is_date(kind):
        values = pa.array([0, 1, 3], pa.int32()).cast(pa.date32()).cast(kind)
    else:
        values = pa.array([0, step, 3 * step], pa.int64()).cast(pa.decimal128(19, 0))
        values = (
            values.cast(kind) if pa.types.is_decimal(kind) else values.cast(pa.int64()).cast(kind)
        )
    is_number = pa.types.is_decimal(kind) or pa.types.is_integer(kind)
    path, unit = tmp_path / name, ["--unit", "s"] if is_number else []
    table = pa.table({"id": [1, 2, 3], "min_time": values, "max_time": values})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        write_ipc(path, table, stream=False)
    seconds = {"duration[ns]": "1us", "duration[us]": "1us"}.get(str(kind), "1s")
    window = "1d" if pa.types.is_date(kind) else seconds
    found = {}
    for engine in ["local", *["spark"] * (path.suffix == ".parquet")]:
        out = tmp_path / f"{engine}.parquet"
        words = ["join", str(path), str(path), "-o", str(out), "--within", window, window]
        words += ["--confidence", "1", "--left-columns", "id,min_time", "--engine", engine, *unit]
        assert run(words) == 0
        found[engine] = pq.read_table(out)
        assert found[engine]["left_id"].to_pylist() == [1]
        assert found[engine]["right_id"].to_pylist() == [2]
    assert found["local"].schema.field("left_min_time").type == kind or kind == pa.date64()


@pytest.mark.spark
def test_what_only_spark_takes_is_not_refused(tmp_path, command_spark):
    times = pa.array([0, 1], pa.int64()).dictionary_encode()
    columns = {"id": [1, 2], "min_time": times, "max_time": times}
    for name, kind in (("a", pa.uint8()), ("b", pa.int16())):
        table = pa.table({**columns, "key": pa.array([1, 2], kind)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    words = ["join", str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet"), "--by", "key"]
    words += ["-o", str(tmp_path / "out"), "--within", "0", "0", "--confidence", "1"]
    assert run([*words, "--engine", "spark"]) == 0
    assert ds.dataset(tmp_path / "out").to_table().num_rows == 2
