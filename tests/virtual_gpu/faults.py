"""What the virtual driver of this process has found."""

from __future__ import annotations

import ctypes
import os

_DRIVER = ctypes.CDLL("libcuda.so.1")
_DRIVER.virtual_texts.restype = ctypes.c_char_p


def real_faults() -> list[str]:
    """What was found since the last call; not loads next to atomics, which may be sound."""
    found = _DRIVER.virtual_texts().decode().splitlines()
    _DRIVER.virtual_forget()
    return [each for each in found if "beside atomics: " not in each]


def replace(kernel: str, path: os.PathLike[str]) -> None:
    """Launch what was built instead of a kernel, in a process that was forked."""
    _DRIVER.virtual_adopt()
    if _DRIVER.virtual_replace(kernel.encode(), os.fsencode(path)):
        raise ValueError(f"not this kernel: {path}")
