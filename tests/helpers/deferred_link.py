"""A device whose copies happen as late as they may: what is not waited for is not there."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

POISON = 119


class DeferredLink:
    """A `Link` that copies when waited for, and from memory given back copies poison.

    Attributes
    ----------
    log : list of str
        The calls, but waits and allocations.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.rooms: list[np.ndarray] = []
        self._queue: list[Callable[[], None]] = []
        self._done = 0
        self._behind_kernels = True

    @property
    def pending(self) -> int:
        """Copies that have not happened."""
        return len(self._queue) - self._done

    def kernel_writes(self) -> None:
        """Something was launched, or memory taken, for which copies do not wait yet."""
        self._behind_kernels = False

    def pinned(self, size: int) -> np.ndarray:
        self.rooms.append(np.full(size, POISON, np.uint8))
        return self.rooms[-1]

    def empty(self, size: int, dtype: np.dtype) -> np.ndarray:
        self.kernel_writes()
        return np.full(size * np.dtype(dtype).itemsize, POISON, np.uint8).view(dtype)

    def to_device(self, source: np.ndarray, target: np.ndarray) -> None:
        assert self._is_pinned(source)
        self._append("to_device", lambda: np.copyto(target, source))

    def to_host(self, source: np.ndarray, target: np.ndarray) -> None:
        owner = source if source.base is None else source.base
        start = source.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        alive, size = weakref.ref(owner), source.nbytes
        assert source.flags.c_contiguous
        assert self._is_pinned(target)

        def copy() -> None:
            memory = alive()
            if memory is None:
                target.view(np.uint8)[:] = POISON
            else:
                target.view(np.uint8)[:] = memory.view(np.uint8)[start : start + size]

        del source, owner
        self._append("to_host", copy)

    def mark(self) -> int:
        return len(self._queue)

    def wait(self, mark: int) -> None:
        while self._done < mark:
            self._queue[self._done]()
            self._queue[self._done] = lambda: None
            self._done += 1

    def copies_follow(self) -> None:
        self.log.append("copies_follow")
        self._behind_kernels = True

    def kernels_follow(self, mark: int) -> None:
        self.log.append("kernels_follow")
        self.wait(mark)

    def _is_pinned(self, array: np.ndarray) -> bool:
        return any(np.shares_memory(array, room) for room in self.rooms)

    def _append(self, name: str, copy: Callable[[], None]) -> None:
        assert self._behind_kernels, "a copy may overtake the kernel that writes what it copies"
        self.log.append(name)
        self._queue.append(copy)


def refusing(link: Any) -> Any:
    """The link, on a host that has no memory to pin."""

    def pinned(size: int) -> np.ndarray:
        raise MemoryError(f"{size} bytes")

    link.pinned = pinned
    return link
