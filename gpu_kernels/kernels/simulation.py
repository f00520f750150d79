"""Whether kernels run in Numba's CUDA simulator. Here, so that asking does not import CUDA's compiler."""

from __future__ import annotations

from numba import config

SIMULATED = bool(config.ENABLE_CUDASIM)  # type: ignore[attr-defined]
