"""Compiling the GPU kernels without a GPU: PTX by Numba-CUDA, machine code and its costs by ptxas.

``python -m tests.helpers.gpu_compilation`` prints what each kernel costs on each architecture.
"""

from __future__ import annotations

import gc
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import nvidia
from numba import cuda, types
from numba.cuda.dispatcher import CUDADispatcher

from coincide.model.timestamps import IntervalRule
from gpu_kernels.kernels import borders, causality
from gpu_kernels.kernels import join as merging
from gpu_kernels.kernels import join as placement
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import Kernel, RuleKernel

ARCHITECTURES = ((7, 5), (9, 0), (10, 0))
"""The oldest, a common one and the newest."""


RULE_KERNELS = tuple(
    value
    for module in (placement, tiles)
    for value in vars(module).values()
    if isinstance(value, RuleKernel)
)
"""Those that decide pairs."""

KERNELS = (
    *(
        value
        for module in (placement, tiles, merging, borders, causality)
        for value in vars(module).values()
        if isinstance(value, Kernel)
    ),
    *(kernel.of(IntervalRule) for kernel in RULE_KERNELS),
)


class Cost(NamedTuple):
    """What ptxas reports of one kernel: registers a thread, bytes of spills, of stack and shared."""

    registers: int
    spilled: int
    stack: int
    shared: int


@contextmanager
def _device_of(capability: tuple[int, int]) -> Iterator[None]:
    """Numba-CUDA asks the device for its capability when it compiles what a kernel calls."""
    device = SimpleNamespace(compute_capability=capability)
    with mock.patch("numba.cuda.dispatcher.get_current_device", return_value=device):
        for function in _called():
            function.overloads.clear()
        yield


def _called() -> Iterator[Any]:
    """Functions compiled for a device before, of another capability perhaps."""
    return (
        o
        for o in gc.get_objects()
        # Asked of the type: a weak proxy, of which the referent may be gone, is among them, too.
        if issubclass(type(o), CUDADispatcher) and o.targetoptions.get("device")
    )


def ptx_of(kernel: Kernel, capability: tuple[int, int]) -> str:
    """The kernel as PTX for a compute capability."""
    with _device_of(capability):
        return cuda.compile_ptx(kernel.py_func, types.void(*kernel.types), cc=capability)[0]


def ptxas() -> Path:
    """The assembler of the installed toolkit."""
    return Path(next(iter(nvidia.__path__))) / "cu13" / "bin" / "ptxas"


def assemble(ptx: str, capability: tuple[int, int]) -> Cost:
    """Assemble PTX, and read what it costs."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        architecture = "sm_{}{}".format(*capability)
        command = [ptxas(), "-v", "-arch", architecture, source, "-o", source.with_suffix(".cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Cost(
        *(
            sum(map(int, re.findall(pattern, done.stderr)))
            for pattern in (
                r"Used (\d+) registers",
                r"(\d+) bytes spill",
                r"(\d+) bytes stack frame",
                r"(\d+) bytes smem",
            )
        )
    )


def main() -> None:
    """Print the cost of every kernel on every architecture."""
    print("kernel".ljust(20), *(f"{name:>9}" for name in ("arch", *Cost._fields)))
    for kernel in KERNELS:
        for capability in ARCHITECTURES:
            cost = assemble(ptx_of(kernel, capability), capability)
            cells = ("sm_{}{}".format(*capability), *cost)
            print(kernel.py_func.__name__.ljust(20), *(f"{cell:>9}" for cell in cells))


if __name__ == "__main__":
    main()
