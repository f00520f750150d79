"""`coincide join` of one input: its events are joined with themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from coincide import correlate_tables
from coincide.command_line import run

EVENTS = pa.table(
    {"id": [1, 2, 3, 4], "place": ["x", "x", "y", "x"], "t": [0, 5, 6, 8], "u": [2, 6, 9, 8]}
)
OPTIONS = ["--left-time", "t,u", "--within", "0", "7", "--confidence", "0.5", "--by", "place"]


def joined(inputs: list[Path], output: Path, *options: str, engine: str = "local") -> int:
    return run(["join", *map(str, inputs), "-o", str(output), "--engine", engine, *options])


@pytest.mark.parametrize(
    ("ending", "engine"),
    [
        ("parquet", "local"),
        ("csv", "local"),
        pytest.param("parquet", "spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_one_input(tmp_path: Path, capsys: Any, ending: str, engine: str) -> None:
    path, output = tmp_path / f"events.{ending}", tmp_path / "pairs.parquet"
    (csv.write_csv if ending == "csv" else pq.write_table)(EVENTS, path)
    assert joined([path], output, *OPTIONS, "--json", engine=engine) == 0
    wanted = correlate_tables(
        EVENTS, within=(0, 7), confidence=0.5, by="place", left_time=("t", "u")
    )
    assert wanted.num_rows == 3
    found = pq.read_table(output).sort_by([("left_id", "ascending"), ("right_id", "ascending")])
    assert found.to_pylist() == wanted.to_pylist()
    told = json.loads(capsys.readouterr().out)
    assert told["events"]["rows"] == 4
    assert not {"left", "right"} & told.keys()
    assert told["pairs"] == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--right-around", "3"], "--right-around belongs to RIGHT, and there is one stream"),
        (["--right-unit", "s"], "--right-unit belongs to RIGHT"),
        (["--right-time", "u"], "both sides of one stream have the same times"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_second_input(
    tmp_path: Path, capsys: Any, options: list[str], words: str
) -> None:
    pq.write_table(EVENTS, path := tmp_path / "events.parquet")
    assert joined([path], tmp_path / "pairs.parquet", *OPTIONS, *options) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "pairs.parquet").exists()
