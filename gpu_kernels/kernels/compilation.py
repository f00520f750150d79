"""How kernels are compiled and launched. Kernels are in files that import no CuPy.

So they also run in Numba's CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), where a block has few threads:
each is a thread of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import cuda, types

from coincide.kernel_cache import ForgetsOtherSources, KeyedBySources, keep_on_disk
from coincide.rounding import product
from coincide.timestamps.dispatch import numba_type, teach
from gpu_kernels.kernels.arguments import Arguments
from gpu_kernels.kernels.simulation import SIMULATED

if not SIMULATED:
    from cuda.core import LaunchConfig, Stream, launch
    from numba.cuda import libdevice
    from numba.cuda.dispatcher import CUDACache, CUDACacheImpl
    from numba.cuda.extending import overload, overload_method

    teach(overload_method, forceinline=True)

    @overload(product)
    def _rounded(a, b):
        return lambda a, b: libdevice.dmul_rn(a, b)

    class _KernelCacheImpl(KeyedBySources, CUDACacheImpl):
        pass

    class KernelCache(ForgetsOtherSources, CUDACache):
        """Numba-CUDA's cache of a kernel, keyed by the sources of all kernels."""

        _impl_class = _KernelCacheImpl


THREADS = 4 if SIMULATED else 256
"""Threads of a block."""

ITEMS = 8
"""Items of a tile that one thread handles: as many as a byte has bits."""

TILE = THREADS * ITEMS
"""Consecutive candidates, or output rows, that one block handles."""

_DEFAULT_STREAM = 0


class Kernel:
    """A kernel, compiled for the types that it declares and launched with no others.

    Numba-CUDA would find out the types of all arguments at every launch, one by one, in Python.

    Parameters
    ----------
    function : callable
        In the Python that Numba compiles.
    declared : tuple of numba.types.Type
        Of its arguments.
    compiled : Dispatcher, optional
        Of the function, if there is one already.
    """

    def __init__(
        self, function: Callable[..., None], declared: tuple[types.Type, ...], compiled: Any = None
    ) -> None:
        self.py_func = function
        self.types = declared
        self._arguments = Arguments(declared)
        self._compiled = compiled or _cached(function)
        self._overload: Any = None
        self._stream: Any = None

    def launch(self, blocks: int, *arguments: Any) -> None:
        """Run it on the current device's default stream, in blocks of `THREADS` threads.

        Raises
        ------
        TypeError
            If an argument is not of the type declared.
        """
        values = self._arguments.values(arguments)
        if SIMULATED:
            self._compiled[blocks, THREADS](*arguments)
            return
        if self._overload is None:
            self._overload = self._compiled.compile(self.types)
            self._stream = Stream.from_handle(_DEFAULT_STREAM)
        function = self._overload.library.get_cufunc()  # of the current device
        launch(
            self._stream, LaunchConfig(grid=int(blocks), block=THREADS), function.kernel, *values
        )

    def declaring(self, *declared: types.Type) -> Kernel:
        """The same kernel for arguments of other types, whose named tuples have the same methods."""
        return Kernel(self.py_func, declared, self._compiled)


class RuleKernel:
    """A kernel that decides pairs: a `Kernel` for each type of rule, compiled when first launched with it.

    Its first argument are the `Sides`, or the rule itself.

    Parameters
    ----------
    function : callable
        In the Python that Numba compiles.
    declared : callable
        From the Numba type of a rule to the types of the arguments.
    """

    def __init__(
        self, function: Callable[..., None], declared: Callable[[Any], tuple[types.Type, ...]]
    ) -> None:
        self.py_func = function
        self._declared = declared
        self._compiled = _cached(function)
        self._kernels: dict[type, Kernel] = {}

    def of(self, rule: type) -> Kernel:
        """The kernel for a type of rule."""
        found = self._kernels.get(rule)
        if found is None:
            declared = self._declared(numba_type(rule))
            found = self._kernels[rule] = Kernel(self.py_func, declared, self._compiled)
        return found

    def launch(self, blocks: int, first: Any, *more: Any) -> None:
        """As `Kernel.launch`."""
        rule = getattr(first, "rule", first)
        self.of(type(rule)).launch(blocks, first, *more)

    def declaring(self, *declared: types.Type) -> Kernel:
        """The same kernel for arguments of other types, whose named tuples have the same methods."""
        return Kernel(self.py_func, declared, self._compiled)


def kernel(*declared: types.Type) -> Callable[[Callable[..., None]], Kernel]:
    """Make a `Kernel` of a function whose arguments have these types."""
    return lambda function: Kernel(function, declared)


def rule_kernel(
    declared: Callable[[Any], tuple[types.Type, ...]],
) -> Callable[[Callable[..., None]], RuleKernel]:
    """Make a `RuleKernel` of a function whose arguments have these types, given that of a rule."""
    return lambda function: RuleKernel(function, declared)


def _cached(function: Callable[..., None]) -> Any:
    """Compile with `cuda.jit`, kept on disk where a folder can be written."""
    kernel = cuda.jit(function)
    if not SIMULATED:
        keep_on_disk(kernel, KernelCache)
    return kernel


def device_function(function: Callable[..., Any]) -> Any:
    """Compile a function that kernels call."""
    return cuda.jit(function, device=True)


def launch_each(kernel: Kernel | RuleKernel, items: int, *arguments: Any) -> None:
    """Run a kernel with a thread for each item; not at all for none."""
    if items:
        kernel.launch(-(-items // THREADS), *arguments)


def launch_tiles(kernel: Kernel | RuleKernel, items: int, *arguments: Any) -> None:
    """Run a kernel with a block for each tile of items; not at all for none."""
    if items:
        kernel.launch(-(-items // TILE), *arguments)
