"""Compiled code on disk that cannot be read or written, which stops nothing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
OBEYING = """
import ctypes
libc = ctypes.CDLL(None)
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert not libc.capget(header, sets)
sets[0] &= ~(1 << 1)  # root, too, may write only where modes of files say so
assert not libc.capset(header, sets)
"""
OTHER_HOST = """
import llvmlite.binding as host
found = host.get_host_cpu_features()
found["avx512f"] = not found.get("avx512f", False)
host.get_host_cpu_features = lambda: found
host.get_host_cpu_name = lambda: "znver4" if host.get_default_triple().startswith("x86") else "generic"
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


@pytest.fixture
def fixed(tmp_path: Path) -> Iterator[Path]:
    """A folder with a kernel that can be read, and not be written."""
    folder = tmp_path / "kept"
    assert run(folder, CALL) == (["0.75", "0"], [])
    places = [path for path in (folder, *folder.rglob("*")) if path.is_dir()]
    for path in places:
        path.chmod(0o555)
    yield folder
    for path in places:
        path.chmod(0o755)


def test_a_folder_that_can_only_be_read_serves(fixed: Path) -> None:
    before = sorted(fixed.rglob("*"))
    assert run(fixed, OBEYING + CALL) == (["0.75", "1"], [])
    # A kernel for another processor cannot be kept there, and that is said.
    printed, (warned,) = run(fixed, OBEYING + CALL, NUMBA_CPU_NAME="generic")
    assert printed == ["0.75", "0"]
    assert f"compiled code cannot be kept in {fixed}" in warned
    assert "(found: Permission denied)" in warned
    assert sorted(fixed.rglob("*")) == before


def test_what_such_a_folder_does_not_hold_is_kept_elsewhere(fixed: Path) -> None:
    for path in fixed.rglob("*.nbi"):
        path.unlink()
    elsewhere = "print(window_probability._cache.cache_path)"
    (_, _, where), warned = run(fixed, OBEYING + CALL + elsewhere)
    assert Path(where).is_dir()
    assert not Path(where).is_relative_to(fixed)
    assert warned == []


def _environment_of_images() -> dict[str, str]:
    """What docs/planning.md gives an image, without the folder."""
    page = (ROOT / "docs" / "planning.md").read_text("utf-8")
    (line,) = (line for line in page.splitlines() if line.startswith("ENV NUMBA_CACHE_DIR="))
    given = dict(word.split("=", 1) for word in line.removeprefix("ENV ").split())
    del given["NUMBA_CACHE_DIR"]
    return given


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the page names processors of x86-64")
def test_the_code_of_an_image_serves_on_other_processors(tmp_path: Path) -> None:
    given = _environment_of_images()
    assert run(tmp_path, CALL, **given) == (["0.75", "0"], [])
    assert run(tmp_path, OTHER_HOST + CALL, **given) == (["0.75", "1"], [])
    # Each of the variables is needed.
    for name in given:
        fewer = {key: value for key, value in given.items() if key != name}
        folder = tmp_path / name
        assert run(folder, CALL, **fewer) == (["0.75", "0"], [])
        assert run(folder, OTHER_HOST + CALL, **fewer) == (["0.75", "0"], [])
