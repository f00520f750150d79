"""Whether a GPU can be used in this process, and if not, what to do about it.

The driver is asked directly, before CuPy or Numba-CUDA is imported: where there is no GPU the answer
takes no time, and no context is made. Ask only in the process that does the work, after any fork.
"""

from __future__ import annotations

import logging
from functools import cache

import numpy as np

from coincide.model.condition import Window
from coincide.model.errors import BackendError, argument, option
from coincide.model.extras import how_to_install
from coincide.model.timestamps import IntervalEvents, IntervalPairs
from gpu_kernels.device import driver, packages
from gpu_kernels.device.arrays import is_of_device, is_out_of_memory
from gpu_kernels.device.turn import TURN, choose, chosen, select, select_here, thread_of
from gpu_kernels.kernels.simulation import SIMULATED

_INSTALL = f"Use {how_to_install('gpu')} (docs/gpu-cluster.md says more)"
_log = logging.getLogger(__name__)


class _PassingProblemError(Exception):
    """What keeps the GPU from being used now, and may be gone later."""


def use_device(number: int) -> None:
    """Work on a device from now on, in the calling thread. Without a GPU it has no effect."""
    choose(number)
    if problem() is None:
        select_here()


def problem() -> str | None:
    """Why no GPU can be used here, and what to do; None if one can.

    Found out once per device, unless it may pass.
    """
    try:
        return _problem(chosen())
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


_dealt: set[int] = set()
"""The devices over which joins were dealt."""


def all_devices() -> list[int]:
    """The numbers of all GPUs that the driver shows, each of which can be used."""
    require()
    numbers = list(range(1 if SIMULATED else driver.count(driver.load())))
    # Each by its own thread, which makes its context and launches a first kernel.
    asked = [thread_of(number).submit(problem) for number in numbers]
    for number, reason in zip(numbers, [each.result() for each in asked], strict=True):
        if reason is not None:
            raise BackendError(
                f"{option('devices', 'all')} is not possible: GPU {number} cannot be used"
                f" ({reason}). Hide it by CUDA_VISIBLE_DEVICES, or use {option('devices', 'one')}."
            )
    _dealt.update(numbers)
    return numbers


def release() -> None:
    """Give the memory that no array uses back to the device, and all pinned memory to the host.

    All devices that this process has used do so. If one fails at that, whoever uses it next learns of it:
    here it would hide an error before.
    """
    # Each by the thread that works there, after what it has still to do.
    released = [thread_of(number).submit(_release_here) for number in sorted(_dealt)]
    if chosen() not in _dealt:
        _release_here()
    for each in released:
        each.result()


def _release_here() -> None:
    from gpu_kernels.device import arrays, transfers

    try:
        with TURN:
            transfers.release()
            arrays.release_unused()
    except Exception as error:  # what CUDA's layers raise has no common ancestor
        if not is_of_device(error):
            raise
        _log.warning("the GPU keeps memory that this process could not return: %s", error)


@cache
def _problem(number: int) -> str | None:
    lacking = None if SIMULATED else packages.problem()
    if lacking is not None:
        return f"{lacking}. {_INSTALL}"
    absent = None if SIMULATED else driver.problem(driver.load(), number)
    return absent or _first_kernel_problem(number)


def _first_kernel_problem(number: int) -> str | None:
    """Ask for one probability: what still fails, such as a toolkit of parts that do not fit.

    By what joins call, so that this launches as they do.
    """
    from gpu_kernels import join

    try:
        if not SIMULATED:
            select(number)
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
