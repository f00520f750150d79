"""The crossings of a sequence of points on the CPU, in chunks of bounded size."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial
from itertools import islice

import numpy as np

from coincide.borders.crossings import Found
from coincide.borders.index import BorderIndex
from cpu_fallback.blocks import run_tasks
from cpu_fallback.borders import kernels

_BLOCK = 1 << 15
"""Points that a thread does at a time."""


class BorderSearch:
    """Points among the borders of an index.

    Parameters
    ----------
    index : BorderIndex
    values : float64 array, shape (n, d)
        Of the points, those of a stream one after the other, in order of time.
    kinds : int8 array, shape (n,)
        `FIRST`, `FROM_OUTSIDE` or `MOVE`.
    near : int32 array, shape (n, d, 2), or None
        Segments near which points that begin a stream may be; taken over.
    threads : int
    """

    def __init__(
        self,
        index: BorderIndex,
        values: np.ndarray,
        kinds: np.ndarray,
        near: np.ndarray | None = None,
        *,
        threads: int = 1,
    ) -> None:
        self._index, self._values, self._kinds, self._threads = index, values, kinds, threads
        self._near = near
        self.tally = np.zeros(1, np.int64)

    @property
    def retrieved(self) -> int:
        """Queries that were taken out of the index so far."""
        return int(self.tally[0])

    @cached_property
    def segments(self) -> np.ndarray:
        """How many borders are at most each value: int32 array, shape (n, d, 2)."""
        count, dimensions = self._values.shape
        segments = self._near
        if segments is None:
            segments = np.zeros((count, dimensions, 2), np.int32)
        flat = segments.reshape(-1)
        arguments = (self._values, self._kinds, self._index.borders, flat)
        blocks = [(a, min(a + _BLOCK, count)) for a in range(0, count, _BLOCK)]
        run_tasks([partial(kernels.locate, *block, *arguments) for block in blocks], self._threads)
        return segments

    def found(
        self, start: int, stop: int, wanted: tuple[bool, bool, bool], processing: int, most: int
    ) -> Iterator[Found]:
        """The crossings of points start ... stop, in their order.

        Parameters
        ----------
        start, stop : int
        wanted : tuple of bool
            By kind of event.
        processing : int
            `WALK`, `PEAKS` or `EITHER`.
        most : int
            Crossings in a chunk, more only where a single point has more.
        """
        most = max(most, 1)
        blocks = iter(range(start, stop, _BLOCK))
        arguments = (wanted, processing, most)
        if self._threads == 1:
            for block in blocks:
                yield from self._rest(block, min(block + _BLOCK, stop), arguments)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            ahead: deque[tuple[int, Future[Found]]] = deque()
            while True:
                for block in islice(blocks, self._threads + 1 - len(ahead)):
                    end = min(block + _BLOCK, stop)
                    ahead.append((end, pool.submit(self._chunk, block, end, arguments)))
                if not ahead:
                    return
                end, future = ahead.popleft()
                chunk = future.result()
                yield chunk
                yield from self._rest(chunk.stop, end, arguments)

    def _rest(
        self, start: int, stop: int, arguments: tuple[tuple[bool, bool, bool], int, int]
    ) -> Iterator[Found]:
        while start < stop:
            chunk = self._chunk(start, stop, arguments)
            yield chunk
            start = chunk.stop

    def _chunk(
        self, start: int, stop: int, arguments: tuple[tuple[bool, bool, bool], int, int]
    ) -> Found:
        wanted, processing, most = arguments
        # What a move leaves, enters and passes through has room beside those that are enough.
        room = most + 3 * len(self._index)
        points, rows = np.empty(room, np.int64), np.empty(room, np.int32)
        events, tally = np.empty(room, np.int8), np.zeros(1, np.int64)
        until, count = kernels.fill(
            start, stop, most, self.segments.reshape(-1), self._kinds, kernels.flat(self._index.borders),
            wanted, processing, points, rows, events, tally,
        )  # fmt: skip
        self.tally += tally
        return Found(start, until, points[:count], rows[:count], events[:count])
