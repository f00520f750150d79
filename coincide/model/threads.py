"""Threads: how many there may be, work cut for them, and its results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
R = TypeVar("R")

_ROWS_OF_A_THREAD = 1 << 18
_BLOCKS_PER_THREAD = 4
_SMALLEST_BLOCK = 4096


def all_cores() -> int:
    """Cores that the system lets this process use."""
    return len(os.sched_getaffinity(0))


def cores() -> int:
    """Of these, in Spark's workers, those of a task, which Spark tells in OMP_NUM_THREADS."""
    found, told = all_cores(), os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(found, int(told))) if told.isdigit() else found


def kept_busy(rows: int, threads: int) -> int:
    """How many of the threads are worth their start, each with some passes over its share of rows."""
    return max(1, min(threads, rows // _ROWS_OF_A_THREAD))


def run_tasks(tasks: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Run tasks on that many threads, and return what they return, in their order."""
    if threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


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


def blocks_of(n: int, threads: int) -> list[tuple[int, int]]:
    """Cut positions 0 ... n into disjoint blocks, several per thread so that dense stretches even out."""
    most = threads * _BLOCKS_PER_THREAD if threads > 1 else 1
    blocks = max(1, min(most, n // _SMALLEST_BLOCK))
    edges = [n * k // blocks for k in range(blocks + 1)]
    return [(a, b) for a, b in pairwise(edges) if a < b]


def tally_of_blocks(count: Callable[[int, int], np.ndarray], n: int, threads: int) -> np.ndarray:
    """The sum of the tallies, int64 of shape (3,), that blocks of positions 0 ... n have."""
    tallies = run_tasks([partial(count, *block) for block in blocks_of(n, threads)], threads)
    return np.sum([np.zeros(3, np.int64), *tallies], axis=0)
