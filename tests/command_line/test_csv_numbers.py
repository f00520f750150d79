"""Numbers in CSV that are names: read as they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.command_line import run
from tests.helpers.input_files import csv, read
from tests.helpers.rows import tuples
from tests.helpers.workplace import WINDOW, Workplace

BLOCK = 17 << 20
"""Bytes: more than what tells the types."""


def column(folder: Path, *values: str) -> pa.ChunkedArray:
    return read(csv(folder / "a.csv", "\n".join(["x,y", *(f"{v},1" for v in values)]) + "\n"))["x"]


@pytest.mark.parametrize(
    "values",
    [
        ("7", "007"),
        ("7", "+7", "8.5"),
        ("0", "-0"),
        ("1e3",),
        ("1E3", "2.5"),
        ("12345678901234567890",),
        ("9007199254740993.0",),
        ("1.1", "1.10"),
        ("1", "1.0"),
        ("01.5",),
        (".5",),
        ("5.",),
        ("7", "", "007"),
    ],
    ids=" ".join,
)
def test_numbers_that_would_print_otherwise_stay_text(tmp_path, values):
    found = column(tmp_path, *values)
    assert found.type == pa.string()
    assert found.to_pylist() == [value or None for value in values]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("7", "-8", "0", "9223372036854775807"), pa.int64()),
        (("7", "", " 8"), pa.int64()),
        (("1.0", "2.25", "-0.1"), pa.float64()),
        (("1", "2.25", "30"), pa.float64()),
        (("1.10", "2.00", "0.25"), pa.float64()),
        (("1.5", "NaN", "", "inf"), pa.float64()),
        (("0.30000000000000004",), pa.float64()),
    ],
    ids=str,
)
def test_numbers_that_print_as_written_are_numbers(tmp_path, values, kind):
    found = column(tmp_path, *values)
    assert found.type == kind
    wanted = pa.chunked_array([[None if not v else float(v) if "." in str(values) else int(v)
                                for v in values]], kind)  # fmt: skip
    assert str(found.to_pylist()) == str(wanted.to_pylist())


@pytest.mark.parametrize("last", ["007", "NA", "1.5", "9" * 19])
def test_the_whole_file_decides(tmp_path, last):
    path = csv(tmp_path / "a.csv", "x\n" + "7\n" * (BLOCK // 2) + f"{last}\n")
    found = read(path)["x"]
    assert found.type == pa.string()
    assert [found[0].as_py(), found[-1].as_py()] == ["7", last]


def test_all_files_decide(tmp_path):
    (tmp_path / "events").mkdir()
    csv(tmp_path / "events" / "a.csv", "x\n7\n")
    csv(tmp_path / "events" / "b.csv", "x\n007\n")
    assert read(tmp_path / "events")["x"].to_pylist() == ["7", "007"]


def sides(work: Workplace, left: str, right: str) -> None:
    """One event on either side at each key, all at the same time."""
    for side, keys in (("left", left), ("right", right)):
        lines = [f"{key},0{i},+0,+5.0" for i, key in enumerate(keys.split())]
        path = csv(
            work.folder / f"{side}.csv", "\n".join(["dev,id,min_time,max_time", *lines]) + "\n"
        )
        setattr(work, side, path)
    work.output = work.folder / "results" / "out"


BY = ("--by", "dev", "--unit", "s", "--within", "-5s", "5s", "--confidence", "0.5")


@pytest.mark.parametrize(
    ("left", "right", "found", "told"),
    [
        ("007", "7", [], "text on the left, such as '007'"),
        ("007 12", "7 12", [("12", "01", "01")], "on the left, such as '007'"),
        ("007 12", "12 007", [("007", "00", "01"), ("12", "01", "00")], ""),
        ("7 8", "NA 8", [("8", "01", "01")], "text on the right, such as 'NA'"),
        ("7 8", "8 7", [(7, "00", "01"), (8, "01", "00")], ""),
        ("7.0 8.0", "8 7", [(7, "00", "01"), (8, "01", "00")], ""),
        ("7.0 8.0", "8.0 7.0", [(7, "00", "01"), (8, "01", "00")], ""),
        ("1e3 7", "1e3", [("1e3", "00", "00")], ""),
        ("7.0 8.0", "007 7.0", None, "the key 'dev' is double on the left and string on the right"),
        ("7.5 8.0", "8", None, "the key 'dev' is double on the left and int64 on the right"),
    ],
)
def test_keys_meet_as_they_are_written(work, left, right, found, told):
    sides(work, left, right)
    code, out, err = work.join(*BY, "--json")
    assert (code == 0) == (found is not None), err
    if found is None:
        assert told in err
        return
    assert sorted(tuples(work.result())) == found
    assert told in err
    assert bool(told) == ("It is compared as text" in err)
    assert json.loads(out)["pairs"] == len(found)


def test_keys_beside_parquet(work):
    sides(work, "007 12", "1")
    numbers = pa.table({"dev": [7, 12], "id": [1, 2], "min_time": [0, 0], "max_time": [5, 5]})
    work.right = work.write("numbers.parquet", numbers)
    said = work.refused(*BY)
    assert "the key 'dev' is string on the left and" in said
    sides(work, "7 12", "1")
    texts = numbers.set_column(0, "dev", pa.array(["7", "012"], pa.large_string()))
    work.right = work.write("texts.parquet", texts)
    code, _, err = work.join(*BY)
    assert code == 0, err
    assert sorted(tuples(work.result())) == [("7", "00", 1)]
    assert "text on the right, such as '012'. It is compared as text" in err


def test_times_stay_numbers_even_where_they_are_handed_out(work):
    sides(work, "a", "a")
    options = (*BY, "--left-columns", "id,min_time", "--right-columns", "max_time")
    assert work.join(*options)[0] == 0
    assert sorted(tuples(work.result())) == [("a", "00", 0.0, 5.0)]


def test_ids_are_handed_out_as_written(work):
    text = "id,min_time,max_time\n0012,0,5\n1e3,0,5\n"
    work.left = csv(work.folder / "left.csv", text)
    work.right = csv(work.folder / "right.csv", "id,min_time,max_time\n1,0,5\n")
    assert work.join(*WINDOW)[0] == 0
    assert sorted(tuples(pq.read_table(work.output))) == [("0012", 1), ("1e3", 1)]


def test_a_condition_meets_what_is_written(work):
    """Not what the beginning of a file looks like."""
    sides(work, "007 8", "007 7")
    code, _, err = work.join(*BY[2:], "--where", "left_dev = '007'")
    assert code == 0, err
    assert sorted(tuples(work.result())) == [("00", "00"), ("00", "01")]


def test_keys_of_one_stream_may_be_whole_decimals(work):
    sides(work, "7.0 7.0", "1")
    words = ["join", str(work.left), "-o", str(work.folder / "out.parquet"), *BY]
    assert run(words) == 0
    assert sorted(tuples(pq.read_table(work.folder / "out.parquet"))) == [(7, "00", "01")]


def test_sixteen_digits_are_not_floats(tmp_path):
    """Without a point or a sign a text of 16 characters holds 16 digits, which floats do not tell apart."""
    left = csv(tmp_path / "a.csv", "id,t\n0,9100000000000001\n1,0.5\n")
    right = csv(tmp_path / "b.csv", "id,t\n0,9100000000000001\n1,9100000000000002\n")
    code = run(
        ["join", str(left), str(right), "-o", str(tmp_path / "out.parquet"), "--engine", "local",
         "--left-time", "t", "--right-time", "t", "--unit", "ns", "--within", "0ns", "0ns"]
    )  # fmt: skip
    assert code == 0
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [{"left_id": 0, "right_id": 0}]
