"""Compiling the GPU kernels without a GPU, as a launch would: by Numba-CUDA, linked by nvJitLink.

Numba-CUDA optimises at link time wherever nvJitLink is, as it is with the extra ``gpu``. So the PTX before
linking is not what a GPU runs, and is not looked at.

``python -m tests.helpers.gpu_compilation`` prints what each kernel costs on each architecture.
"""

from __future__ import annotations

import gc
import re
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from cuda.core import LinkerOptions
from numba.cuda.cudadrv import driver
from numba.cuda.dispatcher import CUDADispatcher, _Kernel

from bench.papers.streams.gpu import merging
from coincide.model.causality.deciding import PairRule
from coincide.model.causality.template_rule import TemplateRule
from coincide.model.timestamps import HistogramRule, IntervalRule
from coincide.model.timestamps.spans import SpanRule, UncertainSpanRule
from gpu_kernels.kernels import aggregates, arrays, borders, causality, join, sequences
from gpu_kernels.kernels.compilation import Kernel, RuleKernel

ARCHITECTURES = ((7, 5), (9, 0), (10, 0))
"""The oldest, a common one and the newest."""


RULE_KERNELS = tuple(value for value in vars(join).values() if isinstance(value, RuleKernel))
"""Those that decide pairs."""

KERNELS = (
    *(
        value
        for module in (join, aggregates, arrays, borders, causality, sequences, merging)
        for value in vars(module).values()
        if isinstance(value, Kernel)
    ),
    *(kernel.of(IntervalRule) for kernel in RULE_KERNELS),
    causality.probe.of(PairRule),
)
HISTOGRAM_KERNELS = (
    *(kernel.of(HistogramRule) for kernel in RULE_KERNELS),
    causality.probe.of(TemplateRule),
)
SPAN_KERNELS = tuple(
    kernel.of(SpanRule) for kernel in RULE_KERNELS if kernel is not join.pair_probabilities
)
"""A pair of spans qualifies or not: it has no probability."""
UNCERTAIN_SPAN_KERNELS = tuple(kernel.of(UncertainSpanRule) for kernel in RULE_KERNELS)


class Cost(NamedTuple):
    """What the assembler reports of one kernel: registers a thread, bytes of spills and of stack."""

    registers: int
    spilled: int
    stack: int


class MachineCode(NamedTuple):
    """The machine code of one kernel."""

    opcodes: Counter[int]
    cost: Cost


@contextmanager
def _device_of(capability: tuple[int, int]) -> Iterator[None]:
    """Numba-CUDA asks the device for its capability when it compiles a kernel or what it calls."""
    device = SimpleNamespace(compute_capability=capability)
    context = SimpleNamespace(device=device)
    with (
        mock.patch("numba.cuda.dispatcher.get_current_device", return_value=device),
        mock.patch("numba.cuda.cudadrv.devices.get_context", return_value=context),
    ):
        _forget_functions_of_another(capability)
        yield


@lru_cache(maxsize=1)
def _forget_functions_of_another(capability: tuple[int, int]) -> None:
    """What kernels call is compiled anew for another capability, and once for all kernels of one."""
    for o in gc.get_objects():
        # Asked of the type: a weak proxy whose referent may be gone is among them, too.
        if issubclass(type(o), CUDADispatcher) and o.targetoptions.get("device"):
            o.overloads.clear()


def architecture(capability: tuple[int, int]) -> str:
    """As Numba-CUDA names it: with what only this architecture has, if it is new."""
    return "sm_{}{}".format(*capability) + "a" * (capability >= (9, 0))


class Compiled:
    """A kernel as a launch compiles it, up to the linker."""

    def __init__(self, kernel: Kernel, capability: tuple[int, int]) -> None:
        self._target = *capability, "a" * (capability >= (9, 0))
        with _device_of(capability):
            options = kernel._compiled.targetoptions
            self._library = _Kernel(kernel.py_func, kernel.types, **options)._codelibrary
            self.ptx: str = self._library.get_lto_ptx(cc=self._target).strip("\0")

    def machine_code(self, *options: str) -> MachineCode:
        """What the linker makes of it, given more options of the assembler."""
        linker = driver._Linker(cc=self._target, lto=True)
        self._library._link_all(linker, self._target)
        return _linked(linker, *options)


def assembled(ptx: str, capability: tuple[int, int], *options: str) -> MachineCode:
    """The machine code of PTX."""
    linker = driver._Linker(cc=(*capability, "a" * (capability >= (9, 0))))
    linker.add_ptx(ptx.encode())
    return _linked(linker, *options)


def _linked(linker: Any, *options: str) -> MachineCode:
    talking = partial(LinkerOptions, ptxas_options=["-v", *options])
    with mock.patch.object(driver, "LinkerOptions", talking):
        image = bytes(linker.complete().code)
    patterns = (r"Used (\d+) registers", r"(\d+) bytes spill", r"(\d+) bytes stack frame")
    found = [sum(map(int, re.findall(each, linker.info_log))) for each in patterns]
    return MachineCode(_opcodes(image), Cost(*found))


_OPCODE_BITS = 0x1FF
"""The opcode's bits in the first 16 bytes of an instruction, since Volta; what is above says where
operands are."""


def _opcodes(image: bytes) -> Counter[int]:
    """How often each instruction is in the code of a cubin, whatever its registers."""
    (headers,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    sections = [struct.unpack_from("<IIQQQQ", image, headers + i * size) for i in range(count)]
    found: Counter[int] = Counter()
    for name, _, _, _, start, length in sections:
        if image[sections[names][4] + name :].startswith(b".text."):
            code = struct.iter_unpack("<HHIQ", image[start : start + length])
            found.update(word & _OPCODE_BITS for word, *_ in code)
    return found


def main() -> None:
    """Print the cost of every kernel on every architecture."""
    print("kernel".ljust(20), *(f"{name:>9}" for name in ("arch", *Cost._fields)))
    for kernel in (*KERNELS, *HISTOGRAM_KERNELS, *SPAN_KERNELS, *UNCERTAIN_SPAN_KERNELS):
        for capability in ARCHITECTURES:
            cost = Compiled(kernel, capability).machine_code().cost
            cells = (architecture(capability), *cost)
            print(kernel.py_func.__name__.ljust(20), *(f"{cell:>9}" for cell in cells))


if __name__ == "__main__":
    main()
