"""What compiled kernels are kept under on disk: all sources that can have gone into them.

Numba compiles a cached function anew when its own file has changed, but not when a function that it
calls, or a constant that it takes, from another file has. So the names of our cache files end in a
digest of all kernel sources: a kernel that was compiled from others is never found.
"""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache

PACKAGES = ("coincide", "cpu_fallback", "gpu_kernels")
"""Packages with kernels, which lie side by side: in a folder or in a zip archive."""

_SOURCES = (".py", ".pyc")  # the second where a package is installed without its sources
_KEPT = (".nbi", ".nbc", ".lcs")
_DIGITS = 16


class KeyedBySources:
    """Mixin for a `CacheImpl` of Numba or Numba-CUDA."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """The name without its ending of a function's files."""
        own: str = super().get_filename_base(fullname, abiflags)  # type: ignore[misc]
        return f"{own}-{sources_digest()}"


class ForgetsOtherSources:
    """Mixin for a `Cache` of Numba or Numba-CUDA: holds a kernel of no sources but these."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, and let go of what was compiled from other sources.

        Who still wants to load that compiles it again. Nothing is kept of a kernel for named tuples of
        other packages, which their methods went into: an edit of those would not show.
        """
        if not all(map(_is_of_ours, getattr(sig, "args", sig))):
            return
        super().save_overload(sig, data)  # type: ignore[misc]
        base: str = self._impl.filename_base  # type: ignore[attr-defined]
        function = base.removesuffix(f"-{sources_digest()}").rpartition("-")[0]
        folder = Path(self.cache_path)  # type: ignore[attr-defined]
        for path in folder.glob(f"{glob.escape(function)}-*"):
            if path.suffix in _KEPT and sources_digest() not in path.name:
                with suppress(OSError):
                    path.unlink()


class _KernelCacheImpl(KeyedBySources, CompileResultCacheImpl):
    pass


class KernelCache(ForgetsOtherSources, FunctionCache):
    """Numba's cache of a function, keyed by the sources of all kernels."""

    _impl_class = _KernelCacheImpl


def keep_on_disk(kernel: Any, kind: type) -> None:
    """Give what Numba will compile a cache on disk, if there is a folder for it.

    Parameters
    ----------
    kernel : Dispatcher
        Of Numba or Numba-CUDA; nothing is done with a plain function.
    kind : type
        `KernelCache`, or its like of Numba-CUDA.
    """
    if not hasattr(kernel, "_cache"):
        return
    try:
        kept = kind(kernel.py_func)
    except RuntimeError as error:
        if "cache" not in str(error):
            raise
        return
    # Of an import from a zip archive Numba finds out only when it writes.
    if is_writable(kept.cache_path):
        kernel._cache = kept


def _is_of_ours(kind: Any) -> bool:
    """Whether the named tuples in a type of Numba's are of the packages with kernels."""
    if hasattr(kind, "instance_class"):
        home = kind.instance_class.__module__.partition(".")[0]
        return home in PACKAGES and all(map(_is_of_ours, kind))
    return True


@cache
def is_writable(folder: str) -> bool:
    """Whether files can be made in a folder, which is made if need be."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@cache
def sources_digest() -> str:
    """Hexadecimal digits that differ where any kernel source does."""
    digest = hashlib.sha256()
    root: Any = files(PACKAGES[0])
    for package in PACKAGES:
        for name, source in sorted(_sources(root.parent / package, package)):
            digest.update(f"{name}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()[:_DIGITS]


def _sources(folder: Any, name: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the sources in a folder and below; of none that is not there."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        inner = f"{name}/{entry.name}"
        if entry.name.endswith(_SOURCES):
            yield inner, entry.read_bytes()
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _sources(entry, inner)
