"""How Coincide compiles: Numba, without the GIL, cached on disk; and what all kernels share."""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numba
import numpy as np
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.errors import TypingError
from numba.core.typed_passes import NopythonTypeInference
from numba.extending import overload, register_jitable

from coincide.model.compiling import listen
from coincide.model.errors import KernelCacheWarning, first_line

listen()


@register_pass(mutates_CFG=False, analysis_only=True)
class ArraysAreBorrowed(AnalysisPass):
    """Refuses a kernel that returns arrays, or calls one that does."""

    _name = "arrays_are_borrowed"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Look at what the kernel returns, and at what its callees do."""
        returned = {"the kernel": state.return_type}
        for call, signature in state.calltypes.items():
            callee = state.typemap[call.func.name] if getattr(call, "op", "") == "call" else None
            if isinstance(callee, types.Dispatcher):
                returned[callee.dispatcher.py_func.__name__] = signature.return_type
        for who, kind in returned.items():
            if state.targetctx.data_model_manager[kind].contains_nrt_meminfo():
                raise TypingError(f"{who} returns arrays. Use compiled(allocates=True).")
        return False


class BorrowingCompiler(CompilerBase):
    """Numba's own, with that check."""

    def define_pipelines(self) -> list[Any]:
        """The passes."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(ArraysAreBorrowed, NopythonTypeInference)
        passes.finalize()
        return [passes]


BORROWING: dict[str, Any] = {"_nrt": False, "pipeline_class": BorrowingCompiler}
"""Options of `numba.njit` for a kernel that counts no references."""


Int64s = Annotated[np.ndarray, types.Array(types.int64, 1, "C")]
"""A C-contiguous array of one dimension; others likewise."""

Float64s = Annotated[np.ndarray, types.Array(types.float64, 1, "C")]


PACKAGES = ("coincide.model", "cpu_fallback", "gpu_kernels", "bench.papers")
"""Packages with kernels, below one root: a folder or a zip archive. The last one is in a checkout alone."""

_SOURCES = (".py", ".pyc")  # the second where a package is installed without its sources
_KEPT = (".nbi", ".nbc", ".lcs")
_DIGITS = 16


class _FolderOfKernels:
    """Mixin for a locator of Numba or Numba-CUDA: a folder that holds a kernel need not be writable."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)  # type: ignore[call-arg]
        self._function = function
        self._stem = Path(file).stem

    def ensure_cache_path(self) -> None:
        """Raise where nothing can be kept, and nothing is."""
        try:
            super().ensure_cache_path()  # type: ignore[misc]
        except OSError:
            name = f"{self._stem}.{self._function.__qualname__}".replace("<", "").replace(">", "")
            kept = f"{name}-{self.get_disambiguator()}.*-{sources_digest()}.nbi"  # type: ignore[attr-defined]
            if not any(Path(self.get_cache_path()).glob(kept)):  # type: ignore[attr-defined]
                raise

    def get_source_stamp(self) -> Any:
        """Not the time of a file, which images and archives cut off to whole seconds."""
        if _is_home(self._function.__module__):
            return sources_digest()
        return super().get_source_stamp()  # type: ignore[misc]


class KeyedBySources:
    """Mixin for a `CacheImpl` of Numba or Numba-CUDA."""

    _locator_classes: list[Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._locator_classes = [
            type(each.__name__, (_FolderOfKernels, each), {}) for each in cls._locator_classes
        ]

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """The name without its ending of a function's files."""
        own: str = super().get_filename_base(fullname, abiflags)  # type: ignore[misc]
        return f"{own}-{sources_digest()}"


class KeptKernels:
    """Mixin for a `Cache` of Numba or Numba-CUDA: holds a kernel of no sources but these.

    Files that cannot be read or written stop nothing: the kernel is compiled.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """A kernel from disk; None where no file is, or its files are damaged, which then go."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[misc]
        except Exception as error:  # Pickle raises almost anything of a file that was cut off
            self._remove(lambda name: name.startswith(f"{self._base}."))
            _warn_once(
                "read",
                f"compiled code in {self._folder} cannot be read (found {type(error).__name__}:"
                f" {first_line(error)}). Coincide compiles it again.",
            )
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, and let go of what was compiled from other sources."""
        # Who still wants to load that compiles it again. Nothing is kept of a kernel for named
        # tuples of other packages, which their methods went into: an edit of those would not show.
        if not all(map(_is_of_ours, getattr(sig, "args", sig))):
            return
        try:
            super().save_overload(sig, data)  # type: ignore[misc]
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            why = getattr(error, "strerror", None) or first_line(error)
            _warn_once(
                "kept",
                f"compiled code cannot be kept in {self._folder} (found: {why}), so that the next"
                " run compiles it again. Make room there, or name another folder in the"
                " environment variable NUMBA_CACHE_DIR.",
            )
            return
        function = self._base.removesuffix(f"-{sources_digest()}").rpartition("-")[0]
        self._remove(lambda name: name.startswith(f"{function}-") and sources_digest() not in name)

    @property
    def is_usable(self) -> bool:
        """Whether its folder can be written, or holds the kernel."""
        return is_writable(str(self._folder)) or (self._folder / f"{self._base}.nbi").is_file()

    @property
    def _folder(self) -> Path:
        return Path(self.cache_path)  # type: ignore[attr-defined]

    @property
    def _base(self) -> str:
        return str(self._impl.filename_base)  # type: ignore[attr-defined]

    def _remove(self, is_meant: Callable[[str], bool]) -> None:
        """Remove files of kernels, by their names."""
        for path in self._folder.glob("*"):
            if path.suffix in _KEPT and is_meant(path.name):
                with suppress(OSError):
                    path.unlink()


_told: set[str] = set()
"""What a warning was given of."""


def _warn_once(what: str, text: str) -> None:
    """Not for each kernel."""
    if what not in _told:
        _told.add(what)
        warnings.warn(KernelCacheWarning(text), stacklevel=3)


class _KernelCacheImpl(KeyedBySources, CompileResultCacheImpl):
    pass


class KernelCache(KeptKernels, FunctionCache):
    """Numba's cache of a function, keyed by the sources of all kernels."""

    _impl_class = _KernelCacheImpl


folders: set[str] = set()
"""Where the kernels that were imported are kept."""


def keep_on_disk(kernel: Any, kind: type) -> None:
    """Give what Numba will compile a cache on disk, if there is a folder for it."""
    if not hasattr(kernel, "_cache"):
        return
    try:
        kept = kind(kernel.py_func)
    except RuntimeError as error:
        if "cache" not in str(error):
            raise
        return
    # Numba finds out that an import is from a zip archive only when it writes.
    if kept.is_usable:
        kernel._cache = kept
        folders.add(kept.cache_path)


def _is_of_ours(kind: Any) -> bool:
    """Whether the named tuples in a type of Numba's come from the packages with kernels."""
    if hasattr(kind, "instance_class"):
        return _is_home(kind.instance_class.__module__) and all(map(_is_of_ours, kind))
    return True


def _is_home(module: str) -> bool:
    """Whether `sources_digest` counts a module."""
    return f"{module}.".startswith(tuple(f"{each}." for each in PACKAGES))


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
    inside: Any = files(PACKAGES[0].partition(".")[0])
    for package in PACKAGES:
        folder = inside.parent.joinpath(*package.split("."))
        for name, source in sorted(_sources(folder, package)):
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


def compiled(
    function: Callable[..., Any] | None = None, /, *, allocates: bool = False, **options: Any
) -> Any:
    """Compile with `numba.njit`, kept on disk if there is a folder for it."""
    # Kernels release the GIL, so that one compiled version serves a single-core Spark worker and,
    # run by several threads on disjoint blocks, a whole machine. ``error_model="numpy"`` keeps
    # division free of branches; ``fastmath`` stays off, since probabilities must agree to the bit.
    # What is on disk is used with the very sources that it was compiled from
    # (`coincide.model.compiled`). Where no folder can be written or holds it (zip imports, read-only
    # site-packages without a home) a kernel is compiled anew in each process.
    if function is None:
        return lambda inner: compiled(inner, allocates=allocates, **options)
    owners = {"_nrt": True} if allocates else BORROWING
    kernel = numba.njit(**{"nogil": True, "error_model": "numpy", **owners, **options})(function)
    keep_on_disk(kernel, KernelCache)
    return kernel


def either(function: Callable[..., Any]) -> Any:
    """A function that kernels compile for the types they give it, and that Python runs for all others."""
    return register_jitable(error_model="numpy", **BORROWING)(function)


def read_only(values: np.ndarray) -> np.ndarray:
    """The same array, read only as Arrow's are: to Numba what can be written has another type."""
    view = values.view()
    view.flags.writeable = False
    return view


@compiled(forceinline=True)
def copy_into(target, source):
    """Copy an array, or a slice, over another of its length: one dimension."""
    # ``target[:] = source`` would broadcast, and the message that Numba has for shapes which do not
    # fit takes it as long to compile as a whole join.
    for i in range(target.size):
        target[i] = source[i]


def product(a: float, b: float) -> float:
    """a * b, rounded before anything is added to it: compilers for GPUs would fuse the two."""
    return a * b


def _product(a, b):
    return lambda a, b: a * b


overload(product)(_product)
