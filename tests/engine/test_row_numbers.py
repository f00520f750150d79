"""Rows without ids: in one process their numbers are these, from 0, whatever they are given as."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coincide as c
from coincide import SchemaError, correlate_tables
from coincide.command_line import run

SECONDS: Any = c.CorrelateOptions(unit="s")
NEAR: Any = {"within": (-15, 15), "left_time": "t", "right_time": "t"}
CAUSES = c.CausalityCondition([c.Temporal("0s", "15s"), c.Spatial(50)])
FIRST = pa.table({"t": [30, 10, 20, 90], "x": [0.5, 1.5, 2.5, 3.5], "key": ["a", "b", "a", "b"]})
SECOND = pa.table({"t": [25, 15, 70], "x": [2.5, 1.5, 0.5], "key": ["a", "b", "b"]})


def numbered(table: pa.Table) -> pa.Table:
    return table.append_column("id", pa.array(range(table.num_rows), pa.int64()))


def causal(left: Any, right: Any) -> pa.Table:
    return c.causality_tables(
        left, right, CAUSES, cause_time="t", cause_place=["x"], options=SECONDS
    )


def streamed(left: Any, right: Any) -> pa.Table:
    stream = c.stream_tables(**NEAR, left_delay=100, right_delay=100, how="left", by="key")
    parts = []
    for i in range(4):
        parts += [stream.push("left", left.slice(i, 1)), stream.push("right", right.slice(i, 1))]
    found = pa.concat_tables([each for each in (*parts, stream.flush()) if each.num_columns])
    return found.sort_by([("left_id", "ascending"), ("right_id", "ascending")])


def through_a_window(left: Any, _: Any) -> pa.Table:
    window = c.WindowedCausality(CAUSES, time="t", place="x", options=c.WindowOptions(8, unit="s"))
    ordered = left.sort_by("t")
    return pa.concat_tables([window.push(ordered.slice(0, 2)), window.push(ordered.slice(2, 2))])


def test_of_a_window() -> None:
    assert through_a_window(FIRST, None).num_rows == 2
    assert through_a_window(FIRST, None).equals(
        through_a_window(numbered(FIRST.sort_by("t")), None)
    )


OPERATORS: dict[str, Callable[[Any, Any], pa.Table]] = {
    "pairs": lambda a, b: correlate_tables(a, b, **NEAR),
    "all": lambda a, b: correlate_tables(a, b, how="full", by="key", **NEAR),
    "anti": lambda a, b: correlate_tables(a, b, how="anti", by="key", **NEAR),
    "lists": lambda a, b: correlate_tables(a, b, emit="lists", probability=True, **NEAR),
    "where on ids": lambda a, b: correlate_tables(a, b, where="left_id <> right_id", **NEAR),
    "one stream": lambda a, _: correlate_tables(a, **NEAR),
    "one side": lambda a, b: correlate_tables(a, b, left_columns="x", **NEAR),
    "causality": lambda a, b: causal(a, b),
    "causes of one stream": lambda a, _: causal(a, None),
    "clusters": lambda a, _: c.clusters(a, CAUSES, time="t", place="x", options=SECONDS),
    "streams": streamed,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_number_of_a_row_is_its_id(name: str) -> None:
    operator = OPERATORS[name]
    found = operator(FIRST, SECOND)
    assert found.num_rows
    assert found.equals(operator(numbered(FIRST), numbered(SECOND)))


def of_duckdb(table: pa.Table) -> Any:
    return duckdb.from_arrow(table)


GIVEN: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": pa.Table.to_pandas,
    "pandas by other labels": lambda t: t.to_pandas().set_index(pd.Index(range(7, 7 + t.num_rows))),
    "Polars": pl.from_arrow,
    "DuckDB": of_duckdb,
    "rows": pa.Table.to_pylist,
    "arrays": lambda t: {name: t[name].to_numpy() for name in t.column_names},
    "lists": pa.Table.to_pydict,
    "batches": lambda t: t.to_reader(1),
}


@pytest.mark.parametrize("name", GIVEN)
def test_of_any_kind_of_table(name: str) -> None:
    make = GIVEN[name]
    found = correlate_tables(make(FIRST), make(SECOND), by="key", **NEAR)
    assert found.to_pylist() == correlate_tables(FIRST, SECOND, by="key", **NEAR).to_pylist()
    assert (found["left_id"].type, sorted(found["left_id"].to_pylist())) == (pa.int64(), [0, 1, 2])


def test_an_index_called_id_is_a_column() -> None:
    frame = FIRST.to_pandas().set_index(pd.Index([5, 6, 7, 8], name="id"))
    found = correlate_tables(frame, SECOND, by="key", **NEAR)
    assert sorted(found["left_id"].to_pylist()) == [5, 6, 7]


@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=8), st.data())
def test_skipped_rows_count(times: list[int | None], data: st.DataObject) -> None:
    ends = [data.draw(st.integers(0, 30)) for _ in times]
    table = pa.table(
        {"min_time": pa.array(times, pa.int64()), "max_time": pa.array(ends, pa.int64())}
    )
    asked: Any = {
        "within": (-3, 3),
        "confidence": 0.5,
        "options": c.CorrelateOptions(invalid="drop"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coincide.engine.reports.warnings.warn", lambda *_: None)
        found = correlate_tables(table, table, **asked, how="full")
        assert found.equals(correlate_tables(numbered(table), numbered(table), **asked, how="full"))


def test_ids_that_are_needed_for_more_must_be_there() -> None:
    for more in ({"by": "id"}, {"left_columns": ["id", "x"]}, {"left_time": "id"}):
        with pytest.raises(SchemaError, match=r"left has no column 'id' .found 't', 'x', 'key'\)"):
            correlate_tables(FIRST, SECOND, **NEAR | more)
    with pytest.raises(SchemaError, match=r"left has no column 'u' .found 't', 'x', 'key'\)"):
        correlate_tables(FIRST, SECOND, **NEAR | {"left_time": "u"})


def written(table: pa.Table, path: Path) -> str:
    if path.suffix == ".csv":
        csv.write_csv(table, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    else:
        path.mkdir()
        for i in range(0, table.num_rows, 2):
            pq.write_table(table.slice(i, 2), path / f"{i}.parquet", row_group_size=1)
    return str(path)


@pytest.mark.parametrize("ending", [".csv", ".arrow", ".parquet"])
@pytest.mark.parametrize("name", [[], ["--how", "full"], ["--left-columns", "*"]], ids=str)
def test_of_files(tmp_path: Path, ending: str, name: list[str]) -> None:
    paths = [written(t, tmp_path / f"{i}{ending}") for i, t in enumerate((FIRST, SECOND))]
    out = tmp_path / "out.parquet"
    words = [
        "join",
        *paths,
        "-o",
        str(out),
        "--within",
        "15",
        "--left-time",
        "t",
        "--right-time",
        "t",
    ]
    assert run([*words, "--by", "key", *name]) == 0
    more: Any = dict([(name[0][2:].replace("-", "_"), name[1])]) if name else {}
    found = pq.read_table(out)
    order = [(each, "ascending") for each in found.column_names]
    expected = correlate_tables(FIRST, SECOND, by="key", **NEAR, **more)
    assert found.sort_by(order).equals(expected.sort_by(order))
    assert correlate_tables(*paths, by="key", **NEAR, **more).equals(expected)


def test_of_one_file_and_of_clusters(tmp_path: Path) -> None:
    path, out = written(FIRST, tmp_path / "events.parquet"), tmp_path / "out.parquet"
    assert run(["join", path, "-o", str(out), "--within", "15", "--left-time", "t"]) == 0
    assert pq.read_table(out).equals(correlate_tables(FIRST, **NEAR))
    words = ["--unit", "s", "--time", "t", "--place", "x", "--delta", "0s", "15s", "--radius", "50"]
    assert run(["clusters", path, "-o", str(out), "--overwrite", *words]) == 0
    clusters = c.clusters(FIRST, CAUSES, time="t", place="x", options=SECONDS)
    assert pq.read_table(out).equals(clusters)


def test_slices_number_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(FIRST, tmp_path / "events.parquet")
    words = ["join", path, path, "-o", str(tmp_path / "out.parquet"), "--within", "15"]
    words += ["--left-time", "t", "--right-time", "t"]
    assert run([*words, "--way", "files"]) == 2
    assert "left has no column 'id', and slices do not number rows" in capsys.readouterr().err
    assert run([*words, "--engine", "spark"]) == 2
    assert "left has no column 'id' (found 't', 'x', 'key')" in capsys.readouterr().err
    assert np.array_equal(pq.read_table(path)["t"], FIRST["t"])


def test_files_of_which_some_have_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(FIRST, folder / "a.parquet")
    pq.write_table(numbered(FIRST), folder / "b.parquet")
    words = ["join", str(folder), "-o", str(tmp_path / "out.parquet"), "--within", "15"]
    assert run([*words, "--left-time", "t"]) == 2
    assert "has no column 'id', which other files have" in capsys.readouterr().err
