"""Who works on a device, and which device that is: one lock a device for all threads of a process."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from gpu_kernels.device.packages import let_cupy_cache
from gpu_kernels.kernels.simulation import SIMULATED

_chosen = 0
_own = threading.local()
"""The device that a thread of `thread_of` keeps to."""


def choose(number: int) -> None:
    """Work on a device from now on, once a GPU is known to be there."""
    global _chosen
    _chosen = number


def chosen() -> int:
    """The number of the device of the calling thread: that of this process, or its own."""
    number: int | None = getattr(_own, "number", None)
    return _chosen if number is None else number


@cache
def thread_of(number: int) -> ThreadPoolExecutor:
    """The one thread that works on a device where a join is dealt over several.

    It selects its device once: a context is a matter of each thread.
    """
    return ThreadPoolExecutor(1, f"gpu-{number}", _keep_to, (number,))


def _keep_to(number: int) -> None:
    _own.number = number


# A process that was forked has none of these threads, and would wait for them.
os.register_at_fork(after_in_child=thread_of.cache_clear)


class Turn:
    """A lock for each device, since it has one queue. Whoever holds it works on the device `chosen`.

    Which device is the current one is a matter of each thread, and the caller's threads are many. So is
    CuPy's current stream: kernels are launched on the default one, and what CuPy does must follow them.
    """

    def __init__(self) -> None:
        self._locks: dict[int, Any] = {}
        self._taken = threading.local()

    def __enter__(self) -> None:
        lock = self._locks.setdefault(chosen(), threading.RLock())  # at once: threads share it
        lock.acquire()
        try:
            select_here()
            stream = _default_stream()
            stream.__enter__()
            self._turns().append((lock, stream))
        except BaseException:
            lock.release()
            raise

    def __exit__(self, *raised: Any) -> None:
        lock, stream = self._turns().pop()
        try:
            stream.__exit__(*raised)
        finally:
            lock.release()

    def _turns(self) -> list[tuple[Any, AbstractContextManager[Any]]]:
        """The turns of the calling thread that have not ended."""
        if not hasattr(self._taken, "turns"):
            self._taken.turns = []
        turns: list[tuple[Any, AbstractContextManager[Any]]] = self._taken.turns
        return turns


TURN = Turn()


def select_here() -> None:
    """Let the calling thread work on the device chosen, if it does not yet: selecting adds to a stack."""
    if not SIMULATED and _selected() != chosen():
        select(chosen())


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
