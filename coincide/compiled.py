"""How Coincide compiles: Numba, without the GIL, cached on disk wherever a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from coincide.array_owners import BORROWING
from coincide.kernel_cache import KernelCache, keep_on_disk


def compiled(
    function: Callable[..., Any] | None = None, /, *, allocates: bool = False, **options: Any
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
        True for a kernel that makes or returns an array, or calls one that does. Others do without
        counting references, which in a small function that takes arrays costs ten times what the
        function does; one that needs them after all is refused when it is compiled.
    **options
        Of `numba.njit`.
    """
    if function is None:
        return lambda inner: compiled(inner, allocates=allocates, **options)
    owners = {"_nrt": True} if allocates else BORROWING
    kernel = numba.njit(**{"nogil": True, "error_model": "numpy", **owners, **options})(function)
    keep_on_disk(kernel, KernelCache)
    return kernel
