"""Tests of this project on the virtual GPU, in a process of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.helpers.pytest_processes import run_tests
from tests.virtual_gpu import environment
from tests.virtual_gpu.log import Log

_PLUGIN = "-p", "tests.virtual_gpu.plugin", "-rpfE"


class Run(NamedTuple):
    """What pytest printed, and what the driver wrote."""

    done: subprocess.CompletedProcess[str]
    log: Log


def ran(folder: Path, *arguments: str, seed: int = 1, seconds: int = 280, devices: int = 1) -> Run:
    log = folder / "log"
    done = run_tests(environment(log, seed, devices), *_PLUGIN, *arguments, seconds=seconds)
    assert log.exists(), done.stdout[-4000:] + done.stderr[-2000:]
    return Run(done, Log.read(log))
