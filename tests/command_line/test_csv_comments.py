"""Comment lines, lines above the header, and delimiters: what the options do, and when they are named."""

from __future__ import annotations

import csv as plain
import gzip
import io
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide import DataError
from coincide.command_line import run
from coincide.engine.files.arrow_inputs import ArrowInput, arrow_input
from coincide.engine.files.csv_rules import csv_rules
from coincide.engine.files.source import find_source

COMMENTED = '# made by x\n#\n# it is "odd\nt,id\n5,a\n# mid,dle,of\n"7","b\n# no comment"\n#end'
ROWS = [{"t": 5, "id": "a"}, {"t": 7, "id": "b\n# no comment"}]


def given_csv(path: Path, text: str | bytes, **words: Any) -> ArrowInput:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rules = csv_rules({f"csv_{name}": value for name, value in words.items()})
    return arrow_input(find_source("left", str(path), "csv", rules), times=("t",))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "encoding"),
    [("a.csv", "utf-8"), ("a.csv", "utf-8-sig"), ("a.csv", "utf-16"), ("a.csv.gz", "latin-1")],
)
def test_comments_are_no_rows(tmp_path: Path, ends: str, name: str, encoding: str) -> None:
    content = COMMENTED.replace("\n", ends).encode(encoding)
    content = gzip.compress(content) if name.endswith("gz") else content
    named = {} if encoding == "utf-8-sig" else {"encoding": encoding}
    found = given_csv(tmp_path / name, content, comment="#", **named)
    rows = [
        {**row, "id": row["id"].replace("\r\n", "\n")}
        for row in found.table(["t", "id"]).to_pylist()
    ]
    assert rows == ROWS


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 10, column 't': 'x' is not a number"):
        given_csv(tmp_path / "a.csv", COMMENTED + "\nx,1\n", comment="#").table(["t"])
    with pytest.raises(DataError, match="line 11 has 1 cell where the header has 2"):
        given_csv(tmp_path / "a.csv", COMMENTED + "\n\nx\n", comment="#").table(["t"])


@pytest.mark.parametrize("text", ["# a\nt,id", "#a\nt,id\n# b", "t,id\n#", "#\n\nt,id\n"])
def test_a_file_without_rows(tmp_path: Path, text: str) -> None:
    found = given_csv(tmp_path / "a.csv", text, comment="#")
    assert found.schema.names == ["t", "id"]
    assert found.table(["t", "id"]).num_rows == 0


CELLS = st.text(st.sampled_from('a#"\n,; '), max_size=6)


@given(
    st.lists(st.tuples(st.integers(0, 9), CELLS, st.lists(CELLS, max_size=2)), max_size=8),
    st.integers(1, 9),
)
def test_comments_between_rows_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str, list[str]]], part: int
) -> None:
    """However the parts fall in which it is read: quoted cells may hold the mark at the start of a line."""
    text = io.StringIO()
    writer = plain.writer(text, lineterminator="\n", quoting=plain.QUOTE_NONNUMERIC)
    text.write("t,id\n")
    for t, cell, comments in rows:
        for comment in comments:
            text.write("#" + comment.replace("\n", "") + "\n")
        writer.writerow([t, cell])
    path = tmp_path_factory.mktemp("comments") / "a.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coincide.engine.files.csv_comments._CHARACTERS", part)
        found = given_csv(path, text.getvalue(), comment="#", type=["id=text"])
        table = found.table(["t", "id"])
    assert table["t"].to_pylist() == [t for t, _, _ in rows]
    assert [each or "" for each in table["id"].to_pylist()] == [cell for _, cell, _ in rows]


def joined(tmp_path: Path, left: str, right: str, *options: str) -> int:
    paths = [tmp_path / "l.csv", tmp_path / "r.csv"]
    for path, text in zip(paths, (left, right), strict=True):
        path.write_text(text, encoding="utf-8")
    words = [
        "join",
        *map(str, paths),
        "-o",
        str(tmp_path / "out.csv"),
        "--overwrite",
        "--engine",
        "local",
    ]
    words += ["--within", "1", "--left-time", "t", "--right-time", "t"]
    return run([*words, *options])


PLAIN = "t,id\n5,1\n"
OTHERS = {
    "delimiter": "t;id\n5;1\n",
    "tabs": "t\tid\n5\t1\n",
    "comments": "# by x\n# 2026\nt,id\n5,1\n",
    "lines above": "Report\nof a day,with a comma,and one\nt,id\n5,1\n",
    "one column above": "Report\n\n\nt,id\n5,1\n",
    "lines above another delimiter": "Report\nt|id\n5|1\n",
}


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_advised_works(tmp_path: Path, capsys: Any, name: str, both: bool) -> None:
    """For a file that differs from the other one, and for two that are alike."""
    for left, right in ((OTHERS[name], PLAIN), (PLAIN, OTHERS[name]))[: 1 if both else 2]:
        sides = (OTHERS[name], OTHERS[name]) if both else (left, right)
        assert joined(tmp_path, *sides) == 2
        said = capsys.readouterr().err
        side = "left" if sides[0] != PLAIN else "right"
        advice = said[said.index("Use --csv") + 4 :].removesuffix(" if the other input differs.\n")
        general, own = advice.split(", or ")
        assert own.startswith(f"--{side}-csv ")
        assert joined(tmp_path, *sides, *shlex.split(general if both else own)) == 0, (
            capsys.readouterr().err
        )
        rows = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
        assert rows == ["left_id,right_id", "1,1"]
        capsys.readouterr()


def test_what_is_said_of_all_is_not_advised_again(tmp_path: Path, capsys: Any) -> None:
    """A delimiter that one side alone has: the general option would only move the error to the other."""
    assert joined(tmp_path, OTHERS["delimiter"], PLAIN, "--csv-delimiter", ";") == 2
    said = capsys.readouterr().err
    assert said.endswith("is read as separated by semicolons. Use --right-csv delimiter=,.\n")
    words = ["--csv-delimiter", ";", "--right-csv", "delimiter=,"]
    assert joined(tmp_path, OTHERS["delimiter"], PLAIN, *words) == 0


def test_an_only_input_has_no_option_of_a_side(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "events.csv"
    path.write_text("query_id;stream_id;event;t\n1;a;I;5\n1;a;O;7\n", encoding="utf-8")
    words = [
        "transitions",
        str(path),
        "-o",
        str(tmp_path / "out.csv"),
        "--within",
        "5",
        "--time",
        "t",
    ]
    assert run(words) == 2
    assert capsys.readouterr().err.endswith("Use --csv-delimiter ';'.\n")
    assert run([*words, "--csv-delimiter", ";", "--engine", "local"]) == 0


def test_comments_between_rows_are_named(tmp_path: Path, capsys: Any) -> None:
    left = "t,id\n5,1\n# a pause\n7,2\n"
    assert joined(tmp_path, left, PLAIN) == 2
    said = capsys.readouterr().err
    assert (
        "line 3 has 1 cell where the header has 2. If it is a comment, use --csv-comment '#',"
        in said
    )
    assert joined(tmp_path, left, PLAIN, "--csv-comment", "#") == 0
    assert joined(tmp_path, left, PLAIN, "--csv-comment", ",") == 2
    assert "must differ" in capsys.readouterr().err
    assert joined(tmp_path, left, PLAIN, "--csv-comment", "//") == 2
    assert "--csv-comment takes one character" in capsys.readouterr().err


def test_a_format_that_no_name_tells(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "events.log"
    path.write_text(PLAIN, encoding="utf-8")
    words = ["join", str(path), str(path), "-o", str(tmp_path / "out.csv"), "--within", "1"]
    words += ["--left-time", "t", "--right-time", "t"]
    assert run(words) == 2
    assert (
        "has an unknown format. Name it with --format, such as --format csv"
        in capsys.readouterr().err
    )
    assert run([*words, "--format", "csv"]) == 0
