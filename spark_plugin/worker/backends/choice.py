"""Which implementation of the operators runs. The only place that knows both."""

from __future__ import annotations

import importlib
import logging
from functools import cache
from types import ModuleType
from typing import get_args

from coincide.options import Backend, check_choice

_log = logging.getLogger(__name__)


def check_backend(name: str) -> None:
    """Refuse, at plan time, a backend that cannot be.

    Whether a GPU is there is seen by the worker: the driver of a Spark job may have none.

    Raises
    ------
    ConditionError
        If the name is unknown.
    """
    check_choice("backend", name, get_args(Backend))


def load_backend(name: str) -> ModuleType:
    """The package that exposes `EventJoin` and `event_probabilities`: call it where the work is done.

    Raises
    ------
    BackendError
        If ``"gpu"`` is asked for and no GPU can be used here.
    """
    check_backend(name)
    if name == "cpu":
        return importlib.import_module("cpu_fallback")
    device = importlib.import_module("gpu_kernels.device.usable")
    if name == "gpu":
        device.require()
    problem = device.problem()
    if problem is None:
        return importlib.import_module("gpu_kernels")
    # Where there is no driver nobody expects a GPU to be used.
    _say_once(logging.WARNING if device.has_driver() else logging.DEBUG, problem)
    return importlib.import_module("cpu_fallback")


@cache
def _say_once(level: int, problem: str) -> None:
    """Not for each task and slice that a process works through."""
    _log.log(level, "on the CPU: %s", problem)
