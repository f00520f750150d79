"""Whether the GPU packages are here, and new enough: found out without importing them."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata

LEAST = {"cupy": ("CuPy", (14, 1)), "numba_cuda": ("Numba-CUDA", (0, 30))}
"""Name and least version by module. CuPy before that sorts wrongly, silently, where memory is short."""


def problem() -> str | None:
    """Which package is missing or too old; None if none is."""
    missing = [name for module, (name, _) in LEAST.items() if not is_installed(module)]
    if missing:
        return f"the GPU packages are not complete, {' and '.join(missing)} missing"
    return next(filter(None, map(least_problem, LEAST)), None)


def least_problem(module: str) -> str | None:
    """How a module's version is too old; None if it is not, or not known."""
    name, least = LEAST[module]
    found = version_of(module)
    if found is None or _numbers(found) >= least:
        return None
    return f"{name} is {found}, older than {'.'.join(map(str, least))}, which is the least that will do"


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
