"""The paper's DiffRMQ: the queries that hold each reading, and the difference of neighbouring sets.

The difference is compiled, and takes sets as arrays: what an index's interface costs is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np

from bench.borders import Ranges, Walks, stabbed
from coincide.model.borders.crossings import IN, OUT, PointCrossings
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.moves import MOVE
from coincide.model.compiled import compiled

_STABS_AT_ONCE = 10_000


class Sets(NamedTuple):
    """The queries that hold each reading, ascending: offsets, shape (n + 1,), and rows."""

    offsets: np.ndarray
    rows: np.ndarray


class Stabs(Protocol):
    """An index that is asked which queries hold a value."""

    def stab(self, walks: Walks) -> int:
        """Find the queries of all readings, and drop them; how many there were."""

    def sets(self, walks: Walks) -> Sets:
        """The same, kept."""


class SuperIntervals:
    """The index of package superintervals, whose intervals are whole numbers with their ends."""

    def __init__(self, ranges: Ranges) -> None:
        from superintervals import IntervalMap

        # As the package sorts them, by starts and of equal ones the longest first: its indexes are ours.
        starts, ends = (each[:, 0].astype(np.int64) for each in ranges)
        assert (np.diff(starts) >= 0).all()
        ends = (ends - 1).clip(max=np.iinfo(np.int32).max)
        self._order = np.lexsort((-ends, starts))
        starts, ends = (each[self._order].astype(np.int32) for each in (starts, ends))
        self._intervals = IntervalMap.from_arrays(starts, ends)

    def stab(self, walks: Walks) -> int:
        """Find the queries of all readings, and drop them; how many there were."""
        return sum(sum(map(len, lists)) for lists in self._lists(walks))

    def count(self, walks: Walks) -> int:
        """How many queries hold each reading, summed: the search without a result."""
        values = _whole(walks)
        return sum(self._intervals.count_batch(values, values))

    def sets(self, walks: Walks) -> Sets:
        """The queries of all readings."""
        sizes, rows = [], []
        for lists in self._lists(walks):
            sizes.append(np.fromiter(map(len, lists), np.int64, len(lists)))
            # The package lists them from the last to the first.
            each = [self._order[each[::-1]] for each in lists]
            rows.append(np.concatenate(each).astype(np.int32))
        offsets = np.append(0, np.cumsum(np.concatenate(sizes)))
        found = np.concatenate(rows)
        points = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        return Sets(offsets, found[np.lexsort((found, points))])

    def _lists(self, walks: Walks) -> Iterator[list[list[int]]]:
        values = _whole(walks)
        for start in range(0, values.size, _STABS_AT_ONCE):
            some = values[start : start + _STABS_AT_ONCE]
            yield self._intervals.search_idxs_batch(some, some)


def _whole(walks: Walks) -> np.ndarray:
    return np.ascontiguousarray(walks.values[:, 0].astype(np.int32))


class OwnIndex:
    """Our own index, which is asked for what holds a value: no interface of Python's lies between."""

    def __init__(self, index: BorderIndex, threads: int) -> None:
        self._index, self._threads = index, threads

    def stab(self, walks: Walks) -> int:
        """Find the queries of all readings, and drop them; how many there were."""
        return sum(chunk.points.size for chunk in stabbed(self._index, walks, self._threads))

    def sets(self, walks: Walks) -> Sets:
        """The queries of all readings."""
        sizes, rows = np.zeros(walks.kinds.size, np.int64), []
        for chunk in stabbed(self._index, walks):
            sizes[chunk.start : chunk.stop] = np.bincount(
                chunk.points - chunk.start, minlength=chunk.stop - chunk.start
            )
            rows.append(chunk.rows.copy())
        offsets = np.append(0, np.cumsum(sizes))
        found = np.concatenate([np.zeros(0, np.int32), *rows])
        points = np.repeat(np.arange(sizes.size), sizes)
        return Sets(offsets, found[np.lexsort((found, points))])


class Parts(NamedTuple):
    """Seconds that the stabs and the difference took; events, and queries that were retrieved."""

    stabs: float
    difference: float
    events: int
    retrieved: int

    @property
    def seconds(self) -> float:
        """The seconds of both."""
        return self.stabs + self.difference


def timed_parts(peer: Stabs, walks: Walks, sets: Sets, threads: int) -> Parts:
    """Run DiffRMQ once: the stabs, then the difference of the same sets, which `peer.sets` has given.

    Both sets of a move are retrieved, as the paper counts them; the one before is kept, and not searched
    for again.
    """
    started = perf_counter()
    stabs = peer.stab(walks)
    between = perf_counter()
    events = sum(chunk.points.size for chunk in differences(sets, walks, threads))
    ended = perf_counter()
    assert stabs == sets.rows.size
    sizes = np.diff(sets.offsets)
    moves = np.flatnonzero(walks.kinds == MOVE)
    retrieved = int(sizes[moves].sum() + sizes[moves - 1].sum())
    return Parts(between - started, ended - between, events, retrieved)


def differences(sets: Sets, walks: Walks, threads: int = 1) -> Iterable[PointCrossings]:
    """The crossings: what one of two sets has and the other has not."""
    edges = np.linspace(0, walks.kinds.size, 8 * threads + 1).astype(np.int64)

    def block(start: int, stop: int) -> PointCrossings:
        before = max(start - 1, 0)
        room = int(sets.offsets[stop] - sets.offsets[before] + sets.offsets[max(stop - 1, 0)])
        room = min(room, 2 * int(sets.offsets[stop] - sets.offsets[before]))
        points, rows = np.empty(room, np.int64), np.empty(room, np.int32)
        events = np.empty(room, np.int8)
        n = _difference(start, stop, *sets, walks.kinds, points, rows, events)
        return PointCrossings(start, stop, points[:n], rows[:n], events[:n])

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(block, edges[:-1].tolist(), edges[1:].tolist())


@compiled
def _difference(start, stop, offsets, sets, kinds, points, rows, events):
    count = 0
    for point in range(start, stop):
        if kinds[point] != MOVE:
            continue
        i, j = offsets[point - 1], offsets[point]
        old, new = offsets[point], offsets[point + 1]
        while i < old or j < new:
            if j == new or (i < old and sets[i] < sets[j]):
                points[count], rows[count], events[count] = point, sets[i], OUT
                i += 1
                count += 1
            elif i == old or sets[j] < sets[i]:
                points[count], rows[count], events[count] = point, sets[j], IN
                j += 1
                count += 1
            else:
                i += 1
                j += 1
    return count
