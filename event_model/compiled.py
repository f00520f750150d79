"""How Coincide compiles: Numba, without the GIL, cached on disk wherever a folder can be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numba


def compiled(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Compile with `numba.njit`, kept in Numba's cache if there is a folder for it.

    Kernels release the GIL, so that one compiled version serves a single-core Spark worker and, run
    by several threads on disjoint blocks, a whole machine. ``error_model="numpy"`` keeps division
    free of branches; ``fastmath`` stays off, since probabilities must agree to the bit.

    Where no cache folder can be written (zip imports, read-only site-packages without a home) Numba
    raises at decoration or, for zip imports, at the first call: there the kernel is compiled anew in
    each process.
    """
    if function is None:
        return lambda inner: compiled(inner, **options)
    settings = {"nogil": True, "error_model": "numpy", **options}
    try:
        cached = numba.njit(cache=True, **settings)(function)
    except RuntimeError as error:
        if "cache" not in str(error):
            raise
        return numba.njit(**settings)(function)
    # Without the compiler (NUMBA_DISABLE_JIT) a kernel stays a plain function.
    if not hasattr(cached, "stats") or is_writable(cached.stats.cache_path):
        return cached
    return numba.njit(**settings)(function)


@cache
def is_writable(folder: str) -> bool:
    """Whether files can be made in a folder, which is made if need be."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
