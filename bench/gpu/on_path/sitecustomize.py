"""Tells each kernel that this process launches, in a file of its own that `bench.gpu.workers` reads.

Python imports it in each process that has its folder on PYTHONPATH, as Spark's workers have by
`workers.settings`. Nothing of ours is imported before the process imports it itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_FOLDER = os.environ.get("COINCIDE_BENCH_LAUNCHES")
_LAUNCHING = "gpu_kernels.kernels.compilation"


class _Telling(Loader):
    """Loads the module as it would be, and then has its kernels tell."""

    def __init__(self, real: Loader, folder: Path) -> None:
        self._real, self._folder = real, folder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        real = module.Kernel.launch

        def launch(kernel: Any, blocks: int, *arguments: Any) -> None:
            real(kernel, blocks, *arguments)
            # Opened each time: Spark's workers are forked, and end without notice.
            with (self._folder / str(os.getpid())).open("a") as file:
                file.write(f"{kernel.py_func.__name__}\n")

        module.Kernel.launch = launch


class _Finder(MetaPathFinder):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path) if name == _LAUNCHING else None
        if found is not None and found.loader is not None:
            found.loader = _Telling(found.loader, self._folder)
        return found


if _FOLDER:
    sys.meta_path.insert(0, _Finder(Path(_FOLDER)))
