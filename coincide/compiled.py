"""How Coincide compiles: Numba, without the GIL, cached on disk wherever a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from coincide.kernel_cache import KernelCache, keep_on_disk


def compiled(
    function: Callable[..., Any] | None = None, /, *, allocates: bool = True, **options: Any
) -> Any:
    """Compile with `numba.njit`, kept on disk if there is a folder for it.

    Kernels release the GIL, so that one compiled version serves a single-core Spark worker and, run
    by several threads on disjoint blocks, a whole machine. ``error_model="numpy"`` keeps division
    free of branches; ``fastmath`` stays off, since probabilities must agree to the bit.

    What is on disk is used with the very sources that it was compiled from
    (`coincide.kernel_cache`). Where no folder can be written (zip imports, read-only site-packages
    without a home) a kernel is compiled anew in each process.

    Parameters
    ----------
    function : callable
    allocates : bool
        False for a kernel that makes no array, nor what it calls: it does without counting references,
        which in a small function that takes arrays costs ten times what the function does.
    **options
        Of `numba.njit`.
    """
    if function is None:
        return lambda inner: compiled(inner, allocates=allocates, **options)
    kept = {"nogil": True, "error_model": "numpy", "_nrt": allocates, **options}
    kernel = numba.njit(**kept)(function)
    keep_on_disk(kernel, KernelCache)
    return kernel
