"""A virtual GPU: what a GPU would run, run on the CPU and watched.

``environment`` gives a process the virtual GPU: a CUDA driver (`driver.c`, found as libcuda.so.1) and a
stand-in for CuPy (`stand_in/cupy`). All else is real. Numba-CUDA compiles each kernel for sm_90a and links
it by nvJitLink; cuda.core launches it by the driver. Instead of machine code the driver gets the linked
PTX, which `translation.py` writes as C and `building.py` compiles by gcc.

The driver runs threads and blocks in any order (VIRTUAL_GPU_SEED), and reports what would be wrong on a
GPU though the answer be right. That is an access out of bounds, misaligned or too wide, a race, a barrier
that not all threads reach, or a read of shared memory that no thread wrote. A launch with such a fault
fails, and the file that VIRTUAL_GPU_LOG names has all faults.

To run something on it by hand::

    eval "$(python -m tests.virtual_gpu)"     # exports the environment
    python -m pytest -p tests.virtual_gpu.plugin tests/gpu_kernels/test_gpu_join.py
    python -m bench run gpu --quick

VIRTUAL_GPU_DEVICES=2 makes two GPUs of it, neither of which sees the other's memory. The plugin fails a
test that left a fault, and says at the end which kernels were launched.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.helpers.places import ROOT
from tests.virtual_gpu.building import driver

STAND_IN = Path(__file__).parent / "stand_in"


def environment(log: Path, seed: int = 1, devices: int = 1) -> dict[str, str]:
    """What to add to a process's environment so that it, and all that it starts, has virtual GPUs."""
    before = os.environ.get("PYTHONPATH", "")
    libraries = os.environ.get("LD_LIBRARY_PATH", "")
    return {
        "PYTHONPATH": os.pathsep.join([str(STAND_IN), str(ROOT), *filter(None, [before])]),
        "LD_LIBRARY_PATH": os.pathsep.join([str(driver().parent), *filter(None, [libraries])]),
        "VIRTUAL_GPU_LOG": str(log),
        "VIRTUAL_GPU_SEED": str(seed),
        "VIRTUAL_GPU_DEVICES": str(devices),
    }
