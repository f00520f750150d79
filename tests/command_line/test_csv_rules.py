"""CSV of any kind: what the options of CSV mean, and what is said of a cell that is wrong."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from coincide import ConditionError, DataError, SchemaError
from coincide.command_line import run
from coincide.engine.files.arrow_inputs import ArrowInput, arrow_input
from coincide.engine.files.csv_rules import csv_rules
from coincide.engine.files.source import find_source
from tests.helpers.rows import tuples

TIMES = ("t",)


def given(
    path: Path, text: str | bytes, times: tuple[str, ...] = TIMES, **words: Any
) -> ArrowInput:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rules = csv_rules({f"csv_{key}": value for key, value in words.items()})
    return arrow_input(find_source("left", str(path), "csv", rules), times=times)


def rows(path: Path, text: str | bytes, times: tuple[str, ...] = TIMES, **words: Any) -> list:
    found = given(path, text, times, **words)
    return tuples(found.table(found.schema.names))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.csv"


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("id;t\n1;2\n", {"delimiter": ";"}, [(1, 2)]),
        ("id\tt\n1\t2\n", {"delimiter": "tab"}, [(1, 2)]),
        ("id\tt\n1\t2\n", {"delimiter": "\\t"}, [(1, 2)]),
        ("id|t\n'a|b'|2\n", {"delimiter": "|", "quote": "'"}, [("a|b", 2)]),
        ('id,t\n"a,2\n', {"quote": "none"}, [('"a', 2)]),
        ("id;t\n1,50;2,25\n", {"delimiter": ";", "decimal": ","}, [(1.5, 2.25)]),
        ("id;t\n1,5;2\n1,50;3\n", {"delimiter": ";", "decimal": ","}, [("1,5", 2), ("1,50", 3)]),
        ("id,t\nNA,2\n7,-\n", {"null": ["NA", "-"]}, [(None, 2), (7, None)]),
        ("id,t\nNA,2\n", {}, [("NA", 2)]),
        ("id,t\n7,2\n", {"type": ["id=text"]}, [("7", 2)]),
        ("id,t\n007,2\n", {"type": ["id=integer"]}, [(7, 2)]),
        ("id,t\n007,2\n", {}, [("007", 2)]),
        ("id,t\n1,2\n", {"type": ["id=Double", "t=int"]}, [(1.0, 2)]),
        ("id,t\ntrue,2\n", {"type": ["id=string"]}, [("true", 2)]),
        ("1,2\n3,4\n", {"names": ["id,t"]}, [(1, 2), (3, 4)]),
        ("made by x\n\nid,t\n1,2\n", {"skip": 2}, [(1, 2)]),
        ("id,t\n\xe9,2\n".encode("latin-1"), {"encoding": "latin-1"}, [("\xe9", 2)]),
        ("id,t\n\xe9,2\n".encode("utf-16"), {"encoding": "utf-16"}, [("\xe9", 2)]),
        ("id,t\n1,2026-01-02\n", {}, [(1, datetime(2026, 1, 2))]),
        (
            "id,t\n1,2026-01-02T00:00:00Z\n",
            {"type": ["t=timestamp"]},
            [(1, datetime(2026, 1, 2, tzinfo=UTC))],
        ),
        (
            "id,t\n1,2026-07-02 10:00\n,\n2,2026-01-02\n",
            {"type": ["t=timestamp@Europe/Rome"]},
            [
                (1, datetime(2026, 7, 2, 8, tzinfo=UTC)),
                (None, None),
                (2, datetime(2026, 1, 1, 23, tzinfo=UTC)),
            ],
        ),
        ("id,t\n1,2026-01-02\n", {"type": ["t=timestamp@UTC"]}, [(1, datetime(2026, 1, 2, tzinfo=UTC))]),
    ],
)  # fmt: skip
def test_what_the_options_mean(path, text, words, found):
    assert rows(path, text, **words) == found


def test_nanoseconds_that_were_written_are_read_back(path):
    """Also without a word of it: only the time columns of a join have to be of one tick."""
    kind = pa.timestamp("ns", "UTC")
    table = pa.table({"id": [1, 2], "t": pa.array([1_700_000_000_123_456_789, 0], kind)})
    pa.csv.write_csv(table, path)
    found = arrow_input(find_source("left", str(path))).table(["id", "t"])
    assert found.equals(table)


def test_tabs_go_by_the_name(tmp_path):
    (tmp_path / "a.tsv").write_text("id\tt\n1\t2\n")
    found = arrow_input(find_source("left", str(tmp_path / "a.tsv")))
    assert found.table(["t", "id"]).to_pylist() == [{"t": 2, "id": 1}]
    with pytest.raises(SchemaError, match=r"left has no column 'x' .found 'id', 't'"):
        found.table(["x"])
    decimals = given(tmp_path / "b.tsv", "id\tt\n1\t2,5\n", decimal=",")
    assert decimals.table(["t", "id"]).to_pylist() == [{"t": 2.5, "id": 1}]
    for name, words in (("b.csv", {"decimal": ","}), ("c.tsv", {"quote": "tab"})):
        with pytest.raises(ConditionError, match=r"left: --csv-delimiter and --csv-.* must differ"):
            given(tmp_path / name, "id;t\n", **words)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("id,t\n1,2\n2,x\n", {}, "line 3, column 't': 'x' is not a number"),
        ("id,t\n1,\n\n2,x\n", {}, "line 4, column 't': 'x' is not a time. Write ISO 8601"),
        ("id,t\n1,11/23/2026\n", {}, "line 2, column 't': '11/23/2026' is not a time. Write ISO 8601"),
        ("#\nid,t\n1,2\n2,x\n", {"skip": 1}, "line 4, column 't': 'x' is not a number"),
        ("1,2\n2,x\n", {"names": ["id,t"]}, "line 2, column 't': 'x' is not a number"),
        ('id,t\n"a\n\nb",2\n2,x\n', {}, "line 5, column 't': 'x' is not a number"),
        ("id,t\n1,2026-01-01T00:00:00Z\n2,2026-01-02\n", {}, "line 3, column 't': '2026-01-02' has no"),
        ("id,t\n1,2026-01-01\n2,2026-01-02T00:00:00Z\n", {}, "--csv-type t=timestamp where all have"),
        ("id,t\n1,2026-01-01\n", {"type": ["t=timestamp"]}, "is of times with one. Use t=timestamp_ntz"),
        ("id,t\nx,2\n", {"type": ["id=integer"]}, "'x' is not a whole number"),
        *[(f"id,t\n1.5,2\n\n{text},3\n", {"type": ["id=decimal(4,2)"]}, f"line 4, column 'id':"
           f" '{text}' is not a number of at most 4 digits, 2 of them after the point. Correct it, use a"
           " wider decimal than --csv-type id='decimal(4,2)'")
          for text in ("1.125", "100.50", "x", "1e1", ".", "--1", "1 5")],
        ("id;t\n1.5;2\n", {"type": ["id=decimal(4,2)"], "decimal": ",", "delimiter": ";"}, "'1.5' is not"),
        (f"id,t\n{'9' * 38},2\n", {"type": ["id=decimal(38,2)"]}, "is not a number of at most 38 digits"),
        ('id,t\n1,"2026-01-01 08:00:00,250"\n', {}, "'2026-01-01 08:00:00,250' has a comma before its"),
        ("id,t\n1,2026-01-02T00:00:00.123456789\n", {"type": ["t=timestamp_ntz"]}, "has more than six"),
        ("id,t\n1,\n1,2026-03-29 02:30\n", {"type": ["t=timestamp@Europe/Rome"]}, "line 3,"
         " column 't': clocks of Europe/Rome never showed 2026-03-29 02:30:00,"),
        ("id,t\n1,2\n1,2,3\n", {}, "line 3 has 3 cells where the header has 2"),
        ("1,2,3\n", {"names": ["id,t"]}, "line 1 has 3 cells where 2 columns are named"),
        ("id,t\n\xe9,2\n".encode("latin-1"), {}, "column 'id': the text is not UTF-8. Give its"),
        ("\xe9,id,t\n1,2,3\n".encode("latin-1"), {}, ". Set the encoding, such as latin-1"),
        ("id;t\n1;2\n", {}, "separates columns by semicolons, but is read as separated by commas"),
        ("id,t\n1,2\n", {"delimiter": ";"}, "but is read as separated by semicolons"),
        ("id\tt\n1\t2\n", {}, "separates columns by tabs, but is read as separated by commas"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_cure(path, text, words, said):
    with pytest.raises(DataError) as refused:
        given(path, text, **words).table(["id", "t"])
    assert said in str(refused.value)
    assert str(refused.value).startswith("left: ")
    assert "\n" not in str(refused.value)


def test_a_bad_cell_far_down_is_named(path):
    text = "id,t\n" + "1,2\n" * 200_000 + "1,2x\n"
    wanted = given(path, text)
    with pytest.raises(DataError, match=r"line 200,002, column 't': '2x' is not a number"):
        wanted.table(["t"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"delimiter": "::"}, "--csv-delimiter takes one character, or one of tab, space"),
        ({"quote": "\n"}, "--csv-quote takes one character, or none"),
        ({"delimiter": ","}, None),
        ({"type": ["id"]}, "--csv-type takes COLUMN=TYPE, such as key=text (found 'id'"),
        ({"type": ["id=number"]}, "--csv-type id must be one of text, integer, float"),
        ({"type": ["id=decimal"]}, "how many of them are after the point (found 'id=decimal')"),
        ({"type": ["id=decimal(39,2)"]}, "--csv-type takes a decimal with its digits, 1 to 38"),
        ({"type": ["id=decimal(2,3)"]}, "Write id=decimal(10,2), in quotes"),
        ({"type": ["t=timestamp@Rome"]}, "--csv-type t: there is no time zone 'Rome'"),
        ({"names": ["a,,b"]}, "--csv-names takes the names of all columns"),
        ({"names": ["a,a"]}, "names of all columns, each once"),
        ({"skip": -1}, "--csv-skip takes the number of lines above the header (found -1)"),
        ({"encoding": "nonsense"}, "--csv-encoding takes an encoding that Python knows, such as latin-1"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(words, said):
    words = {f"csv_{key}": value for key, value in words.items()}
    if said is None:
        assert csv_rules(words).delimiter == ","
        return
    with pytest.raises(ConditionError, match=re.escape(said)):
        csv_rules(words)


def test_commands_take_them(tmp_path, capsys):
    left, right = tmp_path / "left.csv", tmp_path / "right.parquet"
    left.write_text("Nr;wann;tuer\n1;2026-01-02T03:04:05Z;007\n2;-;8\n")
    when = pa.array([datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)])
    pq.write_table(pa.table({"id": [5], "t": when, "tuer": ["007"]}), right)
    words = ["join", str(left), str(right), "-o", str(tmp_path / "out.parquet")]
    words += ["--within", "0s", "3s", "--confidence", "0.5", "--by", "tuer", "--left-time", "wann"]
    words += ["--right-time", "t", "--left-columns", "Nr", "--engine", "local"]
    csv = ["--csv-delimiter", ";", "--csv-null", "-", "--csv-type", "Nr=float"]
    assert run([*words, *csv]) == 0, capsys.readouterr().err
    (row,) = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert row == {"tuer": "007", "left_Nr": 1.0, "right_id": 5}
    capsys.readouterr()
    for more, said in (
        (
            [*csv, "--csv-type", "nr=text"],
            "--csv-type nr: no input has such a column",
        ),
        ([*csv, "--csv-quote", ";"], "--csv-delimiter and --csv-quote must differ (found ';'"),
    ):
        assert run([*words, *more, "--overwrite"]) == 2
        assert said in capsys.readouterr().err
    words[1] = str(right)
    assert run([*words, "--csv-null", "NA", "--csv-skip", "1"]) == 2
    said = capsys.readouterr().err
    assert "no effect, as no input is CSV. Remove them, or use" in said


@pytest.mark.parametrize("how", ["every input", "each side", "an expression"])
def test_amounts_are_decimals(tmp_path, capsys, how):
    left, right = tmp_path / "left.csv", tmp_path / "right.csv"
    left.write_text("id,t,amount\n1,0,0.1\n2,0,0.30\n3,0,\n")
    right.write_text("id;t;amount\n7;0;0,3\n8;0;0,2\n")
    said = {
        "every input": ["--csv-type", "amount=decimal(10,2)", "--right-csv", "delimiter=; decimal=,"],
        "each side": ["--left-csv", "type=amount=decimal(10,2)",
                      "--right-csv", "delimiter=; decimal=, type='amount=NUMERIC(12, 3)'"],
        "an expression": ["--right-csv", "delimiter=; decimal=,"],
    }[how]  # fmt: skip
    words = [
        "join",
        str(left),
        str(right),
        "-o",
        str(tmp_path / "out.parquet"),
        "--engine",
        "local",
    ]
    words += ["--within", "0", "0", "--left-time", "t", "--right-time", "t", "--overwrite"]
    # The sum of the nearest floats is another one than that of 0.3.
    where = "left_amount + 0.1 + 0.1 = right_amount"
    if how == "an expression":
        cast = [f"CAST({side}_amount AS DECIMAL(10, 2))" for side in ("left", "right")]
        where = f"{cast[0]} + 0.1 + 0.1 = {cast[1]}"
    columns = ["--left-columns", "id,amount", "--right-columns", "id"]
    assert run([*words, *said, *columns, "--where", where]) == 0, capsys.readouterr().err
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.select(["left_id", "right_id"]).to_pylist() == [{"left_id": 1, "right_id": 7}]
    # Without a type 0.1 next to 0.30 is text, as the first rows alone do not tell.
    kind = pa.string() if how == "an expression" else pa.decimal128(10, 2)
    assert table.schema.field("left_amount").type == kind


LEFT = "Nr;wann;wert\n1;2026-01-02T03:04:05Z;1,5\n2;-;2,5\n"
RIGHT = "id\tt\n5\t2026-01-02T03:04:06Z\n"
BOTH = ["--within", "0s", "3s", "--confidence", "0.5", "--left-time", "wann", "--right-time", "t"]
BOTH += ["--left-columns", "Nr,wert", "--engine", "local"]


@pytest.mark.parametrize(
    ("csv", "said"),
    [
        (["--left-csv", "delimiter=; decimal=, null=-", "--right-csv", "delimiter=tab"], None),
        (["--left-csv", "delimiter=; null=-", "--csv-decimal", ",", "--right-csv", "delimiter=tab"], None),
        (["--csv-null", "-", "--csv-decimal", ",", "--csv-delimiter", ";", "--right-csv", "delimiter=tab"],
         None),
        (["--left-csv", "colour=red"], "--left-csv: 'colour' is unknown. Use comment, decimal, delimiter"),
        (["--left-csv", "delimiter"], "--left-csv takes NAME=VALUE, such as 'delimiter=; null=NA'"),
        (["--left-csv", "null='"], "--left-csv: No closing quotation"),
        (["--left-csv", "skip=x"], "--left-csv: skip takes a number of lines (found 'x'"),
        (["--left-csv", "decimal=,"], "left: --csv-delimiter and --csv-decimal must differ (found"),
        (["--left-csv", "delimiter=; null=- type=t=text"], "--left-csv type=t: "),
    ],
)  # fmt: skip
def test_sides_are_written_in_their_own_ways(tmp_path, capsys, csv, said):
    left, right = tmp_path / "left.csv", tmp_path / "right.csv"
    left.write_text(LEFT)
    right.write_text(RIGHT)
    words = ["join", str(left), str(right), "-o", str(tmp_path / "out.parquet"), *BOTH, *csv]
    assert (run(words) == 0) == (said is None)
    if said is not None:
        assert said in capsys.readouterr().err
        return
    (row,) = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert row == {"left_Nr": 1, "left_wert": 1.5, "right_id": 5}


def test_of_a_side_that_is_not_there_nothing_is_said(tmp_path, capsys):
    path = tmp_path / "left.csv"
    path.write_text(LEFT)
    words = ["join", str(path), "-o", str(tmp_path / "out"), *BOTH[:7], "--left-csv", "delimiter=;"]
    assert run([*words, "--right-csv", "null=NA"]) == 2
    assert "--right-csv applies to RIGHT, but there is one stream" in capsys.readouterr().err


def test_of_a_side_that_is_no_csv_nothing_is_said(tmp_path, capsys):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": [1]}), path)
    words = ["join", str(path), str(path), "-o", str(tmp_path / "out"), *BOTH]
    assert run([*words, "--right-csv", "null=NA"]) == 2
    assert "--right-csv has no effect, as" in capsys.readouterr().err
