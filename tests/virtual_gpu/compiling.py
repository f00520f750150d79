"""What Numba-CUDA loads on the virtual GPU: the kernel that it would link, translated.

Up to the linked PTX it is what a GPU would run: Numba-CUDA links by nvJitLink with optimisation at link
time, so its PTX before that is not. nvJitLink makes machine code of that PTX; here gcc does.
"""

from __future__ import annotations

import os
from importlib import metadata
from typing import Any

from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.cudadrv.driver import ObjectCode

from tests.virtual_gpu.building import built, kept
from tests.virtual_gpu.translation import entry_name, translated

_OPTIONS = ["-DCOUNTED"] if "VIRTUAL_GPU_COUNTS" in os.environ else []
"""Kernels count their instructions if asked to."""

_COMPILERS = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink")


def linked_ptx(library: Any, cc: Any = None) -> str:
    """The PTX of a kernel's library after linking: kept, since linking takes longer than reading."""
    made_of = "\0".join([*library.llvm_strs, str(cc), *map(metadata.version, _COMPILERS)])
    return kept(made_of, "kernel.ptx", lambda: library.get_lto_ptx(cc=cc).strip("\0"))


LOADED: dict[str, str] = {}
"""PTX of the kernels that this process has loaded, by name."""


def _image(library: Any, cc: Any = None) -> Any:
    ptx = linked_ptx(library, cc)
    LOADED[entry_name(ptx)] = ptx
    return ObjectCode.from_cubin(built(translated(ptx), *_OPTIONS).read_bytes())


def install() -> None:
    """Let Numba-CUDA load what is translated."""
    CUDACodeLibrary.get_cubin = _image
