"""What a new user does wrong first, and the one line that says how to mend it: 60 tries.

Each is a call or a command, and the words of its cure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coincide as c
from coincide import TimingCondition, correlate_tables, within
from coincide.command_line import run

LEFT = pa.table(
    {"id": [1, 2], "t": [0, 10], "min_time": [0, 10], "max_time": [4, 14], "key": ["a", "b"]}
)
CONDITION = TimingCondition(within(-5, 5), 0.5)
SECONDS = TimingCondition(within("-5s", "5s"), 0.5)


def with_times(zone: str | None = None) -> pa.Table:
    return LEFT.set_column(1, "t", LEFT["t"].cast(pa.timestamp("us", zone)))


def with_floats() -> pa.Table:
    return LEFT.set_column(1, "t", pa.array([0.5, 1.5]))


def joined(left: Any = LEFT, right: Any = LEFT, condition: Any = CONDITION, **more: Any) -> Any:
    return correlate_tables(left, right, condition, **more)


EXACT = {"left_time": "t", "right_time": "t"}

CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "condition first": (lambda: joined(CONDITION, LEFT, LEFT), "condition, the third argument"),
    "a predicate for a condition": (
        lambda: joined(condition=within(-5, 5)),
        r"such as TimingCondition\(within\('0s', '3s'\), 0.9\)",
    ),
    "a tuple for a condition": (lambda: joined(condition=(-5, 5)), "must be a TimingCondition"),
    "percent": (lambda: TimingCondition(within(-5, 5), 90), "90 % is 0.9"),
    "confidence 0": (lambda: TimingCondition(within(-5, 5), 0), r"must lie in \(0, 1\]"),
    "confidence as text": (lambda: TimingCondition(within(0, 5), "0.9"), "a number, such as 0.9"),
    "lo above hi": (lambda: within(5, -5), "Swap the two"),
    "half a tick": (lambda: within(-0.5, 0.5), r"a string such as '500ms', or a timedelta"),
    "unknown unit": (lambda: within(0, "5 sekunden"), "Use one of ps, ns, us, ms, s, min, h, d"),
    "a text without a unit": (lambda: within("-5", "5"), "Write a number and a unit, such as '250ms'"),
    "a negative deadline": (lambda: c.mutual_deadline("-5s"), "a mutual deadline must not be negative"),
    "one-sided": (
        lambda: joined(condition=TimingCondition(c.deadline("5s"), 0.5)),
        r"takes exact times, .*Give both ends, such as within=\('-1h', '0s'\), and confidence=0.5",
    ),
    "a time column misspelt": (
        lambda: joined(left_time="time"),
        "found 'id', 't', .*Name another one with left_time",
    ),
    "no columns min_time, max_time": (
        lambda: joined(LEFT.drop_columns(["min_time"])),
        "no column 'min_time'.*Name another one with left_time",
    ),
    "no column id among others": (
        lambda: joined(right=LEFT.drop_columns(["id"]), right_columns=["id", "key"]),
        "right has no column 'id'.*Name another one with right_columns",
    ),
    "an output column misspelt": (lambda: joined(left_columns=["nam"]), "found 'id', 't'"),
    "a key misspelt": (lambda: joined(by="kee"), "no column 'kee' .*'key'"),
    "a key that is no name": (lambda: joined(by=3), "by must be a column name or a sequence of names"),
    "keys of two types": (
        lambda: joined(right=LEFT.set_column(4, "key", pa.array([1, 2])), by="key"),
        "on the right. Cast one so that both are the same",
    ),
    "texts as times": (lambda: joined(left_time="key"), "must be a timestamp, a date, a duration, an"),
    "seconds of bare numbers": (
        lambda: joined(condition=SECONDS),
        r"Give the unit of the columns, for example options=CorrelateOptions\(unit='us'\)",
    ),
    "floats without a unit": (
        lambda: joined(with_floats(), with_floats(), **EXACT),
        r"what 1.0 means, for example options=CorrelateOptions\(unit=.s.\)",
    ),
    "instants and wall clocks": (
        lambda: joined(with_times("UTC"), with_times(), SECONDS, **EXACT),
        "Give the time zone of the clocks of right.t",
    ),
    "timestamps and numbers": (
        lambda: joined(with_times(), LEFT, SECONDS, **EXACT),
        r"Give with right_unit='s' what a number .*time zone of the clocks of left\.t",
    ),
    "min above max": (
        lambda: joined(left_time=("max_time", "min_time")),
        r"Fix the data, or skip such rows with options=CorrelateOptions\(invalid='drop'\)",
    ),
    "three time columns": (lambda: joined(left_time=("a", "b", "c")), r"a \(min, max\) pair of"),
    "emit misspelt": (lambda: joined(emit="pair"), "must be one of pairs, lists, counts, best"),
    "an outer join": (lambda: joined(how="outer"), "must be one of inner, left, right, full, semi, anti"),
    "an unknown backend": (lambda: joined(backend="cuda"), "must be one of auto, cpu, gpu"),
    "probabilities of counts": (
        lambda: joined(emit="counts", probability=True),
        "Remove probability=True",
    ),
    "options as a dict": (lambda: joined(options={"unit": "us"}), "must be CorrelateOptions"),
    "invalid rows ignored": (lambda: c.CorrelateOptions(invalid="ignore"), "one of raise, drop"),
    "an array for a table": (lambda: joined(np.zeros(3)), "such as those of pyarrow, pandas"),
    "a row for a table": (lambda: joined({"id": 1}), "or a list .found int.. Give a dict for each row"),
    "a dict of other columns": (lambda: joined({"id": [1]}), "left has no column 'min_time' .found 'id'"),
    "names of files that are not there": (lambda: joined("a.parquet"), "a.parquet does not exist"),
    "tables for Spark DataFrames": (
        lambda: c.correlate(LEFT, LEFT, CONDITION),
        "or correlate_tables, which takes tables as",
    ),
    "around nothing": (lambda: c.around("t"), r"such as '10ms'"),
    "templates that are none": (
        lambda: joined(left_time=c.histograms("t", template="key", templates=pa.table({"a": [1]}))),
        r"Give a row per bucket with the columns template, lower, upper, mass",
    ),
    "shifts in a text": (
        lambda: c.accidental_pair_tables(LEFT, LEFT, CONDITION, shifts="1s"),
        r"shifts must be a sequence of durations, such as \('30s', '-30s', '47s'\)",
    ),
    "a distance without places": (
        lambda: c.causality_tables(LEFT, LEFT, c.CausalityCondition([c.Spatial(5)]), **{
            "cause_time": "t", "effect_time": "t"}),
        "Name them in cause_place and effect_place",
    ),
}  # fmt: skip

WINDOW = ("--within", "-5", "5", "--confidence", "0.5")
BOTH = ("join", "left.parquet", "right.parquet", "-o", "out.parquet")

COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "no such command": (("jion",), "Did you mean 'join'"),
    "no input": (("explore", *WINDOW[:3]), "Missing argument 'LEFT'"),
    "no output": (BOTH[:3] + WINDOW, "Name the output, for example -o out.parquet, or -o - for"),
    "no window": (BOTH, "the condition on times must be one of --within and --mutual-deadline"),
    "no confidence": (BOTH + WINDOW[:3], "--confidence is missing, which says how probable a pair"),
    "three bounds": ((*BOTH, *WINDOW[:2], *WINDOW[1:]), "--within takes LO HI, or one duration"),
    "one speed": (
        ("causality", *BOTH[1:], "--speed", "5", "--radius", "1"),
        "--speed takes two values, MIN MAX .found '5'.",
    ),
    "a flag with a value": (
        (*BOTH, *WINDOW, "--overwrite", "true"),
        "--overwrite takes no value .found 'true'.. Write --overwrite alone, or remove it",
    ),
    "a confidence in words": (
        (*BOTH, *WINDOW[:3], "--confidence", "high"),
        "Write a number between 0 and 1, such as 0.9, or 90%",
    ),
    "an option misspelt": ((*BOTH, *WINDOW, "--bye", "key"), "--by"),
    "a file that is not there": (("join", "lft.parquet", *BOTH[2:], *WINDOW), "does not exist"),
    "an empty folder": (("join", "empty", *BOTH[2:], *WINDOW), "the folder empty holds no files"),
    "a file of unknown kind": (
        ("join", "a.xlsx", *BOTH[2:], *WINDOW),
        "Name it with --format, such as --format csv",
    ),
    "CSV called Parquet": (
        ("join", "a.parquet", *BOTH[2:], *WINDOW),
        "If it has another format, name that with --format, or rename the",
    ),
    "a bad cell": (
        ("join", "bad.csv", *BOTH[2:], *WINDOW),
        "bad.csv, line 3, column 'min_time': 'x' is not a number",
    ),
    "semicolons": (("join", "semi.csv", *BOTH[2:], *WINDOW), "Use --csv-delimiter ';'"),
    "a date that is not ISO": (
        ("join", "dates.csv", *BOTH[2:], *WINDOW),
        "line 2, column 'min_time': '1/2/2026' is not a time. Write ISO 8601, such as",
    ),
    "the output is there": (
        ("join", *BOTH[1:3], "-o", "right.csv", *WINDOW),
        "exists already. Write to another place, or pass --overwrite",
    ),
    "the output is an input": (
        ("join", *BOTH[1:3], "-o", "left.parquet", "--overwrite", *WINDOW),
        "is the left input",
    ),
    "a folder that is not there": (
        ("join", *BOTH[1:3], "-o", "no/out.parquet", *WINDOW),
        "does not exist. Make it first",
    ),
    "an output of unknown kind": (
        ("join", *BOTH[1:3], "-o", "out.json", *WINDOW),
        "cannot be written",
    ),
    "a time column misspelt": (
        (*BOTH, *WINDOW, "--left-time", "time"),
        "found 'id', .*Name another one with --left-time",
    ),
    "seconds of bare numbers": (
        (*BOTH, "--within", "0s", "3s", "--confidence", "0.5"),
        "Give the unit of the columns, for example --unit us",
    ),
    "a clock of two columns": (
        (*BOTH, *WINDOW, "--left-around", "10ms"),
        "--left-time takes the one column",
    ),
    "half of a template": (
        (*BOTH, *WINDOW, "--left-template", "key"),
        "Add --left-templates",
    ),
    "Spark's master in one process": (
        (*BOTH, *WINDOW, "--engine", "local", "--master", "local"),
        "[Rr]emove it",
    ),
    "lists in CSV": (
        ("join", *BOTH[1:3], "-o", "out.csv", "--emit", "lists", *WINDOW),
        "--emit lists gives arrays, which CSV cannot hold",
    ),
    "crossings of other columns": (
        ("borders", *BOTH[1:]),
        "readings has no column 'stream_id'.*Name another one with --stream",
    ),
    "a speed in words": (
        ("causality", *BOTH[1:], "--speed", "fast", "200"),
        "or any for no bound .found 'fast'.*--speed any 200",
    ),
    "a radius with a unit in a plane": (
        ("causality", *BOTH[1:], "--radius", "3km"),
        "in the unit of the places .found '3km'.. Remove 'km'.*use --lat-lon",
    ),
    "a radius in an unknown unit": (
        ("causality", *BOTH[1:], "--radius", "3ft", "--lat-lon"),
        "takes a distance in km, m, mi, nmi .found '3ft'.",
    ),
    "clusters by two clocks": (
        (
            "clusters",
            *BOTH[1:2],
            *BOTH[3:],
            "--delta",
            "0",
            "5",
            "--around",
            "1",
            "--resolution",
            "1",
        ),
        "^coincide: --around and --resolution describe the same",
    ),
    "causes of nothing": (
        ("causality", *BOTH[1:]),
        "Use --delta LO HI, --radius R, --speed MIN MAX",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call(case: str) -> None:
    call, cure = CALLS[case]
    with pytest.raises(c.CoincideError) as refused:
        call()
    said = str(refused.value)
    assert "\n" not in said
    assert re.search(cure, said), said


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("left", "right"):
        pq.write_table(LEFT, f"{name}.parquet")
    header, row = "id,min_time,max_time\n", "1,0,5\n"
    texts = {
        "a.xlsx": "", "a.parquet": header, "right.csv": header, "bad.csv": header + row + "2,x,7\n",
        "semi.csv": (header + row).replace(",", ";"), "dates.csv": header + "1,1/2/2026,1/2/2026\n",
    }  # fmt: skip
    for name, text in texts.items():
        Path(name).write_text(text)
    Path("empty").mkdir()
    return tmp_path


@pytest.mark.parametrize("case", COMMANDS)
def test_a_command(place: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, cure = COMMANDS[case]
    before = sorted(place.iterdir())
    assert run(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("coincide: ")
    assert re.search(cure, line), line
    assert sorted(place.iterdir()) == before


@pytest.mark.spark
def test_spark_dataframes_and_what_they_lack(spark: Any) -> None:
    frame = spark.createDataFrame(LEFT)
    tries = {
        r"\.toArrow\(\) of a Spark DataFrame": lambda: joined(frame, frame),
        "Name another one with left_time": lambda: c.correlate(
            frame.drop("min_time"), frame, CONDITION
        ),
        "must be a timestamp, a date.* as it is a time column": lambda: c.correlate(
            frame, frame, CONDITION, left_time="key"
        ),
    }
    for cure, call in tries.items():
        with pytest.raises(c.CoincideError, match=cure) as refused:
            call()
        assert "\n" not in str(refused.value)


def test_they_are_enough() -> None:
    assert len(CALLS) + len(COMMANDS) + 3 >= 60
