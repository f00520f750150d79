"""`bench run gpu`, with no more installed than it may need."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.places import ROOT

BARE = """
import sys
for name in ("typer", "rich", "matplotlib", "pyspark", "psutil", "duckdb", "polars"):
    sys.modules[name] = None
sys.argv = ["bench", "run", "gpu", "--quick", "--out", sys.argv[1]]
import runpy
runpy.run_module("bench", run_name="__main__")
"""


def bench(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env={**os.environ, **environment}, capture_output=True,
        text=True, timeout=570, check=False,
    )  # fmt: skip


def check_results(result: dict[str, Any]) -> None:
    """Hold what `run gpu --quick` wrote against what it should: all that it measures, and equal answers."""
    picks = 0 if result["settings"].get("seismic_picks") == "not here" else 2
    assert len(result["checks"]) == 87 + picks
    assert all(check["passed"] for check in result["checks"])
    names = {figure["name"] for figure in result["figures"]}
    assert {
        "dense pairs, identical",
        "40 x 40, sorted and counted on the device",
        "40 x 40, copied in, sorted, counted and copied back",
        "copies waited for / beside the kernels, pairs",
        "Arrow to Arrow, counts: CPU / GPU",
        "borders, 100,000 queries: CPU / GPU",
        "causality, at 300 places: CPU / GPU",
    } <= names
    assert [chart["name"] for chart in result["charts"]] == [
        "density", "confidence", "size", "classes", "keys", "stream-blocks"
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("gcc") is not None, reason="test_virtual_gpu runs it")
def test_all_of_it_in_the_simulator(tmp_path: Path) -> None:
    done = bench("-c", BARE, str(tmp_path), NUMBA_ENABLE_CUDASIM="1")
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((tmp_path / "gpu-quick.json").read_text(encoding="utf-8"))
    assert result["settings"]["device"].startswith("Numba's CUDA simulator")
    check_results(result)
    assert "written to" in done.stdout


@pytest.mark.parametrize("name", ["gpu", "gpu-spark"])
def test_without_a_gpu_it_says_what_to_do(name: str, tmp_path: Path) -> None:
    from gpu_kernels.device import usable as device

    if device.problem() is None:
        pytest.skip("there is a GPU")
    done = bench("-m", "bench", "run", name, "--quick", "--out", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.startswith(f"{name}: there is no GPU to measure: ")
    assert len(done.stdout.splitlines()) < 5
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "hidden", ["psutil", "typer psutil", "typer rich matplotlib psutil duckdb"]
)
def test_it_needs_no_packages_of_the_peers(hidden: str, tmp_path: Path) -> None:
    """As where Coincide was installed with its extra gpu, and no other."""
    program = BARE.replace(BARE[BARE.index('("typer') : BARE.index(":\n")], repr(hidden.split()))
    taken = tmp_path / "taken"
    taken.write_text("")
    done = bench("-c", program, str(taken))
    assert done.returncode == 2
    assert "cannot write to --out" in done.stdout + done.stderr
    done = bench("-c", program, str(tmp_path / "new"), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert "gpu: there is no GPU to measure: " in done.stdout + done.stderr
