"""`coincide borders`: the crossings of tables, from files, on both engines."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from coincide import BorderOptions, DataError, LateRowsWarning, border_crossing_tables
from coincide.command_line import run
from coincide.engine.files.slice_join import PlannedFiles
from tests.helpers.border_tables import least_last, random_queries, random_readings
from tests.helpers.rows import in_order

STREAMS = pa.array([f"s{k}" for k in range(7)])
READINGS = random_readings(4, 300, STREAMS, pa.timestamp("us", "UTC"))
QUERIES = random_queries(5, pa.array([f"q{k}" for k in range(12)]))
NAMES = ["--stream", "stream", "--time", "at", "--values", "x", "--query", "query"]
ARGUMENTS: dict[str, Any] = {"stream": "stream", "time": "at", "values": "x", "query": "query"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(READINGS, tmp_path / "readings.parquet")
    pq.write_table(QUERIES, tmp_path / "queries.parquet")
    (tmp_path / "out").mkdir()
    return tmp_path


def borders(place: Path, *options: str, engine: str = "local", **files: str) -> int:
    given = {"readings": "readings.parquet", "queries": "queries.parquet", **files}
    inputs = [str(place / name) for name in given.values()]
    output = str(place / "out" / "crossings.parquet")
    return run(["borders", *inputs, "-o", output, "--engine", engine, *options])


def result(place: Path) -> pa.Table:
    return ds.dataset(str(place / "out" / "crossings.parquet"), format="parquet").to_table()


def expected(readings: pa.Table = READINGS, queries: pa.Table = QUERIES, **options: Any) -> Any:
    return border_crossing_tables(readings, queries, options=BorderOptions(**options), **ARGUMENTS)


def test_the_crossings_of_tables_are_written(place: Path, capsys: Any) -> None:
    assert borders(place, *NAMES, "--interpolate", "--first", "outside", "--json") == 0
    wanted = expected(interpolate=True, first="outside")
    assert result(place).equals(wanted)
    told = json.loads(capsys.readouterr().out)
    assert told["entered"] + told["left"] == told["rows"] == wanted.num_rows > 0
    assert (told["readings"], told["queries"], told["engine"]) == (300, 12, "local")
    assert told["gaps"] > 0
    assert told["repeated"] > 0
    assert [path.name for path in (place / "out").iterdir()] == ["crossings.parquet"]


def test_the_summary_in_words(place: Path, capsys: Any) -> None:
    assert borders(place, *NAMES, "--hysteresis", "1.5") == 0
    assert result(place).equals(expected(hysteresis=1.5))
    told = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert told["readings"].startswith(" 300 rows; ")
    assert "gaps; " in told["readings"]
    assert told["queries"].strip().startswith("12")
    assert {"entered", "left", "retrieved", "rows", "seconds", "output"} <= {*map(str.strip, told)}


def test_files_in_order_of_time_are_read_group_by_group(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All readings of one time are in one group; the files themselves come in any order."""
    ordered = READINGS.sort_by("at")
    ends = [k for k in range(1, 300) if ordered["at"][k] != ordered["at"][k - 1]]
    cuts = [0, ends[20], ends[50], 300]
    parts = [ordered.slice(a, b - a) for a, b in pairwise(cuts)]
    (place / "folder").mkdir()
    for name, part in zip("cab", parts, strict=True):
        pq.write_table(part, place / "folder" / f"{name}.parquet")
    seen = []
    read = PlannedFiles.read

    def noted(*given: Any, **more: Any) -> pa.Table:
        table = read(*given, **more)
        seen.append(table.num_rows)
        return table

    monkeypatch.setattr(PlannedFiles, "read", noted)
    assert borders(place, *NAMES, readings="folder") == 0
    assert in_order(result(place)) == in_order(expected())
    assert seen == [part.num_rows for part in parts]


def test_groups_that_share_a_time_are_read_together(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(READINGS.sort_by("at"), place / "readings.parquet", row_group_size=10)
    monkeypatch.setattr(PlannedFiles, "read", None)
    assert borders(place, *NAMES) == 0
    assert in_order(result(place)) == in_order(expected())


def test_a_file_that_is_replaced_while_it_is_read_is_an_error(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Never the crossings of both files: the same rows in time, with other values."""
    path, rows = place / "readings.parquet", range(6)
    first = pa.table({"stream": ["a"] * 6, "at": rows, "x": [0.0] * 6})
    pq.write_table(first, path, row_group_size=2)
    read = PlannedFiles.read

    def replacing(*given: Any, **more: Any) -> pa.Table:
        table = read(*given, **more)
        pq.write_table(first.set_column(2, "x", pa.array([9.0] * 6)), path, row_group_size=2)
        return table

    monkeypatch.setattr(PlannedFiles, "read", replacing)
    assert borders(place, *NAMES) == 2
    assert "readings.parquet has changed since planning" in capsys.readouterr().err
    assert not list((place / "out").iterdir())


def test_csv_whose_values_begin_as_whole_numbers(place: Path) -> None:
    values = [1.0] * 5 + [2.5, 3e-3, None]
    readings = pa.table({"stream": ["007"] * 8, "at": range(8), "x": values})
    queries = pa.table({"query": [1, 2], "lower": [2, None], "upper": [None, 1]})
    csv.write_csv(readings, place / "readings.csv")
    csv.write_csv(queries, place / "queries.csv")
    text = (place / "readings.csv").read_text()
    assert '"007",0,1\n' in text
    (place / "readings.csv").write_text(text.replace("0.003", "3e-3"))
    assert borders(place, *NAMES, readings="readings.csv", queries="queries.csv") == 0
    assert result(place).equals(expected(readings, queries))
    assert result(place).num_rows == 3


def test_two_dimensions_and_a_margin_for_each(place: Path) -> None:
    readings = random_readings(8, 200, STREAMS, pa.int64(), 2)
    queries = random_queries(9, pa.array(range(9)), 2)
    pq.write_table(readings, place / "readings.parquet")
    pq.write_table(queries, place / "queries.parquet")
    options = ["--hysteresis", "0,1.5", "--unit", "ms"]
    names = [*NAMES[:4], "--values", "x,y", "--query", "query"]
    assert borders(place, *names, *options) == 0
    wanted = border_crossing_tables(
        readings, queries, stream="stream", time="at", values=["x", "y"], query="query",
        options=BorderOptions(hysteresis=(0.0, 1.5), unit="ms"),
    )  # fmt: skip
    assert result(place).equals(wanted)


def test_no_readings_at_all(place: Path) -> None:
    nothing = pa.table({"stream": pa.nulls(0), "at": pa.nulls(0), "x": pa.nulls(0)})
    pq.write_table(nothing, place / "readings.parquet")
    assert borders(place, *NAMES) == 0
    assert result(place).column_names == ["query", "stream", "event", "min_time", "max_time"]
    assert not result(place).num_rows


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "readings has no column 'stream_id'"),
        ([*NAMES, "--values", "x,,y"], "--values has an empty entry"),
        ([*NAMES, "--hysteresis", "much"], "--hysteresis takes numbers"),
        (
            [*NAMES, "--hysteresis", "1", "--pass-through"],
            "--pass-through and hysteresis exclude each other",
        ),
        ([*NAMES, "--first", "inside"], "first must be one of"),
        ([*NAMES, "--master", "local"], "--master has no effect with --engine local"),
        ([*NAMES, "--values", "y"], "no column 'y'"),
        ([*NAMES, "--stream", "x"], "two columns named 'x'"),
        ([*NAMES, "--query", "id"], "queries has no column 'id'"),
    ],
)
def test_bad_use_is_one_line(place: Path, capsys: Any, options: list[str], words: str) -> None:
    assert borders(place, *options) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert not list((place / "out").iterdir())


def test_bad_readings_are_refused_or_left_out(place: Path, capsys: Any) -> None:
    values = READINGS["x"].to_numpy().copy()
    values[[3, 5]] = np.inf
    bad = READINGS.set_column(2, "x", pa.array(values))
    pq.write_table(bad, place / "readings.parquet")
    assert borders(place, *NAMES) == 2
    said = capsys.readouterr().err
    assert "infinite values in x in 2 rows" in said
    assert "or skip such rows with --invalid drop" in said
    assert borders(place, *NAMES, "--invalid", "drop") == 0
    assert result(place).equals(expected(bad, invalid="drop"))
    assert "skipped 2 invalid rows" in capsys.readouterr().out


def test_a_driver_needs_no_gpu(place: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor an index of the queries: what is checked before Spark starts are the columns."""

    def reached(*given: Any) -> Any:
        raise DataError("got as far as Spark")

    monkeypatch.setattr("coincide.command_line.engines.spark_at_work", reached)
    assert borders(place, *NAMES, "--backend", "gpu", engine="spark") == 2
    assert "got as far as Spark" in capsys.readouterr().err
    assert borders(place, "--backend", "gpu", engine="spark") == 2
    assert "no column" in capsys.readouterr().err


@pytest.mark.spark
def test_spark_writes_the_same_rows(place: Path, command_spark: Any, capsys: Any) -> None:
    csv.write_csv(QUERIES, place / "queries.csv")
    assert borders(place, *NAMES, "--json", engine="spark", queries="queries.csv") == 0
    said = capsys.readouterr()
    assert said.err == ""
    wanted = expected(least_last(READINGS))
    assert in_order(result(place)) == in_order(wanted)
    told = json.loads(said.out)
    assert told["entered"] + told["left"] == told["rows"] == wanted.num_rows
    assert (told["readings"], told["queries"], told["engine"]) == (300, 12, "spark")


@pytest.mark.spark
def test_spark_refuses_bad_readings(place: Path, command_spark: Any, capsys: Any) -> None:
    bad = pa.table({"stream": ["a", None], "at": [1, 2], "x": [1.0, 2.0]})
    pq.write_table(bad, place / "readings.parquet")
    assert borders(place, *NAMES, engine="spark") == 2
    said = capsys.readouterr().err
    assert "readings: nulls in stream or at in 1 row (found stream=None, at=2" in said
    assert len(said.splitlines()) == 1
    assert not list((place / "out").iterdir())


def test_ranges_that_hold_both_ends_and_readings_of_one_stream(place: Path, capsys: Any) -> None:
    alone = READINGS.drop(["stream"])
    words = pa.array(["neither", None, "left"] * 4)
    pq.write_table(alone, place / "readings.parquet")
    pq.write_table(QUERIES.append_column("ends", words), place / "queries.parquet")
    names = [*NAMES[2:], "--stream", "-", "--closed", "both", "--closed-column", "ends"]
    assert borders(place, *names) == 0
    assert (
        "that repeat a time. Name the column that identifies streams with --stream"
        in capsys.readouterr().out
    )
    asked = {**ARGUMENTS, "stream": None, "closed": "both", "closed_column": "ends"}
    with pytest.warns(LateRowsWarning):
        wanted = border_crossing_tables(alone, QUERIES.append_column("ends", words), **asked)
    assert result(place).equals(wanted)
    assert wanted.num_rows > 50


def test_why_no_crossing_is_found(place: Path, capsys: Any) -> None:
    far = QUERIES.set_column(1, "lower_x", [[900.0] * 12]).set_column(2, "upper_x", [[990.0] * 12])
    pq.write_table(far, place / "queries.parquet")
    assert borders(place, *NAMES) == 0
    said = capsys.readouterr().out
    assert "no crossing: " in said
    assert "and no range reaches there: ranges go from 900 to 990" in said
    assert borders(place, *NAMES, "--overwrite", "--json") == 0
    assert "no range reaches there" in json.loads(capsys.readouterr().out)["why_none"][0]
