"""Memory of a device: one pool for CuPy and Numba, and what lives there from batch to batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from coincide.model.errors import BackendError, MemoryBudgetError, argument
from gpu_kernels.device.arrays import array_module, is_of_device, is_out_of_memory, release_unused
from gpu_kernels.device.transfers import current
from gpu_kernels.kernels.simulation import SIMULATED


class DeviceMemoryError(MemoryBudgetError):
    """The GPU's memory, or the part of it that this process may use, is full."""


def take(size: int | tuple[int, ...], dtype: Any) -> Any:
    """An uninitialised array in device memory: every kernel's output comes from here."""
    with translated():
        return _allocate(size, dtype)


def _allocate(size: int | tuple[int, ...], dtype: Any) -> Any:
    return array_module().empty(size, dtype)


def available() -> int:
    """Bytes that arrays can still take: of the device's memory, and of this process's share of it."""
    if SIMULATED:
        return 1 << 62
    pool = array_module().get_default_memory_pool()
    free = array_module().cuda.runtime.memGetInfo()[0] + pool.free_bytes()
    limit = pool.get_limit()
    return min(free, limit - pool.used_bytes()) if limit else free


def filled(size: int, dtype: Any, value: Any) -> Any:
    """An array in device memory, all of one value."""
    array = take(size, dtype)
    array.fill(np.dtype(dtype).type(value))
    return array


def exclusive_scan(counts: Any) -> Any:
    """Turn counts into their exclusive scan, the total last, where they are."""
    counts[:1] = 0
    _scan_in_place(counts[1:])
    return counts


def _scan_in_place(array: Any) -> None:
    """Turn an array into its inclusive scan.

    By what CuPy's `cumsum` calls, which itself copies an array out and back before that: three times the
    bytes.
    """
    if not SIMULATED:
        cub = array_module().cuda.cub
        if cub.cub_scan(array, cub.CUPY_CUB_CUMSUM) is not None:
            return
    array_module().cumsum(array, out=array)


@contextmanager
def translated(what: str = "an array") -> Iterator[None]:
    """Raise what CuPy and Numba-CUDA raise as our own errors."""
    try:
        yield
    except DeviceMemoryError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise DeviceMemoryError(
                f"the GPU has no memory for {what} ({error}). Give the process a larger share of"
                f" it, or less to do at once: {argument('slice_rows')} and"
                f" {argument('batch_pairs')} of a join, block of a stream."
            ) from error
        if not is_of_device(error):
            raise
        raise BackendError(
            f"the GPU failed ({type(error).__name__}: {error}). Check nvidia-smi, and run again"
            f" in a new process, or use {argument('backend', 'cpu')}."
        ) from error


def in_parts(evaluate: Callable[[int, int], None], start: int, stop: int) -> None:
    """Evaluate the base positions start ... stop; where memory does not suffice, half after half."""
    try:
        with translated():
            evaluate(start, stop)
        return
    except DeviceMemoryError:
        if stop - start < 2:
            raise
    # Outside the handler: its traceback would keep the arrays of the failed attempt.
    # Results of the blocks before, on their way to the host, hold memory too.
    current().finish()
    release_unused()
    middle = (start + stop) // 2
    in_parts(evaluate, start, middle)
    in_parts(evaluate, middle, stop)


_MOST = 6


def _itself(copy: Any) -> Any:
    return copy


class Residents:
    """The device's copies of the last few host arrays, or what was made of them."""

    def __init__(self) -> None:
        self._kept: deque[tuple[np.ndarray, Any, Any]] = deque(maxlen=_MOST)

    def known(self, array: np.ndarray, copy: Any) -> np.ndarray:
        """Note that the device has a copy of an array; returns the array."""
        self._kept.append((array, _itself, copy))
        return array

    def get(self, array: np.ndarray, make: Callable[[Any], Any] = _itself) -> Any:
        """What `make` makes of the device's copy, made when the array is first asked for."""
        for kept, maker, made in self._kept:
            if kept is array and maker is make:
                return made
        made = self._made(array, make)
        self._kept.append((array, make, made))
        return made

    def _made(self, array: np.ndarray, make: Callable[[Any], Any]) -> Any:
        try:
            with translated():
                return make(_sent(array))
        except DeviceMemoryError:
            # What was sent before may be in the way.
            self._kept.clear()
        release_unused()
        with translated():
            return make(_sent(array))


def _sent(array: np.ndarray) -> Any:
    with translated():
        return current().send_one(array.reshape(-1)).reshape(array.shape)
