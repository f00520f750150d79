"""The tests of the GPU kernels on the virtual GPU: all host code, and the PTX that a GPU would be given."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED:
    pytest.skip("the simulator compiles nothing", allow_module_level=True)
if "VIRTUAL_GPU_LOG" in os.environ:
    pytest.skip("this is the virtual GPU", allow_module_level=True)
if shutil.which("gcc") is None:
    pytest.skip("the virtual GPU needs gcc", allow_module_level=True)

from tests.helpers.gpu_compilation import (
    HISTOGRAM_KERNELS,
    KERNELS,
    SPAN_KERNELS,
    UNCERTAIN_SPAN_KERNELS,
)
from tests.helpers.pytest_processes import all_passed
from tests.helpers.virtual_runs import Run, ran
from tests.virtual_gpu.log import kernel_name

LEAST_TESTS = {
    "tests/gpu_kernels/test_gpu_aggregates.py": 15,
    "tests/gpu_kernels/test_gpu_arrays.py": 65,
    "tests/gpu_kernels/test_gpu_blocks.py": 28,
    "tests/gpu_kernels/test_gpu_borders.py": 20,
    "tests/gpu_kernels/test_gpu_causality.py": 31,
    "tests/gpu_kernels/test_gpu_histograms.py": 6,
    "tests/gpu_kernels/test_gpu_join.py": 36,
    "tests/gpu_kernels/test_gpu_sequences.py": 23,
    "tests/gpu_kernels/test_gpu_traffic.py": 7,
    "tests/bench/papers/streams/test_gpu_streams.py": 22,
    "tests/bench/papers/streams/test_gpu_stream_faults.py": 6,
    "tests/bench/papers/streams/test_gpu_stream_histograms.py": 10,
}
OF_TWO = "tests/gpu_kernels/test_gpu_devices.py"
MODULES = (
    *LEAST_TESTS,
    "tests/gpu_kernels/test_gpu_device.py",
    "tests/gpu_kernels/test_gpu_failures.py",
)
"""All that can run on it; the others look at what Numba-CUDA links and launches for a GPU."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return ran(tmp_path_factory.mktemp("virtual"), *LEAST_TESTS, "-m", "not slow")


@pytest.mark.parametrize("module", LEAST_TESTS)
def test_gpu_tests_pass_on_the_virtual_gpu(run: Run, module: str) -> None:
    all_passed(run.done, module, LEAST_TESTS[module])


def test_nothing_is_wrong_though_the_answers_are_right(run: Run) -> None:
    assert run.log.faults == []
    # Each checks first whether the atomic is worth its time: an old value does no harm.
    assert {each.partition(" ")[0] for each in run.log.notes} == {
        "join.most_probable", "join.nearest", "join.foremost",
    }  # fmt: skip


def test_every_kernel_was_launched(run: Run) -> None:
    kernels = (*KERNELS, *HISTOGRAM_KERNELS, *SPAN_KERNELS, *UNCERTAIN_SPAN_KERNELS)
    assert {kernel_name(kernel) for kernel in kernels} == run.log.launched


def test_joins_are_dealt_over_two_virtual_gpus(tmp_path: Path) -> None:
    """Tests of faults leave some on purpose: they run apart."""
    run = ran(tmp_path, OF_TWO, "-k", "not TestFaults", devices=2)
    all_passed(run.done, OF_TWO, 80)
    assert run.log.faults == []
    assert {"join.place", "join.copy", "join.scatter", "aggregates.take_ranges"} <= run.log.launched


def test_two_virtual_gpus_see_work_for_the_wrong_one(tmp_path: Path) -> None:
    run = ran(tmp_path, OF_TWO, "-k", "TestFaults", devices=2)
    all_passed(run.done, OF_TWO, 2)
    assert any("memory of another device" in fault for fault in run.log.faults)
