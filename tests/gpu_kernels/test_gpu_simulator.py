"""The tests of the GPU kernels, in the CUDA simulator: they need no GPU there."""

from __future__ import annotations

import re

import pytest

from tests.helpers.simulator import run_tests_in_simulator

LEAST_TESTS = {
    "tests/gpu_kernels/test_gpu_blocks.py": 25,
    "tests/gpu_kernels/test_gpu_borders.py": 20,
    "tests/gpu_kernels/test_gpu_causality.py": 15,
    "tests/gpu_kernels/test_gpu_histograms.py": 6,
    "tests/gpu_kernels/test_gpu_join.py": 30,
    "tests/gpu_kernels/test_gpu_streams.py": 24,
    "tests/gpu_kernels/test_gpu_stream_faults.py": 9,
    "tests/gpu_kernels/test_gpu_stream_histograms.py": 10,
    "tests/gpu_kernels/test_gpu_transfers.py": 18,
}


@pytest.mark.parametrize("module", LEAST_TESTS)
def test_gpu_tests_pass_in_the_simulator(module: str) -> None:
    done = run_tests_in_simulator(module)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    summary = done.stdout.splitlines()[-1]
    assert "skipped" not in summary
    assert int(re.match(r"=*\s*(\d+) passed", summary)[1]) >= LEAST_TESTS[module]
