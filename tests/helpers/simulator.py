"""Numba's CUDA simulator, as the tests need it: with the same shared memory for all threads of a block."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

_LONGEST_WAIT = 20
_MOST_THREADS = 64
_order = random.Random(1)


def prepare() -> None:
    """Make the simulator reliable, and quick.

    Let threads take a shared array one at a time: the simulator finds a block's array by the line that
    asks for it, but looks and then notes it without a lock, so that two threads may get two arrays.

    And let the threads of a block take turns where none waits for another: starting threads takes the
    simulator longer than what most of our kernels do.
    """
    from numba.cuda.simulator import kernel, kernelapi

    lock = threading.Lock()

    def array(self: Any, shape: Any, dtype: Any) -> np.ndarray:
        frame = sys._getframe(1)
        key: tuple[CodeType, int] = (frame.f_code, frame.f_lineno)
        with lock:
            if key not in self._allocations:
                # Not zeros: a GPU does not clear shared memory either.
                self._allocations[key] = np.full(shape, 77, dtype)
            return self._allocations[key]

    kernelapi.FakeCUDAShared.array = array
    kernelapi.threading = _Threads
    kernel.BlockManager.run = _run_block


class _Threads:
    """What the simulator asks of `threading`."""

    local = threading.local()

    @staticmethod
    def current_thread() -> Any:
        return _Threads.local.thread


class _Thread:
    """A thread of a block."""

    def __init__(self, block: tuple[int, ...], thread: tuple[int, ...], barrier: Any) -> None:
        from numba.cuda.simulator.kernelapi import Dim3

        self.blockIdx, self.threadIdx = Dim3(*block), Dim3(*thread)
        self.thread_id = self.threadIdx.x
        self._barrier = barrier

    def syncthreads(self) -> None:
        self._barrier.wait(_LONGEST_WAIT)

    def run(self, work: Callable[..., None], arguments: Sequence[Any]) -> None:
        _Threads.local.thread = self
        try:
            work(*arguments)
        except BaseException:
            # Whoever waits would wait for ever.
            self._barrier.abort()
            raise


def _run_block(manager: Any, block: tuple[int, ...], *arguments: Any) -> None:
    """All threads of a block at once if they wait for each other, else one after the other."""
    places = list(np.ndindex(*manager._block_dim))
    # In any order: a kernel must not count on one.
    _order.shuffle(places)
    barrier = threading.Barrier(len(places))
    threads = [_Thread(block, place, barrier) for place in places]
    if not _waits(manager._f):
        for thread in threads:
            thread.run(manager._f, arguments)
        return
    done = [_pool().submit(thread.run, manager._f, arguments) for thread in threads]
    errors = [error for each in done if (error := each.exception()) is not None]
    real = [each for each in errors if not isinstance(each, threading.BrokenBarrierError)]
    for error in real or errors:
        raise error


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_THREADS)


@cache
def _waits(function: Any) -> bool:
    """Whether a kernel, or what it calls, waits for the other threads of its block."""
    code, known = function.__code__, function.__globals__
    called = (getattr(known.get(name), "fn", None) for name in code.co_names)
    return "syncthreads" in code.co_names or any(_waits(each) for each in called if each)


def gpu_problem() -> str | None:
    """Why tests of the GPU cannot run in this process; None if they can. Readies the simulator."""
    from gpu_kernels.device import usable as device
    from gpu_kernels.kernels.simulation import SIMULATED

    if SIMULATED:
        prepare()
    reason = device.problem()
    return None if reason is None else f"{reason}; test_virtual_gpu runs these"
