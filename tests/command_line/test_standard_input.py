"""Inputs that come in on standard input."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.command_line import run

TABLE = pa.table({"id": [1, 2], "t": [10, 20]})
CSV = "id,t\n1,10\n2,20\n"


def arrow(stream: bool) -> bytes:
    sink = pa.BufferOutputStream()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue().to_pybytes()


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink)
    return sink.getvalue().to_pybytes()


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def joined(monkeypatch, tmp_path: Path, left: str, right: str, data: bytes, *words: str) -> int:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    times = ["--left-time", "t", "--right-time", "t", "--within", "0", "5", "--confidence", "0.5"]
    out = ["-o", str(tmp_path / "out.parquet"), "--overwrite", "--engine", "local"]
    return run(["join", left, right, *times, *out, *words])


@pytest.fixture
def other(tmp_path: Path) -> str:
    (tmp_path / "other.csv").write_text(CSV)
    return str(tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (CSV.encode(), []),
        (gzip.compress(CSV.encode()), []),
        (CSV.replace(",", ";").encode(), ["--left-csv", "delimiter=;"]),
        (arrow(True), []),
        (arrow(False), []),
    ],
    ids=["csv", "gzip", "semicolons", "stream", "file"],
)
def test_what_comes_in_is_joined(monkeypatch, tmp_path, other, data, words, capsys):
    assert joined(monkeypatch, tmp_path, "-", other, data, *words) == 0, capsys.readouterr().err
    found = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert found == [{"left_id": 1, "right_id": 1}, {"left_id": 2, "right_id": 2}]
    assert not [name for name in os.listdir(tmp_path) if name.startswith("coincide-")]


@pytest.mark.parametrize(
    ("left", "data", "said"),
    [
        ("-", b"id,t\n1,x\n", "left: standard input, line 2, column 't': 'x' is not a time"),
        ("-", b"", "left: cannot read - as csv: Empty CSV file"),
        (
            "-",
            parquet(),
            "left: standard input is read as CSV or Arrow IPC, not as",
        ),
    ],
)
def test_what_cannot_be_read(monkeypatch, tmp_path, other, left, data, said, capsys):
    assert joined(monkeypatch, tmp_path, left, other, data) == 2
    assert said in capsys.readouterr().err


def test_it_is_one_input(monkeypatch, tmp_path, other, capsys):
    assert joined(monkeypatch, tmp_path, "-", "-", CSV.encode()) == 2
    assert "standard input can be one input only" in capsys.readouterr().err


def test_a_terminal_is_not_waited_for(monkeypatch, tmp_path, other, capsys):
    monkeypatch.setattr(io, "TextIOWrapper", Terminal)
    assert joined(monkeypatch, tmp_path, "-", other, b"") == 2
    assert "standard input is a terminal" in capsys.readouterr().err
