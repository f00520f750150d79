"""How `coincide join` refuses options that make no sense."""

from __future__ import annotations

import pytest

from coincide.command_line import run
from tests.helpers.workplace import WINDOW


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ("--prefer first", "Add --emit best"),
        ("--matching optimal --prefer first", "or --matching mutual"),
        ("--matching mutual --k 3", "Remove --k 3"),
    ],
)
def test_matches_that_mean_nothing(work, options, cure):
    assert cure in work.refused(*WINDOW, *options.split())


MANY_DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--confidence", "0.5"], "one of --within and --mutual-deadline (found neither"),
        ([*WINDOW, "--mutual-deadline", "5"], "found both"),
        (["--within", "5", "-3", "--confidence", "0.5"], "lo (5) is above hi (-3)"),
        (["--mutual-deadline", "-5", "--confidence", "0.5"], "deadline must not be negative"),
        (["--within", "-3", "5"], "--confidence"),
        (["--within", "-3"], "must not be negative (found -3"),
        (["--within", "-3ms", "5ms", "--confidence", "0.5"], "--unit us"),
        (["--within", "a", "b", "--confidence", "0.5"], "cannot read the duration 'a'"),
        ([*WINDOW, "--confidence", "0"], "must lie in (0, 1] (found 0.0"),
        ([*WINDOW, "--confidence", "-0.1"], "must lie in (0, 1]"),
        ([*WINDOW, "--confidence", "1.1"], "must lie in (0, 1] (found 1.1"),
        ([*WINDOW, "--confidence", "nan"], "must lie in (0, 1] (found nan"),
        ([*WINDOW, "--confidence", "half"], "--confidence"),
        (
            [*WINDOW, "--how", "outer"],
            "how must be one of inner, left, right, full, semi, anti (found 'outer'",
        ),
        ([*WINDOW, "--emit", "rows"], "emit must be one of"),
        (
            [*WINDOW, "--where", "left_key = 1", "--where=right_key = 1"],
            "--where is one condition (found 2). Join them by AND, or by OR.",
        ),
        ([*WINDOW, "--engine", "dask"], "--engine must be one of auto, spark, local"),
        ([*WINDOW, "--backend", "tpu"], "backend must be one of"),
        ([*WINDOW, "--invalid", "keep"], "invalid must be one of"),
        ([*WINDOW, "--unit", "week"], "the unit 'week' is unknown"),
        ([*WINDOW, "--format", "json"], "--format must be one of"),
        ([*WINDOW, "--classes", "0"], "classes must be an int of at least 1"),
        ([*WINDOW, "--threads", "0"], "threads must be"),
        ([*WINDOW, "--left-time", "a,b,c"], "--left-time takes the columns MIN,MAX"),
        (
            [*WINDOW, "--master", "local[2]"],
            "--master has no effect with --engine local",
        ),
        ([*WINDOW, "--conf", "a=b"], "--conf"),
        ([*WINDOW, "--slices", "4"], "--slices"),
        ([*WINDOW, "--nonsense"], "--nonsense"),
        ([*WINDOW, "another.parquet"], "another.parquet"),
        (
            [*WINDOW, "--by", "nothing"],
            "left has no column 'nothing' (found 'id', 'min_time', 'max_time'",
        ),
        ([*WINDOW, "--left-time", "key"], "left.key must be a timestamp, a date, a"),
        ([*WINDOW, "--right-columns", "nothing"], "right has no column 'nothing'"),
        (["--within", "--confidence", "0.5"], "--within takes one duration or two (found none)"),
        (["--within", "3x", "--confidence", "0.5"], "the unit 'x' is unknown"),
        ([*WINDOW, "--json=yes"], "--json takes no value (found 'yes')"),
        ([*WINDOW, "--left-longest", "x"], "cannot read the duration 'x'"),
        ([*WINDOW, "--by", ""], "--by has an empty entry"),
        ([*WINDOW, "--by", ","], "--by has an empty entry"),
        ([*WINDOW, "--by", "key", "--by", ""], "--by has an empty entry"),
        ([*WINDOW, "--by", "key,,id"], "--by has an empty entry"),
        ([*WINDOW, "--left-columns", ""], "--left-columns has an empty entry"),
        ([*WINDOW, "--right-columns", ", "], "--right-columns has an empty entry"),
        ([*WINDOW, "--left-time", ""], "--left-time has an empty entry"),
        ([*WINDOW, "--right-time", "min_time,,max_time"], "--right-time has an empty entry"),
        ([*WINDOW, "--master", ""], "--master is empty"),
        (["--within", "0s", MANY_DIGITS, "--confidence", "0.5"], "cannot read the duration '999"),
        (
            ["--within", "0s", MANY_DIGITS + "s", "--confidence", "0.5"],
            "has 5,000 digits, and at most",
        ),
        (["--mutual-deadline", f"0.{MANY_DIGITS}s", "--confidence", "1"], "has 5,002 digits"),
        (
            ["--mutual-deadline", MANY_DIGITS[:4000], "--confidence", "1"],
            "is an int of 13,288 bits",
        ),
        ([*WINDOW, "--left-longest", MANY_DIGITS + "d"], "has 5,000 digits"),
        ([*WINDOW, "--left-longest", "1e999s"], "cannot read the duration '1e999s'"),
        ([*WINDOW, "--confidence", "1e400"], "must lie in (0, 1] (found inf"),
        ([*WINDOW, "--confidence", MANY_DIGITS], "must lie in (0, 1] (found inf"),
        ([*WINDOW, "--threads", MANY_DIGITS], "--threads"),
        ([*WINDOW, "--threads", "9" * 30], "threads must be at most 9,223,372,036,854,775,807"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_bad_usage(work, options, words):
    line = work.refused(*options)
    assert words in line
    assert len(line) < 500


@pytest.mark.parametrize(
    "arguments", [["join"], ["join", "a"], ["nothing"], ["--nothing"]], ids=" ".join
)
def test_incomplete_usage(arguments, capsys):
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("coincide: ")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("slices", ["1000001", "9" * 30])
def test_more_slices_than_spark_has_tasks_for(work, slices):
    line = work.refused(*WINDOW, "--slices", slices, engine="spark")
    assert "slices must be at most 1,000,000 (found" in line


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("side", [0, 1])
def test_input_without_a_name(work, side, engine, monkeypatch):
    monkeypatch.chdir(work.folder)  # which holds Parquet files
    words = [str(work.left), str(work.right)]
    words[side] = ""
    assert run(["join", *words, "-o", str(work.output), *WINDOW, "--engine", engine]) == 2
    assert f"the {('left', 'right')[side]} input has no name" in work._capsys.readouterr().err


def test_a_seed_that_is_none(capsys):
    assert run(["demo", "--engine", "local", "--rows", "100", "--seed", "-1"]) == 2
    assert capsys.readouterr().err == "coincide: --seed must not be negative (found -1).\n"
