"""Compiling with and without a folder to cache in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from coincide.model import compiled as kernel_cache
from coincide.model.compiled import compiled
from tests.helpers.places import ROOT, repository_files

PROGRAM = """
from coincide.model.probability import trapezoid_cdf, window_probability
from gpu_kernels.kernels.join import place
assert window_probability(0, 10, 10, -5, 5) == 0.75
print(type(trapezoid_cdf._cache).__name__, type(place._compiled._cache).__name__)
print(window_probability.__module__, __import__("coincide").__file__)
"""


def run(source: Path, program: str = PROGRAM, **environment: str) -> list[str]:
    """What a program says that imports our packages from `source`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**kept, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def caches(source: Path, **environment: str) -> str:
    """Which caches the kernels in `source` have."""
    found, origin = run(source, **environment)
    assert str(source) in origin
    return found


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    """The sources in a zip archive: no folder can be made next to them."""
    archive = tmp_path / "sources.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for package in ("coincide", "gpu_kernels"):
            for path in (ROOT / package).rglob("*.py*"):
                target.write(path, path.relative_to(ROOT))
    return archive


def test_no_folder_to_cache_in(zipped: Path) -> None:
    # No user can make paths below a file, root included.
    nowhere = str(zipped / "nowhere")
    environment = {"NUMBA_CACHE_DIR": nowhere, "HOME": nowhere, "XDG_CACHE_HOME": nowhere}
    assert caches(zipped, **environment) == "NullCache NullCache"


def test_a_folder_to_cache_in(tmp_path: Path) -> None:
    assert caches(ROOT, NUMBA_CACHE_DIR=str(tmp_path)) == "KernelCache KernelCache"
    assert list(tmp_path.rglob("*.nbi"))


def test_a_zip_archive_with_a_home(zipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert caches(zipped, XDG_CACHE_HOME=str(home)) == "KernelCache KernelCache"
    (index,) = home.rglob("probability.trapezoid_cdf-*.nbi")
    assert index.stem.endswith(kept_under(zipped))
    assert kept_under(zipped) != kept_under(ROOT)  # which has one package more


CALLER = """
from cpu_fallback.callee import NUMBER, callee
from coincide.model.compiled import compiled

@compiled
def caller():
    return callee() + NUMBER
"""
CALLEE = """
from coincide.model.compiled import compiled

NUMBER = 10

@compiled
def callee():
    return 1
"""
CALL = """
from cpu_fallback.caller import caller
hits, misses = caller.stats.cache_hits, caller.stats.cache_misses
print(caller(), "from disk" if hits else "compiled", len(hits) + len(misses))
"""
GPU_NAME = """
from gpu_kernels.kernels.join import place
print(place._compiled._cache._impl.filename_base)
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the packages with kernels, and two more kernels of which one calls the other."""
    folder = tmp_path / "sources"
    for package in kernel_cache.PACKAGES:
        place = Path(*package.split("."))
        shutil.copytree(ROOT / place, folder / place, ignore=lambda *_: ["__pycache__"])
    for name in ("__init__.py", "__init__.pyi"):
        shutil.copy(ROOT / "coincide" / name, folder / "coincide")
    (folder / "cpu_fallback" / "caller.py").write_text(CALLER)
    (folder / "cpu_fallback" / "callee.py").write_text(CALLEE)
    return folder


def edit(path: Path, old: str, new: str) -> None:
    """An edit that neither the size nor the time of the file shows."""
    before, text = path.stat(), path.read_text()
    assert text.count(old) == 1
    assert len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def kept_under(source: Path) -> str:
    program = "from coincide.model.compiled import sources_digest as d; print(d())"
    return run(source, program)[0]


def test_an_edit_of_a_callee_in_another_file(sources: Path) -> None:
    callee = sources / "cpu_fallback" / "callee.py"
    assert run(sources, CALL) == ["11 compiled 1"]
    assert run(sources, CALL) == ["11 from disk 1"]
    edit(callee, "return 1", "return 2")
    assert run(sources, CALL) == ["12 compiled 1"]
    edit(callee, "NUMBER = 10", "NUMBER = 20")
    assert run(sources, CALL) == ["22 compiled 1"]
    # What was compiled from older sources is gone.
    kept = sources.rglob("caller.caller-*")
    assert sorted(path.suffix for path in kept) == [".nbc", ".nbi"]


RULE = """
from typing import NamedTuple

class Rule(NamedTuple):
    limit: int

    def lean(self, side, shape):
        return 10 * shape
"""
RULED = """
from coincide.model.timestamps.protocol import max_time_of
from {home}.rule import Rule

print(max_time_of(Rule(1), 0, 0, 1), sum(max_time_of.stats.cache_hits.values()))
"""


def test_kernels_for_rules_of_other_packages_are_not_kept(sources: Path) -> None:
    """The methods of such rules go into kernels, but their sources not into what those are kept under."""
    (sources / "stranger").mkdir()
    for home in ("cpu_fallback", "stranger"):
        (sources / home / "rule.py").write_text(RULE)
    for home, hits in (("cpu_fallback", 1), ("stranger", 0)):
        program = RULED.format(home=home)
        assert run(sources, program) == ["5 0"]
        assert run(sources, program) == [f"5 {hits}"]
    edit(sources / "stranger" / "rule.py", "10 * shape", "20 * shape")
    assert run(sources, RULED.format(home="stranger")) == ["10 0"]


STAMPS = """
from cpu_fallback.callee import callee
from gpu_kernels.kernels.join import place
for kernel in (callee, place._compiled):
    print(kernel._cache._impl.locator.get_source_stamp())
"""


def test_the_time_of_a_source_does_not_matter(sources: Path) -> None:
    """Images and archives cut it off."""
    before = run(sources, STAMPS)
    for path in sources.rglob("*.py"):
        os.utime(path, (1, 1))
    assert run(sources, STAMPS) == before


def test_gpu_kernels_of_other_constants_are_others(sources: Path) -> None:
    before = run(sources, GPU_NAME)
    assert run(sources, GPU_NAME) == before
    edit(sources / "gpu_kernels" / "kernels" / "compilation.py", "else 256", "else 128")
    assert run(sources, GPU_NAME) != before


def test_what_is_kept_under_counts_every_package_with_kernels() -> None:
    known = tuple(f"{package.replace('.', '/')}/" for package in kernel_cache.PACKAGES)
    users = [
        path.relative_to(ROOT).as_posix()
        for path in repository_files()
        if path.suffix == ".py"
        and re.search(r"import .*\bcompiled\b", path.read_text(encoding="utf-8"))
    ]
    ours = [name for name in users if not name.startswith(("tests/", "bench/"))]
    assert ours
    assert [name for name in ours if not name.startswith(known)] == []


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


@compiled(allocates=True)
def made(n: int) -> Any:
    return np.empty(n)


def lent_out(array: np.ndarray) -> Any:
    return array, array.size


def made_here(array: np.ndarray) -> float:
    return np.empty(array.size).size


def made_for_it(array: np.ndarray) -> float:
    return made(array.size).size


@pytest.mark.parametrize("function", [lent_out, made_here, made_for_it])
def test_kernels_that_count_no_references_only_borrow_arrays(function: Any) -> None:
    """Else a caller would free what it does not own, or the memory would leak."""
    made(3)
    with pytest.raises(TypingError, match=r"returns arrays. Use|No implementation of function"):
        compiled(function)(np.ones(3))


def test_borrowed_arrays_stay_alive() -> None:
    @compiled
    def last(array: np.ndarray) -> float:
        part = array[1:]
        return part[part.size - 1]

    @compiled(allocates=True)
    def repeated(n: int) -> float:
        array = np.arange(n)
        return last(array) + last(array) + array[0]

    assert repeated(5) == 8
    assert not last.targetoptions["_nrt"]
