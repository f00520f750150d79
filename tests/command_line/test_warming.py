"""`coincide doctor --warm`: what it compiles, and that later processes compile nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from coincide.command_line import warming
from tests.helpers.places import ROOT
from tests.helpers.warm_kernels import JOINS

OF_TESTS = {
    "coincide.model.probability.qualifies",  # bands are held against it
    "coincide.model.timestamps.protocol.max_time_of",  # named tuples of every kind are tried with it
}
BEFORE_GPUS = {"coincide.model.timestamps.intervals.narrow_lengths"}
"""What only a host with a GPU compiles."""

pytestmark = pytest.mark.timeout(1200)


def run(folder: Path, *words: str) -> str:
    """What a Python process says that keeps kernels in a folder."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


class Warm(NamedTuple):
    """What `--warm` left in an empty folder, and said."""

    folder: Path
    lines: list[str]
    compiled: str  # What a later process had to compile
    signatures: dict[str, int]  # How many each compiled function has


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Warm:
    """Once for all tests: it compiles for minutes."""
    folder = tmp_path_factory.mktemp("warm")
    *lines, later, signatures = run(folder, "-m", "tests.helpers.warm_kernels").splitlines()
    return Warm(folder, lines, later, json.loads(signatures))


def test_later_processes_compile_nothing(warm: Warm, tmp_path: Path) -> None:
    assert run(tmp_path, "-c", JOINS, "1") != "[]\n", "what is not warm is compiled"
    assert warm.compiled == "[]"


def test_each_compiled_function_is_reached(warm: Warm) -> None:
    assert len(warm.signatures) > 300
    without = {name for name, signatures in warm.signatures.items() if not signatures}
    assert without - BEFORE_GPUS == OF_TESTS


def test_the_command_tells_of_each_job(warm: Warm) -> None:
    told = [line.split("  ")[-1] for line in warm.lines if "  cpu  " in line]
    assert told == [name for name, _ in warming.jobs("cpu")]
    assert warm.lines[-1].startswith("Ready: ")
    assert warm.lines[-1].endswith(f"below {warm.folder}")


def test_where_no_folder_can_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warming, "jobs", lambda backend: [("a job", lambda: None)])
    monkeypatch.setattr(warming, "folders", set())
    assert warming.warm() == 1
    assert "set NUMBA_CACHE_DIR" in capsys.readouterr().out
