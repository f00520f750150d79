"""How kernels are launched: with the numbers that Numba-CUDA would hand over, and no other types."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import types
from numba.np.numpy_support import as_dtype

from coincide.model.timestamps import IntervalRule
from coincide.model.timestamps.protocol import numba_type
from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED:
    pytest.skip("the simulator launches nothing", allow_module_level=True)

from cuda.bindings.driver import CUresult
from numba.cuda import dispatcher
from numba.cuda.cudadrv import devices
from numba.cuda.dispatcher import _Kernel

from gpu_kernels import join
from gpu_kernels.device import memory, turn, usable
from gpu_kernels.device.arrays import is_of_device, is_out_of_memory
from gpu_kernels.kernels import compilation
from gpu_kernels.kernels import join as placement
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import (
    THREADS,
    TILE,
    Arguments,
    Fixed,
    Kernel,
    launch_each,
    launch_tiles,
)
from gpu_kernels.kernels.join import (
    BASE,
    F64_ARRAY,
    I64_ARRAY,
    I64_TABLE,
    RECIPROCAL_BITS,
    RUN,
    TARGETS,
    Base,
    Run,
)
from tests.helpers.gpu_compilation import KERNELS

RULE = numba_type(IntervalRule)


class DeviceArray:
    """An array in device memory, with what of CuPy's is used here, and what Numba-CUDA reads."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.data = SimpleNamespace(ptr=array.ctypes.data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, max_version: Any = None, **_: Any) -> Any:
        return self._array.__dlpack__(max_version=max_version)


def made(declared: types.Type, random: np.random.Generator) -> Any:
    """An argument of a declared type."""
    if isinstance(declared, types.Array):
        shape = random.integers(1, 9, declared.ndim)
        return DeviceArray(np.empty(shape, as_dtype(declared.dtype)))
    if isinstance(declared, types.BaseNamedTuple):
        return declared.instance_class(*(made(each, random) for each in declared))
    if declared == types.float64:
        return random.random()
    return bool(random.integers(2)) if declared == types.boolean else int(random.integers(-99, 99))


_KINDS = {int: ctypes.c_int64, float: ctypes.c_double, bool: ctypes.c_bool}


def found_at(address: int, kinds: Sequence[type]) -> list[Any]:
    """What a driver reads that is given an address of the addresses of all parameters."""
    places = (ctypes.c_void_p * len(kinds)).from_address(address)
    return [_KINDS[each].from_address(at).value for each, at in zip(kinds, places, strict=True)]


def packed(declared: Sequence[types.Type], arguments: Sequence[Any], kinds: Sequence[type]) -> Any:
    """What reaches a kernel."""
    holder = Arguments(declared)
    holder.pack(arguments)
    return found_at(holder.address, kinds)


def theirs(kernel: Kernel, arguments: Sequence[Any]) -> list[Any]:
    """What Numba-CUDA would pass, without the C types that it wraps numbers into."""
    found: list[Any] = []
    bare = _Kernel.__new__(_Kernel)
    bare.extensions = []
    for declared, argument in zip(kernel.types, arguments, strict=True):
        bare._prepare_args(declared, argument, 0, [], found)
    return [getattr(value, "value", value) for value in found]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.py_func.__name__)
def test_arguments_are_as_numba_passes_them(kernel: Kernel) -> None:
    random = np.random.default_rng(3)
    for _ in range(5):
        arguments = [made(each, random) for each in kernel.types]
        expected = theirs(kernel, arguments)
        assert packed(kernel.types, arguments, [type(each) for each in expected]) == expected
        assert {type(value) for value in expected} <= {int, float, bool}


def test_numbers_reach_a_kernel_in_their_size() -> None:
    """8 bytes of an int or a float, one of a bool; also where the launch before had others."""
    declared = types.int64, types.float64, types.boolean
    holder = Arguments(declared)
    for given in ((-(1 << 60), 0.1, True), (7, -1e300, False)):
        holder.pack(given)
        assert found_at(holder.address, (int, float, bool)) == list(given)


def test_arrays_that_differ_in_one_number() -> None:
    """Numbers that parameters share are those that Numba-CUDA passes twice."""
    random = np.random.default_rng(5)
    arrays = [made(each, random) for each in (I64_ARRAY, I64_TABLE, F64_ARRAY)]
    kernel = Kernel(lambda *_: None, (I64_ARRAY, I64_TABLE, F64_ARRAY))
    expected = theirs(kernel, arrays)
    assert len(expected) == 7 + 9 + 7
    assert packed(kernel.types, arrays, [int] * len(expected)) == expected


def test_the_first_kernel_is_launched_as_joins_launch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """All host code runs but CuPy's; in place of a device Python runs the kernel."""

    def launch(kernel: Kernel, _blocks: int, rule: Any, *arrays: np.ndarray) -> None:
        Arguments(kernel.types).pack([rule, *map(DeviceArray, arrays)])
        kernel.py_func(rule, *arrays)

    monkeypatch.setattr(Kernel, "launch", launch)
    monkeypatch.setattr(placement.cuda, "grid", lambda _: 0)
    monkeypatch.setattr(usable, "select", lambda _: None)
    monkeypatch.setattr(turn, "_selected", lambda: 0)
    monkeypatch.setattr(turn, "_default_stream", nullcontext)
    monkeypatch.setattr(memory, "_allocate", np.empty)
    transfers = SimpleNamespace(send=lambda *groups: iter(groups))
    monkeypatch.setattr(join, "current", lambda: transfers)
    monkeypatch.setattr(join, "on_host", lambda found, out: np.copyto(out, found))
    assert usable._first_kernel_problem(0) is None
    monkeypatch.setattr(join, "on_host", lambda found, out: np.copyto(out, found / 2))
    assert "wrong answer" in str(usable._first_kernel_problem(0))


def array(kind: type = np.int64, dimensions: int = 1) -> DeviceArray:
    return DeviceArray(np.zeros((4,) * dimensions, kind))


@pytest.mark.parametrize(
    ("declared", "argument", "says"),
    [
        (I64_ARRAY, array(np.int32), "C-contiguous int64 array of 1 dimensions, not int32"),
        (I64_ARRAY, array(np.uint64), "not uint64"),
        (I64_ARRAY, array(np.int64, 2), "of 1 dimensions, not int64, 2"),
        (I64_TABLE, array(np.int64), "of 2 dimensions, not int64, 1"),
        (I64_ARRAY, DeviceArray(np.zeros(8, np.int64)[::2]), r"strides \(16,\)"),
        (types.int64, 0.5, "takes int, not 0.5"),
        (types.boolean, 2, "takes bool, not 2"),
        (RUN, IntervalRule(0, 1, 0.5), "takes Run, not IntervalRule"),
        (RUN, (0, 1, 2), "takes Run, not tuple"),
        (BASE, Base(array(), array(), array(), array()), "uint16 array of 1 dimensions, not int64"),
    ],
)
def test_other_types_are_refused(declared: types.Type, argument: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        Arguments([declared]).pack([argument])


def test_every_argument_must_be_given() -> None:
    with pytest.raises(TypeError, match="2 arguments, not 1"):
        Arguments([RULE, RUN]).pack([IntervalRule(0, 1, 0.5)])
    with pytest.raises(TypeError, match="no kernel of ours takes"):
        Arguments([types.int32])
    with pytest.raises(TypeError, match="no kernel of ours takes"):
        Arguments([types.Array(types.int64, 1, "A")])


def test_what_is_fixed_is_looked_at_once() -> None:
    """For kernels of the same declaration; for others once more."""
    random = np.random.default_rng(6)
    base, targets = made(BASE, random), made(TARGETS, random)
    kernel = Kernel(lambda *_: None, (BASE, TARGETS, types.int64))
    expected = theirs(kernel, (base, targets, 3))
    fixed = Fixed(base), Fixed(targets)
    for _ in range(2):
        assert packed(kernel.types, (*fixed, 3), [int] * len(expected)) == expected
        base.keys._array = None  # whoever looks again fails
    with pytest.raises(TypeError, match="takes Targets, not Base"):
        packed((TARGETS, TARGETS), fixed, [])


def test_a_numpy_number_is_a_number() -> None:
    given = [np.int64(7), Run.of(np.int64(2), 1)]
    assert packed([types.int64, RUN], given, [int] * 4) == [7, 2, 1, 1 << RECIPROCAL_BITS]


class Driver:
    """A driver's functions that launch; keeps what it is asked to, and the parameters."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kinds: Sequence[type]) -> None:
        self.device, self.status, self.launched = 0, 0, list[Any]()
        self._kinds = kinds
        monkeypatch.setattr(compilation, "cuLaunchKernel", self._launch)
        monkeypatch.setattr(compilation, "cuCtxGetDevice", lambda: (self.status, self.device))

    def _launch(self, function: Any, *shape: Any) -> tuple[Any]:
        *grid, places, _ = shape
        self.launched.append((int(function), grid, found_at(places, self._kinds)))
        return (CUresult(0),)


class Overload:
    """A kernel compiled, whose form on a device has the device's number as a handle."""

    def __init__(self, driver: Driver) -> None:
        self.library, self.loaded, self._driver = self, list[int](), driver

    def get_cufunc(self) -> Any:
        self.loaded.append(self._driver.device)
        return SimpleNamespace(kernel=SimpleNamespace(handle=100 + self._driver.device))


def test_launches_take_enough_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(lambda out, n: None, (I64_ARRAY, types.int64))
    compiled, driver = [], Driver(monkeypatch, [int] * 8)
    overload = Overload(driver)

    def compile_once(signature: Any) -> Any:
        compiled.append(signature)
        return overload

    monkeypatch.setattr(kernel, "_compiled", SimpleNamespace(compile=compile_once))
    out = array()
    for launch, unit in ((launch_each, THREADS), (launch_tiles, TILE)):
        for driver.device, items in enumerate((1, unit, np.int64(unit + 1), 10 * unit)):
            launch(kernel, items, out, 5)
        launch(kernel, 0, out, 5)
    functions, grids, values = zip(*driver.launched, strict=True)
    # The last is the stream: CuPy's default one, too.
    assert list(grids) == 2 * [[n, 1, 1, THREADS, 1, 1, 0, 0] for n in (1, 1, 2, 10)]
    assert list(functions) == 2 * [100 + n for n in range(4)]
    assert set(map(tuple, values)) == {(0, 0, 4, 8, out.data.ptr, 4, 8, 5)}
    assert compiled == [kernel.types]
    assert overload.loaded == [0, 1, 2, 3]


def test_each_device_has_memory_of_its_own_for_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of two devices launch one kernel at a time each, and none changes what the other packed."""
    kernel, driver = Kernel(lambda n: None, (types.int64,)), Driver(monkeypatch, [int])
    overload, addresses = Overload(driver), list[int]()
    monkeypatch.setattr(kernel, "_compiled", SimpleNamespace(compile=lambda _: overload))

    def launch(*given: Any) -> tuple[Any]:
        addresses.append(given[-2])
        return (CUresult(0),)

    monkeypatch.setattr(compilation, "cuLaunchKernel", launch)
    for driver.device, number in ((0, 7), (1, 8), (0, 9)):
        kernel.launch(1, number)
    assert addresses[0] == addresses[2] != addresses[1]
    assert [found_at(each, [int]) for each in addresses] == [[9], [8], [9]]


def test_a_thread_without_a_device_takes_numbas(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, driver = Kernel(lambda n: None, (types.int64,)), Driver(monkeypatch, [int])
    overload = Overload(driver)
    monkeypatch.setattr(kernel, "_compiled", SimpleNamespace(compile=lambda _: overload))
    kernel.launch(1, 2)
    driver.status = 201  # an invalid context
    kernel.launch(1, 3)
    assert overload.loaded == [0, 0]
    assert [values for *_, values in driver.launched] == [[2], [3]]


def test_a_launch_that_fails_is_an_error_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, driver = Kernel(lambda n: None, (types.int64,)), Driver(monkeypatch, [int])
    overload = Overload(driver)
    monkeypatch.setattr(kernel, "_compiled", SimpleNamespace(compile=lambda _: overload))
    for number, is_full in ((2, True), (700, False)):
        monkeypatch.setattr(
            compilation, "cuLaunchKernel", lambda *_, number=number: (CUresult(number),)
        )
        with pytest.raises(Exception, match="the launch of a kernel ends in CUDA_ERROR") as raised:
            kernel.launch(1, 2)
        assert is_of_device(raised.value)
        assert is_out_of_memory(raised.value) == is_full


def test_targets_are_named_by_their_class() -> None:
    random = np.random.default_rng(1)
    with pytest.raises(TypeError, match="takes Targets, not Base"):
        Arguments([TARGETS]).pack([made(BASE, random)])


class Context:
    """A device's context, as far as loading a kernel goes; keeps the machine code that it was given."""

    def __init__(self, number: int, capability: tuple[int, int]) -> None:
        self.device = SimpleNamespace(id=number, compute_capability=capability)
        self.loaded: list[bytes] = []

    def create_module_image(self, image: Any, *_: Any) -> Any:
        self.loaded.append(bytes(image.code))
        module = SimpleNamespace(initialized=True)
        kernel = SimpleNamespace(handle=100 + self.device.id)
        return SimpleNamespace(get_function=lambda _: SimpleNamespace(kernel=kernel, module=module))


@pytest.mark.parametrize("kernel", [placement.tile_owners, tiles.copy], ids=["each", "tiles"])
def test_a_launch_compiles_links_and_loads_for_each_device(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Numba-CUDA itself, up to the driver: once for a device, whatever comes in between."""
    contexts = [Context(0, (9, 0)), Context(1, (9, 0)), Context(2, (7, 5))]
    arguments = [made(each, np.random.default_rng(1)) for each in kernel.types]
    expected = theirs(kernel, arguments)
    driver = Driver(monkeypatch, [type(each) for each in expected])
    monkeypatch.setattr(devices, "get_context", lambda *_: contexts[driver.device])
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: contexts[driver.device].device)
    fresh = Kernel(kernel.py_func, kernel.types)
    for driver.device in (0, 1, 2, 0, 2):
        launch_tiles(fresh, 1000, *arguments)
    assert [function for function, *_ in driver.launched] == [100, 101, 102, 100, 102]
    assert all(values == expected for *_, values in driver.launched)
    assert [len(context.loaded) for context in contexts] == [1, 1, 1]
    elf = [context.loaded[0][:4] for context in contexts]
    assert elf == 3 * [b"\x7fELF"], "machine code, not PTX: the driver compiles nothing"
    assert contexts[0].loaded == contexts[1].loaded != contexts[2].loaded
