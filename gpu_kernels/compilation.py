"""How kernels are compiled and launched. Kernels are in files that import no CuPy.

So they also run in Numba's CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), where a block has few threads:
each is a thread of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import cuda

from gpu_kernels.simulation import SIMULATED

THREADS = 4 if SIMULATED else 256
"""Threads of a block."""

ITEMS = 8
"""Items of a tile that one thread handles: as many as a byte has bits."""

TILE = THREADS * ITEMS
"""Consecutive candidates, or output rows, that one block handles."""


def kernel(function: Callable[..., None]) -> Any:
    """Compile with `cuda.jit`, kept in Numba's cache where a folder can be written."""
    try:
        return cuda.jit(function, cache=True)
    except RuntimeError as error:
        if "cache" not in str(error):
            raise
        return cuda.jit(function)


def device_function(function: Callable[..., Any]) -> Any:
    """Compile a function that kernels call."""
    return cuda.jit(function, device=True)


def launch_each(compiled: Any, items: int, *arguments: Any) -> None:
    """Run a kernel with a thread for each item; not at all for none."""
    if items:
        compiled[-(-items // THREADS), THREADS](*arguments)


def launch_tiles(compiled: Any, items: int, *arguments: Any) -> None:
    """Run a kernel with a block for each tile of items; not at all for none."""
    if items:
        compiled[-(-items // TILE), THREADS](*arguments)
