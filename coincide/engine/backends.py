"""The backend of a task: a GPU if there is one, else the CPU; and the CPU where a GPU has failed."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any, TypeVar, get_args

from coincide.model.errors import BackendError, MemoryBudgetError
from coincide.model.options import Backend, check_choice

_log = logging.getLogger(__name__)


def check_backend(name: str) -> None:
    """Refuse, at plan time, a backend that cannot be."""
    # Whether a GPU is there is seen by the worker: the driver of a Spark job may have none.
    check_choice("backend", name, get_args(Backend))


def load_backend(name: str) -> ModuleType:
    """The package that exposes `EventJoin` and `event_probabilities`: call it where the work is done."""
    check_backend(name)
    if name == "cpu":
        return importlib.import_module("cpu_fallback")
    device = importlib.import_module("gpu_kernels.device.usable")
    if name == "gpu":
        device.require()
    problem = device.problem()
    if problem is None:
        return importlib.import_module("gpu_kernels")
    # Where there is no driver a user expects no GPU.
    _say_once(logging.WARNING if device.has_driver() else logging.DEBUG, problem)
    return importlib.import_module("cpu_fallback")


@cache
def _say_once(level: int, problem: str) -> None:
    """Not for each task and slice that a process works through."""
    _log.log(level, "on the CPU: %s", problem)


RESOURCE = "gpu"
"""Name of the Spark resource."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def load_task_backend(name: str) -> ModuleType:
    """The backend of a task, on the GPU that Spark gave the task if it is the GPU backend."""
    # CUDA's own order is the fastest GPU first; Spark's addresses are the numbers of nvidia-smi.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if name != "cpu":
        # First, so that no other task's GPU is touched by looking whether one can be used.
        number = device_number(task_addresses(), os.environ.get(_VISIBLE))
        importlib.import_module("gpu_kernels.device.usable").use_device(number)
    return load_backend(name)


def release_gpu() -> None:
    """Give the device memory that is not in use any more back, at the end of a task."""
    device = sys.modules.get("gpu_kernels.device.usable")
    if device is not None and device.problem() is None:
        device.release()


def task_addresses() -> tuple[str, ...]:
    """Addresses of the GPUs that Spark gave this task; none outside a task, or if it gave none."""
    # A worker has loaded the module by then; no other process needs it.
    module = sys.modules.get("pyspark.taskcontext")
    context = None if module is None else module.TaskContext.get()
    found = {} if context is None else context.resources()
    return tuple(found[RESOURCE].addresses) if RESOURCE in found else ()


def device_number(addresses: Sequence[str], visible: str | None) -> int:
    """The CUDA device of a task, as CUDA numbers the devices that it sees."""
    if not addresses:
        return 0
    address = addresses[0].strip()
    if visible is None:
        if address.isdecimal():
            return int(address)
        raise BackendError(
            "Spark's discovery script must print the GPU numbers of nvidia-smi (found"
            f" {address!r}). Use scripts/discover-gpus.sh."
        )
    seen = [part.strip() for part in visible.split(",") if part.strip()]
    if address in seen:
        return seen.index(address)
    if len(seen) == 1 and not seen[0].isdecimal():
        return 0  # a name such as MIG-…: the one device that a container shows
    raise BackendError(
        f"Spark gave this task the GPU {address}, but {_VISIBLE}={visible!r} hides it from the"
        f" worker. Unset {_VISIBLE}, or let the discovery script print what {_VISIBLE} shows."
    )


T = TypeVar("T")


def resilient(backend: ModuleType, make: Callable[[str], Any]) -> Any:
    """What is made of a backend's name, and of the CPU's where the GPU has no memory for it."""
    if backend.__name__ != "gpu_kernels":
        return make(backend.__name__)
    return ResilientJoin(lambda: make("gpu_kernels"), lambda: make("cpu_fallback"))


class ResilientJoin:
    """A join of either backend: both agree in base positions and in each event's matches.

    So batches that were taken stay valid. Of causality they may differ in the order of one event's matches:
    ask once for a run.
    """

    def __init__(self, first: Callable[[], Any], second: Callable[[], Any]) -> None:
        self._second: Callable[[], Any] | None = second
        self._lock = threading.Lock()
        try:
            self._join = first()
        except MemoryBudgetError as error:
            self._fall_back(error)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._do(lambda join: getattr(join, name))
        if not callable(found):
            return found
        return lambda *given: self._do(lambda join: _taken(getattr(join, name)(*given)))

    def _do(self, work: Callable[[Any], T]) -> T:
        try:
            return work(self._join)
        except MemoryBudgetError as error:
            self._fall_back(error)
            return work(self._join)

    def _fall_back(self, error: MemoryBudgetError) -> None:
        with self._lock:
            # Another thread may have been first; the CPU has no other way out.
            if self._second is not None:
                _log.warning("the CPU takes over: %s", error)
                self._join, self._second = self._second(), None


def _taken(found: Any) -> Any:
    """An answer that is evaluated here, where a failure is caught, not as it is iterated."""
    return iter(list(found)) if isinstance(found, Iterator) else found
