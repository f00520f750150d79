"""A folder with two inputs for `coincide join`, and room for its output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from coincide import TimingCondition, correlate_tables, within
from coincide.command_line import run
from tests.helpers.places import ROOT

WINDOW = ("--within", "-3", "5", "--confidence", "0.5")


def events(**changes: list) -> pa.Table:
    columns = {
        "id": [0, 1, 2, 3],
        "min_time": [0, 10, 20, 30],
        "max_time": [4, 14, 24, 34],
        "key": ["a", "a", "b", "b"],
    }
    return pa.table({**columns, **changes})


class Workplace:
    """A folder with two inputs and room for an output."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.left = self.write("left.parquet", events())
        self.right = self.write(
            "right.parquet", events(min_time=[1, 11, 21, 90], max_time=[5, 15, 25, 94])
        )
        self.output = folder / "results" / "out.parquet"
        self.output.parent.mkdir()

    def write(self, name: str, table: pa.Table) -> Path:
        path = self.folder / name
        pq.write_table(table, path)
        return path

    def join(self, *options: str, engine: str = "local") -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a join of the two inputs."""
        words = [
            "join",
            str(self.left),
            str(self.right),
            "-o",
            str(self.output),
            "--engine",
            engine,
        ]
        code = run([*words, *options])
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def refused(self, *options: str, engine: str = "local") -> str:
        """The one line with which a join fails as bad usage or bad data, nothing left behind."""
        before = sorted(self.output.parent.iterdir())
        code, out, err = self.join(*options, engine=engine)
        assert (code, out) == (2, ""), err
        assert err.startswith("coincide: ")
        warned = "propagation_speed"  # that the slower way begins
        assert len([line for line in err.splitlines() if not line.startswith(warned)]) == 1
        assert "Traceback" not in err
        assert sorted(self.output.parent.iterdir()) == before
        return err

    def result(self) -> pa.Table:
        return ds.dataset(str(self.output), format="parquet").to_table()

    def expected(
        self, lo: int = -3, hi: int = 5, confidence: float = 0.5, **more: object
    ) -> pa.Table:
        tables = pq.read_table(self.left), pq.read_table(self.right)
        return correlate_tables(*tables, TimingCondition(within(lo, hi), confidence), **more)


def coincide(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "coincide.command_line", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip


HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a process may have been set to ignore."""


def interrupted(
    work: Workplace,
    *arguments: str,
    number: signal.Signals = signal.SIGINT,
    begun: Callable[[], bool] | None = None,
) -> tuple[int, str]:
    """Exit code and stderr of `coincide`, sent a signal as soon as it begins to write, or as told."""
    begun = begun or (lambda: bool(list(work.output.parent.iterdir())))
    process = subprocess.Popen(
        [sys.executable, "-m", "coincide.command_line", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
        # A shell that runs the tests in the background, or nohup, has it ignored.
        preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in HEARD],
    )  # fmt: skip
    deadline = time.monotonic() + 200
    while not begun() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=100)
    finally:
        process.kill()  # nothing of one that does not end goes on during other tests
    return process.returncode, err
