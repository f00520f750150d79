"""Where the answer goes: Parquet, CSV and Arrow files, and standard output."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from coincide import SchemaError
from coincide.command_line import run
from coincide.engine.files.result_rows import CsvRows
from tests.helpers.places import ROOT
from tests.helpers.rows import in_order, tuples
from tests.helpers.workplace import WINDOW, Workplace, events

ENGINES = ["local", pytest.param("spark", marks=pytest.mark.spark)]


@pytest.fixture
def work(tmp_path, capsys):
    return Workplace(tmp_path, capsys)


def written(path: Path) -> pa.Table:
    match path.name.split("."):
        case [_, "csv", "gz"]:
            return csv.read_csv(io.BytesIO(gzip.decompress(path.read_bytes())))
        case [_, "csv"]:
            return csv.read_csv(path)
        case [_, "arrow"]:
            return pa.ipc.open_file(path).read_all()
    return pq.read_table(path)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.arrow"])
def test_the_name_says_what_is_written(work, request, engine, name):
    if engine == "spark":
        request.getfixturevalue("command_spark")
    work.output = work.output.with_name(name)
    assert work.join(*WINDOW, "--by", "key", "--probability", engine=engine)[0] == 0
    expected = work.expected(by="key", probability=True)
    # CSV writes 1.0 as 1.
    assert sorted(tuples(written(work.output))) == sorted(tuples(expected))
    assert [path.name for path in work.output.parent.iterdir()] == [name]
    assert "exists already" in work.refused(*WINDOW, engine=engine)
    assert work.join(*WINDOW, "--overwrite", "--confidence", "1", engine=engine)[0] == 0
    assert written(work.output).num_rows == work.expected(confidence=1).num_rows


@pytest.mark.parametrize("engine", ENGINES)
def test_standard_output_has_the_rows_alone(tmp_path, request, engine, capsysbinary):
    work = Workplace(tmp_path, capsysbinary)
    if engine == "spark":
        request.getfixturevalue("command_spark")
    words = ["join", str(work.left), str(work.right), "-o", "-", *WINDOW, "--engine", engine]
    want = in_order(work.expected())
    capsysbinary.readouterr()
    assert run(words) == 0
    said = capsysbinary.readouterr()
    assert said.out.startswith(b"left_id,right_id\n")
    assert in_order(csv.read_csv(io.BytesIO(said.out))) == want
    assert b"pairs" in said.err
    assert run([*words, "--output-format", "arrow"]) == 0
    out = capsysbinary.readouterr().out
    assert in_order(pa.ipc.open_stream(out).read_all()) == want
    assert run([*words, "--output-format", "parquet", "--json"]) == 0
    said = capsysbinary.readouterr()
    assert in_order(pq.read_table(io.BytesIO(said.out))) == want
    assert said.err.startswith(b'{"output": "-"')


def test_a_format_may_be_asked_for(work):
    work.output = work.output.with_name("out")
    assert work.join(*WINDOW, "--output-format", "csv")[0] == 0
    assert in_order(csv.read_csv(work.output)) == in_order(work.expected())


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("out.tsv", (), "cannot be written"),
        ("out.json", (), "cannot be written"),
        ("out.parquet.gz", (), "would be compressed, and only .csv can be compressed. Remove .gz"),
        ("out.csv", ("--output-format", "arrow"), "means csv, but --output-format is"),
        ("out.csv", ("--output-format", "xml"), "--output-format must be one of parquet, csv, arrow"),
        ("out.csv", ("--emit", "lists"), "--emit lists gives arrays, which CSV cannot hold"),
    ],
)  # fmt: skip
def test_names_that_make_no_sense(work, name, more, words):
    work.output = work.output.with_name(name)
    assert words in work.refused(*WINDOW, *more)


def test_columns_that_csv_cannot_hold(work):
    lists = events().append_column("x", pa.array([[1]] * 4))
    pq.write_table(lists, work.left)
    work.output = work.output.with_name("out.csv")
    said = work.refused(*WINDOW, "--left-columns", "id,x")
    assert "the output column left_x has the type list<element: int64>" in said


def test_csv_is_read_as_it_was_written(tmp_path):
    table = pa.table(
        {
            "text": ["a", 'q"r', None, "x,y\nz"],
            "a,b": [1, None, 3, 4],
            "time": pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, UTC)] * 4, pa.timestamp("us", "UTC")),
            "real": [0.1, 1e300, None, -0.0],
        }
    )  # fmt: skip
    file = tmp_path / "a.csv"
    for part in (table, table.slice(0, 1)):
        with CsvRows("a.csv", lambda: pa.OSFile(str(file), "wb"), table.schema) as out:
            for batch in part.to_batches():
                out.write(batch)
        convert = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
        parse = csv.ParseOptions(newlines_in_values=True)
        found = csv.read_csv(file, parse_options=parse, convert_options=convert)
        assert found.to_pylist() == part.to_pylist()
    assert file.read_text().startswith('text,"a,b",time,real\na,1,2026-01-02')
    with pytest.raises(SchemaError, match="which CSV cannot hold"):
        CsvRows("a.csv", pa.BufferOutputStream, pa.schema([("x", pa.list_(pa.int8()))]))


def test_a_failure_leaves_no_csv(work):
    pq.write_table(events(min_time=[9, 10, 20, 30]), work.left)
    work.output = work.output.with_name("out.csv")
    assert "left: min above max" in work.refused(*WINDOW)


@pytest.mark.spark
def test_a_failure_on_spark_leaves_no_csv(work, command_spark):
    pq.write_table(events(min_time=[9, 10, 20, 30]), work.left)
    work.output = work.output.with_name("out.csv")
    assert "left: min above max" in work.refused(*WINDOW, engine="spark")


@pytest.mark.spark
def test_nothing_found_by_spark_is_a_header(work, command_spark):
    work.output = work.output.with_name("out.csv")
    words = ("--within", "5000", "6000", "--confidence", "1")
    assert work.join(*words, engine="spark")[0] == 0
    assert work.output.read_text() == "left_id,right_id\n"


def test_a_reader_that_stops_is_no_failure(work):
    many: dict[str, Any] = {name: [0] * 1000 for name in ("id", "min_time", "max_time")}
    for name in ("left.parquet", "right.parquet"):
        work.write(name, pa.table(many))
    words = ["join", str(work.left), str(work.right), "-o", "-", *WINDOW, "--engine", "local"]
    process = subprocess.Popen(
        [sys.executable, "-m", "coincide.command_line", *words], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"left_id,right_id\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(100) == 141


def test_a_reader_of_the_summary_that_stops(work):
    words = ["join", str(work.left), str(work.right), "-o", str(work.output), *WINDOW]
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-m", "coincide.command_line", *words], cwd=ROOT,
        stdout=writes, stderr=subprocess.PIPE, timeout=100, check=False,
    )  # fmt: skip
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, b"")


def on_a_full_disk(*words: str) -> tuple[int, str]:
    """Exit code and stderr of a command whose standard output takes nothing."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "coincide.command_line", *words], cwd=ROOT, stdout=full,
            stderr=subprocess.PIPE, timeout=100, check=False, text=True,
        )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_summary_that_cannot_be_printed_is_named_as_such(work, more):
    words = "join", str(work.left), str(work.right), "-o", str(work.output), *WINDOW, *more
    code, said = on_a_full_disk(*words)
    assert code == 2
    assert said == (
        "coincide: the summary cannot be printed (found: No space left on device). The output,"
        f" {work.output}, is written.\n"
    )
    assert in_order(written(work.output)) == in_order(work.expected())


def test_other_words_that_cannot_be_printed(work):
    code, said = on_a_full_disk("--version")
    assert code == 1
    assert "No space left on device: an input, the output, or standard output" in said


def test_an_early_end_of_some_file_interrupts_nothing(work, monkeypatch):
    def ended(*given: Any) -> None:
        raise EOFError("Ran out of input")

    monkeypatch.setattr("coincide.command_line.join.JoinRequest.in_process", ended)
    code, _, said = work.join(*WINDOW)
    assert code == 1
    assert "coincide: EOFError: Ran out of input" in said
    assert "interrupted" not in said


def test_shifts_that_cannot_be_are_refused_before_the_first_row(tmp_path, capfdbinary):
    (tmp_path / "a.csv").write_text("id,t\n1,10\n2,20\n")
    (tmp_path / "b.csv").write_text("id,t\n1,12\n2,2305843009213693900\n")
    words = ["join", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "-o", "-", "--unit", "us"]
    words += ["--within", "0", "5", "--left-time", "t", "--right-time", "t", "--shifts", "1s"]
    assert run(words) == 2
    out, err = capfdbinary.readouterr()
    assert b"the shift '1s' moves times beyond 2^61 ticks" in err
    assert out in (b"", b"left_id,right_id\n")  # the header is there before the rows are read
