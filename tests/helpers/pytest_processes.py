"""Tests of this project, run by pytest in a process of their own: of another device, say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from tests.helpers.places import ROOT

_MOST_SECONDS = 280


def run_tests(
    environment: Mapping[str, str], *arguments: str, seconds: int = _MOST_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run pytest, in this environment and that of this process."""
    own = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=own | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def all_passed(done: subprocess.CompletedProcess[str], module: str, least: int) -> None:
    """Assert that all tests of a module passed, and a least number of them. Asks for ``-rpsfE``."""
    outcomes = [line.split()[0] for line in done.stdout.splitlines() if f"{module}:" in line]
    assert set(outcomes) == {"PASSED"}, done.stdout[-8000:] + done.stderr[-2000:]
    assert len(outcomes) >= least
