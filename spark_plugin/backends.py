"""Which implementation of the operators runs. The only place that knows both."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import get_args

from event_model.errors import BackendError
from event_model.options import Backend, check_choice


def check_backend(name: str) -> None:
    """Refuse, at plan time, a backend that cannot be.

    Raises
    ------
    ConditionError
        If the name is unknown.
    BackendError
        If it is ``"gpu"`` and this release has no GPU kernels.
    """
    check_choice("backend", name, get_args(Backend))
    if name == "gpu" and not _has_gpu_kernels():
        raise BackendError(
            "backend='gpu' was asked for, but this release has no GPU kernels; use backend='auto' or"
            " backend='cpu'"
        )


def load_backend(name: str) -> ModuleType:
    """The package that exposes `IntervalJoin` and `pair_probabilities`."""
    check_backend(name)
    return importlib.import_module("gpu_kernels" if name == "gpu" else "cpu_fallback")


def _has_gpu_kernels() -> bool:
    return importlib.util.find_spec("gpu_kernels") is not None
