"""Whole programs on the virtual GPU: benchmark, hunt and Spark; and a test of the virtual GPU itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED or "VIRTUAL_GPU_LOG" in os.environ:
    pytest.skip("these run on the virtual GPU in processes of their own", allow_module_level=True)
if shutil.which("gcc") is None:
    pytest.skip("the virtual GPU needs gcc", allow_module_level=True)

from bench.command_line import RESULTS
from bench.gpu.backends import GPU
from bench.gpu.counted import grown
from tests.bench.test_bench_gpu import check_results
from tests.gpu_kernels.test_virtual_gpu import LEAST_TESTS, MODULES, OF_TWO
from tests.helpers.places import ROOT
from tests.helpers.pytest_processes import run_tests
from tests.virtual_gpu import environment
from tests.virtual_gpu.lines import gaps
from tests.virtual_gpu.log import Log

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
_SECONDS = 850


def ran(folder: Path, *words: str, **more: str) -> tuple[str, Log]:
    """What a module printed that was run on the virtual GPU, and the log."""
    log = folder / "log"
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=os.environ | environment(log) | more,
        capture_output=True, text=True, timeout=_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout, Log.read(log)


def test_slow_gpu_tests_pass_on_the_virtual_gpu(tmp_path: Path) -> None:
    given = environment(tmp_path / "log", seed=2)
    done = run_tests(
        given, "-p", "tests.virtual_gpu.plugin", *LEAST_TESTS, "-m", "slow", seconds=_SECONDS
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert Log.read(tmp_path / "log").faults == []


def test_the_benchmark_and_the_tests_run_all_host_code(tmp_path: Path) -> None:
    """`bench run gpu --quick` from end to end, what is counted, and the tests miss few lines."""
    lines = tmp_path / "lines"
    lines.mkdir()
    more = {"VIRTUAL_GPU_LINES": str(lines)}
    words = "bench", "run", "gpu", "--quick", "--out", str(tmp_path)
    printed, log = ran(tmp_path, "tests.virtual_gpu.lines", *words, **more)
    assert "written to" in printed
    assert log.faults == []
    result = json.loads((tmp_path / "gpu-quick.json").read_text(encoding="utf-8"))
    assert result["settings"]["device"] == "virtual"
    check_results(result)
    words = "bench", "run", "gpu-counted", "--quick", "--out", str(tmp_path)
    ran(tmp_path, "tests.virtual_gpu.lines", *words, **more, VIRTUAL_GPU_COUNTS="1")
    given = environment(tmp_path / "tests.log", seed=3) | more
    arguments = "-p", "tests.virtual_gpu.plugin", *MODULES, "-m", "not slow"
    done = run_tests(given, *arguments, seconds=_SECONDS)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert Log.read(tmp_path / "tests.log").faults == []
    two = environment(tmp_path / "two.log", seed=4, devices=2) | more
    given_two = "-p", "tests.virtual_gpu.plugin", OF_TWO
    done = run_tests(two, *given_two, seconds=_SECONDS)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    missing, share = gaps(lines)
    assert share >= 0.95, missing


def test_no_count_of_a_join_grows(tmp_path: Path) -> None:
    """Instructions, bytes, launches and waits of fixed joins, against what is recorded."""
    words = "bench", "run", "gpu-counted", "--out", str(tmp_path)
    _, log = ran(tmp_path, *words, VIRTUAL_GPU_COUNTS="1")
    assert log.faults == []
    kept, found = (
        json.loads((folder / "gpu-counted.json").read_text(encoding="utf-8"))
        for folder in (RESULTS, tmp_path)
    )
    assert all(figure["value"] > 0 for figure in found["figures"])
    lines = grown(kept, found)
    assert not lines, (
        f"a join on a GPU does over a tenth more than recorded (found {'; '.join(lines)}). If that is"
        " meant, `make counted` renews bench/results/gpu-counted.json."
    )


def test_the_hunt_finds_nothing(tmp_path: Path) -> None:
    """Where no backend is asked for, cases take the GPU."""
    words = "bench", "run", "hunt", "--cases", str(_CASES), "--out", str(tmp_path)
    _, log = ran(tmp_path, *words)
    assert log.faults == []
    assert {"join.place", "join.scatter", "join.probe HistogramRule"} <= log.launched
    assert "join.probe CausalRun PairRule TemplateRule" in log.launched


_CASES = 500


@pytest.mark.spark
def test_workers_of_spark_use_it(tmp_path: Path, java_home: str) -> None:
    """`bench run gpu-spark --quick`: rows are the CPU's, and each job of the GPU launches kernels."""
    words = "bench", "run", "gpu-spark", "--quick", "--out", str(tmp_path)
    _, log = ran(tmp_path, *words, JAVA_HOME=java_home)
    result = json.loads((tmp_path / "gpu-spark-quick.json").read_text(encoding="utf-8"))
    assert len(result["checks"]) == 30
    assert all(check["passed"] for check in result["checks"])
    rows = {name.rpartition(":")[0]: each["rows"] for name, each in result["settings"].items()
            if name.endswith(f": {GPU}")}  # fmt: skip
    assert len(rows) == 15
    assert rows["dense, pairs, exchange"] > 50_000
    assert all(count > 500 for count in rows.values())
    assert log.faults == []
    assert {"join.place", "join.probe IntervalRule", "join.copy", "join.scatter"} <= log.launched
    assert "join.probe CausalRun PairRule TemplateRule" in log.launched


UNSEEN = {
    # After the last step of the scan each thread reads what it wrote itself.
    "join.scatter: no barrier 9",
    "join.scatter int32: no barrier 9",
    # Merits of histograms are rounded, so that sums in another order are equal.
    "join.most_probable HistogramRule: products fused with sums",
    "join.nearest HistogramRule: products fused with sums",
    "join.foremost HistogramRule: products fused with sums",
    # Whether a box is near enough decides what is looked at, not what is found.
    "causality.place_causes CausalRun: products fused with sums",
    # Effects are written in the order of causes, and never moved.
    "join.copy CausalRun: items of half the size",
    "join.copy CausalRun: half an item stored",
    # Too few pairs lie on a border to see it: `test_gpu_compilation` looks for it in the code itself.
    "join.probe CausalRun PairRule: products fused with sums",
}
"""Mutants whose answers are right."""


EACH = int(os.environ.get("VIRTUAL_GPU_MUTANTS", "4"))
"""One mutant in four is made; 1 makes all, which takes ten minutes."""


def test_planted_faults_are_caught(tmp_path: Path) -> None:
    printed, _ = ran(tmp_path, "tests.virtual_gpu.mutants", str(EACH))
    caught = dict(json.loads(line) for line in printed.splitlines())
    assert len(caught) >= 80 // EACH
    unseen = {name for name, how in caught.items() if how is None}
    assert unseen <= UNSEEN
    assert EACH > 1 or unseen == UNSEEN
