"""The backend of a task: a GPU if there is one, else the CPU."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import get_args

from coincide.model.errors import BackendError
from coincide.model.options import Backend, CorrelateOptions, check_choice, check_one_device

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


def check_task_devices(options: CorrelateOptions) -> None:
    """Refuse, at plan time, several GPUs for a task of Spark."""
    check_one_device(options, "a task has the one that Spark gives it")


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
