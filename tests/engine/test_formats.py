"""A new format of files is one module and one line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import TimingCondition, correlate_tables, within
from coincide.command_line import run
from coincide.engine.files.source import FORMATS, Format

ROWS = [{"id": i, "min_time": 10 * i, "max_time": 10 * i + 5} for i in range(20)]


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(FORMATS, "lines", Format("tests.helpers.lines_input", (".jsonl",)))
    path = tmp_path / "left.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(path)


def test_on_the_command_line(
    tmp_path: Path, lines: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "left.parquet")
    found = []
    for left in ("left.jsonl", "left.parquet"):
        words = [
            "join",
            str(tmp_path / left),
            lines,
            "-o",
            str(tmp_path / "out.parquet"),
            "--overwrite",
        ]
        assert run([*words, "--within", "-3", "12", "--confidence", "0.5"]) == 0
        found.append(pq.read_table(tmp_path / "out.parquet"))
    assert found[0].equals(found[1])
    assert found[0].num_rows > len(ROWS)
    words = ["join", lines, "-o", str(tmp_path / "out"), "--within", "0", "1", "--confidence", "1"]
    assert run([*words, "--engine", "spark"]) == 2
    assert "Spark reads Parquet only" in capsys.readouterr().err
    assert run([*words, "--csv-null", "NA"]) == 2
    assert "no input is CSV" in capsys.readouterr().err


def test_as_a_table_in_python(lines: str) -> None:
    condition = TimingCondition(within(-3, 12), 0.5)
    by_path = correlate_tables(lines, lines, condition)
    by_rows = correlate_tables(ROWS, ROWS, condition)
    assert by_path.equals(by_rows)
