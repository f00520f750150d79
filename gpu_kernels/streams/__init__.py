"""The lazy stream correlators' block step on a GPU: what `cpu_fallback.streams` has of the same names.

Importing the package touches neither CUDA nor CuPy.
"""

from __future__ import annotations

from typing import Any

from coincide.model.errors import BackendError, argument

ALGORITHMS = ("lazy", "classes")
"""Those whose block step runs on a GPU."""


def check_algorithm(name: str) -> None:
    """Refuse an algorithm that only the CPU has."""
    if name not in ALGORITHMS:
        raise BackendError(
            f"the GPU has no stream correlator {name!r}, as a look-up table gains nothing there."
            f" Use 'classes' or 'lazy', or {argument('backend', 'cpu')}."
        )


def __getattr__(name: str) -> Any:
    if name != "LiveBlocks":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpu_kernels.streams import live_blocks

    return live_blocks.LiveBlocks
