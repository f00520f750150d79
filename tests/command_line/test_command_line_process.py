"""`coincide` as a process: help, imports, signals, the demo."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.command_line import options, run
from coincide.command_line.app import program
from tests.helpers.places import ROOT
from tests.helpers.workplace import WINDOW, coincide, interrupted


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["join", "--help"], ["demo", "-h"], ["doctor", "-h"]]
)
def test_help(arguments):
    answer = coincide(*arguments, COLUMNS="120")
    assert answer.returncode == 0
    assert "coincide" in answer.stdout
    assert answer.stderr == ""
    if arguments[:1] == ["join"]:
        for word in ("--within -250ms 250ms", "--how anti", "--unit ms", "130 interrupted"):
            assert word in answer.stdout


@pytest.mark.parametrize(
    "command", [None, *(each.callback.__name__ for each in program().registered_commands)]
)
def test_help_shows_flags_without_a_type_and_choices_in_one_piece(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([command, "--help"] if command else ["--help"]) == 0
    said = capsys.readouterr().out
    assert "--help" in said
    assert "<bool>" not in said
    parameters = () if command is None else getattr(options, command.upper(), ())
    for each in parameters:
        assert len(each.annotation.__metadata__[0].metavar or "") <= 24, each.name


def test_version():
    said = coincide("--version").stdout
    assert said.startswith("coincide")
    words = [sys.executable, "-m", "coincide", "--version"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == said


BESIDE_A_JOIN = (
    *("pyarrow.acero", "pyarrow.dataset", "altair"),
    *("coincide.engine.causality", "coincide.engine.streams", "coincide.engine.exploration"),
    "coincide.engine.files.csv_input",
)
"""What conditions, folders and other operators need, and no plain join."""


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ("pyspark", "pyarrow", "numba")),
        (["join", "--help"], ("pyspark", "pyarrow", "numba")),
        (["--version"], ("pyspark", "pyarrow", "numba")),
        (None, ("spark_plugin", "pyspark", "py4j", "numba.cuda", *BESIDE_A_JOIN)),
    ],
    ids=["help", "join help", "version", "local join"],
)
def test_imports_no_more_than_it_needs(work, arguments, absent):
    if arguments is None:
        arguments = ["join", str(work.left), str(work.right), "-o", str(work.output), *WINDOW]
        arguments += ["--engine", "local"]
    script = (
        "import atexit, sys; from coincide.command_line import main; atexit.register(lambda:"
        f" print([m for m in {absent!r} if m in sys.modules], file=sys.stderr)); main()"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer.stderr == "[]\n"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_leave_no_output(work, number, code):
    many = {"id": list(range(12_000)), "min_time": [0] * 12_000, "max_time": [10] * 12_000}
    for name in ("left.parquet", "right.parquet"):
        work.write(name, pa.table(many))
    words = ["join", str(work.left), str(work.right), "-o", str(work.output), *WINDOW]
    exit_code, err = interrupted(work, *words, "--engine", "local", number=number)
    assert exit_code == code
    assert "Traceback" not in err
    assert list(work.output.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("--emit best", signal.SIGINT),
        ("--emit best", signal.SIGTERM),
        ("--emit counts --where left_id<right_id", signal.SIGTERM),
        ("--emit lists --where left_id<0", signal.SIGTERM),
        ("--how anti --where left_id<0", signal.SIGINT),
    ],
)
def test_signals_stop_work_on_very_many_pairs(work, words, number):
    """10^12 of them, each of which is looked at: for minutes no row comes out."""
    words = [*words.split(), "--within", "-1000000", "1000000", "--confidence", "0.5"]
    words = ["join", str(work.left), str(work.right), *words, "--engine", "local", "-o"]
    # Kernels are compiled by the first join: here, where nothing needs to be imported for it.
    assert run([*words, str(work.folder / "small.parquet")]) == 0
    many = np.arange(1_000_000)
    for name in ("left.parquet", "right.parquet"):
        work.write(name, pa.table({"id": many, "min_time": many, "max_time": many}))
    seen: list[float] = []

    def works() -> bool:
        """Whether it has had time to begin since it opened its output."""
        if not seen and list(work.output.parent.iterdir()):
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() > seen[0] + 1

    exit_code, err = interrupted(work, *words, str(work.output), number=number, begun=works)
    assert exit_code == 128 + number
    assert "Traceback" not in err
    assert list(work.output.parent.iterdir()) == []


SELF_INTERRUPTED = """
import os, signal, sys

number, moment = int(sys.argv[1]), sys.argv[2]
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt(*_):
    if not done:
        done.append(True)
        os.kill(os.getpid(), number)

done = []
if moment == "fills a class":  # as dataclasses do, by exec
    import coincide.command_line.app as module
    module.program = lambda words: lambda **_: exec("interrupt(); [None for _ in range(1000)]")
elif moment == "has started Spark":
    from pyspark import SparkContext
    def busy(self):
        raise RuntimeError("this is the middle of another talk with the JVM")
    SparkContext.cancelAllJobs, SparkContext.setLogLevel = busy, interrupt
elif moment == "drops exceptions":
    from pyspark import SparkContext
    class Dropped:
        def __del__(self):
            interrupt()
    def log_level(self, level):
        Dropped()
    SparkContext.setLogLevel = log_level
else:
    sys.addaudithook(lambda event, args: moment == f"{event} {args[0]}"[-len(moment):] and interrupt())
from coincide.command_line import main
sys.argv = ["coincide", *sys.argv[3:]]
main()
"""


BEFORE_SPARK = ["import typer", "import coincide.command_line.requests", "fills a class"]
ON_SPARK = ["import pyspark.sql", "spark-submit", "has started Spark", "drops exceptions"]
SLOW = [("has started Spark", signal.SIGINT), ("drops exceptions", signal.SIGTERM)]
"""Spark has started by then, and either signal ends it in the same way."""


def starts() -> Iterator[Any]:
    for moment in BEFORE_SPARK + ON_SPARK:
        for number in (signal.SIGINT, signal.SIGTERM):
            marks = [pytest.mark.spark] * (moment in ON_SPARK)
            marks += [pytest.mark.slow] * ((moment, number) in SLOW)
            yield pytest.param(moment, number, marks=marks)


@pytest.mark.parametrize(("moment", "number"), list(starts()))
def test_signals_while_it_starts(work, number, moment):
    answer = subprocess.run(
        [
            *(sys.executable, "-c", SELF_INTERRUPTED, str(int(number)), moment),
            *("join", str(work.left), str(work.right), "-o", str(work.output), *WINDOW),
            *("--master", "local[1]"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 128 + number, answer.stderr
    said = [line for line in answer.stderr.splitlines() if line.startswith("coincide")]
    assert said == ["coincide: interrupted. The output was not written"] * (number == signal.SIGINT)
    assert list(work.output.parent.iterdir()) == []


def test_demo_in_one_process(tmp_path):
    words = ("demo", "--engine", "local", "--rows", "5000")
    answer = coincide(*words, COLUMNS="140", TMPDIR=str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    (page,) = tmp_path.iterdir()  # the sample is gone
    assert f"open {page}\n" in answer.stdout
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    lines = answer.stdout.splitlines()
    at = lines.index(
        next(line for line in lines if line.split() == ["join", "found", "missed", "wrong"])
    )
    marks = [
        [int(word.replace(",", "")) for word in line.split()[-3:]]
        for line in lines[at + 1 : at + 5]
    ]
    (found, missed, wrong) = zip(*marks, strict=True)
    assert len({hits + misses for hits, misses in zip(found, missed, strict=True)}) == 1
    assert found[1] > found[2] > found[3]
    assert wrong[1] > wrong[2] > wrong[3]


def test_demo_without_charts_says_so(tmp_path):
    hidden = tmp_path / "altair.py"
    hidden.write_text("raise ModuleNotFoundError(name='altair')")
    folder = tmp_path / "temporary"
    folder.mkdir()
    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    answer = coincide(
        "demo", "--engine", "local", "--rows", "500", TMPDIR=str(folder), PYTHONPATH=path
    )
    assert answer.returncode == 0, answer.stderr
    assert "pip install 'coincide[explore]'" in answer.stdout
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "folder"), [(["--keep"], "."), (["--keep", "a b"], "a b"), (["--keep=c"], "c")]
)
def test_demo_keeps_its_sample(words, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    demo = ["demo", *words, "--engine", "local", "--rows", "500"]
    assert run(demo) == 0
    said = capsys.readouterr().out
    kept = {"badges.parquet", "doors.parquet", "pairs.parquet", "explore.html"}
    assert {path.name for path in (tmp_path / folder).iterdir()} == kept
    again = next(line for line in said.splitlines() if line.startswith("  coincide join"))
    pairs = pq.read_table(tmp_path / folder / "pairs.parquet")
    assert run([*shlex.split(again)[1:], "--engine", "local"]) == 0
    assert pq.read_table(tmp_path / folder / "pairs.parquet").equals(pairs)
    capsys.readouterr()
    before = (tmp_path / folder / "badges.parquet").read_bytes()
    assert run([*demo, "--seed", "2"]) == 2
    assert "--keep would replace a file" in capsys.readouterr().err
    assert (tmp_path / folder / "badges.parquet").read_bytes() == before


def test_a_demo_that_fails_keeps_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").write_text("kept")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("coincide.command_line.demo._print_speed", fail)
    assert run(["demo", "--keep", "--engine", "local", "--rows", "500"]) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert run(["demo", "--keep", "other", "--engine", "local", "--rows", "500"]) == 2
    assert "--keep cannot make its folder" in capsys.readouterr().err


ASKED_LATE = """
import atexit, sys
from coincide import command_line
class Late:
    def __del__(self):
        print("python was taken down")
sys.late = Late()
atexit.register(print, "exit functions ran")
sys.argv = ["coincide", "join", "--nonsense"]
command_line.main()
"""


def test_an_error_ends_the_process_before_threads_that_decode_can_abort_it():
    answer = subprocess.run(
        [sys.executable, "-c", ASKED_LATE],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 2, answer.stderr
    assert answer.stderr.startswith("coincide: ")
    assert answer.stdout == "exit functions ran\n"
