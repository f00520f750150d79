"""The tests of the GPU kernels, in the CUDA simulator: they need no GPU there."""

from __future__ import annotations

import subprocess

import pytest

from tests.helpers.pytest_processes import all_passed, run_tests

SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1"}
"""Chosen before Numba is imported."""

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


@pytest.fixture(scope="module")
def done() -> subprocess.CompletedProcess[str]:
    """One process for all modules: to start it takes longer than most of them."""
    return run_tests(SIMULATOR, *LEAST_TESTS, "-rpsfE", "-m", "not slow")


@pytest.mark.parametrize("module", LEAST_TESTS)
def test_gpu_tests_pass_in_the_simulator(
    done: subprocess.CompletedProcess[str], module: str
) -> None:
    all_passed(done, module, LEAST_TESTS[module])


@pytest.mark.slow
def test_slow_gpu_tests_pass_in_the_simulator() -> None:
    done = run_tests(SIMULATOR, *LEAST_TESTS, "-m", "slow")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith("2 passed")
