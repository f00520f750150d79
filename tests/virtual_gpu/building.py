"""Compiles C with gcc, once: what was compiled is kept by what it was made of."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent

_COMMAND = (
    *("gcc", "-O2", "-shared", "-fPIC", "-w"),
    # As the device: sums of 64 bits wrap around, and no product is fused with a sum.
    *("-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-mfpmath=sse"),
)


@cache
def folder() -> Path:
    """Where what was compiled is kept: the user's cache, or a folder for temporary files."""
    above = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = above / "coincide-virtual-gpu"
    try:
        found.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=found):
            return found
    except OSError:
        other = Path(tempfile.gettempdir()) / f"coincide-virtual-gpu-{os.getuid()}"
        other.mkdir(mode=0o700, exist_ok=True)
        return other


def _place(made_of: str, name: str) -> Path:
    return folder() / hashlib.sha256(made_of.encode()).hexdigest()[:32] / name


def _keep(place: Path, write: Callable[[Path], object]) -> None:
    """Another process may do the same: whoever is last puts the same in its place."""
    place.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder()) as passing:
        write(Path(passing) / place.name)
        (Path(passing) / place.name).replace(place)


def kept(made_of: str, name: str, make: Callable[[], str]) -> str:
    """A text, made once for all that it is made of."""
    place = _place(made_of, name)
    if not place.exists():
        _keep(place, lambda passing: passing.write_text(make()))
    return place.read_text()


def built(source: str, *options: str, name: str = "kernel.so") -> Path:
    """The shared object of C that may include `machine.h`."""
    command = [*_COMMAND, *options, f"-I{HERE}", "-x", "c", "-", "-lm", "-o"]
    place = _place("\0".join([*command, (HERE / "machine.h").read_text(), source]), name)
    if not place.exists():
        _keep(
            place,
            lambda passing: subprocess.run(
                [*command, passing], input=source, text=True, check=True
            ),
        )
    return place


@cache
def driver() -> Path:
    """The driver, by the name by which CUDA's is found."""
    return built((HERE / "driver.c").read_text(), "-pthread", name="libcuda.so.1")
