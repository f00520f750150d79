"""Whether a GPU can be used in this process, and if not, what to do about it.

The driver is asked directly, before CuPy or Numba-CUDA is imported: where there is no GPU the answer
takes no time, and no context is made. Ask only in the process that does the work, after any fork.
"""

from __future__ import annotations

import ctypes
import importlib.util
import threading
from functools import cache
from importlib import metadata
from typing import Any

from event_model.errors import BackendError
from gpu_kernels.simulation import SIMULATED

LEAST_CAPABILITY = (7, 5)
"""Older GPUs are not among those for which CUDA 13 compiles."""

_PACKAGES = {"cupy": "CuPy", "numba_cuda": "Numba-CUDA"}
_INSTALL = "install coincide[gpu]"
_COMPILER = "nvidia-nvvm"
_CAPABILITY_ATTRIBUTES = (75, 76)
_NO_DEVICE = 100


_number = 0


def use_device(number: int) -> None:
    """Work on a device from now on, in the calling thread. Without a GPU it has no effect.

    Parameters
    ----------
    number : int
        As CUDA numbers the devices that it sees.
    """
    global _number
    _number = number
    if not SIMULATED and problem() is None:
        _select(number)


def problem() -> str | None:
    """Why no GPU can be used here, and what to do; None if one can. Found out once per device."""
    return None if SIMULATED else _problem(_number)


def require() -> None:
    """Refuse to go on without a GPU.

    Raises
    ------
    BackendError
        Saying what is missing and what to do.
    """
    reason = problem()
    if reason is not None:
        raise BackendError(f"backend='gpu' was asked for, but {reason}; or use backend='cpu'")


def release() -> None:
    """Give the memory that no array uses back to the device."""
    from gpu_kernels.arrays import release_unused

    release_unused()


TURN = threading.RLock()
"""One run of the caller's threads at a time: the device has one queue, and its memory is shared."""


@cache
def _problem(number: int) -> str | None:
    missing = [name for module, name in _PACKAGES.items() if not _is_installed(module)]
    if missing:
        return f"the GPU packages are not complete, {' and '.join(missing)} missing: {_INSTALL}"
    return driver_problem(_driver(), number) or _first_kernel_problem(number)


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _select(number: int) -> None:
    import cupy
    from numba import cuda

    cupy.cuda.Device(number).use()
    cuda.select_device(number)


def driver_problem(driver: Any | None, number: int = 0) -> str | None:
    """What is wrong with the driver and a visible GPU, if anything.

    Parameters
    ----------
    driver : ctypes library or None
        The CUDA driver; None: there is none.
    number : int
        Of the GPU.
    """
    if driver is None:
        return "there is no NVIDIA driver (libcuda.so.1): install one, or run where a GPU is"
    status = driver.cuInit(0)
    count, version = ctypes.c_int(), ctypes.c_int()
    if status == 0:
        status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status == _NO_DEVICE or (status == 0 and count.value == 0):
        return "the driver shows no GPU: see nvidia-smi, and CUDA_VISIBLE_DEVICES"
    if status:
        return f"the NVIDIA driver fails with CUDA error {status}: see nvidia-smi"
    if number >= count.value:
        return (
            f"the driver shows {count.value} GPUs, so there is no number {number}: see nvidia-smi"
        )
    driver.cuDriverGetVersion(ctypes.byref(version))
    return _version_problem(version.value // 1000, version.value // 10 % 100) or _age_problem(
        driver, number
    )


def _version_problem(major: int, minor: int) -> str | None:
    """A driver loads what a compiler of its own or an earlier version writes, not of a later one."""
    toolkit = compiler_version()
    if toolkit is None or (major, minor) >= toolkit:
        return None
    found, needed = f"{major}.{minor}", "{}.{}".format(*toolkit)
    advice = f"install cuda-toolkit=={found}.* or a newer driver"
    if major < toolkit[0]:
        advice = f"install a driver for CUDA {toolkit[0]}"
    return (
        f"the NVIDIA driver is for CUDA {found}, but the compiler installed is {needed}: {advice}"
    )


def _age_problem(driver: Any, number: int) -> str | None:
    device, value = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), number)
    capability = []
    for attribute in _CAPABILITY_ATTRIBUTES:
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        capability.append(value.value)
    if tuple(capability) >= LEAST_CAPABILITY:
        return None
    return "the GPU is of compute capability {}.{}, below the least supported, {}.{}".format(
        *capability, *LEAST_CAPABILITY
    )


def compiler_version() -> tuple[int, int] | None:
    """CUDA version of the compiler that pip installed; None if it came another way."""
    try:
        major, minor = metadata.version(_COMPILER).split(".")[:2]
    except metadata.PackageNotFoundError:
        return None
    return int(major), int(minor)


def _driver() -> Any | None:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _first_kernel_problem(number: int) -> str | None:
    """Run one kernel on one item: what still fails, such as a toolkit of parts that do not fit."""
    from gpu_kernels.arrays import array_module, on_host
    from gpu_kernels.compilation import launch_each
    from gpu_kernels.placement import pair_probabilities

    try:
        _select(number)
        xp = array_module()
        times, found = xp.zeros(1, "int64"), xp.empty(1, "float64")
        launch_each(pair_probabilities, 1, times, times, times, times, 0, 0, found)
        if on_host(found)[0] == 1.0:
            return None
        return "a first kernel gave a wrong answer: check the GPU"
    except Exception as error:  # any: what CUDA's layers raise has no common ancestor
        return f"a first kernel failed ({type(error).__name__}: {error}): check the driver, or {_INSTALL}"
