"""Arrays on a device, and what its failures mean."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpu_kernels.kernels.simulation import SIMULATED


@cache
def array_module() -> Any:
    """CuPy, or NumPy in the simulator: for sort, search and scan."""
    if SIMULATED:
        return np
    import cupy

    return cupy


def on_device(array: np.ndarray) -> Any:
    """A copy in device memory, for small arrays; in the simulator the array itself.

    CuPy pins as much host memory as the array has. `gpu_kernels.device.transfers` does with little.
    """
    return array_module().asarray(array)


def tuple_on_device(values: Any) -> Any:
    """A named tuple, such as a rule, with copies in device memory of the arrays in it."""
    fields = (
        on_device(field)
        if isinstance(field, np.ndarray)
        else tuple_on_device(field)
        if isinstance(field, tuple)
        else field
        for field in values
    )
    return type(values)(*fields)


def put(array: np.ndarray, out: Any) -> None:
    """Copy to an array in device memory; the host waits until the source may change."""
    if SIMULATED:
        out[:] = array
    else:
        out.set(array)
        # CUDA may still be reading memory that is not pinned.
        array_module().cuda.get_current_stream().synchronize()


def on_host(array: Any, out: np.ndarray | None = None) -> np.ndarray:
    """A copy in host memory, in `out` if given; in the simulator the array itself if not."""
    if SIMULATED:
        if out is None:
            return array
        out[:] = array
        return out
    return out if out is not None and array.size == 0 else array.get(out=out)


def release_unused() -> None:
    """Give memory that no array uses back: when there is not enough, and at the end of a task."""
    if not SIMULATED:
        array_module().get_default_memory_pool().free_all_blocks()
        array_module().get_default_pinned_memory_pool().free_all_blocks()


_OF_DEVICE = frozenset({"CUDARuntimeError", "CUDADriverError", "CudaAPIError", "CUDAError"})
_OF_COMPILER = frozenset(
    {"nvJitLinkError", "nvvmError", "NVRTCError", "NvrtcError", "NvvmError", "LinkerError"}
)
_FULL = ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation")
_FULL_STATUS = 2
"""The number of either."""


def is_of_device(error: BaseException) -> bool:
    """Whether the device, its driver or their compilers raised this.

    They are known by name, since some are private and they have no common ancestor.
    """
    names = {each.__name__ for each in type(error).__mro__}
    return not names.isdisjoint(_OF_DEVICE | _OF_COMPILER) or _is_of_sort(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was not to be had.

    CuPy's arrays raise a kind of `MemoryError`, its sort a plain one; what the driver itself takes, as
    for a kernel that is loaded, ends in an error of the driver.
    """
    if isinstance(error, MemoryError):
        return True
    if not is_of_device(error):
        return False
    # Compilers number their errors in their own way.
    numbered = type(error).__name__ in _OF_DEVICE
    return (numbered and getattr(error, "status", None) == _FULL_STATUS) or any(
        name in str(error) for name in _FULL
    )


def _is_of_sort(error: BaseException) -> bool:
    """Whether Thrust, which sorts for CuPy, raised this: no more than a text tells."""
    return type(error) is RuntimeError and "cudaError" in str(error)
