"""Work of several threads, its results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_order(make: Callable[[T], Sequence[R]], items: Iterable[T], threads: int) -> Iterator[R]:
    """Results of `make` for each item, in the order of the items, made by several threads."""
    # At most `threads` + 1 items are under way or waiting to be taken, which bounds the memory.
    if threads == 1:
        for item in items:
            yield from make(item)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Sequence[R]]] = deque()
        for item in items:
            waiting.append(pool.submit(make, item))
            if len(waiting) > threads:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
