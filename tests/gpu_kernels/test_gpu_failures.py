"""Errors of a device are told from those of ours, and full memory from a broken device."""

from __future__ import annotations

import pytest

from coincide import BackendError
from coincide.model.errors import MemoryBudgetError
from gpu_kernels.device.memory import DeviceMemoryError, translated


def made_up(name: str, text: str, of: type[Exception] = Exception, **attributes: int) -> Exception:
    error: Exception = type(name, (of,), {})(text)
    vars(error).update(attributes)
    return error


FULL = [
    MemoryError("std::bad_alloc"),
    made_up("OutOfMemoryError", "Out of memory allocating 8 bytes", MemoryError),
    made_up("CUDARuntimeError", "cudaErrorMemoryAllocation: out of memory", RuntimeError, status=2),
    made_up("CUDADriverError", "told by its number", RuntimeError, status=2),
    made_up("CudaAPIError", "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"),
    made_up("CUDAError", "CUDA_ERROR_OUT_OF_MEMORY: The API call failed"),
    RuntimeError("radix_sort: failed on 1st step: cudaErrorMemoryAllocation: out of memory"),
]

BROKEN = [
    made_up("CUDARuntimeError", "cudaErrorIllegalAddress", RuntimeError, status=700),
    made_up("CUDAError", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    made_up("nvJitLinkError", "ERROR_MISSING_ARCH (2)", status=2),
    made_up("nvvmError", "ERROR_PROGRAM_CREATION_FAILURE (2)", status=2),
    made_up("NVRTCError", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", status=2),
    RuntimeError("radix_sort: failed on 2nd step: cudaErrorInvalidValue: invalid argument"),
]

OURS = [ValueError("CUDA_ERROR_OUT_OF_MEMORY"), RuntimeError("out of memory"), ZeroDivisionError()]


@pytest.mark.parametrize("error", FULL, ids=repr)
def test_full_memory(error: Exception) -> None:
    with pytest.raises(DeviceMemoryError, match="no memory for this"), translated("this"):
        raise error


@pytest.mark.parametrize("error", BROKEN, ids=repr)
def test_a_broken_device(error: Exception) -> None:
    with pytest.raises(BackendError, match="GPU failed") as told, translated():
        raise error
    assert not isinstance(told.value, MemoryBudgetError)


@pytest.mark.parametrize("error", OURS, ids=repr)
def test_errors_of_ours(error: Exception) -> None:
    with pytest.raises(type(error)) as told, translated():
        raise error
    assert told.value is error


@pytest.mark.parametrize(
    ("module", "name"),
    [("nvjitlink", "nvJitLinkError"), ("nvvm", "nvvmError")],
)
def test_compilers_have_the_names_expected(module: str, name: str) -> None:
    compiler = pytest.importorskip(f"cuda.bindings.{module}")
    with pytest.raises(BackendError, match=name), translated():
        raise getattr(compiler, name)(2)
