"""Whole programs on the virtual GPU: benchmark, hunt and Spark; and a test of the virtual GPU itself."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED or "VIRTUAL_GPU_LOG" in os.environ:
    pytest.skip("these run on the virtual GPU in processes of their own", allow_module_level=True)
if shutil.which("gcc") is None:
    pytest.skip("the virtual GPU needs gcc", allow_module_level=True)

from bench.gpu.backends import GPU
from tests.gpu_kernels.test_virtual_gpu import LEAST_TESTS
from tests.helpers.virtual_runs import ran, ran_module

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_slow_gpu_tests_pass_on_the_virtual_gpu(tmp_path: Path) -> None:
    run = ran(tmp_path, *LEAST_TESTS, "-m", "slow", seed=2, seconds=850)
    assert run.done.returncode == 0, run.done.stdout[-8000:] + run.done.stderr[-2000:]
    assert run.log.faults == []


def test_the_hunt_finds_nothing(tmp_path: Path) -> None:
    """Where no backend is asked for, cases take the GPU."""
    words = "bench", "run", "hunt", "--cases", str(_CASES), "--out", str(tmp_path)
    _, log = ran_module(tmp_path, *words)
    assert log.faults == []
    assert {"join.place", "join.scatter", "join.probe HistogramRule"} <= log.launched
    assert "join.probe CausalRun PairRule TemplateRule" in log.launched


_CASES = 500


@pytest.mark.spark
def test_workers_of_spark_use_it(tmp_path: Path, java_home: str) -> None:
    """`bench run gpu-spark --quick`: rows are the CPU's, and each job of the GPU launches kernels."""
    words = "bench", "run", "gpu-spark", "--quick", "--out", str(tmp_path)
    _, log = ran_module(tmp_path, *words, JAVA_HOME=java_home)
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
    printed, _ = ran_module(tmp_path, "tests.virtual_gpu.mutants", str(EACH))
    caught = dict(json.loads(line) for line in printed.splitlines())
    assert len(caught) >= 80 // EACH
    unseen = {name for name, how in caught.items() if how is None}
    assert unseen <= UNSEEN
    assert EACH > 1 or unseen == UNSEEN
