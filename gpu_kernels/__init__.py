"""The operators of `cpu_fallback` for NVIDIA GPUs: the same functions, signatures and answers.

Importing the package touches neither CUDA nor CuPy, so that it can be asked whether a GPU is here
(`gpu_kernels.device.usable`) where none is, and before a Spark worker forks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_kernels.join.event_join import EventJoin, event_probabilities
    from gpu_kernels.join.interval_join import IntervalJoin, pair_probabilities

__all__ = ["EventJoin", "IntervalJoin", "event_probabilities", "pair_probabilities"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpu_kernels.join import event_join, interval_join

    return getattr(event_join if name.startswith(("Event", "event")) else interval_join, name)
