"""A stand-in for CuPy on the virtual GPU: as much of it as the product asks for, computed by NumPy.

Arrays lie in the memory of the virtual driver, where kernels find them. Like CuPy it takes no array of
the host but where a copy is asked for. Copies on another stream than the default one happen as late as they
may, so what no one waits for is not there; what may overtake a kernel is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy import float64, int64, uint8

from cupy import cuda
from cupy._memory import DRIVER, Memory, address, check_device
from tests.virtual_gpu import compiling

__version__ = "14.2.0"
__all__ = ["cuda", "float64", "int64", "ndarray", "uint8"]

compiling.install()


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array in device memory."""

    def __init__(self, shape: Any, dtype: Any = float, *, held: np.ndarray | None = None) -> None:
        self._held = held if held is not None else Memory.array(shape, np.dtype(dtype))

    dtype = property(lambda self: self._held.dtype)
    shape = property(lambda self: self._held.shape)
    strides = property(lambda self: self._held.strides)
    size = property(lambda self: self._held.size)
    ndim = property(lambda self: self._held.ndim)
    itemsize = property(lambda self: self._held.itemsize)
    nbytes = property(lambda self: self._held.nbytes)
    flags = property(lambda self: self._held.flags)
    data = property(lambda self: cuda.MemoryPointer(self._held))
    device = property(lambda self: cuda.Device(_place(self._held)))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.data.ptr, False), "shape": self.shape, "typestr": self.dtype.str,
            "strides": None if self.flags.c_contiguous else self.strides, "version": 3,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self.device.id

    def __dlpack__(self, **_: Any) -> Any:
        return self._held

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a"
            " NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
        return _called(getattr(ufunc, method), inputs, given, ufunc.__name__)

    def __array_function__(self, function: Any, _types: Any, inputs: Any, given: Any) -> Any:
        return globals()[function.__name__](*inputs, **given)

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, index: Any) -> ndarray:
        check_device(self._held)
        index = _own(index, "an index")
        found = self._held[index]
        if isinstance(found, np.ndarray) and np.may_share_memory(found, self._held):
            return ndarray(None, held=found)
        # An item is an array of no dimensions, in the memory of its array.
        if not isinstance(found, np.ndarray) and isinstance(index, int):
            return ndarray(None, held=self._held[index : index + 1 or None].reshape(()))
        return _copied(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        check_device(self._held)
        cuda.written(self._held)
        self._held[_own(index, "an index")] = _own(value, "an assignment")

    def _one(self) -> Any:
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    def item(self) -> Any:
        return self._one()

    def __int__(self) -> int:
        return int(self._one())

    def __index__(self) -> int:
        return self._one().__index__()  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return float(self._one())

    def __bool__(self) -> bool:
        return bool(self._one())

    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> np.ndarray:
        """A copy in host memory."""
        if out is None:
            out = np.empty(self.shape, self.dtype)
        if not isinstance(out, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        if out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError(f"{out.dtype}, {out.shape} is not {self.dtype}, {self.shape}")
        if not out.flags.c_contiguous or not self.flags.c_contiguous:
            raise RuntimeError("copies take C-contiguous arrays")
        check_device(self._held)
        if stream is None:
            cuda.crossed(self._held, to_host=True, waiting=True)
            np.copyto(out, self._held)
        else:
            stream.copy(self._held, out, to_host=True)
            if blocking:
                stream.synchronize()
        return out

    def set(self, source: Any, stream: Any = None) -> None:
        """Copy an array of the host here."""
        if not isinstance(source, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if source.dtype != self.dtype:
            raise TypeError(f"{source.dtype} array cannot be set to {self.dtype} array")
        if source.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {source.shape}")
        check_device(self._held)
        if stream is None:
            cuda.written(self._held)
            cuda.crossed(self._held, to_host=False, waiting=False)
            np.copyto(self._held, source)
        else:
            stream.copy(self._held, np.ascontiguousarray(source), to_host=False)

    def fill(self, value: Any) -> None:
        check_device(self._held)
        cuda.written(self._held)
        self._held.fill(_own(value, "fill"))

    def view(self, dtype: Any) -> ndarray:
        return ndarray(None, held=self._held.view(dtype))

    def reshape(self, *shape: Any) -> ndarray:
        return ndarray(None, held=self._held.reshape(*shape))

    def ravel(self) -> ndarray:
        return self.reshape(-1)

    def astype(self, dtype: Any, copy: bool = True) -> ndarray:
        return _copied(self._held.astype(dtype)) if copy or dtype != self.dtype else self

    def copy(self) -> ndarray:
        return _copied(self._held)


def _reduced(name: str) -> Callable[..., ndarray]:
    def method(self: ndarray, *inputs: Any, **given: Any) -> ndarray:
        return _called(getattr(np, name), (self, *inputs), given, name)

    return method


for _name in ("sum", "max", "min", "cumsum", "any", "all"):
    setattr(ndarray, _name, _reduced(_name))


def _place(held: np.ndarray) -> int:
    """The device of an array."""
    return DRIVER.virtual_device_of(address(held)) if held.size else DRIVER.virtual_device()


def _own(given: Any, where: str) -> Any:
    """What NumPy is to work on; arrays of the host are refused."""
    if isinstance(given, ndarray):
        check_device(given._held)
        return given._held
    if isinstance(given, np.ndarray):
        raise TypeError(f"Unsupported type {type(given)} in {where}")
    if isinstance(given, (tuple, list)):
        return type(given)(_own(each, where) for each in given)
    return given


def _copied(found: Any) -> Any:
    """A result in device memory."""
    found = np.asarray(found)
    made = ndarray(found.shape, found.dtype)
    np.copyto(made._held, found)
    return made


def _called(function: Any, inputs: Any, given: dict[str, Any], name: str) -> Any:
    given = {key: _own(value, name) for key, value in given.items()}
    for out in np.atleast_1d(np.array([None, *_outputs(given)], object))[1:]:
        cuda.written(out)
    found = function(*_own(tuple(inputs), name), **given)
    if given.get("out") is not None:
        return ndarray(None, held=found)
    return _copied(found)


def _outputs(given: dict[str, Any]) -> list[np.ndarray]:
    out = given.get("out")
    return [] if out is None else list(out) if isinstance(out, tuple) else [out]


def _taken_over(name: str) -> Callable[..., ndarray]:
    def function(*inputs: Any, **given: Any) -> ndarray:
        return _called(getattr(np, name), inputs, given, name)

    function.__name__ = name
    return function


for _name in (
    *(
        "append",
        "arange",
        "ascontiguousarray",
        "bincount",
        "concatenate",
        "cumsum",
        "diff",
        "empty_like",
    ),
    *(
        "maximum",
        "minimum",
        "repeat",
        "searchsorted",
        "sort",
        "stack",
        "subtract",
        "add",
        "where",
        "zeros",
    ),
):
    globals()[_name] = _taken_over(_name)


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """An array of memory that holds anything."""
    return ndarray(shape, dtype)


def argsort(array: ndarray, axis: int = -1, kind: Any = None) -> ndarray:
    """Stable, whatever is asked for."""
    if kind not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")
    return _called(np.argsort, (array, axis), {"kind": "stable"}, "argsort")  # type: ignore[no-any-return]


_CUDA = 2


def from_dlpack(array: Any) -> ndarray:
    """An array of the device that lies where another one does."""
    device, held = array.__dlpack_device__()[0], array.__dlpack__()
    if device != _CUDA:
        raise BufferError("only arrays of the device")
    return ndarray(None, held=held)


def asarray(array: Any, dtype: Any = None) -> ndarray:
    """A copy of an array of the host; one of the device is itself, or another view of its memory."""
    if isinstance(array, ndarray):
        return array
    if hasattr(array, "__cuda_array_interface__"):
        there = SimpleNamespace(__array_interface__=array.__cuda_array_interface__, held=array)
        return ndarray(None, held=np.asarray(there))
    made = _copied(np.asarray(array, dtype))
    cuda.crossed(made._held, to_host=False, waiting=False)
    return made


def copyto(target: ndarray, source: ndarray) -> None:
    """On the device."""
    cuda.written(target._held)
    np.copyto(target._held, _own(source, "copyto"))


def _scan_in_place(array: ndarray, op: int) -> ndarray:
    """As CuPy's, for what it takes."""
    assert op == cuda.cub.CUPY_CUB_CUMSUM
    assert array._held.flags.c_contiguous
    cuda.written(array._held)
    np.cumsum(array._held, out=array._held)
    return array


cuda.cub = SimpleNamespace(CUPY_CUB_CUMSUM=5, cub_scan=_scan_in_place)  # type: ignore[attr-defined]


def get_default_memory_pool() -> Any:
    return cuda.POOL


def get_default_pinned_memory_pool() -> Any:
    return cuda.POOL
