"""Every experiment runs, at a tiny size, and its engines agree. `test_bench_gpu` has the GPU's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.places import ROOT
from tests.helpers.spark_process import spark_environment

pytest.importorskip("duckdb")
pytest.importorskip("psutil")
pytest.importorskip("polars")

from bench.catalogue import experiments

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

FIELDS = {
    "experiment": str,
    "quick": bool,
    "date": str,
    "commit": str,
    "machine": dict,
    "versions": dict,
    "settings": dict,
    "timings": dict,
    "figures": list,
    "checks": list,
    "charts": list,
    "claims": list,
}
FIGURE_FIELDS = {"name", "value", "low", "high", "unit", "bar", "at_least", "reached"}
CHECKS = {
    **{"local": 3, "growth": 0, "startup": 0, "classes": 0, "large": 0},
    **{"stream-rates": 3, "stream-blocks": 4, "stream-confidence": 4, "stream-keys": 3},
    **{
        "spark": 3,
        "memory": 2,
        "peers": 1,
        "pipe": 5,
        "broadcast": 1,
        "histograms": 3,
        "planner": 1,
    },
    **{"seismic-delays": 0, "structured-streaming": 3, "spark-bins": 5},
    **{"borders": 6, "borders-figures": 22, "borders-space": 20, "borders-locality": 7},
    **{"causality": 6, "clocks": 0, "windowed-causality": 0, "spans": 14, "aggregates": 14},
    **{
        "correlograms": 8,
        "spark-shares": 0,
        "arrays": 6,
        "sequences": 2,
        "sequences-spark": 4,
        "unordered": 7,
        "borders-spark": 2,
    },
}
"""How many checks of equal answers each experiment makes."""


def assert_results(folder: Path, name: str) -> dict:
    results = json.loads((folder / f"{name}-quick.json").read_text(encoding="utf-8"))
    assert {field: type(value) for field, value in results.items()} == FIELDS
    assert (results["experiment"], results["quick"]) == (name, True)
    assert {"cores", "cpu", "memory_gib"} <= results["machine"].keys()
    assert {"numpy", "numba", "pyarrow"} <= results["versions"].keys()
    if "not here" in results["settings"].values():
        pytest.skip(f"the data of {name} are not here")
    assert results["figures"] or results["charts"]
    for chart in results["charts"]:
        picture = folder / f"{name}-quick-{chart['name']}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert all(len(line) == len(chart["x"]) for line in chart["lines"].values())
    for figure in results["figures"]:
        assert figure.keys() == FIGURE_FIELDS
        assert figure["low"] <= figure["value"] <= figure["high"]
        assert figure["reached"] is None, "quick runs are not judged"
    for timing in results["timings"].values():
        assert timing["low"] <= timing["median"] <= timing["high"]
    assert len(results["checks"]) == CHECKS[name]
    assert all(check["passed"] and len(check["answers"]) >= 2 for check in results["checks"])
    return results


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a session's settings are fixed when it starts."""
    command = [sys.executable, "-m", "bench", "run", *words, "--quick", "--out", str(folder)]
    return subprocess.run(
        command, cwd=ROOT, env=spark_environment(), capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of all experiments."""
    made = tmp_path_factory.mktemp("results")
    done = run(made, "all")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_no_experiment_is_left_out(folder: Path) -> None:
    others = {"gpu", "gpu-counted", "gpu-spark", "hunt", "hunt-spark"}
    assert CHECKS.keys() == experiments().keys() - others
    assert {path.name for path in folder.glob("*.json")} >= {
        f"{name}-quick.json" for name in CHECKS
    }


@pytest.mark.parametrize("name", CHECKS)
def test_experiment(name: str, folder: Path) -> None:
    assert_results(folder, name)


@pytest.mark.parametrize(("name", "flag"), [("local", "polars"), ("growth", "spark")])
def test_flag_of_an_experiment(name: str, flag: str, folder: Path, tmp_path: Path) -> None:
    assert flag in experiments()[name].flags
    done = run(tmp_path, name, f"--{flag}")
    assert done.returncode == 0, done.stdout + done.stderr
    more, plain = assert_results(tmp_path, name), assert_results(folder, name)
    assert len(more["timings"]) > len(plain["timings"])
