"""`coincide doctor --warm`: what it compiles, and that later processes compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coincide.command_line import doctor, warming
from coincide.model.compiled import folders

JOINS = """
import numpy as np
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
import coincide
badges = {"id": ["Ann", "Bob"], "key": ["x", "y"], "at": [10_000, 12_500]}
doors = {"id": ["hall"], "key": ["x"], "min_time": [11_000], "max_time": [13_000]}
for more in ({}, {"by": "key"}, {"emit": "counts"}, {"how": "full"}, {"emit": "lists"}):
    found = coincide.correlate_tables(
        badges, doors, within=(0, 3_000), confidence=0.9,
        left_time=coincide.around("at", 400), **more,
    )
    assert found.num_rows, more
rows = coincide.correlate_arrays(np.array([1, 9]), np.array([2, 7]), within=(0, 3))
assert rows.left.tolist() == [0]
print(compiled)
"""


COMMON = ("joins of intervals and intervals", "joins by key, and one to one", "arrays")
SOME = f"""
from coincide.command_line import warming
for name, job in warming.jobs("cpu"):
    if name in {COMMON}:
        job()
"""


@pytest.mark.slow
def test_later_processes_compile_nothing(tmp_path: Path) -> None:
    """Those of intervals alone: each further job takes as long."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def said(code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert set(COMMON) < {name for name, _ in warming.jobs("cpu")}
    assert said(JOINS) != "[]\n", "what is not warm is compiled"
    said(SOME)
    assert said(JOINS) == "[]\n"


def test_the_command_tells_of_each_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run(warm=True) == 0
    lines = capsys.readouterr().out.splitlines()
    told = [line.split("  ")[-1] for line in lines[1:-1] if "  cpu  " in line]
    assert told == [name for name, _ in warming.jobs("cpu")]
    assert lines[-1].startswith("Ready: ")
    assert lines[-1].endswith(os.path.commonpath(folders))


def test_where_no_folder_can_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warming, "jobs", lambda backend: [("a job", lambda: None)])
    monkeypatch.setattr(warming, "folders", set())
    assert warming.warm() == 1
    assert "set NUMBA_CACHE_DIR" in capsys.readouterr().out
