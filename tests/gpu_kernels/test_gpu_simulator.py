"""The tests of the GPU kernels, in the CUDA simulator: they need no GPU there."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.helpers.pytest_processes import all_passed, run_tests

SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1"}
"""Chosen before Numba is imported."""

LEAST_TESTS = {
    "tests/gpu_kernels/test_gpu_blocks.py": 24,
    "tests/gpu_kernels/test_gpu_borders.py": 20,
    "tests/gpu_kernels/test_gpu_causality.py": 31,
    "tests/gpu_kernels/test_gpu_histograms.py": 6,
    "tests/gpu_kernels/test_gpu_join.py": 36,
    "tests/gpu_kernels/test_gpu_sequences.py": 23,
    "tests/bench/papers/streams/test_gpu_streams.py": 22,
    "tests/bench/papers/streams/test_gpu_stream_faults.py": 6,
    "tests/bench/papers/streams/test_gpu_stream_histograms.py": 10,
    "tests/gpu_kernels/test_gpu_transfers.py": 19,
}
MODULES = (
    LEAST_TESTS if shutil.which("gcc") is None else ("tests/gpu_kernels/test_gpu_transfers.py",)
)
"""The others run on the virtual GPU, where there can be one: it runs what a GPU would run."""


@pytest.fixture(scope="module")
def done() -> subprocess.CompletedProcess[str]:
    """One process for all modules: to start it takes longer than most of them."""
    return run_tests(SIMULATOR, *MODULES, "-rpsfE", "-m", "not slow")


@pytest.mark.parametrize("module", MODULES)
def test_gpu_tests_pass_in_the_simulator(
    done: subprocess.CompletedProcess[str], module: str
) -> None:
    all_passed(done, module, LEAST_TESTS[module])
