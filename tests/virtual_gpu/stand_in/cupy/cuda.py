"""CuPy's streams, events, memory pools and runtime, as far as the product asks for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from cupy._memory import DRIVER, OutOfMemoryError, address, check_device

__all__ = ["OutOfMemoryError"]

POISON = 119


def written(held: np.ndarray) -> None:
    """The default stream writes to an array."""
    if held.size:
        DRIVER.virtual_written(address(held))


def crossed(held: np.ndarray, *, to_host: bool, waiting: bool) -> None:
    """An array was copied between host and device, and the host waited for it or not."""
    DRIVER.virtual_crossed(to_host, held.nbytes)
    if waiting:
        DRIVER.virtual_waited()


class MemoryPointer:
    """Where an array is."""

    def __init__(self, held: np.ndarray) -> None:
        self.ptr = address(held)


class _Pinned(bytearray):
    """Host memory that may be copied from and to while the caller goes on."""


def alloc_pinned_memory(size: int) -> Any:
    return _Pinned(bytes([POISON]) * size)


def _is_pinned(array: np.ndarray) -> bool:
    base: Any = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, _Pinned)


class Event:
    """A place in a stream's queue."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self._stream: Stream | None = None
        self._place = self.clock = 0
        self.time = 0.0

    def record(self, stream: Stream | None = None) -> None:
        self._stream = stream or get_current_stream()
        self._place, self.clock = len(self._stream.queue), DRIVER.virtual_clock()
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        DRIVER.virtual_waited()
        self.reach()

    def reach(self) -> None:
        """Do what is before it in its stream's queue."""
        if self._stream is not None:
            self._stream.run(self._place)


def get_elapsed_time(start: Event, stop: Event) -> float:
    return 1e3 * (stop.time - start.time)


_current = threading.local()


class Stream:
    """The default stream, whose work is done when it is asked for, or one of copies, which happen late."""

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.ptr = 0 if null else id(self)
        self._device = DRIVER.virtual_device()
        self.queue: list[Callable[[], None]] = []
        self._done = self._follows = 0

    def __enter__(self) -> Stream:
        _stack().append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _stack().pop()

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """The default stream goes on when the copies are done; copies begin after its work so far."""
        if self.ptr:
            self._follows = max(self._follows, event.clock)
        event.reach()

    def synchronize(self) -> None:
        DRIVER.virtual_waited()
        self.run(len(self.queue))

    def run(self, place: int) -> None:
        while self._done < place:
            copy, self.queue[self._done] = self.queue[self._done], lambda: None
            self._done += 1
            copy()

    def copy(self, device: np.ndarray, host: np.ndarray, to_host: bool) -> None:
        """Queue a copy."""
        if not self.ptr:
            raise NotImplementedError("copies on the default stream name no stream")
        if not device.size:
            return
        if not _is_pinned(host):
            DRIVER.virtual_report(
                b"a copy that nobody waits for, of host memory that is not pinned"
            )
        check_device(device)
        if self._device != DRIVER.virtual_device():
            DRIVER.virtual_report(b"a copy by a stream of another device")
        crossed(device, to_host=to_host, waiting=False)
        start, size = address(device), device.nbytes
        born = DRIVER.virtual_born_at(start)
        if DRIVER.virtual_written_at(start) > self._follows:
            DRIVER.virtual_report(b"a copy that may overtake what was launched before it")
        # The queue does not keep the memory alive, as a GPU's does not.
        place = {"data": (start, False), "typestr": device.dtype.str, "version": 3}
        there = SimpleNamespace(__array_interface__={**place, "shape": device.shape})

        def copy() -> None:
            if DRIVER.virtual_born_at(start) != born:
                DRIVER.virtual_report(b"a copy of device memory that was given back before its end")
                host.view(np.uint8)[:] = POISON
            elif to_host:
                np.copyto(host, np.asarray(there))
            else:
                np.copyto(np.asarray(there), host)

        del device, size
        self.queue.append(copy)


Stream.null = Stream(null=True)


def _stack() -> list[Stream]:
    if not hasattr(_current, "streams"):
        _current.streams = [Stream.null]
    return _current.streams  # type: ignore[no-any-return]


def get_current_stream() -> Stream:
    return _stack()[-1]


class Device:
    """A device: without a number that of the calling thread."""

    def __init__(self, number: int | None = None) -> None:
        self.id = DRIVER.virtual_device() if number is None else number

    def use(self) -> None:
        DRIVER.cuInit(0)
        if DRIVER.virtual_use(self.id):
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")


class CUDARuntimeError(RuntimeError):
    """As CuPy's: `cupy_backends.cuda.api.runtime.CUDARuntimeError`."""

    status = 101


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDevice=DRIVER.virtual_device,
    memGetInfo=lambda: (DRIVER.virtual_memory() - DRIVER.virtual_used(), DRIVER.virtual_memory()),
    getDeviceProperties=lambda number: {
        "name": b"virtual", "major": 9, "minor": 0, "totalGlobalMem": DRIVER.virtual_memory(),
    },
    driverGetVersion=lambda: 13000,
    runtimeGetVersion=lambda: 13000,
)  # fmt: skip


POOL = SimpleNamespace(
    free_all_blocks=lambda: None,
    free_bytes=lambda: 0,
    used_bytes=DRIVER.virtual_used,
    get_limit=lambda: 0,
)
