"""Both backends, and the device of one."""

from __future__ import annotations

from typing import Any

from bench.experiment import Bench
from bench.gpu.clock import simulated
from coincide.model.errors import BackendError

GPU, CPU = "GPU", "CPU"


def backends() -> dict[str, Any]:
    """Both packages; a `BackendError` if there is no GPU says what to do."""
    import cpu_fallback
    import gpu_kernels
    from gpu_kernels.device import usable as device

    problem = device.problem()
    if problem is not None:
        raise BackendError(f"there is no GPU to measure: {problem}")
    return {GPU: gpu_kernels, CPU: cpu_fallback}


def note_device(bench: Bench) -> None:
    """Say on which GPU."""
    if simulated():
        bench.note(device="Numba's CUDA simulator: no GPU, and no time means anything")
        return
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    bench.note(
        device=properties["name"].decode(),
        capability=f"{properties['major']}.{properties['minor']}",
        driver=cupy.cuda.runtime.driverGetVersion(),
        runtime=cupy.cuda.runtime.runtimeGetVersion(),
        memory_gib=round(properties["totalGlobalMem"] / 2**30, 1),
    )
