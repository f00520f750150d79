"""Who works on the device, and which device that is: one lock for all threads of a process."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gpu_kernels.device.packages import let_cupy_cache
from gpu_kernels.kernels.simulation import SIMULATED

_chosen = 0


def choose(number: int) -> None:
    """Work on a device from now on, once a GPU is known to be there."""
    global _chosen
    _chosen = number


def chosen() -> int:
    """The number of the device of this process."""
    return _chosen


class Turn:
    """A lock, since the device has one queue. Whoever holds it works on the device of `choose`.

    Which device is the current one is a matter of each thread, and the caller's threads are many. So is
    CuPy's current stream: kernels are launched on the default one, and what CuPy does must follow them.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._streams: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            select_here()
            stream = _default_stream()
            stream.__enter__()
            self._streams.append(stream)
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *raised: Any) -> None:
        try:
            self._streams.pop().__exit__(*raised)
        finally:
            self._lock.release()


TURN = Turn()


def select_here() -> None:
    """Let the calling thread work on the device chosen, if it does not yet: selecting adds to a stack."""
    if not SIMULATED and _selected() != _chosen:
        select(_chosen)


def _default_stream() -> AbstractContextManager[Any]:
    """Makes the default stream CuPy's current one, and puts the caller's back."""
    if SIMULATED:
        return nullcontext()
    import cupy

    return cupy.cuda.Stream.null


def select(number: int) -> None:
    """Let the calling thread work on a device."""
    let_cupy_cache()
    import cupy
    from numba import cuda

    cupy.cuda.Device(number).use()
    cuda.select_device(number)


def _selected() -> int:
    """The current device of the calling thread."""
    import cupy

    return cupy.cuda.runtime.getDevice()
