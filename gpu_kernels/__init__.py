"""The operators of `cpu_fallback` for NVIDIA GPUs: the same functions, signatures and answers.

Importing the package touches neither CUDA nor CuPy, so that it can be asked whether a GPU is here
(`gpu_kernels.device.usable`) where none is, and before a Spark worker forks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_kernels.borders import BorderSearch
    from gpu_kernels.join import EventJoin, event_probabilities
    from gpu_kernels.sequences import TupleMaker

__all__ = ["BorderSearch", "EventJoin", "TupleMaker", "event_probabilities"]

_MODULES = {
    "BorderSearch": "borders",
    "EventJoin": "join",
    "TupleMaker": "sequences",
    "event_probabilities": "join",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
