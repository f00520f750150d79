"""How kernels are compiled, and what they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types
from numba.np.numpy_support import as_dtype

from coincide.model.compiled import ForgetsOtherSources, KeyedBySources, keep_on_disk, product
from coincide.model.timestamps.protocol import numba_type, teach
from gpu_kernels.kernels.simulation import SIMULATED


class _Array(NamedTuple):
    """A declared array, contiguous in C's order."""

    dtype: np.dtype
    dimensions: int
    strides: tuple[int, ...]  # Of one dimension; no array has those of others

    @classmethod
    def of(cls, declared: types.Array) -> _Array:
        """From what Numba knows."""
        dtype = as_dtype(declared.dtype)
        return cls(dtype, declared.ndim, (dtype.itemsize,) if declared.ndim == 1 else ())

    def add(self, array: Any, values: list[Any]) -> None:
        """As Numba passes arrays: two owners, size, bytes of an item, address, shape, strides."""
        if array.strides == self.strides and array.dtype == self.dtype:
            # The flags of CuPy's arrays take longer than all the rest, and most arrays are such.
            size, item = array.size, array.itemsize
            values += (0, 0, size, item, _address(array), size, item)
            return
        if (
            array.dtype != self.dtype
            or array.ndim != self.dimensions
            or not array.flags.c_contiguous
        ):
            raise TypeError(
                f"a kernel takes a C-contiguous {self.dtype} array of {self.dimensions} dimensions,"
                f" not {array.dtype}, {array.ndim}, strides {array.strides}"
            )
        values += (0, 0, array.size, array.itemsize, _address(array), *array.shape, *array.strides)


def _address(array: Any) -> int:
    return 0 if SIMULATED else array.data.ptr


class _Scalar(NamedTuple):
    """A declared number or truth value."""

    convert: type

    def add(self, value: Any, values: list[Any]) -> None:
        """The value, as the type whose size `cuda.core.launch` knows: 8 bytes, or 1 of a bool."""
        converted = self.convert(value)
        if converted != value:
            raise TypeError(f"a kernel takes {self.convert.__name__}, not {value!r}.")
        values.append(converted)


class _Tuple(NamedTuple):
    """A declared named tuple."""

    name: str
    parts: tuple[Any, ...]

    def add(self, argument: Any, values: list[Any]) -> None:
        """Those of its fields, one after the other."""
        if type(argument).__name__ != self.name:
            raise TypeError(f"a kernel takes {self.name}, not {type(argument).__name__}")
        _add(self.parts, argument, values)


class Arguments:
    """The arguments that a kernel declares."""

    def __init__(self, declared: Sequence[types.Type]) -> None:
        self._parts = tuple(map(_part, declared))

    def values(self, arguments: Sequence[Any]) -> list[Any]:
        """Numbers for `cuda.core.launch`, in the order of the compiled kernel's parameters."""
        values: list[Any] = []
        _add(self._parts, arguments, values)
        return values


def _add(parts: tuple[Any, ...], arguments: Sequence[Any], values: list[Any]) -> None:
    if len(parts) != len(arguments):
        raise TypeError(f"a kernel takes {len(parts)} arguments, not {len(arguments)}")
    for part, argument in zip(parts, arguments, strict=True):
        part.add(argument, values)


def _part(declared: Any) -> Any:
    if isinstance(declared, types.Array) and declared.layout == "C":
        return _Array.of(declared)
    if isinstance(declared, (types.NamedTuple, types.NamedUniTuple)):
        return _Tuple(declared.instance_class.__name__, tuple(map(_part, declared)))
    if declared in _SCALARS:
        return _Scalar(_SCALARS[declared])
    raise TypeError(f"no kernel of ours takes {declared}")


_SCALARS = {types.int64: int, types.float64: float, types.boolean: bool}


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
        """Run it on the current device's default stream, in blocks of `THREADS` threads."""
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
