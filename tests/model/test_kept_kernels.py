"""Compiled code on disk that cannot be read or written, which stops nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_kernels.kernels.simulation import SIMULATED
from tests.helpers.places import ROOT

CALL = """
import resource, sys
from coincide.model.probability import window_probability
if "full" in sys.argv:  # as of a full disk: no file may grow
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print(window_probability(0, 10, 10, -5, 5), sum(window_probability.stats.cache_hits.values()))
"""
ON_GPU = """
from gpu_kernels.device.usable import problem
from gpu_kernels.kernels.join import place
assert problem() is None
found = place._load()
print(bool(found), sum(place._compiled._cache_hits.values()))
"""


def run(folder: Path, program: str, *words: str, **environment: str) -> tuple[list[str], list[str]]:
    """What a program prints whose kernels are kept in a folder, and the warnings that it gives."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)} | environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), [
        line for line in done.stderr.splitlines() if "KernelCacheWarning" in line
    ]


def cut(folder: Path, kernel: str, ending: str, size: int) -> None:
    """Cut the files of a kernel off."""
    files = list(folder.rglob(f"{kernel}-*{ending}"))
    assert files
    for path in files:
        os.truncate(path, size)


def test_a_kernel_whose_file_was_cut_off_is_compiled_again(tmp_path: Path) -> None:
    assert run(tmp_path, CALL) == (["0.75", "0"], [])
    for ending in (".nbi", ".nbc"):
        for size in (0, 40):
            assert run(tmp_path, CALL) == (["0.75", "1"], [])
            cut(tmp_path, "*", ending, size)
            printed, warned = run(tmp_path, CALL)
            assert printed == ["0.75", "0"]
            assert len(warned) == 1
            assert f"compiled code in {tmp_path}" in warned[0]
            assert "cannot be read (found " in warned[0]
    assert run(tmp_path, CALL) == (["0.75", "1"], [])


def test_a_full_disk_stops_no_kernel(tmp_path: Path) -> None:
    printed, warned = run(tmp_path, CALL, "full")
    assert printed == ["0.75", "0"]
    assert len(warned) == 1
    assert f"compiled code cannot be kept in {tmp_path}" in warned[0]
    assert "(found: File too large)" in warned[0]
    # What was begun there is not in the way of others.
    assert run(tmp_path, CALL) == (["0.75", "0"], [])
    assert run(tmp_path, CALL) == (["0.75", "1"], [])


@pytest.mark.skipif(SIMULATED or shutil.which("gcc") is None, reason="the virtual GPU needs gcc")
def test_a_kernel_of_gpus_likewise(tmp_path: Path) -> None:
    from tests.virtual_gpu import environment

    given = environment(tmp_path / "log")
    kept = tmp_path / "kept"
    assert run(kept, ON_GPU, **given) == (["True", "0"], [])
    assert run(kept, ON_GPU, **given) == (["True", "1"], [])
    for ending in (".nbi", ".nbc"):
        cut(kept, "*place", ending, 40)
        printed, warned = run(kept, ON_GPU, **given)
        assert printed == ["True", "0"]
        assert len(warned) == 1
        assert run(kept, ON_GPU, **given) == (["True", "1"], [])
