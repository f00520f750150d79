"""Arrays to a device and back."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from coincide.model.threads import cores
from gpu_kernels.device.arrays import array_module, is_out_of_memory, on_host, put
from gpu_kernels.device.columns import Made
from gpu_kernels.kernels.simulation import SIMULATED

ROOM = 1 << 23
"""Bytes of a pinned buffer."""

MOST_PINNED = 1 << 29
"""Bytes of results in pinned memory, of all that callers hold, of whatever device."""

_ROOMS = 2
_BYTES_OF_THREAD = 1 << 19
"""The least that is worth a thread of a copy within the host's memory. One thread is far slower than the
way from the device: fresh pages take it longer than what it copies there."""

_log = logging.getLogger(__name__)

_pinned: dict[int, int] = {}
"""Bytes of each array of pinned memory that results lie in, by the array's identity."""


@dataclass
class _Room:
    """A pinned buffer, the end of the copy that uses it, and what to do then.

    ``arriving`` holds the device array that is copied, which must not be reused before; where it is
    copied to, here unless the result is pinned itself; and the result.
    """

    memory: np.ndarray
    mark: Any = None
    in_use: bool = False
    arriving: tuple[Any, np.ndarray, np.ndarray] | None = None

    def of(self, dtype: np.dtype, size: int) -> np.ndarray:
        """The buffer's first items."""
        return self.memory[: size * dtype.itemsize].view(dtype)


class Transfers:
    """Copies to and from a device. Used by one thread at a time."""

    def __init__(self, link: Link, overlap: bool = True) -> None:
        self.overlap = overlap
        self._link = link
        self._rooms: deque[_Room] = deque()

    def result(self, size: int, dtype: Any, empty: Callable[[], np.ndarray]) -> np.ndarray:
        """An uninitialised array of shape (size,) for `fetching`.

        Pinned if it can be: then nothing else copies what arrives, and the memory is used again as soon
        as the caller holds no part of it any more. Where much is held at once, `empty` makes the rest.
        """
        wanted = size * np.dtype(dtype).itemsize
        held = sum(tuple(_pinned.values()))  # a tuple: other threads let go of results
        if wanted == 0 or held + wanted > MOST_PINNED or not self._has_rooms():
            return empty()
        try:
            memory = self._link.pinned(wanted)
        except MemoryError as error:
            _log.debug("no host memory can be pinned for results: %s", error)
            return empty()
        _pinned[id(memory)] = wanted
        weakref.finalize(memory, _pinned.pop, id(memory), None).atexit = False
        return memory[:wanted].view(dtype)

    def send(self, *groups: Sequence[np.ndarray | Made]) -> Iterator[list[Any]]:
        """Copy groups of arrays to the device, some of which may be made on the way.

        Work on one group, if launched before the next is asked for, runs while that is copied.
        """
        copies = [[self._link.empty(a.size, a.dtype) for a in group] for group in groups]
        # Kernels may still be using that memory: of now, not of what will be launched on the first group.
        self._link.copies_follow()
        for group, arriving in zip(groups, copies, strict=True):
            try:
                for array, copy in zip(group, arriving, strict=True):
                    self._send(array, copy)
            except BaseException:
                # No copy may end after its target has been given back.
                self.finish()
                raise
            self._link.kernels_follow(self._link.mark())
            yield arriving

    def send_one(self, array: np.ndarray) -> Any:
        """Copy an array of shape (n,) to the device."""
        return next(self.send([array]))[0]

    @contextmanager
    def fetching(self) -> Iterator[Callable[[Any, np.ndarray], None]]:
        """Copy arrays to the host while kernels go on; those of int32 may become int64 there."""
        try:
            yield self._fetch
            self.finish()
        except BaseException:
            self.abandon()
            raise

    def finish(self) -> None:
        """Wait for all copies, and return what arrived."""
        for room in self._rooms:
            self._clear(room)

    def abandon(self) -> None:
        """Wait for all copies; what arrives is dropped."""
        for room in self._rooms:
            self._clear(room, keep=False)

    def _send(self, array: np.ndarray | Made, copy: Any) -> None:
        if not self._has_rooms():
            put(_made(array), copy)
            return
        for piece in _pieces(array, ROOM):
            room = self._next_room()
            staged = room.of(array.dtype, array[piece].size)
            _copy(array[piece], staged)
            room.in_use = True
            self._link.to_device(staged, copy[piece])
            room.mark = self._link.mark()

    def _fetch(self, array: Any, out: np.ndarray) -> None:
        is_direct = array.dtype == out.dtype
        if not self._has_rooms():
            if is_direct:
                on_host(array, out)
            else:
                out[:] = on_host(array)
            return
        self._link.copies_follow()
        is_direct = is_direct and id(out.base) in _pinned
        for piece in _pieces(array, array.nbytes if is_direct else ROOM):
            room = self._next_room()
            source, target = array[piece], out[piece]
            staged = target if is_direct else room.of(array.dtype, target.size)
            room.in_use, room.arriving = True, (source, staged, target)
            self._link.to_host(source, staged)
            room.mark = self._link.mark()

    def _has_rooms(self) -> bool:
        """Whether copies go through pinned buffers, which are taken when first asked for."""
        if self.overlap and not self._rooms:
            try:
                self._rooms = deque([_Room(self._link.pinned(ROOM)) for _ in range(_ROOMS)])
            except MemoryError as error:
                _log.debug("no host memory can be pinned, so copies are slower: %s", error)
                self.overlap = False
        return self.overlap

    def _next_room(self) -> _Room:
        self._rooms.rotate(-1)
        self._clear(self._rooms[-1])
        return self._rooms[-1]

    def _clear(self, room: _Room, keep: bool = True) -> None:
        if not room.in_use:
            return
        # There is no mark if an interruption came before it.
        self._link.wait(self._link.mark() if room.mark is None else room.mark)
        if keep and room.arriving is not None:
            _, staged, target = room.arriving
            if staged is not target:
                _copy(staged, target)
        room.in_use, room.mark, room.arriving = False, None, None


def _copy(source: np.ndarray | Made, target: np.ndarray) -> None:
    """Copy within the host's memory, by several threads if there is much."""
    parts = min(cores(), -(-target.nbytes // _BYTES_OF_THREAD))
    if parts < 2:
        _write(source, target)
        return
    step = -(-target.size // parts)
    pieces = [slice(a, a + step) for a in range(0, target.size, step)]
    copied: list[Future[None]] = []
    try:
        for each in pieces:
            copied.append(_copiers().submit(_write, source[each], target[each]))
        for copy in copied:
            copy.result()
    finally:
        # Also where this thread is interrupted: a buffer must not be used again before that.
        wait(copied)


def _write(source: np.ndarray | Made, target: np.ndarray) -> None:
    if isinstance(source, np.ndarray):
        np.copyto(target, source)
    else:
        source.write(target)


def _made(column: np.ndarray | Made) -> np.ndarray:
    """A column as an array."""
    if isinstance(column, np.ndarray):
        return column
    made = np.empty(column.size, column.dtype)
    column.write(made)
    return made


@cache
def _copiers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores())


def _pieces(array: Any, most: int) -> Iterator[slice]:
    """Cut an array of shape (n,) into pieces of at most `most` bytes."""
    step = max(1, most // array.dtype.itemsize)
    return (slice(a, min(a + step, array.size)) for a in range(0, array.size, step))


_of_device: dict[int, Transfers] = {}


def current() -> Transfers:
    """Copies to and from the current device."""
    number = _number()
    if number not in _of_device:
        _of_device[number] = Transfers(SimulatedLink() if SIMULATED else CudaLink())
    return _of_device[number]


def release() -> None:
    """Wait for all copies of the current device, and give the pinned buffers back to CuPy's pool."""
    made = _of_device.pop(_number(), None)
    if made is not None:
        made.abandon()


def _number() -> int:
    """The current device."""
    return 0 if SIMULATED else array_module().cuda.runtime.getDevice()


class Link(Protocol):
    """What `gpu_kernels.device.transfers` needs of a device. Nothing but `wait` makes the caller wait."""

    def pinned(self, size: int) -> np.ndarray:
        """Pinned host memory: uint8 array, shape (size,). Raises `MemoryError` if the host has no more."""

    def empty(self, size: int, dtype: np.dtype) -> Any:
        """An uninitialised array in device memory."""

    def to_device(self, source: np.ndarray, target: Any) -> None:
        """Queue a copy from pinned memory."""

    def to_host(self, source: Any, target: np.ndarray) -> None:
        """Queue a copy to pinned memory. Does not keep the source alive."""

    def mark(self) -> Any:
        """Mark the end of the queue of copies."""

    def wait(self, mark: Any) -> None:
        """Let the caller wait until the copies before a mark have ended."""

    def copies_follow(self) -> None:
        """Let copies queued from now on begin after the kernels launched so far."""

    def kernels_follow(self, mark: Any) -> None:
        """Let kernels launched from now on begin after the copies before a mark."""


class SimulatedLink:
    """A `Link` in the simulator, where every copy has ended when the call returns."""

    def pinned(self, size: int) -> np.ndarray:
        """As `Link`, like all that follow."""
        return np.empty(size, np.uint8)

    def empty(self, size: int, dtype: np.dtype) -> Any:
        """An uninitialised array."""
        return np.empty(size, dtype)

    def to_device(self, source: np.ndarray, target: Any) -> None:
        """Copy."""
        target[:] = source

    def to_host(self, source: Any, target: np.ndarray) -> None:
        """Copy."""
        target[:] = source

    def mark(self) -> Any:
        """Nothing to mark."""
        return None

    def wait(self, mark: Any) -> None:
        """Nothing to wait for."""

    def copies_follow(self) -> None:
        """They do."""

    def kernels_follow(self, mark: Any) -> None:
        """They do."""


class CudaLink:
    """A `Link` to the current device: a stream of its own next to the default stream, neither waiting."""

    def __init__(self) -> None:
        self._cuda = array_module().cuda
        self._stream = self._cuda.Stream(non_blocking=True)

    def pinned(self, size: int) -> np.ndarray:
        """From CuPy's pool of pinned memory."""
        try:
            return np.ndarray(size, np.uint8, self._cuda.alloc_pinned_memory(size))
        except self._cuda.runtime.CUDARuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise MemoryError(str(error)) from error

    def empty(self, size: int, dtype: np.dtype) -> Any:
        """From CuPy's pool."""
        return array_module().empty(size, dtype)

    def to_device(self, source: np.ndarray, target: Any) -> None:
        """Asynchronous, since the source is pinned."""
        target.set(source, stream=self._stream)

    def to_host(self, source: Any, target: np.ndarray) -> None:
        """Asynchronous, since the target is pinned."""
        source.get(out=target, stream=self._stream, blocking=False)

    def mark(self) -> Any:
        """An event."""
        return self._recorded(self._stream)

    def wait(self, mark: Any) -> None:
        """Without Python's lock."""
        mark.synchronize()

    def copies_follow(self) -> None:
        """On the device; the host does not wait."""
        self._stream.wait_event(self._recorded(self._cuda.get_current_stream()))

    def kernels_follow(self, mark: Any) -> None:
        """On the device; the host does not wait."""
        self._cuda.get_current_stream().wait_event(mark)

    def _recorded(self, stream: Any) -> Any:
        return stream.record(self._cuda.Event(disable_timing=True))
