"""The lazy stream correlators' block step on a GPU: what `cpu_fallback.streams` has of the same names.

Importing the package touches neither CUDA nor CuPy.
"""

from __future__ import annotations

from typing import Any

from gpu_kernels.streams.algorithms import ALGORITHMS as ALGORITHMS
from gpu_kernels.streams.algorithms import check_algorithm as check_algorithm


def __getattr__(name: str) -> Any:
    if name != "LiveBlocks":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpu_kernels.streams import live_blocks

    return live_blocks.LiveBlocks
