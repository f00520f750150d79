"""The index of border queries, live or not: borders in order, which ends count, and peaks over runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from coincide.model.compiled import compiled

LOWER, UPPER = 0, 1
"""The order of lower borders, and that of upper ones, in arrays that have both."""

MOST_DIMENSIONS = 9
_DEAD = np.iinfo(np.int32).min


class Borders(NamedTuple):
    """The arrays that kernels search, of N queries in d dimensions, for lower and for upper borders.

    `values`: float64, (d, 2, N), in order; `queries`: int32 rows of these; `places`: int32, (N, d, 2).
    `keys`: int32, (d, 2, N), the place p of a lower border's upper one, and ~p of an upper one's lower one:
    in both orders a scan looks for keys that are at least something. `peaks`: int32, of the keys by level.
    """

    values: np.ndarray
    keys: np.ndarray
    queries: np.ndarray
    levels: np.ndarray
    peaks: np.ndarray
    places: np.ndarray


class Removal(NamedTuple):
    """Rows to remove, ascending, and places of their borders: intp, (2, d, n)."""

    rows: np.ndarray
    places: np.ndarray


@dataclass(eq=False)
class BorderIndex:
    """Sorted borders of queries, whose numbers ascend; `closed`: bits of the ends that ranges hold."""

    borders: Borders
    numbers: np.ndarray
    closed: np.ndarray
    is_live: np.ndarray
    removed: int = 0

    @classmethod
    def of(
        cls,
        lower: np.ndarray,
        upper: np.ndarray,
        numbers: np.ndarray,
        closed: np.ndarray | None = None,
    ) -> BorderIndex:
        """Sort the borders of queries: O(N log N)."""
        closed = np.zeros(numbers.size, np.uint8) if closed is None else closed
        lower, upper = half_open(lower, upper, closed)
        orders = np.stack(
            [np.argsort(ends.T, axis=1, kind="stable").astype(np.int32) for ends in (lower, upper)],
            axis=1,
        )
        values = np.stack([lower.T, upper.T], axis=1)
        values = np.take_along_axis(values, orders.astype(np.int64), axis=2)
        return cls(_borders(values, orders), numbers, closed, np.ones(numbers.size, np.bool_))

    def __len__(self) -> int:
        return int(self.numbers.size)

    @property
    def dimensions(self) -> int:
        """d."""
        return int(self.borders.values.shape[0])

    @property
    def live(self) -> int:
        """Queries that have not been removed."""
        return len(self) - self.removed

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (*self.borders, self.numbers, self.closed, self.is_live)
        return sum(each.nbytes for each in arrays)

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        """The live rows of some numbers: int64 array, -1 where no row is live."""
        if not len(self):
            return np.full(numbers.size, -1, np.int64)
        rows = np.minimum(np.searchsorted(self.numbers, numbers), len(self) - 1)
        return np.where((self.numbers[rows] == numbers) & self.is_live[rows], rows, -1)

    def ranges_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper borders of live queries, as they were given: float64 arrays, shape (n, d)."""
        dimensions = np.arange(self.dimensions)
        lower, upper = (
            self.borders.values[dimensions, order, self.borders.places[rows, :, order]]
            for order in (LOWER, UPPER)
        )
        return as_given(lower, upper, self.closed[rows])

    def removal(self, numbers: np.ndarray) -> Removal:
        """What `remove` needs to remove the live ones of some numbers, with all memory that it takes."""
        rows = self.rows_of(numbers)
        rows = np.unique(rows[rows >= 0])
        return Removal(rows, self.borders.places[rows].astype(np.intp).T.copy())

    def remove(self, removal: Removal) -> None:
        """Let live rows be matched by nothing any more, in place: O(rows). `merged` takes them out."""
        rows, places = removal
        for dimension in range(self.dimensions):
            for order in (LOWER, UPPER):
                self.borders.keys[dimension, order][places[order, dimension]] = _DEAD
        # What has its upper border before all places holds no value.
        self.borders.places[rows, :, UPPER] = -1
        self.is_live[rows] = False
        self.removed += rows.size

    def merged(self, later: BorderIndex) -> BorderIndex:
        """The live queries of two indexes, the numbers of the second after those of the first: O(N)."""
        # Nothing is sorted anew: each order of the second is merged into that of the first.
        rows = np.cumsum(self.is_live) - 1
        later_rows = self.live + np.cumsum(later.is_live) - 1
        count = self.live + later.live
        values = np.empty((self.dimensions, 2, count))
        orders = np.empty((self.dimensions, 2, count), np.int32)
        for dimension in range(self.dimensions):
            for order in (LOWER, UPPER):
                first = _live(self, rows, dimension, order)
                second = _live(later, later_rows, dimension, order)
                _merge(first, second, values[dimension, order], orders[dimension, order])
        numbers, closed = (
            np.concatenate([own[self.is_live], new[later.is_live]])
            for own, new in ((self.numbers, later.numbers), (self.closed, later.closed))
        )
        return BorderIndex(_borders(values, orders), numbers, closed, np.ones(count, np.bool_))


def _borders(values: np.ndarray, orders: np.ndarray) -> Borders:
    """All arrays, from the borders in order and their rows."""
    dimensions, _, count = values.shape
    places = np.empty((count, dimensions, 2), np.int32)
    keys = np.empty_like(orders)
    levels = peak_levels(count)
    peaks = np.empty((dimensions, 2, int(levels[-1])), np.int32)
    in_order = np.arange(count, dtype=np.int32)
    for dimension in range(dimensions):
        for order in (LOWER, UPPER):
            places[orders[dimension, order], dimension, order] = in_order
        keys[dimension, LOWER] = places[orders[dimension, LOWER], dimension, UPPER]
        keys[dimension, UPPER] = ~places[orders[dimension, UPPER], dimension, LOWER]
        for order in (LOWER, UPPER):
            write_peaks(keys[dimension, order], levels, peaks[dimension, order])
    return Borders(values, keys, orders, levels, peaks, places)


Run = tuple[np.ndarray, np.ndarray]
"""Borders in order, and their rows."""


def _live(index: BorderIndex, rows: np.ndarray, dimension: int, order: int) -> Run:
    """The borders of live queries, under new rows."""
    values = index.borders.values[dimension, order]
    queries = index.borders.queries[dimension, order]
    if index.live < len(index):
        kept = index.is_live[queries]
        values, queries = values[kept], queries[kept]
    return values, rows[queries]


def _merge(first: Run, second: Run, values: np.ndarray, queries: np.ndarray) -> None:
    """Merge two orders into given arrays, equal borders of the first before those of the second."""
    places = np.arange(second[0].size) + np.searchsorted(first[0], second[0], side="right")
    is_first = np.ones(values.size, np.bool_)
    is_first[places] = False
    for out, one, other in ((values, first[0], second[0]), (queries, first[1], second[1])):
        out[is_first] = one
        out[places] = other


_FEWEST_TO_MERGE = 4096
_SHARE_TO_MERGE = 16
"""A level is merged into the one before it once it is a sixteenth of it: of a million queries there are
three at most, and an added query is moved a few times."""


class LiveIndex:
    """A large index, and after it ever smaller ones of what was added since.

    All are searched. What is added is merged into the smallest one, and now and then a level into the one
    before it, in linear time.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.levels = [_nothing(dimensions)]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(level.nbytes for level in self.levels)

    def levels_with(self, added: BorderIndex) -> list[BorderIndex]:
        """The levels to have, once queries are added whose numbers are above all before them."""
        if not len(added):
            return self.levels
        # An empty level gives its place up: to merge with it would be to build all arrays once more.
        levels = [*(self.levels if len(self.levels[-1]) else self.levels[:-1]), added]
        while len(levels) > 1 and _is_merged(len(levels[-2]), len(levels[-1])):
            levels[-2:] = [levels[-2].merged(levels[-1])]
        return levels

    def live_ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Numbers, lower and upper borders and closed ends of all live queries."""
        rows = [np.flatnonzero(level.is_live) for level in self.levels]
        levels = list(zip(self.levels, rows, strict=True))
        ranges = [level.ranges_of(own) for level, own in levels]
        return (
            np.concatenate([level.numbers[own] for level, own in levels]),
            np.concatenate([lower for lower, _ in ranges]),
            np.concatenate([upper for _, upper in ranges]),
            np.concatenate([level.closed[own] for level, own in levels]),
        )

    def removals(self, numbers: np.ndarray) -> list[Removal]:
        """What `remove` needs, level by level; numbers that are not here are passed over."""
        return [level.removal(numbers) for level in self.levels]

    def remove(self, removals: list[Removal]) -> int:
        """Remove queries, and say how many. It takes no memory, but to tidy up."""
        for level, removal in zip(self.levels, removals, strict=True):
            level.remove(removal)
        # They are removed by now: where memory lacks, the next removal tidies up.
        with suppress(MemoryError):
            self._tidy()
        return sum(removal.rows.size for removal in removals)

    def _tidy(self) -> None:
        # From the last one on: what is merged into a level does not move those before it.
        for k in reversed(range(len(self.levels))):
            if self.levels[k].live < len(self.levels[k]) // 2:
                self._merge_into(k)

    def _merge_into(self, k: int) -> None:
        """Merge the level behind one into it, if there is any, and take out what was removed."""
        pair = [*self.levels[k : k + 2], _nothing(self.dimensions)]
        merged = pair[0].merged(pair[1])
        self.levels[k : k + 2] = [merged] if len(merged) or k == 0 else []


def _nothing(dimensions: int) -> BorderIndex:
    none = np.zeros((0, dimensions))
    return BorderIndex.of(none, none, np.zeros(0, np.int64))


def _is_merged(size: int, later: int) -> bool:
    return size <= _FEWEST_TO_MERGE or later * _SHARE_TO_MERGE > size


RUN_BITS = 4
RUN = 1 << RUN_BITS
"""Neighbours under one peak."""
_LOWEST = np.iinfo(np.int32).min


def peak_levels(size: int) -> np.ndarray:
    """Where each level begins, and the last one ends: int64 array, shape (levels + 1,)."""
    ends = [0]
    while size > 1 or len(ends) == 1:
        size = -(-size // RUN)
        ends.append(ends[-1] + size)
    return np.array(ends, np.int64)


def write_peaks(keys: np.ndarray, levels: np.ndarray, peaks: np.ndarray) -> None:
    """Write the peaks of all levels."""
    below = keys
    for start, stop in zip(levels[:-1].tolist(), levels[1:].tolist(), strict=True):
        padded = np.full((stop - start) * RUN, _LOWEST, np.int32)
        padded[: below.size] = below
        below = peaks[start:stop]
        np.max(padded.reshape(-1, RUN), axis=1, out=below)


@compiled(forceinline=True)
def next_reaching(keys, levels, peaks, keys_from, peaks_from, place, stop, bound):
    """The first place, of those before `stop`, whose key reaches a bound; `stop` if no key does."""
    while place < stop:
        if place & (RUN - 1) == 0:
            place = next_run(levels, peaks, peaks_from, place, bound)
            if place >= stop:
                break
        if keys[keys_from + place] >= bound:
            return place
        place += 1
    return stop


@compiled
def next_run(levels, peaks, peaks_from, place, bound):
    """The first place of a run with a peak that reaches a bound, from a place where a run begins."""
    # For no number: a place behind all keys.
    top = levels.size - 2
    level, run = 0, place >> RUN_BITS
    while run < levels[level + 1] - levels[level]:
        if peaks[peaks_from + levels[level] + run] >= bound:
            if level == 0:
                return run << RUN_BITS
            level -= 1
            run <<= RUN_BITS
        else:
            run += 1
            while level < top and run & (RUN - 1) == 0:
                level += 1
                run >>= RUN_BITS
    # Behind the last run of some level lies nothing at all.
    return (levels[1] - levels[0]) << RUN_BITS


Closed = Literal["left", "right", "both", "neither"]

CLOSED: tuple[str, ...] = get_args(Closed)

OPEN_BELOW, CLOSED_ABOVE = 1, 2
"""Bits of a range that does not hold its lower border, and of one that holds its upper one."""

_BITS = dict(zip(CLOSED, (0, OPEN_BELOW | CLOSED_ABOVE, CLOSED_ABOVE, OPEN_BELOW), strict=True))


def closed_bits(words: list[str]) -> np.ndarray:
    """The bits of words of `CLOSED`: uint8 array, shape (n,)."""
    return np.array([_BITS[word] for word in words], np.uint8)


def half_open(
    lower: np.ndarray, upper: np.ndarray, closed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Borders of the ranges [lower, upper) that hold the same floats."""
    if not closed.any():
        return lower, upper
    lower = _stepped(lower, closed & OPEN_BELOW)
    return lower, np.maximum(lower, _stepped(upper, closed & CLOSED_ABOVE))


def as_given(
    lower: np.ndarray, upper: np.ndarray, closed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The borders of which `half_open` has made these, of ranges that hold some float."""
    if not closed.any():
        return lower, upper
    return (
        _stepped(lower, closed & OPEN_BELOW, -np.inf),
        _stepped(upper, closed & CLOSED_ABOVE, -np.inf),
    )


def _stepped(borders: np.ndarray, steps: np.ndarray, towards: float = np.inf) -> np.ndarray:
    """The next float of borders, where there is to be a step. No value is infinite, so infinity stays."""
    moves = (steps != 0)[:, np.newaxis] & np.isfinite(borders)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(moves, np.nextafter(borders, towards), borders)
