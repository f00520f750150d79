"""The tests of the GPU kernels on the virtual GPU: all host code, and the PTX that a GPU would be given."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED:
    pytest.skip("the simulator compiles nothing", allow_module_level=True)
if "VIRTUAL_GPU_LOG" in os.environ:
    pytest.skip("this is the virtual GPU", allow_module_level=True)
if shutil.which("gcc") is None:
    pytest.skip("the virtual GPU needs gcc", allow_module_level=True)

from bench.command_line import RESULTS
from bench.gpu.counted import grown
from tests.bench.test_bench_gpu import check_results
from tests.helpers.gpu_compilation import (
    HISTOGRAM_KERNELS,
    KERNELS,
    SPAN_KERNELS,
    UNCERTAIN_SPAN_KERNELS,
)
from tests.helpers.pytest_processes import all_passed
from tests.helpers.virtual_runs import Run, ran, ran_module
from tests.virtual_gpu.lines import WATCHED, gaps
from tests.virtual_gpu.log import kernel_name

pytestmark = pytest.mark.timeout(1800)

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
_SECONDS = 850


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of this module leave which lines they ran."""
    return tmp_path_factory.mktemp("lines")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, lines: Path) -> Run:
    folder = tmp_path_factory.mktemp("virtual")
    return ran(folder, *MODULES, "-m", "not slow", lines=lines, seconds=_SECONDS)


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory, lines: Path) -> Run:
    folder = tmp_path_factory.mktemp("two")
    return ran(folder, OF_TWO, "-k", "not TestFaults", devices=2, lines=lines)


@pytest.fixture(scope="module")
def misled(tmp_path_factory: pytest.TempPathFactory, lines: Path) -> Run:
    """Tests of faults leave some on purpose: they run apart."""
    folder = tmp_path_factory.mktemp("faults")
    return ran(folder, OF_TWO, "-k", "TestFaults", devices=2, lines=lines)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory, lines: Path) -> dict[str, Any]:
    """What `bench run gpu-counted` counts."""
    folder = tmp_path_factory.mktemp("counted")
    words = "bench", "run", "gpu-counted", "--out", str(folder)
    given = {WATCHED: str(lines), "VIRTUAL_GPU_COUNTS": "1"}
    _, log = ran_module(folder, "tests.virtual_gpu.lines", *words, **given)
    assert log.faults == []
    return json.loads((folder / "gpu-counted.json").read_text(encoding="utf-8"))


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


def test_joins_are_dealt_over_two_virtual_gpus(dealt: Run) -> None:
    all_passed(dealt.done, OF_TWO, 80)
    assert dealt.log.faults == []
    assert {
        "join.place",
        "join.copy",
        "join.scatter",
        "aggregates.take_ranges",
    } <= dealt.log.launched


def test_two_virtual_gpus_see_work_for_the_wrong_one(misled: Run) -> None:
    all_passed(misled.done, OF_TWO, 2)
    assert any("memory of another device" in fault for fault in misled.log.faults)


def test_no_count_of_a_join_grows(counted: dict[str, Any]) -> None:
    """Instructions, bytes, launches and waits of fixed joins, against what is recorded."""
    kept = json.loads((RESULTS / "gpu-counted.json").read_text(encoding="utf-8"))
    assert all(figure["value"] > 0 for figure in counted["figures"])
    grew = grown(kept, counted)
    assert not grew, (
        f"a join on a GPU does over a tenth more than recorded (found {'; '.join(grew)}). If that is"
        " meant, `make counted` renews bench/results/gpu-counted.json."
    )


def test_the_benchmark_and_the_tests_run_all_host_code(
    tmp_path: Path, lines: Path, run: Run, dealt: Run, misled: Run, counted: dict[str, Any]
) -> None:
    """`bench run gpu --quick` from end to end, what is counted, and the tests miss few lines."""
    assert run.done.returncode == dealt.done.returncode == misled.done.returncode == 0
    words = "bench", "run", "gpu", "--quick", "--out", str(tmp_path)
    printed, log = ran_module(tmp_path, "tests.virtual_gpu.lines", *words, **{WATCHED: str(lines)})
    assert "written to" in printed
    assert log.faults == []
    result = json.loads((tmp_path / "gpu-quick.json").read_text(encoding="utf-8"))
    assert result["settings"]["device"] == "virtual"
    check_results(result)
    assert counted["figures"]
    missing, share = gaps(lines)
    assert share >= 0.95, missing
