"""What is wrong with the NVIDIA driver, if anything: asked by way of ctypes, before CUDA's packages."""

from __future__ import annotations

import ctypes
from importlib import metadata
from typing import Any

LEAST_CAPABILITY = (7, 5)
"""Older GPUs are not among those for which CUDA 13 compiles."""

_COMPILER = "nvidia-nvvm"
_CAPABILITY_ATTRIBUTES = (75, 76)
_NO_DEVICE = 100


def count(driver: Any | None) -> int:
    """How many GPUs a driver shows; 0 where it is missing, or fails."""
    found = ctypes.c_int()
    if driver is None or driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(found)):
        return 0
    return found.value


def problem(driver: Any | None, number: int = 0) -> str | None:
    """What is wrong with the driver and a visible GPU, if anything."""
    if driver is None:
        return "there is no NVIDIA driver (libcuda.so.1). Install one, or use a machine with a GPU"
    status = driver.cuInit(0)
    count, version = ctypes.c_int(), ctypes.c_int()
    if status == 0:
        status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status == _NO_DEVICE or (status == 0 and count.value == 0):
        return "the driver shows no GPU. Check nvidia-smi and CUDA_VISIBLE_DEVICES"
    if status:
        return f"the NVIDIA driver fails with CUDA error {status}. Check nvidia-smi"
    if number >= count.value:
        return (
            f"the driver shows {count.value} GPUs, so there is no number {number}. Check nvidia-smi"
        )
    driver.cuDriverGetVersion(ctypes.byref(version))
    return _version_problem(version.value // 1000, version.value // 10 % 100) or _age_problem(
        driver, number
    )


def _version_problem(major: int, minor: int) -> str | None:
    """Surely a driver loads what compilers of its own or an earlier version make, not of a later one."""
    toolkit = compiler_version()
    if toolkit is None or (major, minor) >= toolkit:
        return None
    found, needed = f"{major}.{minor}", "{}.{}".format(*toolkit)
    advice = f"Install cuda-toolkit=={found}.* or a newer driver"
    if major < toolkit[0]:
        advice = f"Install a driver for CUDA {toolkit[0]}"
    return (
        f"the NVIDIA driver supports CUDA {found}, but the installed compiler makes code for"
        f" {needed}. {advice}"
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
    return "the GPU has compute capability {}.{}, and the least supported is {}.{}. Use another GPU".format(
        *capability, *LEAST_CAPABILITY
    )


def compiler_version() -> tuple[int, int] | None:
    """CUDA version of the compiler that pip installed; None if it came another way."""
    try:
        major, minor = metadata.version(_COMPILER).split(".")[:2]
    except metadata.PackageNotFoundError:
        return None
    return int(major), int(minor)


def load() -> Any | None:
    """The CUDA driver; None where it is missing."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
