"""Border crossings in Numba, in chunks of bounded size."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from coincide.model.borders.crossings import IN, OUT, PASSED, PointCrossings
from coincide.model.borders.index import LOWER, UPPER, BorderIndex, Borders
from coincide.model.borders.moves import (
    EITHER,
    FIRST,
    FROM_OUTSIDE,
    MOVE,
    SHORT_WALK,
    WALK,
    borders_up_to,
    borders_walked,
    fewest_holders,
    holds_all,
    is_entered,
    lies_between,
    next_place,
    swept,
    walk_of,
)
from coincide.model.compiled import compiled
from coincide.model.remembered import remembered
from coincide.model.threads import run_tasks


@compiled
def locate(start, stop, values, kinds, borders, segments):
    """Write how many lower and upper borders are at most each value: int32 array, shape (n * d * 2,)."""
    dimensions = values.shape[1]
    for dimension in range(dimensions):
        for order in range(2):
            ends = borders.values[dimension, order]
            for point in range(start, stop):
                own = (point * dimensions + dimension) * 2 + order
                near = segments[own]
                if kinds[point] == MOVE and point > start:
                    before = own - 2 * dimensions
                    near = segments[before]
                    if order == UPPER:
                        # About as many upper borders are passed as lower ones.
                        near = max(near + segments[own - 1] - segments[before - 1], 0)
                segments[own] = borders_up_to(ends, values[point, dimension], near)


def flat(borders: Borders) -> tuple[Any, ...]:
    """Keys, queries, levels, peaks and places of an index, flat; keys and peaks an order; dimensions."""
    return (
        borders.keys.reshape(borders.keys.size),
        borders.queries.reshape(borders.queries.size),
        borders.levels,
        borders.peaks.reshape(borders.peaks.size),
        borders.places.reshape(borders.places.size),
        borders.keys.shape[2],
        borders.peaks.shape[2],
        borders.keys.shape[0],
    )


@compiled
def fill(
    start, stop, most, segments, kinds, index, wanted, processing, points, rows, events, tally
):  # fmt: skip
    """Write crossings of points, until `most` or the room is reached; the point not done, how many."""
    dimensions = index[-1]
    width = 2 * dimensions
    out = (points, rows, events)
    count = retrieved = 0
    for point in range(start, stop):
        after, kind = point * width, kinds[point]
        before = after - width
        if kind == FIRST or (kind == MOVE and _is_same(segments, before, after, width)):
            continue
        room = points.size - count if count < most else -1
        if kind == FROM_OUTSIDE:
            if fewest_holders(segments, after, dimensions)[1] > room:
                break
            if wanted[IN]:
                count, retrieved = _holding(
                    point,
                    IN,
                    segments,
                    after,
                    after,
                    True,
                    index,
                    processing,
                    out,
                    count,
                    retrieved,
                )
            continue
        if _most(segments, before, after, dimensions, wanted) > room:
            break
        if wanted[OUT]:
            count, retrieved = _entered(
                point, OUT, segments, after, before, index, processing, out, count, retrieved
            )
        if wanted[IN]:
            count, retrieved = _entered(
                point, IN, segments, before, after, index, processing, out, count, retrieved
            )
        if wanted[PASSED]:
            count, retrieved = _passed(
                point, segments, before, after, index, processing, out, count, retrieved
            )
    else:
        point = stop
    tally[0] += retrieved
    return point, count


@compiled(forceinline=True)
def _is_same(segments, before, after, width):
    for k in range(width):  # noqa: SIM110  Numba compiles no generators
        if segments[before + k] != segments[after + k]:
            return False
    return True


@compiled
def _most(segments, before, after, dimensions, wanted):
    """An upper bound of the crossings of a move."""
    most = 0
    if wanted[OUT]:
        _, holders = fewest_holders(segments, before, dimensions)
        most += min(borders_walked(segments, after, before, dimensions), holders)
    if wanted[IN]:
        _, holders = fewest_holders(segments, after, dimensions)
        most += min(borders_walked(segments, before, after, dimensions), holders)
    if wanted[PASSED]:
        _, start, stop, bound = swept(segments, before, after, dimensions)
        most += stop - max(start, bound)
    return most


@compiled
def _entered(point, event, segments, before, after, index, processing, out, count, retrieved):
    """Write what a move enters, told as an event of some kind."""
    keys, queries, levels, peaks, places, size, peaks_size, dimensions = index
    points, rows, events = out
    if dimensions > 1:
        _, holders = fewest_holders(segments, after, dimensions)
        if borders_walked(segments, before, after, dimensions) > holders:
            return _holding(
                point,
                event,
                segments,
                before,
                after,
                False,
                index,
                processing,
                out,
                count,
                retrieved,
            )
    for dimension in range(dimensions):
        order, place, stop, bound = walk_of(segments, before + 2 * dimension, after + 2 * dimension)
        run = 2 * dimension + order
        is_walk = processing == WALK or (processing == EITHER and stop - place <= SHORT_WALK)
        if processing == WALK:
            retrieved += max(stop - place, 0)
        while True:
            place = next_place(
                keys, levels, peaks, run * size, run * peaks_size, place, stop, bound, is_walk
            )
            if place >= stop:
                break
            row = queries[run * size + place]
            place += 1
            if processing != WALK:
                retrieved += 1
            query = 2 * dimensions * row
            if dimensions == 1 or is_entered(
                places, query, dimension, segments, before, after, dimensions
            ):
                points[count], rows[count], events[count] = point, row, event
                count += 1
    return count, retrieved


@compiled
def _holding(
    point, event, segments, before, after, is_first, index, processing, out, count, retrieved
):
    """Write what holds the new values and, unless the stream comes from outside all, not the old ones."""
    keys, queries, levels, peaks, places, size, peaks_size, dimensions = index
    points, rows, events = out
    driving, _ = fewest_holders(segments, after, dimensions)
    run = 2 * driving + LOWER
    place, stop = 0, segments[after + run]
    bound = segments[after + run + 1]
    while True:
        place = next_place(
            keys, levels, peaks, run * size, run * peaks_size, place, stop, bound, False
        )
        if place >= stop:
            return count, retrieved
        row = queries[run * size + place]
        place += 1
        retrieved += 1
        query = 2 * dimensions * row
        if holds_all(places, query, segments, after, dimensions) and (
            is_first or not holds_all(places, query, segments, before, dimensions)
        ):
            points[count], rows[count], events[count] = point, row, event
            count += 1


@compiled
def _passed(point, segments, before, after, index, processing, out, count, retrieved):
    """Write what lies between two points and holds neither: in one dimension, what is passed through."""
    # In more dimensions the straight line may miss it: `coincide.model.borders.lines` says.
    keys, queries, levels, peaks, places, size, peaks_size, dimensions = index
    points, rows, events = out
    driving, place, stop, bound = swept(segments, before, after, dimensions)
    run = 2 * driving + LOWER
    while True:
        place = next_place(
            keys, levels, peaks, run * size, run * peaks_size, place, stop, bound, False
        )
        if place >= stop:
            return count, retrieved
        row = queries[run * size + place]
        place += 1
        retrieved += 1
        if lies_between(places, 2 * dimensions * row, segments, before, after, dimensions):
            points[count], rows[count], events[count] = point, row, PASSED
            count += 1


_BLOCK = 1 << 15
"""Points that a thread does at a time."""


class BorderSearch:
    """Points, float64 of shape (n, d), each stream in order of time, among the borders of an index."""

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

    @remembered
    def segments(self) -> np.ndarray:
        """How many borders are at most each value: int32 array, shape (n, d, 2)."""
        count, dimensions = self._values.shape
        segments = self._near
        if segments is None:
            segments = np.zeros((count, dimensions, 2), np.int32)
        flat = segments.reshape(-1)
        arguments = (self._values, self._kinds, self._index.borders, flat)
        blocks = [(a, min(a + _BLOCK, count)) for a in range(0, count, _BLOCK)]
        run_tasks([partial(locate, *block, *arguments) for block in blocks], self._threads)
        return segments

    def found(
        self, start: int, stop: int, wanted: tuple[bool, bool, bool], processing: int, most: int
    ) -> Iterator[PointCrossings]:
        """The crossings of points start ... stop, in order; `wanted` by kind of event."""
        most = max(most, 1)
        blocks = iter(range(start, stop, _BLOCK))
        arguments = (wanted, processing, most)
        if self._threads == 1:
            for block in blocks:
                yield from self._rest(block, min(block + _BLOCK, stop), arguments)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            ahead: deque[tuple[int, Future[PointCrossings]]] = deque()
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
    ) -> Iterator[PointCrossings]:
        while start < stop:
            chunk = self._chunk(start, stop, arguments)
            yield chunk
            start = chunk.stop

    def _chunk(
        self, start: int, stop: int, arguments: tuple[tuple[bool, bool, bool], int, int]
    ) -> PointCrossings:
        wanted, processing, most = arguments
        # What a move leaves, enters and passes through has room after those that suffice.
        room = most + 3 * len(self._index)
        points, rows = np.empty(room, np.int64), np.empty(room, np.int32)
        events, tally = np.empty(room, np.int8), np.zeros(1, np.int64)
        until, count = fill(
            start, stop, most, self.segments.reshape(-1), self._kinds, flat(self._index.borders),
            wanted, processing, points, rows, events, tally,
        )  # fmt: skip
        self.tally += tally
        return PointCrossings(start, until, points[:count], rows[:count], events[:count])
