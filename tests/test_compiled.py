"""Compiling with and without a folder to cache in."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numba
import pytest

from event_model.compiled import compiled

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
from event_model.probability import trapezoid_cdf, window_probability
from gpu_kernels.placement import place
assert window_probability(0, 10, 10, -5, 5) == 0.75
print(type(trapezoid_cdf._cache).__name__, type(place._compiled._cache).__name__)
print(window_probability.__module__, __import__("event_model").__file__)
"""


def run(source: Path, **environment: str) -> list[str]:
    """Import event_model from `source`, and say which cache its kernels have."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**kept, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert str(source) in lines[1]
    return lines


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    """The sources in a zip archive: no folder can be made next to them."""
    archive = tmp_path / "sources.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for package in ("event_model", "gpu_kernels"):
            for path in (ROOT / package).rglob("*.py"):
                target.write(path, path.relative_to(ROOT))
    return archive


def test_no_folder_to_cache_in(zipped: Path) -> None:
    # Paths below a file can be made by nobody, root included.
    nowhere = str(zipped / "nowhere")
    lines = run(zipped, NUMBA_CACHE_DIR=nowhere, HOME=nowhere, XDG_CACHE_HOME=nowhere)
    assert lines[0] == "NullCache NullCache"


def test_a_folder_to_cache_in(tmp_path: Path) -> None:
    lines = run(ROOT, NUMBA_CACHE_DIR=str(tmp_path))
    assert lines[0] == "FunctionCache CUDACache"
    assert list(tmp_path.rglob("*.nbi"))


def test_kernels_release_the_gil_and_keep_ieee() -> None:
    @compiled
    def ratio(a: float, b: float) -> float:
        return a / b

    assert ratio.targetoptions["nogil"]
    assert not ratio.targetoptions.get("fastmath")
    assert ratio(1.0, 0.0) == float("inf")


def test_options_are_handed_on() -> None:
    @compiled(error_model="python")
    def ratio(a: float, b: float) -> float:
        return a / b

    with pytest.raises(ZeroDivisionError):
        ratio(1.0, 0.0)


def test_other_errors_stay_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        compiled(abs)
