"""The way between host and device: a queue of copies beside the queue of kernels."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from gpu_kernels.device.arrays import array_module
from gpu_kernels.device.failures import is_out_of_memory


class Link(Protocol):
    """What `gpu_kernels.device.transfers` needs of a device. Nothing but `wait` makes the caller wait."""

    def pinned(self, size: int) -> np.ndarray:
        """Pinned host memory: uint8 array, shape (size,). Raises `MemoryError` if there is none."""

    def empty(self, size: int, dtype: np.dtype) -> Any:
        """An uninitialised array in device memory."""

    def to_device(self, source: np.ndarray, target: Any) -> None:
        """Queue a copy from pinned memory."""

    def to_host(self, source: Any, target: np.ndarray) -> None:
        """Queue a copy to pinned memory. Does not keep the source alive."""

    def mark(self) -> Any:
        """Mark the end of the queue of copies."""

    def wait(self, mark: Any) -> None:
        """Let the caller wait until the copies before a mark have ended."""

    def copies_follow(self) -> None:
        """Let copies queued from now on begin after the kernels launched so far."""

    def kernels_follow(self, mark: Any) -> None:
        """Let kernels launched from now on begin after the copies before a mark."""


class SimulatedLink:
    """A `Link` in the simulator, where every copy has ended when the call returns."""

    def pinned(self, size: int) -> np.ndarray:
        """As `Link`, like all that follow."""
        return np.empty(size, np.uint8)

    def empty(self, size: int, dtype: np.dtype) -> Any:
        """An uninitialised array."""
        return np.empty(size, dtype)

    def to_device(self, source: np.ndarray, target: Any) -> None:
        """Copy."""
        target[:] = source

    def to_host(self, source: Any, target: np.ndarray) -> None:
        """Copy."""
        target[:] = source

    def mark(self) -> Any:
        """Nothing to mark."""
        return None

    def wait(self, mark: Any) -> None:
        """Nothing to wait for."""

    def copies_follow(self) -> None:
        """They do."""

    def kernels_follow(self, mark: Any) -> None:
        """They do."""


class CudaLink:
    """A `Link` to the current device: a stream beside the default stream, neither waiting."""

    def __init__(self) -> None:
        self._cuda = array_module().cuda
        self._stream = self._cuda.Stream(non_blocking=True)

    def pinned(self, size: int) -> np.ndarray:
        """From CuPy's pool of pinned memory."""
        try:
            return np.ndarray(size, np.uint8, self._cuda.alloc_pinned_memory(size))
        except self._cuda.runtime.CUDARuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise MemoryError(str(error)) from error

    def empty(self, size: int, dtype: np.dtype) -> Any:
        """From CuPy's pool."""
        return array_module().empty(size, dtype)

    def to_device(self, source: np.ndarray, target: Any) -> None:
        """Asynchronous, since the source is pinned."""
        target.set(source, stream=self._stream)

    def to_host(self, source: Any, target: np.ndarray) -> None:
        """Asynchronous, since the target is pinned."""
        source.get(out=target, stream=self._stream, blocking=False)

    def mark(self) -> Any:
        """An event."""
        return self._recorded(self._stream)

    def wait(self, mark: Any) -> None:
        """Without Python's lock."""
        mark.synchronize()

    def copies_follow(self) -> None:
        """On the device; nobody waits on the host."""
        self._stream.wait_event(self._recorded(self._cuda.get_current_stream()))

    def kernels_follow(self, mark: Any) -> None:
        """On the device; nobody waits on the host."""
        self._cuda.get_current_stream().wait_event(mark)

    def _recorded(self, stream: Any) -> Any:
        return stream.record(self._cuda.Event(disable_timing=True))
