"""The packages that a GPU needs: whether they are here; where CuPy keeps what it compiles."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import metadata

VERSIONS = {
    "cupy": ("CuPy", (14, 1), (15,)),
    "numba_cuda": ("Numba-CUDA", (0, 30), (0, 31)),
    "numpy": ("NumPy", (2, 0), (2, 5)),
}
"""Name, least version and the first that is too new, by module.

CuPy before that sorts wrongly, silently, where memory is short. Kernels are launched, and arrays scanned,
through what Numba-CUDA and CuPy do not promise to keep. This Numba-CUDA calls what NumPy 2.5 has no more.
"""


def problem() -> str | None:
    """Which package is missing or too old; None if none is."""
    missing = [name for module, (name, *_) in VERSIONS.items() if not is_installed(module)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        return f"the GPU packages are incomplete: {' and '.join(missing)} {verb} missing"
    return next(filter(None, map(version_problem, VERSIONS)), None)


def version_problem(module: str) -> str | None:
    """How a module's version is too old or too new; None if it is neither, or not known."""
    name, least, beyond = VERSIONS[module]
    found = version_of(module)
    if found is None or least <= _numbers(found) < beyond:
        return None
    if _numbers(found) < least:
        return f"{name} is {found}, and Coincide needs at least {_dotted(least)}"
    return f"{name} is {found}, and Coincide was tested with versions before {_dotted(beyond)}"


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def is_installed(module: str) -> bool:
    """Whether a module can be imported."""
    return importlib.util.find_spec(module) is not None


def version_of(module: str) -> str | None:
    """Version of the distribution that brings a module; None if none says that it does."""
    for distribution in _distributions().get(module, []):
        return metadata.version(distribution)
    return None


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Which distributions bring each module: read from all that are installed, once."""
    return metadata.packages_distributions()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


_VARIABLE = "CUPY_CACHE_DIR"


def let_cupy_cache() -> None:
    """See to a folder for CuPy's kernels: without one it cannot even be imported.

    The users of containers often have no home.
    """
    from coincide.model.compiled import is_writable  # brings Numba, which may be missing

    if _VARIABLE in os.environ or is_writable(os.path.expanduser("~/.cupy/kernel_cache")):
        return
    user = os.getuid()
    folder = os.path.join(tempfile.gettempdir(), f"cupy-{user}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    # What is loaded from there runs on the GPU: it must be this user's own.
    mine = os.stat(folder).st_uid == user and is_writable(folder)
    os.environ[_VARIABLE] = folder if mine else tempfile.mkdtemp(prefix="cupy-")
