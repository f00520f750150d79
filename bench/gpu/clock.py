"""Time on a GPU, between two events of its stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def simulated() -> bool:
    """Whether kernels run in Numba's CUDA simulator."""
    from gpu_kernels.kernels.simulation import SIMULATED

    return SIMULATED


def device_seconds(work: Callable[[], Any]) -> float:
    """Seconds between two events on the device's stream; wall time in the simulator."""
    if simulated():
        started = time.perf_counter()
        work()
        return time.perf_counter() - started
    import cupy

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    work()
    stop.record()
    stop.synchronize()
    return cupy.cuda.get_elapsed_time(start, stop) / 1000.0
