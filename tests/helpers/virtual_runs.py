"""Tests and modules of this project on the virtual GPU, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.helpers.places import ROOT
from tests.helpers.pytest_processes import run_tests
from tests.virtual_gpu import environment
from tests.virtual_gpu.lines import WATCHED
from tests.virtual_gpu.log import Log

_PLUGIN = "-p", "tests.virtual_gpu.plugin", "-rpfE"


class Run(NamedTuple):
    """What pytest printed, and what the driver wrote."""

    done: subprocess.CompletedProcess[str]
    log: Log


def ran(
    folder: Path,
    *arguments: str,
    seed: int = 1,
    seconds: int = 280,
    devices: int = 1,
    lines: Path | None = None,
) -> Run:
    """Tests that pytest ran; what ran of the host code is left in `lines`."""
    log = folder / "log"
    given = environment(log, seed, devices) | ({} if lines is None else {WATCHED: str(lines)})
    done = run_tests(given, *_PLUGIN, *arguments, seconds=seconds)
    assert log.exists(), done.stdout[-4000:] + done.stderr[-2000:]
    return Run(done, Log.read(log))


def ran_module(folder: Path, *words: str, **more: str) -> tuple[str, Log]:
    """What a module printed, and the log."""
    log = folder / "log"
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=os.environ | environment(log) | more,
        capture_output=True, text=True, timeout=850, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout, Log.read(log)
