"""Which GPU a task uses. Runs in Spark's Python workers, and touches CUDA only after the choice."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from coincide.errors import BackendError
from spark_plugin.worker.backends.choice import load_backend

RESOURCE = "gpu"
"""Name of the Spark resource."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def load_task_backend(name: str) -> ModuleType:
    """The backend of a task, on the GPU that Spark gave the task if it is the GPU backend.

    Parameters
    ----------
    name : {"auto", "cpu", "gpu"}

    Raises
    ------
    BackendError
        If the backend is not here, or the task's GPU is hidden from the worker.
    """
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
    # A worker has loaded the module by then; nobody else needs it.
    module = sys.modules.get("pyspark.taskcontext")
    context = None if module is None else module.TaskContext.get()
    found = {} if context is None else context.resources()
    return tuple(found[RESOURCE].addresses) if RESOURCE in found else ()


def device_number(addresses: Sequence[str], visible: str | None) -> int:
    """The CUDA device of a task, as CUDA numbers the devices that it sees.

    Parameters
    ----------
    addresses : sequence of str
        Of the task's GPUs, as nvidia-smi numbers them (or as CUDA_VISIBLE_DEVICES names them). A task
        uses one GPU, the first. Empty: the first that CUDA sees.
    visible : str or None
        CUDA_VISIBLE_DEVICES. RAPIDS sets it to the executor's GPU, container systems to their own.

    Raises
    ------
    BackendError
        If CUDA does not see the GPU, or the address is none.
    """
    if not addresses:
        return 0
    address = addresses[0].strip()
    if visible is None:
        if address.isdecimal():
            return int(address)
        raise BackendError(
            f"Spark's discovery script calls the task's GPU {address!r}; it must print the numbers of"
            " nvidia-smi, as scripts/discover-gpus.sh does"
        )
    seen = [part.strip() for part in visible.split(",") if part.strip()]
    if address in seen:
        return seen.index(address)
    if len(seen) == 1 and not seen[0].isdecimal():
        return 0  # a name such as MIG-…: the one device that a container shows
    raise BackendError(
        f"Spark gave this task the GPU {address}, but {_VISIBLE}={visible!r} hides it from the worker;"
        f" leave {_VISIBLE} unset, or make the discovery script print what it shows"
    )
