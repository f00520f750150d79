"""CSV and Arrow IPC in the data source: by the rules of the command line, block by block."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition

from coincide import (
    CoincideError,
    CorrelateOptions,
    DataError,
    TimingCondition,
    correlate_tables,
    within,
)
from coincide.engine.files import csv_files
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.input_files import write_ipc

WINDOW = TimingCondition(within(-300, 100), 0.7)
ASKED = {"within": "-300,100", "confidence": "0.7"}
SHAPES: list[dict[str, Any]] = [
    {"how": "left"},
    {"how": "anti"},
    {"emit": "counts", "how": "left"},
    {"emit": "best", "by": "door"},
    {"emit": "pairs", "probability": True, "by": "door"},
]


def events(rows: int, seed: int, is_ordered: bool = True) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 20 * rows, rows)
    low = np.sort(low) if is_ordered else low
    doors = np.array([f"{n:03}" for n in range(4)])[rng.integers(0, 4, rows)]
    times = [
        pa.array(low, mask=np.arange(rows) % 41 == 7),
        pa.array(low + rng.integers(0, 200, rows)),
    ]
    keys = pa.array(doors, mask=np.arange(rows) % 37 == 5)
    return pa.table([pa.array(np.arange(rows)), *times, keys], COLUMNS)


@pytest.fixture(autouse=True)
def _tracebacks() -> Iterator[None]:
    """A source that fails in this process, where Spark is at work, hides them as in a worker of Spark's."""
    yield
    os.environ.pop("SPARK_HIDE_TRACEBACK", None)


COLUMNS = ["id", "min_time", "max_time", "door"]


def write(path: Path, table: pa.Table) -> Path:
    name = path.name
    if ".parquet" in name:
        pq.write_table(table, path, row_group_size=100)
    elif ".arrow" in name:
        write_ipc(path, table, stream=False)
    elif name.endswith(".gz"):
        with gzip.open(path, "wb") as file:
            pacsv.write_csv(table, file)
    else:
        pacsv.write_csv(table, path)
    return path


def planned(left: Path | str, right: Path | str | None = None, **options: Any) -> CoincideSource:
    named = {"left": f"{left}"} | ({} if right is None else {"right": f"{right}"})
    return CoincideSource({**named, **ASKED, **{k: str(v) for k, v in options.items()}})


def rows(source: CoincideSource) -> list[str]:
    """All rows, each slice read by a copy that was sent."""
    reader = pickle.loads(pickle.dumps(source.reader(source.schema())))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return sorted(str(row) for batch in batches for row in batch.to_pylist())


def want(left: pa.Table, right: pa.Table | None, **shape: Any) -> list[str]:
    return sorted(map(str, correlate_tables(left, right, WINDOW, **shape).to_pylist()))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("slices", [None, 5])
@pytest.mark.parametrize("is_ordered", [True, False])
def test_as_tables(
    tmp_path: Path, shape: dict[str, Any], slices: int | None, is_ordered: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 2000)
    tables = events(400, 1, is_ordered), events(400, 2, is_ordered)
    left, right = (write(tmp_path / f"{i}.csv", table) for i, table in enumerate(tables))
    more = {} if slices is None else {"slices": slices}
    source = planned(left, right, **shape, **more)
    assert source.join.count == (slices or 1)
    assert rows(source) == want(*tables, **shape)


@pytest.mark.parametrize(
    "names",
    [
        ("a.csv", "b.parquet"),
        ("a.parquet", "b.csv.gz"),
        ("a.arrow", "b.csv"),
        ("a.csv.gz", "b.arrow"),
    ],
)
@pytest.mark.parametrize("slices", [1, 4])
def test_sides_of_different_kinds(tmp_path: Path, names: tuple[str, str], slices: int) -> None:
    tables = events(300, 3), events(300, 4)
    paths = [write(tmp_path / name, table) for name, table in zip(names, tables, strict=True)]
    source = planned(*paths, by="door", slices=slices)
    found = rows(source)
    assert found == want(*tables, by="door")
    assert len(found) > 50
    assert "'door': '00" in found[0]


@pytest.mark.parametrize("slices", [1, 3])
def test_one_stream_of_several_files(tmp_path: Path, slices: int) -> None:
    table = events(300, 5)
    (tmp_path / "log").mkdir()
    for i in range(3):
        write(tmp_path / "log" / f"{i}.csv", table.slice(100 * i, 100))
    assert rows(planned(tmp_path / "log", slices=slices)) == want(table, None)


def test_rows_that_match_nothing_are_told_once_whatever_their_file(tmp_path: Path) -> None:
    left, right = events(400, 1), events(400, 2)
    (tmp_path / "log").mkdir()
    for hour in range(4):
        write(tmp_path / "log" / f"{hour}.csv", left.slice(100 * hour, 100))
    alone = left.filter(left["min_time"].is_null())
    write(tmp_path / "log" / "4.csv", alone)
    left = pa.concat_tables([left, alone])
    source = planned(
        tmp_path / "log", write(tmp_path / "r.csv", right), by="door", how="left", slices=7
    )
    assert source.join.count == 7
    assert rows(source) == want(left, right, by="door", how="left")


def test_from_sql(tmp_path: Path, spark: SparkSession) -> None:
    spark.dataSource.register(CoincideSource)
    tables = events(200, 6), events(200, 7)
    write(tmp_path / "right.parquet", tables[1])
    lines = [
        ";".join("-" if value is None else str(value) for value in row.values())
        for row in tables[0].to_pylist()
    ]
    (tmp_path / "left.csv").write_text("\n".join(["made by x", *lines, "NA;-;-;001"]))
    spark.sql(
        f"""CREATE OR REPLACE TEMPORARY VIEW joined USING coincide OPTIONS (
            left '{tmp_path}/left.csv', right '{tmp_path}/right.parquet', within '-300,100',
            confidence '0.7', by 'door', slices '2', csv_delimiter ';', csv_skip '1', csv_null 'NA,-',
            csv_names 'id,min_time,max_time,door', csv_type 'door=text'
        )"""
    )
    found = spark.sql("SELECT *, spark_partition_id() AS task FROM joined").toArrow()
    assert found.schema.types[:3] == [pa.string(), pa.int64(), pa.int64()]
    assert set(found["task"].to_pylist()) == {0, 1}
    assert sorted(map(str, found.drop("task").to_pylist())) == want(*tables, by="door")


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("id,min_time,max_time\n1,0,5\n2,x,5\n", {}, "left: {left}, line 3, column 'min_time': 'x' is no"
         " number; mend it, or say csv_null 'x' if it stands for nothing"),
        ("id,min_time,max_time\n1,0,5\n2,1\n", {}, "line 3 has 2 cells where the header has 3;"),
        ("id;min_time;max_time\n1;0;5\n", {}, "say csv_delimiter ';'"),
        ("id,min_time\n1,0\n", {}, "left has no column 'max_time'"),
        ("id,min_time,max_time\n1,0,5\n", {"csv_type": "a=text"}, "csv_type a: no input has such a column"),
        ("id,min_time,max_time\n1,0,5\n", {"csv_type": "text"}, "csv_type takes COLUMN=TYPE"),
        ("id,min_time,max_time\n1,0,5\n", {"csv_skip": "two"}, "the option 'csv_skip' must be a number"),
        ("id,min_time,max_time\n1,0,5\n", {"format": "xml"}, "format must be one of parquet, csv, arrow"),
        ("id,min_time,max_time\n1,7,5\n", {}, "invalid 'drop'"),
        ("id,min_time,max_time\n1,7,5\n", {"slices": 2}, "invalid 'drop'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    tmp_path: Path, text: str, options: dict[str, Any], said: str
) -> None:
    left, right = tmp_path / "left.csv", write(tmp_path / "right.csv", events(20, 8))
    left.write_text(text)
    with pytest.raises(CoincideError) as refused:
        rows(planned(left, right, **options))
    assert said.format(left=left) in str(refused.value)
    assert "--" not in str(refused.value)


def test_a_bad_cell_below_what_tells_the_types_is_one_line(
    tmp_path: Path, spark: SparkSession
) -> None:
    spark.dataSource.register(CoincideSource)
    left, right = (write(tmp_path / f"{side}.csv", events(20, 9)) for side in ("left", "right"))
    with left.open("a") as file:
        file.write('"20",1,2,"1"\n' * 1_200_000 + '"20",one,2,"1"\n')
    options = {"left": left, "right": right, **ASKED}
    with pytest.raises(
        AnalysisException, match=r"line 1,200,022, column 'min_time': 'one' is no"
    ) as told:
        spark.read.format("coincide").options(**options).load()
    assert "Traceback" not in str(told.value)


def test_nothing_is_said_of_csv_where_none_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", events(20, 10))
    with pytest.raises(CoincideError, match="csv_null means nothing, as no input is CSV"):
        planned(path, path, csv_null="NA").schema()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.arrow"])
def test_a_file_that_changes_between_plan_and_run(tmp_path: Path, name: str) -> None:
    left, right = write(tmp_path / name, events(50, 11)), write(tmp_path / "b.csv", events(50, 12))
    source = planned(left, right)
    reader = source.reader(source.schema())
    write(left, events(51, 13))
    with pytest.raises(DataError, match=f"left: {left} has changed since the join was planned"):
        list(reader.read(InputPartition(0)))
    left.unlink()
    with pytest.raises(DataError, match=f"left: {left} is gone"):
        list(reader.read(InputPartition(0)))


def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where what stands there now does not even look like it."""
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 500)
    left, right = (
        write(tmp_path / "a.csv", events(500, 14)),
        write(tmp_path / "b.csv", events(50, 15)),
    )
    source = planned(left, right)
    join = source.join
    read = join.events(0, [0])
    next(read)
    next(read)
    with left.open("r+") as file:
        file.seek(300)
        file.write("?" * 20_000)
    with pytest.raises(DataError, match="has changed since the join was planned"):
        list(read)


def test_a_task_that_is_tried_again(tmp_path: Path) -> None:
    """Reading a slice twice, or in part, gives the same rows: what a retry and a speculative task do."""
    tables = events(300, 16), events(300, 17)
    paths = [write(tmp_path / f"{i}.csv", table) for i, table in enumerate(tables)]
    source = planned(*paths, slices=3, batch_pairs=20)
    reader = source.reader(source.schema())
    once = [[b.to_pylist() for b in reader.read(part)] for part in reader.partitions()]
    begun = reader.read(InputPartition(1))
    assert next(begun).to_pylist() == once[1][0]
    begun.close()
    again = [[b.to_pylist() for b in reader.read(part)] for part in reversed(reader.partitions())]
    assert again[::-1] == once
    assert sum(map(len, once)) > 10


def test_a_slice_keeps_what_it_needs(tmp_path: Path) -> None:
    """Left rows of its own, and right ones in reach; files of other times are not opened."""
    log = tmp_path / "log"
    log.mkdir()
    table = events(1000, 18)
    for i in range(10):
        write(log / f"{i}.csv", table.slice(100 * i, 100))
    join = planned(log, write(tmp_path / "b.csv", table), slices=10).join
    read = join.read(4)
    assert 50 < len(read.left) < 150
    assert len(read.right) < 200
    assert read.counts[0].rows <= 300


def test_text_keys_beside_numbers(tmp_path: Path) -> None:
    left = tmp_path / "a.csv"
    left.write_text("id,min_time,max_time,door\n1,0,5,7\n2,0,5,12\n")
    table = pa.table([[5, 6], [0, 0], [5, 5], ["7", "012"]], COLUMNS)
    source = planned(left, write(tmp_path / "b.parquet", table), by="door", within="-10,10")
    assert rows(source) == ["{'door': '7', 'left_id': 1, 'right_id': 5}"]


def test_an_empty_side_is_of_the_types_of_the_other(tmp_path: Path) -> None:
    left = tmp_path / "a.csv"
    left.write_text("id,min_time,max_time,door\n")
    right = write(tmp_path / "b.csv", events(20, 19))
    assert rows(planned(left, right, by="door")) == []
    assert len(rows(planned(right, left, by="door", how="left", slices=3))) == 20


@pytest.mark.parametrize(
    "begin",
    [
        "id,min_time,max_time,door",
        "id,min_time,max_time,door\n",
        "id,min_time,max_time,door\n1,0,5,\n",
    ],
)
def test_keys_that_hold_nothing_beside_numbers_that_are_texts(tmp_path: Path, begin: str) -> None:
    """Also where a logger has not ended the line of its header yet."""
    left, right = tmp_path / "a.csv", tmp_path / "b.csv"
    left.write_text(begin)
    right.write_text("id,min_time,max_time,door\n1,0,5,1e3\n2,0,5,+7\n")
    alone = [{"door": None, "left_id": 1, "right_id": None}] if "1" in begin else []
    assert rows(planned(left, right, by="door", how="left")) == [str(row) for row in alone]
    found = rows(planned(right, left, by="door", how="anti"))
    assert found == ["{'door': '+7', 'left_id': 2}", "{'door': '1e3', 'left_id': 1}"]


def test_no_row_yet_below_names_that_are_said(tmp_path: Path) -> None:
    left, right = tmp_path / "a.csv", write(tmp_path / "b.parquet", events(20, 25))
    left.write_text("")
    assert rows(planned(left, right, csv_names="id,min_time,max_time")) == []


def test_where_and_all_columns(tmp_path: Path) -> None:
    tables = events(200, 20), events(200, 21)
    paths = [write(tmp_path / f"{i}.csv", table) for i, table in enumerate(tables)]
    shape = {"where": "left_door = right_door and left_door <> '001'", "left_columns": "*"}
    found = rows(planned(*paths, **shape))
    assert found == want(*tables, **shape)
    assert len(found) > 20


def test_sides_are_written_in_their_own_ways(tmp_path: Path) -> None:
    left, right = tmp_path / "a.csv", tmp_path / "b.csv"
    left.write_text("id;min_time;max_time\n1;0;5\nNA;NA;NA\n")
    right.write_text("id,min_time,max_time\n5,0,5\n")
    source = planned(left, right, left_csv="delimiter=; null=NA", within="-10,10")
    assert rows(source) == ["{'left_id': 1, 'right_id': 5}"]
    with pytest.raises(CoincideError, match="left_csv: 'color' is none of") as refused:
        planned(left, right, left_csv="color=red").schema()
    assert "--" not in str(refused.value)


@pytest.mark.parametrize("slices", [1, 3])
def test_invalid_rows_are_left_out_if_that_is_asked(tmp_path: Path, slices: int) -> None:
    tables = [events(200, seed) for seed in (22, 23)]
    for i, at in enumerate((50, 120)):
        late = tables[i]["min_time"].to_numpy(zero_copy_only=False).copy()
        late[at] = 10**9
        column = pa.array(late, from_pandas=True).cast(pa.int64())
        tables[i] = tables[i].set_column(1, "min_time", column)
    paths = [write(tmp_path / f"{i}.csv", table) for i, table in enumerate(tables)]
    options = CorrelateOptions(invalid="drop")
    found = rows(planned(*paths, slices=slices, invalid="drop", how="left"))
    assert found == want(*tables, how="left", options=options)
    assert len(found) > 100
    good = write(tmp_path / "good.csv", events(200, 24))
    with pytest.raises(DataError, match=r"right: min above max in min_time and max_time in 1 row"):
        rows(planned(good, paths[0], slices=slices))


def test_nanoseconds_are_joined_and_not_handed_out(tmp_path: Path) -> None:
    times = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "UTC"))
    path = write(tmp_path / "a.csv", pa.table({"id": [1], "t": times}))
    given = {"left_time": "t", "right_time": "t", "within": "0s,1s", "tick": "ns"}
    assert rows(planned(path, path, **given)) == ["{'left_id': 1, 'right_id': 1}"]
    with pytest.raises(DataError, match="'left_t' has timestamps finer than Spark's microseconds"):
        rows(planned(path, path, left_columns="id,t", **given))
