"""CSV as others write it: infinite times, formats of their own, two dialects, lines without rows."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from coincide.command_line import run
from tests.helpers.rows import tuples

NEAR = ["--left-time", "t", "--right-time", "t", "--mutual-deadline", "5s", "--confidence", "1"]
HERE = ["--engine", "local", "--json"]
ISO = "id,t\n1,2024-05-01T08:00:00\n2,2024-05-01T08:00:02\n3,2024-05-01T09:00:00\n"


def joined(tmp_path: Path, left: str | bytes, *options: str, right: str | None = ISO) -> int:
    """`coincide join` of these texts; the pairs are in ``out.csv``."""
    inputs = []
    for name, text in (("l", left), ("r", right)):
        if text is not None:
            inputs.append(str(tmp_path / f"{name}.csv"))
            Path(inputs[-1]).write_bytes(text if isinstance(text, bytes) else text.encode())
    output = str(tmp_path / "out.csv")
    return run(["join", *inputs, "-o", output, "--overwrite", *NEAR, *HERE, *options])


def pairs(tmp_path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuples(csv.read_csv(tmp_path / "out.csv")))


@pytest.mark.parametrize("word", ["infinity", "-infinity", "NaN", "inf", "yesterday", "2024-02-31"])
@pytest.mark.parametrize("line", [2, 3, 5])
def test_a_time_that_is_none_is_blamed_or_left_out(
    word: str, line: int, tmp_path: Path, capsys: Any
) -> None:
    lines = ISO.splitlines()
    lines.insert(line - 1, f"7,{word}")
    text = "\n".join(lines) + "\n"
    assert joined(tmp_path, text) == 2
    said = capsys.readouterr().err
    assert f"line {line}, column 't': {word!r} is no" in said
    assert "or skip such rows with --invalid drop" in said
    assert joined(tmp_path, text, "--invalid", "drop") == 0
    assert json.loads(capsys.readouterr().out)["lines_skipped"] == {"left": 1}
    assert pairs(tmp_path) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    ("cells", "word"), [("1,2,9", "soon"), ("0.5,1.5,9.0", "soon"), ("1,2,9", "\0\0\0")]
)
def test_numbers_that_are_none(cells: str, word: str, tmp_path: Path, capsys: Any) -> None:
    rows = [f"{i},{cell}\n" for i, cell in enumerate(cells.split(","), 1)]
    text = "".join(["id,t\n", *rows, f"4,{word}\n"])
    options = ["--unit", "s", "--left-columns", "id"]
    assert joined(tmp_path, text, *options, right=None) == 2
    assert "line 5, column 't'" in capsys.readouterr().err
    assert joined(tmp_path, text, *options, "--invalid", "drop", right=None) == 0
    assert json.loads(capsys.readouterr().out)["lines_skipped"] == {"event": 1}
    assert pairs(tmp_path) == [(1, 2)]


def test_what_is_left_out_is_never_another_time(tmp_path: Path, capsys: Any) -> None:
    for text, words in (
        ("4,2024-05-01T08:00:00Z", "has a zone offset, and other times here have none"),
        ("4,2024-05-01T08:00:00.1234567", "has timestamps finer than 1 us in 1 row"),
    ):
        assert joined(tmp_path, f"{ISO}{text}\n", "--invalid", "drop") == 2
        assert words in capsys.readouterr().err


def test_lines_that_are_none(tmp_path: Path, capsys: Any) -> None:
    for text, words in (
        (ISO.encode() + b"\0" * 4096, "line 5 holds NUL bytes, which a loss of power can leave"),
        (ISO + "4,2024-05-01T08:00:03,7\n", "line 5 has 3 cells where the header has 2"),
        (ISO + "4\n", "or skip such lines with --invalid drop"),
    ):
        assert joined(tmp_path, text) == 2
        assert words in capsys.readouterr().err
        assert joined(tmp_path, text, "--invalid", "drop") == 0
        assert json.loads(capsys.readouterr().out)["lines_skipped"] == {"left": 1}
        assert len(pairs(tmp_path)) == 5
    assert joined(tmp_path, ISO + "4\n5,infinity\n", "--invalid", "drop") == 0
    capsys.readouterr()
    both = [str(tmp_path / "l.csv"), str(tmp_path / "l.csv")]
    options = [*NEAR, "--engine", "local", "--invalid", "drop", "--overwrite"]
    assert run(["join", *both, "-o", str(tmp_path / "out.csv"), *options]) == 0
    assert "left lines" in (said := capsys.readouterr().out)
    assert "2 skipped: other cells than the header, or no time" in said
    page = [
        "explore",
        *both,
        "-o",
        str(tmp_path / "page.html"),
        *NEAR[:-2],
        "--json",
        "--invalid",
        "drop",
    ]
    assert run(page) == 0
    assert json.loads(capsys.readouterr().out)["lines_skipped"] == {"left": 2, "right": 2}


def test_a_line_that_is_too_long(tmp_path: Path, capsys: Any) -> None:
    text = ISO.replace("\n", ",a\n").replace("id,t,a", "id,t,text")
    long = f'4,2024-05-01T08:00:01,"{"x" * (3 << 20)}"\n'
    assert joined(tmp_path, text + long + text.partition("\n")[2], "--left-columns", "text") == 0
    capsys.readouterr()
    unclosed = text + '4,2024-05-01T08:00:01,"' + ("x" * 4095 + "\n") * (10 << 10)
    assert joined(tmp_path, unclosed, "--left-columns", "text") == 2
    said = capsys.readouterr().err
    assert "line 5 is longer than 16 MB, the longest that is read" in said


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        ("%d/%m/%Y %H:%M:%S", ("01/05/2024 08:00:00", "1/5/2024 8:0:2", "01/05/2024 09:00:00")),
        ("%Y%m%d%H%M%S", ("20240501080000", "20240501080002", "20240501090000")),
        ("%b %d %Y %I:%M:%S.%f %p", (
            "May 01 2024 08:00:00.0 AM", "may 1 2024 8:00:02.00 am", "May 01 2024 09:00:00.5 AM")),
    ],
)  # fmt: skip
def test_formats_of_times(form: str, texts: tuple[str, ...], tmp_path: Path, capsys: Any) -> None:
    text = "id,t\n" + "".join(f'{i},"{each}"\n' for i, each in enumerate(texts, 1))
    assert joined(tmp_path, text, "--left-csv", f"time-format='{form}'") == 0
    assert pairs(tmp_path) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]
    assert joined(tmp_path, text, "--time-format", form, right=None) == 0
    capsys.readouterr()
    bad = f"{text}4,soon\n"
    assert joined(tmp_path, bad, "--left-csv", f"time-format='{form}'") == 2
    assert "Correct it, use --csv-null 'soon' if it means nothing, or" in capsys.readouterr().err
    assert joined(tmp_path, bad, "--left-csv", f"time-format='{form}'", "--invalid", "drop") == 0
    assert json.loads(capsys.readouterr().out)["lines_skipped"] == {"left": 1}


def test_formats_with_offsets_are_instants(tmp_path: Path, capsys: Any) -> None:
    left = "id,t\n1,01.05.2024 10:00 +0200\n2,01.05.2024 08:00 Z\n"
    right = "id,t\n1,2024-05-01T08:00:00Z\n"
    options = ["--left-csv", "time-format='%d.%m.%Y %H:%M %z'"]
    assert joined(tmp_path, left, *options, right=right) == 0
    assert pairs(tmp_path) == [(1, 1), (2, 1)]
    rome = left.replace(" +0200", "").replace(" Z", "")
    options = ["--left-csv", "time-format='%d.%m.%Y %H:%M' type=t=timestamp@Europe/Rome"]
    assert joined(tmp_path, rome, *options, right=right) == 0
    assert pairs(tmp_path) == [(1, 1)]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("%H:%M", "--time-format needs year, month and day"),
        ("%d/%m/%Y %Q", "Use %Y, %y, %m"),
        ("%d/%m/%Y %d", "each once"),
        ("%d/%m/%Y %I", "needs %p with %I, the hour of 12, and %I with %p"),
    ],
)
def test_formats_that_make_no_sense(form: str, words: str, tmp_path: Path, capsys: Any) -> None:
    assert joined(tmp_path, ISO, "--time-format", form) == 2
    assert words in capsys.readouterr().err


def test_two_dialects_of_borders(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "r.csv").write_text("stream_id;time;value\na;1;0,5\na;2;1,5\n")
    (tmp_path / "q.csv").write_text("query_id|lower|upper\n7|1.0|2.0\n")
    words = ["borders", str(tmp_path / "r.csv"), str(tmp_path / "q.csv"), *HERE, "--overwrite"]
    words += ["-o", str(tmp_path / "out.parquet"), "--queries-csv", "delimiter=bar"]
    assert run([*words, "--readings-csv", "delimiter=; decimal=,"]) == 0
    assert pq.read_table(tmp_path / "out.parquet")["event"].to_pylist() == ["I"]
    capsys.readouterr()
    assert run([*words, "--readings-csv", "color=red"]) == 2
    assert "--readings-csv: 'color' is unknown. Use comment, decimal" in capsys.readouterr().err


def test_two_dialects_of_causality(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "c.csv").write_text("id;time\n1;2024-05-01T08:00:00\n")
    (tmp_path / "e.csv").write_text("id\ttime\n2\t2024-05-01T08:00:02\n")
    words = ["causality", str(tmp_path / "c.csv"), str(tmp_path / "e.csv"), *HERE, "--overwrite"]
    words += ["-o", str(tmp_path / "out.parquet"), "--delta", "0s", "5s"]
    assert run([*words, "--causes-csv", "delimiter=;", "--effects-csv", "delimiter=tab"]) == 0
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1
    pq.write_table(pa.table({"id": [1], "time": [0]}), tmp_path / "e.parquet")
    words[2] = str(tmp_path / "e.parquet")
    capsys.readouterr()
    assert run([*words, "--causes-csv", "delimiter=;", "--effects-csv", "delimiter=tab"]) == 2
    assert "--effects-csv has no effect" in capsys.readouterr().err


def test_what_the_messages_of_times_say_to_write_works(tmp_path: Path, capsys: Any) -> None:
    seconds = "id,t\n1,1714543200\n"
    for left, right, side in ((ISO, seconds, "left"), (seconds, ISO, "right")):
        assert joined(tmp_path, left, right=right) == 2
        said = capsys.readouterr().err
        option = f"--{side}-csv 'type=t=timestamp@Europe/Rome'"
        assert option in " ".join(said.replace("\u2502", "").split())
        unit = "--left-unit" if side == "right" else "--right-unit"
        words = [*shlex.split(option), unit, "s"]
        assert joined(tmp_path, left, *words, right=right) == 0
        capsys.readouterr()
    american = "id,t\n1,05/01/2024 08:00:00 AM\n"
    assert joined(tmp_path, american) == 2
    assert "--time-format" in capsys.readouterr().err
    words = ["--left-csv", "time-format='%m/%d/%Y %I:%M:%S %p'"]
    assert joined(tmp_path, american, *words) == 0
