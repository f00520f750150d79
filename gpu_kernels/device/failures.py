"""What CuPy, Numba-CUDA and cuda-core raise: which of it says that the device failed, or its memory."""

from __future__ import annotations

_OF_DEVICE = frozenset({"CUDARuntimeError", "CUDADriverError", "CudaAPIError", "CUDAError"})
_OF_COMPILER = frozenset(
    {"nvJitLinkError", "nvvmError", "NVRTCError", "NvrtcError", "NvvmError", "LinkerError"}
)
_FULL = ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation")
_FULL_STATUS = 2
"""The number of either."""


def is_of_device(error: BaseException) -> bool:
    """Whether the device, its driver or their compilers raised this.

    They are told by name, since some are private and they have no common ancestor.
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
