"""Threads: how many there may be, work cut for them, and its results in order."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
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
    """The cores that are free to use: in Spark's workers those of a task, by OMP_NUM_THREADS."""
    found, told = all_cores(), os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(found, int(told))) if told.isdigit() else found


def kept_busy(rows: int, threads: int) -> int:
    """How many of the threads are worth their start, each with some passes over its share of rows."""
    return max(1, min(threads, rows // _ROWS_OF_A_THREAD))


def run_tasks(tasks: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Run tasks on that many threads, and return what they return, in their order."""
    if threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    with _pool(threads) as submit:
        return [_result(future) for future in [submit(task) for task in tasks]]


def in_order(make: Callable[[T], Sequence[R]], items: Iterable[T], threads: int) -> Iterator[R]:
    """Results of `make` for each item, in the order of the items, made by several threads."""
    # At most `threads` + 1 items are under way or waiting to be taken, which bounds the memory.
    if threads == 1:
        for item in items:
            yield from make(item)
        return
    with _pool(threads) as submit:
        waiting: deque[Future[Sequence[R]]] = deque()
        for item in items:
            waiting.append(submit(partial(make, item)))
            if len(waiting) > threads:
                yield from _result(waiting.popleft())
        while waiting:
            yield from _result(waiting.popleft())


_PULSE_SECONDS = 0.2
_of_thread = threading.local()
_watches: list[Watch] = []


class Stopped(BaseException):
    """Ends work whose result no thread waits for any more."""


class _Stop:
    """Whether the work of a pool is to end, or that of a pool to whose work it belongs."""

    def __init__(self) -> None:
        self._outer: _Stop | None = getattr(_of_thread, "stop", None)
        self._is_asked = False

    def ask(self) -> None:
        self._is_asked = True

    @property
    def is_asked(self) -> bool:
        return self._is_asked or (self._outer is not None and self._outer.is_asked)


class Watch:
    """What a thread does every now and then while others work, or between the steps of its own work."""

    def __init__(self, pulse: Callable[[int], None]) -> None:
        self._pulse, self._thread = pulse, threading.get_ident()
        self._last, self._lock = time.monotonic(), threading.Lock()
        self._events = 0

    def add(self, events: int) -> None:
        """Count left events whose matches were sought."""
        with self._lock:
            self._events += events

    def beat(self) -> None:
        """Call what was given, with the number of these events, if it is time."""
        now = time.monotonic()
        if threading.get_ident() == self._thread and now >= self._last + _PULSE_SECONDS:
            self._last = now
            self._pulse(self._events)


@contextmanager
def watched(pulse: Callable[[int], None]) -> Iterator[None]:
    """Call `pulse` about five times a second while this thread waits for long work, or does it."""
    watch = Watch(pulse)
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


def step(events: int) -> None:
    """Between the steps of long work: it ends here if it is to, and the thread that watches does so."""
    for watch in _watches[-1:]:
        watch.add(events)
    _beat()


def _beat() -> None:
    stop: _Stop | None = getattr(_of_thread, "stop", None)
    if stop is not None and stop.is_asked:
        raise Stopped
    for watch in _watches[-1:]:
        watch.beat()


@contextmanager
def _pool(threads: int) -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Threads, and how they get work, which ends soon if this one is interrupted meanwhile."""
    stop = _Stop()

    def work(task: Callable[[], Any]) -> Any:
        _of_thread.stop = stop
        _beat()
        return task()

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield lambda task: pool.submit(work, task)
        except BaseException:
            stop.ask()
            raise


def _result(future: Future[Any]) -> Any:
    while True:
        _beat()
        try:
            return future.result(timeout=_PULSE_SECONDS)
        except TimeoutError:
            if future.done():
                raise


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
