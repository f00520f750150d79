"""The log of a virtual GPU: what its driver wrote, in all processes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpu_kernels.kernels.compilation import Kernel

_MANGLED = re.compile(r"(?:gpu_kernels7kernels|streams3gpu)\d+([a-z_]+?)\d+([a-z_]+)B")
_KINDS = re.compile(
    "IntervalRule|HistogramRule|UncertainSpanRule|SpanRule|PairRule|TemplateRule|CausalRun"
)

_INT32 = re.compile(r"ArrayIiL|Array\(int32")


class Log(NamedTuple):
    """The log of a run."""

    launched: set[str]  # kernels: module, name and what of several kinds they take
    faults: list[str]
    notes: set[str]  # kernels that load what others change by atomics

    @classmethod
    def read(cls, path: Path) -> Log:
        lines = [line.split("\t") for line in path.read_text().splitlines()]
        return cls(
            {short_name(kernel) for kind, kernel, _ in lines if kind == "LAUNCHED"},
            [f"{short_name(kernel)}: {text}" for kind, kernel, text in lines if kind == "FAULT"],
            {short_name(kernel) for kind, kernel, _ in lines if kind == "NOTE"},
        )


def short_name(mangled: str) -> str:
    """The name of a kernel: module, function and what of several kinds it takes."""
    found = _MANGLED.search(mangled)
    return _named(*found.groups(), mangled) if found else ""


def kernel_name(kernel: Kernel) -> str:
    """As `Log.launched` has it."""
    function = kernel.py_func
    return _named(function.__module__.rpartition(".")[2], function.__name__, str(kernel.types))


def _named(module: str, function: str, declared: str) -> str:
    kinds = {*_KINDS.findall(declared), *(["int32"] if _INT32.search(declared) else [])}
    return " ".join([f"{module}.{function}", *sorted(kinds)])
