"""Memory of the virtual driver."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

DRIVER = ctypes.CDLL("libcuda.so.1")
DRIVER.virtual_take.argtypes = [ctypes.c_uint64, ctypes.c_uint32]
for _name in ("take", "free", "written", "written_at", "born_at", "clock", "used", "memory"):
    getattr(DRIVER, f"virtual_{_name}").restype = ctypes.c_uint64
for _name in ("free", "written", "written_at", "born_at", "device_of"):
    getattr(DRIVER, f"virtual_{_name}").argtypes = [ctypes.c_uint64]
DRIVER.virtual_report.argtypes = [ctypes.c_char_p]
DRIVER.virtual_crossed.argtypes = [ctypes.c_int, ctypes.c_uint64]


class OutOfMemoryError(MemoryError):
    """As CuPy's: `cupy.cuda.memory.OutOfMemoryError`."""


class Memory:
    """What one array takes, given back with its last view."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        size = int(np.prod(shape)) * dtype.itemsize
        self._address = DRIVER.virtual_take(size, dtype.itemsize)
        if not self._address:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")
        self.__array_interface__ = {
            "shape": shape, "typestr": dtype.str, "data": (self._address, False), "version": 3
        }  # fmt: skip

    def __del__(self, free: Any = DRIVER.virtual_free) -> None:
        if self._address:
            free(self._address)

    @classmethod
    def array(cls, shape: Any, dtype: np.dtype) -> np.ndarray:
        """Uninitialised."""
        shape = tuple(map(int, np.atleast_1d(shape))) if shape != () else ()
        return np.asarray(cls(shape, dtype)) if np.prod(shape) else np.empty(shape, dtype)


def check_device(held: np.ndarray) -> None:
    """The calling thread works on the device whose memory an array is in: CuPy's work would go astray."""
    if held.size and DRIVER.virtual_device_of(address(held)) != DRIVER.virtual_device():
        DRIVER.virtual_report(b"an array that lies on another device")


def address(held: np.ndarray) -> int:
    """The address of an array's first byte; 0 for an empty one."""
    return held.__array_interface__["data"][0] if held.size else 0
