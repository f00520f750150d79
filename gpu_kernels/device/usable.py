"""Whether a GPU can be used in this process, and if not, what to do about it.

The driver is asked directly, before CuPy or Numba-CUDA is imported: where there is no GPU the answer
takes no time, and no context is made. Ask only in the process that does the work, after any fork.
"""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from coincide.model.condition import Window
from coincide.model.errors import BackendError, argument
from coincide.model.timestamps import IntervalEvents, IntervalPairs
from gpu_kernels.device import driver, packages
from gpu_kernels.device.arrays import is_of_device, is_out_of_memory
from gpu_kernels.device.packages import let_cupy_cache
from gpu_kernels.kernels.simulation import SIMULATED

_INSTALL = "Install Coincide with its extra gpu (docs/gpu-cluster.md says how)"
_log = logging.getLogger(__name__)


class _PassingProblemError(Exception):
    """What keeps the GPU from being used now, and may be gone later."""


_number = 0


def use_device(number: int) -> None:
    """Work on a device from now on, in the calling thread. Without a GPU it has no effect."""
    global _number
    _number = number
    if problem() is None:
        _select_here()


def problem() -> str | None:
    """Why no GPU can be used here, and what to do; None if one can.

    Found out once per device, unless it may pass.
    """
    try:
        return _problem(_number)
    except _PassingProblemError as passing:
        return str(passing)


def has_driver() -> bool:
    """Whether this machine has an NVIDIA driver, so that a GPU may be expected to work."""
    return SIMULATED or driver.load() is not None


def require() -> None:
    """Refuse to go on without a GPU."""
    reason = problem()
    if reason is not None:
        raise BackendError(
            f"{argument('backend', 'gpu')} is not possible: {reason}, or use"
            f" {argument('backend', 'cpu')}."
        )


def release() -> None:
    """Give the memory that no array uses back to the device, and all pinned memory to the host.

    If the device fails at that, whoever uses it next learns of it: here it would hide an error before.
    """
    from gpu_kernels.device import arrays, transfers

    try:
        with TURN:
            transfers.release()
            arrays.release_unused()
    except Exception as error:  # what CUDA's layers raise has no common ancestor
        if not is_of_device(error):
            raise
        _log.warning("the GPU keeps memory that this process could not return: %s", error)


class Turn:
    """A lock, since the device has one queue. Whoever holds it works on the device of `use_device`.

    Which device is the current one is a matter of each thread, and the caller's threads are many. So is
    CuPy's current stream: kernels are launched on the default one, and what CuPy does must follow them.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._streams: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            _select_here()
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


@cache
def _problem(number: int) -> str | None:
    lacking = None if SIMULATED else packages.problem()
    if lacking is not None:
        return f"{lacking}: {_INSTALL}"
    absent = None if SIMULATED else driver.problem(driver.load(), number)
    return absent or _first_kernel_problem(number)


def _select_here() -> None:
    """Let the calling thread work on the device chosen, if it does not yet: selecting adds to a stack."""
    if not SIMULATED and _selected() != _number:
        _select(_number)


def _default_stream() -> AbstractContextManager[Any]:
    """Makes the default stream CuPy's current one, and puts the caller's back."""
    if SIMULATED:
        return nullcontext()
    import cupy

    return cupy.cuda.Stream.null


def _select(number: int) -> None:
    let_cupy_cache()
    import cupy
    from numba import cuda

    cupy.cuda.Device(number).use()
    cuda.select_device(number)


def _selected() -> int:
    """The current device of the calling thread."""
    import cupy

    return cupy.cuda.runtime.getDevice()


def _first_kernel_problem(number: int) -> str | None:
    """Ask for one probability: what still fails, such as a toolkit of parts that do not fit.

    By what joins call, so that this launches as they do.
    """
    from gpu_kernels import join

    try:
        if not SIMULATED:
            _select(number)
        now = np.zeros(1, np.int64)
        event = IntervalEvents(now, now)
        same_time = IntervalPairs(Window(0, 0, 1.0))
        if join.event_probabilities(event, now, event, now, same_time)[0] == 1.0:
            return None
        return "a first kernel gave a wrong answer. Check the GPU"
    except Exception as error:  # any: what CUDA's layers raise has no common ancestor
        cause = error.__cause__ or error
        if is_out_of_memory(error):
            raise _PassingProblemError(
                f"its memory is full ({cause}). Run fewer processes on it, or give each less memory"
            ) from error
        return (
            f"a first kernel failed ({type(cause).__name__}: {cause}). Check the driver. {_INSTALL}"
        )
