"""How kernels are compiled, and what they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import addressof, c_void_p, create_string_buffer
from functools import cache
from struct import Struct
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types
from numba.np.numpy_support import as_dtype

from coincide.model.compiled import KeptKernels, KeyedBySources, keep_on_disk, product
from coincide.model.remembered import remembered
from coincide.model.timestamps.protocol import numba_type, teach
from gpu_kernels.kernels.simulation import SIMULATED

_CONSTANTS = 0, 1, 2, 4, 8
"""What all launches have alike: no owner of an array's memory, and the bytes of an item."""


class _Array(NamedTuple):
    """A declared array, contiguous in C's order."""

    dtype: np.dtype
    dimensions: int
    strides: tuple[int, ...]  # One dimension's; no array has those of others

    @classmethod
    def of(cls, declared: types.Array) -> _Array:
        """From what Numba knows."""
        dtype = as_dtype(declared.dtype)
        return cls(dtype, declared.ndim, (dtype.itemsize,) if declared.ndim == 1 else ())

    @property
    def slots(self) -> list[str]:
        """Size and address, and of more dimensions the shape and the strides."""
        return ["q"] * (2 if self.strides else 2 + 2 * self.dimensions)

    def parameters(self, first: int) -> list[int]:
        """As Numba passes arrays: two owners, size, bytes of an item, address, shape, strides."""
        owner, item = map(_CONSTANTS.index, (0, self.dtype.itemsize))
        rest = [first, item] if self.strides else range(first + 2, first + len(self.slots))
        return [owner, owner, first, item, first + 1, *rest]

    def add(self, array: Any, values: list[Any]) -> None:
        """What its slots hold."""
        if array.strides == self.strides and array.dtype == self.dtype:
            # The flags of CuPy's arrays take longer than all the rest, and most arrays are such.
            values += (array.size, 0 if SIMULATED else array.data.ptr)
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
        values += (array.size, 0 if SIMULATED else array.data.ptr)
        if not self.strides:
            values += (*array.shape, *array.strides)


class _Scalar(NamedTuple):
    """A declared number or truth value."""

    convert: type
    slots: tuple[str]

    def parameters(self, first: int) -> list[int]:
        """Its one slot."""
        return [first]

    def add(self, value: Any, values: list[Any]) -> None:
        """The value, in its type."""
        converted = self.convert(value)
        if converted != value:
            raise TypeError(f"a kernel takes {self.convert.__name__}, not {value!r}.")
        values.append(converted)


class _Tuple(NamedTuple):
    """A declared named tuple."""

    name: str
    parts: tuple[Any, ...]

    @property
    def slots(self) -> list[str]:
        """Those of its fields, one after the other."""
        return [slot for part in self.parts for slot in part.slots]

    def parameters(self, first: int) -> list[int]:
        """Likewise."""
        found: list[int] = []
        for part in self.parts:
            found += part.parameters(first)
            first += len(part.slots)
        return found

    def add(self, argument: Any, values: list[Any]) -> None:
        """Likewise."""
        if type(argument).__name__ != self.name:
            raise TypeError(f"a kernel takes {self.name}, not {type(argument).__name__}")
        _add(self.parts, argument, values)


class Fixed:
    """An argument of many launches: its numbers are found once."""

    def __init__(self, argument: Any) -> None:
        self.argument = argument
        self._part: Any = None
        self._numbers: list[Any] = []

    def numbers(self, part: Any) -> list[Any]:
        """What the slots of a declared argument hold."""
        if self._part is not part:
            numbers: list[Any] = []
            part.add(self.argument, numbers)
            self._part, self._numbers = part, numbers
        return self._numbers


def _itself(argument: Any) -> Any:
    return argument.argument if type(argument) is Fixed else argument


class Arguments:
    """The arguments that a kernel declares, and memory from which the driver takes them.

    Parameters of a kernel that have the same number share a slot of that memory.
    """

    def __init__(self, declared: Sequence[types.Type]) -> None:
        whole = _Tuple("", tuple(map(_part, declared)))
        self._parts = whole.parts
        self._start = 8 * len(_CONSTANTS)
        self._pack_into = Struct("=" + "".join(whole.slots)).pack_into
        self._memory = create_string_buffer(self._start + 8 * len(whole.slots))
        Struct(f"={len(_CONSTANTS)}q").pack_into(self._memory, 0, *_CONSTANTS)
        places = whole.parameters(len(_CONSTANTS))
        self._places = (c_void_p * len(places))(
            *(addressof(self._memory) + 8 * place for place in places)
        )
        self.address = addressof(self._places)

    def pack(self, arguments: Sequence[Any]) -> None:
        """Put them where `address` leads to, for one launch: by one thread at a time."""
        values: list[Any] = []
        _add(self._parts, arguments, values)
        self._pack_into(self._memory, self._start, *values)


def _add(parts: tuple[Any, ...], arguments: Sequence[Any], values: list[Any]) -> None:
    if len(parts) != len(arguments):
        raise TypeError(f"a kernel takes {len(parts)} arguments, not {len(arguments)}")
    for part, argument in zip(parts, arguments, strict=True):
        if type(argument) is Fixed:
            values += argument.numbers(part)
        else:
            part.add(argument, values)


@cache
def _part(declared: Any) -> Any:
    if isinstance(declared, types.Array) and declared.layout == "C":
        return _Array.of(declared)
    if isinstance(declared, (types.NamedTuple, types.NamedUniTuple)):
        return _Tuple(declared.instance_class.__name__, tuple(map(_part, declared)))
    if declared in _SCALARS:
        return _SCALARS[declared]
    raise TypeError(f"no kernel of ours takes {declared}")


_SCALARS = {
    types.int64: _Scalar(int, ("q",)),
    types.float64: _Scalar(float, ("d",)),
    types.boolean: _Scalar(bool, ("?7x",)),
}


if not SIMULATED:
    from cuda.bindings.driver import CUfunction, cuCtxGetDevice, cuLaunchKernel
    from numba.cuda import libdevice
    from numba.cuda.cudadrv.driver import CudaAPIError
    from numba.cuda.dispatcher import CUDACache, CUDACacheImpl
    from numba.cuda.extending import overload, overload_method

    teach(overload_method, forceinline=True)

    @overload(product)
    def _rounded(a, b):
        return lambda a, b: libdevice.dmul_rn(a, b)

    class _KernelCacheImpl(KeyedBySources, CUDACacheImpl):
        pass

    class KernelCache(KeptKernels, CUDACache):
        """Numba-CUDA's cache of a kernel, keyed by the sources of all kernels."""

        _impl_class = _KernelCacheImpl


THREADS = 4 if SIMULATED else 256
"""Threads of a block."""

ITEMS = 8
"""Items of a tile that one thread handles: as many as a byte has bits."""

TILE = THREADS * ITEMS
"""Consecutive candidates, or output rows, that one block handles."""

_DEFAULT_STREAM = 0

_LOADING = RLock()
"""Held while a kernel is compiled or loaded: threads of several devices launch the same ones."""


class _Loaded(NamedTuple):
    """A kernel on a device, and memory for the arguments of its launches there."""

    function: Any
    arguments: Arguments


class Kernel:
    """A kernel, compiled for the types that it declares and launched with no others.

    Numba-CUDA would find out the types of all arguments at every launch, one by one, in Python.
    """

    def __init__(
        self, function: Callable[..., None], declared: tuple[types.Type, ...], compiled: Any = None
    ) -> None:
        self.py_func = function
        self.types = declared
        self._compiled = compiled or _cached(function)
        self._overload: Any = None
        self._loaded: dict[int, _Loaded] = {}

    def launch(self, blocks: int, *arguments: Any) -> None:
        """Run it on the current device's default stream, in blocks of `THREADS` threads."""
        if SIMULATED:
            self._checked.pack(arguments)
            self._compiled[blocks, THREADS](*map(_itself, arguments))
            return
        here = self._here()
        here.arguments.pack(arguments)
        (status,) = cuLaunchKernel(
            here.function, int(blocks), 1, 1, THREADS, 1, 1, 0, _DEFAULT_STREAM,
            here.arguments.address, 0,
        )  # fmt: skip
        if status:
            raise CudaAPIError(status, f"the launch of a kernel ends in {status.name}")

    @remembered
    def _checked(self) -> Arguments:
        """What refuses arguments of other types, where nothing else does."""
        return Arguments(self.types)

    def _here(self) -> _Loaded:
        """The kernel on the current device."""
        status, device = cuCtxGetDevice()
        found = None if status else self._loaded.get(int(device))
        return self._load() if found is None else found

    def _load(self) -> _Loaded:
        """Likewise, by Numba-CUDA, which also makes a device current where none is."""
        with _LOADING:
            if self._overload is None:
                self._overload = self._compiled.compile(self.types)
            kernel = self._overload.library.get_cufunc().kernel
        _, device = cuCtxGetDevice()
        made = _Loaded(CUfunction(int(kernel.handle)), Arguments(self.types))
        self._loaded[int(device)] = made
        return made

    def declaring(self, *declared: types.Type) -> Kernel:
        """The same kernel for arguments of other types, whose named tuples have the same methods."""
        return Kernel(self.py_func, declared, self._compiled)


class RuleKernel:
    """A kernel that decides pairs: a `Kernel` for each type of rule, compiled when first launched with it.

    Its first argument are the `Sides`, or the rule itself.
    """

    def __init__(
        self,
        function: Callable[..., None],
        declared: Callable[[Any], tuple[types.Type, ...]],
        compiled: Any = None,
    ) -> None:
        self.py_func = function
        self._declared = declared
        self._compiled = compiled or _cached(function)
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
        sides = _itself(first)
        self.of(type(getattr(sides, "rule", sides))).launch(blocks, first, *more)

    def declaring(self, declared: Callable[[Any], tuple[types.Type, ...]]) -> RuleKernel:
        """The same kernel for arguments of other types, whose named tuples have the same methods."""
        return RuleKernel(self.py_func, declared, self._compiled)


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
