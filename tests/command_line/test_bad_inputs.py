"""How `coincide join` fails for bad data, and for files that cannot be read."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from tests.helpers.rows import tuples
from tests.helpers.workplace import WINDOW, events

BIG = 2**61
_SECONDS = ["--unit", "s", "--tick", "ns"]


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        (
            {"min_time": [0, 99, 20, 30]},
            [],
            "left: min above max in min_time and max_time in 1 row",
        ),
        ({"max_time": [4, 14, 24, BIG]}, [], "left: times that reach 2^61 ticks"),
        ({"min_time": [0, 10, 20, -BIG]}, [], "left: times that reach 2^61 ticks"),
        ({"max_time": [4.0, 14.0, float("nan"), 34.0]}, _SECONDS, "left: NaN or infinity"),
        ({"max_time": [4.0, 14.0, float("inf"), 34.0]}, _SECONDS, "left: NaN or infinity"),
        (
            {"max_time": [4.0, 14.0, 24.0, 34.0]},
            [],
            "float time columns need a unit (found none for left.max_time",
        ),
        ({}, ["--left-longest", "3"], "left: timestamps longer than the declared longest length"),
        (
            {"key": [1, 2, 3, 4]},
            ["--by", "key"],
            "'key' is int64 on the left and string on the right",
        ),
        ({"key": [[1], [2], [3], [4]]}, ["--left-time", "key"], "found list"),
    ],
    ids=lambda value: "",
)
def test_bad_data(work, changes, options, words):
    work.write("left.parquet", events(**changes))
    line = work.refused(*WINDOW, *options)
    assert words in line


def test_bad_data_of_the_right_side_shows_a_row(work):
    work.write("right.parquet", events(min_time=[0, 99, 20, 30], key=["a\nb", "c\nd", "e", "f"]))
    line = work.refused(*WINDOW, "--by", "key")
    assert "right: min above max" in line
    assert "min_time=99" in line
    assert "--invalid drop" in line


def test_keys_of_unlike_text_types_are_the_same(work):
    encoded = pa.array(["a", "a", "b", "b"]).dictionary_encode()
    work.write("left.parquet", events(key=encoded))
    work.write("right.parquet", events(key=pa.array(["a", "a", "b", "c"], pa.large_string())))
    assert work.join(*WINDOW, "--by", "key")[0] == 0
    assert [row[0] for row in sorted(tuples(work.result()), key=repr)] == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.parquet", b"", "cannot read"),
        ("empty.csv", b"", "cannot read"),
        ("empty.arrow", b"", "cannot read"),
        ("corrupt.parquet", b"PAR1 this is no Parquet PAR1", "as parquet"),
        ("text.parquet", b"id,min_time,max_time\n1,2,3\n", "as parquet"),
        ("corrupt.arrow", b"ARROW1 this is no Arrow", "as arrow"),
        ("corrupt.ipc", b"nor is this", "as arrow"),
        (
            "ragged.csv",
            b"id,min_time,max_time\n1,2,3\n1,2\n",
            "line 3 has 2 cells where the header has 3",
        ),
        (
            "late.csv",
            b"id,min_time,max_time\n" + b"1,2,3\n" * 4_000_000 + b"1,x,3\n",
            "line 4,000,002, column 'min_time': 'x' is not a whole",
        ),
        ("headless.csv", b"1,2,3\n", "left has no column 'min_time'"),
        (
            "semicolons.csv",
            b"id;min_time;max_time\n",
            "Use --csv-delimiter ';'",
        ),
        ("decimals.csv", b"id;min_time;max_time\n1;0,5;1,5\n", "separates columns by semicolons"),
        ("tabs.csv", b"id\tmin_time\tmax_time\n1\t2\t3\n", "separates columns by tabs"),
        ("bars.csv", b"id|min_time|max_time\n", "separates columns by bars"),
        ("one.csv", b"number\n1\n", "found 'number'"),
        ("strange.txt", b"id\n", "has an unknown format"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_unreadable_input(work, name, content, words):
    work.left = work.folder / name
    work.left.write_bytes(content)
    assert words in work.refused(*WINDOW)


def test_missing_input(work):
    work.right = work.folder / "nowhere.parquet"
    assert "right: " in work.refused(*WINDOW)
    assert "does not exist" in work.refused(*WINDOW)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_input_without_permission(work):
    work.left.chmod(0)
    assert "no permission" in work.refused(*WINDOW)


def test_input_without_permission_is_bad_use(capsys):
    from coincide.command_line.problems import report

    assert report(PermissionError(13, "Permission denied", "a.parquet"), debug=False) == 2
    assert capsys.readouterr().err == "coincide: no permission: a.parquet\n"
