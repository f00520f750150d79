"""Device memory that is not to be had, at the allocations that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_kernels.device import memory

Allocate = Callable[[Any, Any], Any]


def allocating(monkeypatch: pytest.MonkeyPatch, fails: Callable[[int, int], bool]) -> list[int]:
    """Make allocations fail, by their number and size in bytes; returns where their sizes go."""
    real: Allocate = memory._allocate
    sizes: list[int] = []

    def allocate(size: Any, dtype: Any) -> Any:
        sizes.append(int(np.prod(size)) * np.dtype(dtype).itemsize)
        if fails(len(sizes), sizes[-1]):
            raise MemoryError("full")
        return real(size, dtype)

    monkeypatch.setattr(memory, "_allocate", allocate)
    return sizes
