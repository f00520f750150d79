"""The tests of the GPU kernels, in the CUDA simulator: they need no GPU there."""

from __future__ import annotations

import re

import pytest

from tests.simulator import run_tests_in_simulator


@pytest.mark.parametrize(
    ("file", "least"), [("tests/test_gpu_join.py", 30), ("tests/test_gpu_transfers.py", 18)]
)
def test_gpu_tests_pass_in_the_simulator(file: str, least: int) -> None:
    done = run_tests_in_simulator(file)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    summary = done.stdout.splitlines()[-1]
    assert "skipped" not in summary
    assert int(re.match(r"=*\s*(\d+) passed", summary)[1]) >= least
