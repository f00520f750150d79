"""How kernels are launched: with the numbers that Numba-CUDA would hand over, and no other types."""

from __future__ import annotations

import ctypes
import importlib
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

from numba.cuda import dispatcher
from numba.cuda.cudadrv import devices
from numba.cuda.dispatcher import _Kernel

from gpu_kernels import join
from gpu_kernels.device import memory, usable
from gpu_kernels.kernels import compilation
from gpu_kernels.kernels import join as placement
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import (
    THREADS,
    TILE,
    Arguments,
    Kernel,
    launch_each,
    launch_tiles,
)
from gpu_kernels.kernels.join import (
    BASE,
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


def plain(value: Any) -> Any:
    """A number, without the C type that Numba-CUDA wraps it into."""
    return getattr(value, "value", value)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.py_func.__name__)
def test_arguments_are_as_numba_passes_them(kernel: Kernel) -> None:
    random = np.random.default_rng(3)
    for _ in range(5):
        arguments = [made(each, random) for each in kernel.types]
        theirs: list[Any] = []
        bare = _Kernel.__new__(_Kernel)
        bare.extensions = []
        for declared, argument in zip(kernel.types, arguments, strict=True):
            bare._prepare_args(declared, argument, 0, [], theirs)
        ours = Arguments(kernel.types).values(arguments)
        assert ours == [plain(value) for value in theirs]
        assert {type(value) for value in ours} <= {int, float, bool}


def test_numbers_reach_a_kernel_in_their_size() -> None:
    """What `cuda.core.launch` makes of Python's numbers: 8 bytes of an int or a float, one of a bool."""
    holder = importlib.import_module("cuda.core._kernel_arg_handler").ParamHolder
    given = (-(1 << 60), 0.1, True)
    held = holder(given)
    kinds = (ctypes.c_int64, ctypes.c_double, ctypes.c_bool)
    places = (ctypes.c_void_p * 3).from_address(held.ptr)
    found = [kind.from_address(place).value for kind, place in zip(kinds, places, strict=True)]
    assert found == list(given)


def test_the_first_kernel_is_launched_as_joins_launch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """All host code runs but CuPy's; in place of a device Python runs the kernel."""

    def launch(kernel: Kernel, _blocks: int, rule: Any, *arrays: np.ndarray) -> None:
        Arguments(kernel.types).values([rule, *map(DeviceArray, arrays)])
        kernel.py_func(rule, *arrays)

    monkeypatch.setattr(Kernel, "launch", launch)
    monkeypatch.setattr(placement.cuda, "grid", lambda _: 0)
    for name, stand_in in (
        ("_select", lambda _: None), ("_selected", lambda: 0), ("_default_stream", nullcontext),
    ):  # fmt: skip
        monkeypatch.setattr(usable, name, stand_in)
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
        Arguments([declared]).values([argument])


def test_every_argument_must_be_given() -> None:
    with pytest.raises(TypeError, match="2 arguments, not 1"):
        Arguments([RULE, RUN]).values([IntervalRule(0, 1, 0.5)])
    with pytest.raises(TypeError, match="no kernel of ours takes"):
        Arguments([types.int32])
    with pytest.raises(TypeError, match="no kernel of ours takes"):
        Arguments([types.Array(types.int64, 1, "A")])


def test_a_numpy_number_is_a_number() -> None:
    values = Arguments([types.int64, RUN]).values([np.int64(7), Run.of(np.int64(2), 1)])
    assert values == [7, 2, 1, 1 << RECIPROCAL_BITS]
    assert set(map(type, values)) == {int}


class Overload:
    """A kernel compiled for a device, which is asked for its form there at each launch."""

    def __init__(self) -> None:
        self.library = self
        self.device = 0

    def get_cufunc(self) -> Any:
        return SimpleNamespace(kernel=f"on device {self.device}")


def test_launches_take_enough_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, launched, overload = [], [], Overload()

    def compile_once(signature: Any) -> Any:
        compiled.append(signature)
        return overload

    monkeypatch.setattr(
        compilation, "launch", lambda *given: launched.append((given[0], *given[1:3], given[3:]))
    )
    kernel = Kernel(lambda out, n: None, (I64_ARRAY, types.int64))
    monkeypatch.setattr(kernel, "_compiled", SimpleNamespace(compile=compile_once))
    out = array()
    for launch, unit in ((launch_each, THREADS), (launch_tiles, TILE)):
        for overload.device, items in enumerate((1, unit, np.int64(unit + 1), 10 * unit)):
            launch(kernel, items, out, 5)
        launch(kernel, 0, out, 5)
    streams, configs, names, values = zip(*launched, strict=True)
    # CuPy's default stream is that one, too.
    assert {stream.__cuda_stream__() for stream in streams} == {(0, 0)}
    assert [config.grid for config in configs] == 2 * [(n, 1, 1) for n in (1, 1, 2, 10)]
    assert {config.block for config in configs} == {(THREADS, 1, 1)}
    assert list(names) == 2 * [f"on device {n}" for n in range(4)]
    assert set(values) == {(0, 0, 4, 8, out.data.ptr, 4, 8, 5)}
    assert compiled == [kernel.types]


def test_targets_are_named_by_their_class() -> None:
    random = np.random.default_rng(1)
    with pytest.raises(TypeError, match="takes Targets, not Base"):
        Arguments([TARGETS]).values([made(BASE, random)])


class Context:
    """A device's context, as far as loading a kernel goes; keeps the machine code that it was given."""

    def __init__(self, number: int, capability: tuple[int, int]) -> None:
        self.device = SimpleNamespace(id=number, compute_capability=capability)
        self.loaded: list[bytes] = []

    def create_module_image(self, image: Any, *_: Any) -> Any:
        self.loaded.append(bytes(image.code))
        module = SimpleNamespace(initialized=True)
        return SimpleNamespace(
            initialized=True,
            get_function=lambda _: SimpleNamespace(kernel=self.device.id, module=module),
        )


@pytest.mark.parametrize("kernel", [placement.tile_owners, tiles.copy], ids=["each", "tiles"])
def test_a_launch_compiles_links_and_loads_for_each_device(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Numba-CUDA itself, up to the driver: once for a device, whatever comes in between."""
    contexts = [Context(0, (9, 0)), Context(1, (9, 0)), Context(2, (7, 5))]
    current, launched = [contexts[0]], []
    monkeypatch.setattr(devices, "get_context", lambda *_: current[0])
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current[0].device)
    monkeypatch.setattr(
        compilation, "launch", lambda *given: launched.append((given[2], len(given) - 3))
    )
    fresh = Kernel(kernel.py_func, kernel.types)
    arguments = [made(each, np.random.default_rng(1)) for each in kernel.types]
    for number in (0, 1, 2, 0, 2):
        current[0] = contexts[number]
        launch_tiles(fresh, 1000, *arguments)
    values = len(Arguments(kernel.types).values(arguments))
    assert launched == [(number, values) for number in (0, 1, 2, 0, 2)]
    assert [len(context.loaded) for context in contexts] == [1, 1, 1]
    elf = [context.loaded[0][:4] for context in contexts]
    assert elf == 3 * [b"\x7fELF"], "machine code, not PTX: the driver compiles nothing"
    assert contexts[0].loaded == contexts[1].loaded != contexts[2].loaded
