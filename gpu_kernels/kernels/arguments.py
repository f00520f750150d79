"""A kernel's arguments as the numbers that CUDA hands to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype

from gpu_kernels.kernels.simulation import SIMULATED


class _Array(NamedTuple):
    """A declared array, contiguous in C's order."""

    dtype: np.dtype
    dimensions: int

    def values(self, array: Any) -> tuple[int, ...]:
        """As Numba passes arrays: two owners, size, bytes of an item, address, shape, strides."""
        if (
            array.dtype != self.dtype
            or array.ndim != self.dimensions
            or not array.flags.c_contiguous
        ):
            raise TypeError(
                f"a kernel takes a C-contiguous {self.dtype} array of {self.dimensions} dimensions,"
                f" not {array.dtype}, {array.ndim}, strides {array.strides}"
            )
        address = 0 if SIMULATED else array.data.ptr
        return (0, 0, array.size, array.itemsize, address, *array.shape, *array.strides)


class _Scalar(NamedTuple):
    """A declared number or truth value."""

    convert: type

    def values(self, value: Any) -> tuple[Any]:
        """The value, as the type whose size `cuda.core.launch` knows: 8 bytes, or 1 of a bool."""
        converted = self.convert(value)
        if converted != value:
            raise TypeError(f"a kernel takes {self.convert.__name__}, not {value!r}")
        return (converted,)


class _Tuple(NamedTuple):
    """A declared named tuple."""

    name: str
    parts: tuple[Any, ...]

    def values(self, argument: Any) -> list[Any]:
        """Those of its fields, one after the other."""
        if type(argument).__name__ != self.name:
            raise TypeError(f"a kernel takes {self.name}, not {type(argument).__name__}")
        return _values(self.parts, argument)


class Arguments:
    """The arguments that a kernel declares.

    Parameters
    ----------
    declared : sequence of numba.types.Type
        int64, float64, boolean, C-contiguous arrays, and named tuples of them.
    """

    def __init__(self, declared: Sequence[types.Type]) -> None:
        self._parts = tuple(map(_part, declared))

    def values(self, arguments: Sequence[Any]) -> list[Any]:
        """Numbers for `cuda.core.launch`, in the order of the compiled kernel's parameters.

        Raises
        ------
        TypeError
            If an argument is not of the type declared: the kernel would read other memory.
        """
        return _values(self._parts, arguments)


def _values(parts: tuple[Any, ...], arguments: Sequence[Any]) -> list[Any]:
    if len(parts) != len(arguments):
        raise TypeError(f"a kernel takes {len(parts)} arguments, not {len(arguments)}")
    return [
        value
        for part, argument in zip(parts, arguments, strict=True)
        for value in part.values(argument)
    ]


def _part(declared: Any) -> Any:
    if isinstance(declared, types.Array) and declared.layout == "C":
        return _Array(as_dtype(declared.dtype), declared.ndim)
    if isinstance(declared, (types.NamedTuple, types.NamedUniTuple)):
        return _Tuple(declared.instance_class.__name__, tuple(map(_part, declared)))
    if declared in _SCALARS:
        return _Scalar(_SCALARS[declared])
    raise TypeError(f"no kernel of ours takes {declared}")


_SCALARS = {types.int64: int, types.float64: float, types.boolean: bool}
