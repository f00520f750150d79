"""Numba's CUDA simulator, as the tests need it: with the same shared memory for all threads of a block."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
_SWITCH_SECONDS = 1e-5
_MOST_SECONDS = 280


def prepare() -> None:
    """Make the simulator reliable, and quick.

    Let threads take a shared array one at a time.

    The simulator finds a block's array by the line that asks for it, but looks and then notes it
    without a lock: two threads may get two arrays. And its main thread waits for the others in a busy
    loop, which it should not be let do for long.
    """
    from numba.cuda.simulator import kernelapi

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
    sys.setswitchinterval(_SWITCH_SECONDS)


def run_tests_in_simulator(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own: the simulator is chosen before Numba is imported."""
    environment = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=environment | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
    )
