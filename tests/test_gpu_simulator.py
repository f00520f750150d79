"""The tests of the GPU kernels, in the CUDA simulator: they need no GPU there."""

from __future__ import annotations

import re

from tests.simulator import run_tests_in_simulator

LEAST_TESTS = 30


def test_gpu_tests_pass_in_the_simulator() -> None:
    done = run_tests_in_simulator("tests/test_gpu_join.py")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    summary = done.stdout.splitlines()[-1]
    assert "skipped" not in summary
    assert int(re.match(r"=*\s*(\d+) passed", summary)[1]) >= LEAST_TESTS
