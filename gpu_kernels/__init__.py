"""The operators of `cpu_fallback` for NVIDIA GPUs: the same functions, signatures and answers.

Importing the package touches neither CUDA nor CuPy, so that it can be asked whether a GPU is here
(`gpu_kernels.device.usable`) where none is, and before a Spark worker forks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_kernels.join.event_join import EventJoin, event_probabilities

__all__ = ["EventJoin", "event_probabilities"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpu_kernels.join import event_join

    return getattr(event_join, name)
