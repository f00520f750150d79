"""The virtual GPU reports what is wrong: one kernel for each kind of fault, and none for sound ones."""

from __future__ import annotations

import ctypes
import shutil
from functools import cache
from typing import Any

import pytest

from tests.virtual_gpu.building import HERE, built
from tests.virtual_gpu.translation import translated

if shutil.which("gcc") is None:
    pytest.skip("the virtual GPU needs gcc", allow_module_level=True)

THREADS, BLOCKS = 4, 2

_KERNEL = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel(
.param .u64 kernel_param_0
)
{{
.reg .pred %p<3>;
.reg .b32 %r<5>;
.reg .b64 %rd<9>;
.reg .f64 %fd<3>;
.shared .align 8 .b8 kept[32];
ld.param.u64 %rd1, [kernel_param_0];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.s32 %r3, %r2, 4, %r1;
cvt.u64.u32 %rd2, %r3;
shl.b64 %rd3, %rd2, 3;
add.s64 %rd4, %rd1, %rd3;
cvt.u64.u32 %rd5, %r1;
shl.b64 %rd6, %rd5, 3;
mov.u64 %rd7, kept;
add.s64 %rd7, %rd7, %rd6;
setp.eq.s32 %p1, %r1, 0;
{body}
ret;
}}
"""
"""A thread's number is %r3, its item of the array %rd4; its number in its block is %r1, its item of
shared memory %rd7; %p1 is true of the first of a block."""

SOUND = {
    "each its own item": "st.global.u64 [%rd4], %rd2;",
    "what another wrote, after a barrier": """\
st.shared.u64 [%rd7], %rd2;
bar.sync 0;
ld.shared.u64 %rd8, [kept];
st.global.u64 [%rd4], %rd8;""",
    "a sum of all threads": "red.global.add.u64 [%rd1], 1;",
    "one thread of each block": "@%p1 st.global.u64 [%rd4], %rd2;",
}

FAULTS = {
    "past the end": ("out of bounds: ", "st.global.u64 [%rd4+8], %rd2;"),
    "past the end of shared memory": ("out of bounds: shared", "st.shared.u64 [%rd7+8], %rd2;"),
    "between two items": ("misaligned: ", "@%p1 st.global.u64 [%rd4+4], %rd2;"),
    "two items at once": ("width: ", "st.global.u64 [%rd4], %rd2;"),
    "one item of all": ("race: store after another thread's store", "st.global.u64 [%rd1], %rd2;"),
    "no barrier": ("race: ", """\
st.shared.u64 [%rd7], %rd2;
ld.shared.u64 %rd8, [kept];
ld.shared.u64 %rd8, [kept+8];"""),
    "one thread changes what all read": ("race: ", """\
ld.global.u64 %rd8, [%rd1+8];
@%p1 st.global.u64 [%rd1+8], 1;"""),
    "one thread clears a sum": ("race: ", """\
red.global.add.u64 [%rd1], 1;
@%p1 st.global.u64 [%rd1], 1;"""),
    "a barrier for some": ("barrier: ", """\
@%p1 bra $past;
bar.sync 0;
$past:"""),
    "shared memory that no thread wrote": ("unwritten: ", "ld.shared.u64 %rd8, [%rd7];"),
    "a float beyond integers": ("range: ", """\
mov.f64 %fd1, 0d7E37E43C8800759C;
cvt.rzi.s64.f64 %rd8, %fd1;"""),
}  # fmt: skip
"""What is reported of a kernel."""

_STATUS = {"out of bounds": 700, "misaligned": 716}
_LAUNCH_FAILED = 719
_INVALID_DEVICE = 101


@cache
def driver() -> Any:
    # By another name than CUDA's, which nothing else in this process shall find.
    found = ctypes.CDLL(str(built((HERE / "driver.c").read_text(), "-pthread", name="driver.so")))
    found.virtual_take.restype = ctypes.c_uint64
    found.virtual_free.argtypes = [ctypes.c_uint64]
    found.virtual_texts.restype = ctypes.c_char_p
    assert found.cuInit(0) == 0
    return found


def run(body: str, item: int = 8, device: int = 0) -> tuple[int, str]:
    """Launch a kernel on an array of an item a thread: how it ends, and what is reported.

    The array is on the first device, and the kernel is launched on the one that is given.
    """
    there = driver()
    assert there.virtual_use(0) == 0
    image = built(translated(_KERNEL.format(body=body))).read_bytes()
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    assert there.cuLibraryLoadData(ctypes.byref(library), image, 0, 0, 0, 0, 0, 0) == 0
    assert there.cuLibraryGetKernel(ctypes.byref(kernel), library, b"kernel") == 0
    array = ctypes.c_uint64(there.virtual_take(8 * THREADS * BLOCKS, item))
    places = (ctypes.c_void_p * 1)(ctypes.addressof(array))
    shape = BLOCKS, 1, 1, THREADS, 1, 1, 0
    assert there.virtual_use(device) == 0
    status = there.cuLaunchKernel(kernel, *shape, None, places, None)
    found = there.virtual_texts().decode()
    there.virtual_forget()
    there.virtual_free(array)
    return status, found


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_reported_of_a_sound_kernel(name: str) -> None:
    assert run(SOUND[name]) == (0, "")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported(name: str) -> None:
    told, body = FAULTS[name]
    status, found = run(body, item=4 if told == "width: " else 8)
    assert f"kernel: {told}" in found
    assert status == _STATUS.get(told.partition(":")[0], _LAUNCH_FAILED)


def test_an_array_of_another_device_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_GPU_DEVICES", "2")
    status, found = run(SOUND["each its own item"], device=1)
    assert "kernel: out of bounds: memory of another device" in found
    assert status == _STATUS["out of bounds"]
    assert driver().virtual_use(2) == _INVALID_DEVICE


def test_a_load_beside_atomics_is_noted_and_fails_no_launch() -> None:
    status, found = run("red.global.add.u64 [%rd1], 1;\nld.global.u64 %rd8, [%rd1];")
    assert "beside atomics: " in found
    assert status == 0
