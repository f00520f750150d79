"""The index of border queries: borders in order, and beside each border where its query's other one lies.

The region segments of the BMQ paper (section 4.1) are the gaps between neighbouring borders, and the delta
query sets of Definition 5 are runs of the two orders: the queries with a lower border in (a, b] lie side by
side in the order of lower borders, those with an upper border in it in the order of upper ones. Places in
these orders are all that is compared, so that a query is two integers a dimension.

Ranges are [lower, upper) everywhere: `coincide.borders.closed` makes such of all others. (The paper writes
(l, u) in section 4.1, l <= b < u in Lemma 2, and compares strictly in Figure 6.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coincide.borders.closed import as_given, half_open
from coincide.borders.peaks import peak_levels, write_peaks

LOWER, UPPER = 0, 1
"""The order of lower borders, and that of upper ones, in arrays that have both."""

MOST_DIMENSIONS = 9
_DEAD = np.iinfo(np.int32).min


class Borders(NamedTuple):
    """The arrays that kernels search, of N queries in d dimensions.

    Attributes
    ----------
    values : float64 array, shape (d, 2, N)
        Lower borders in order, and upper ones.
    keys : int32 array, shape (d, 2, N)
        At a lower border: the place p of its query's upper border. At an upper border: ~p of the lower
        one, so that in both orders a scan looks for keys that are at least something.
    queries : int32 array, shape (d, 2, N)
        Row of the query that a border is of.
    levels : int64 array
    peaks : int32 array, shape (d, 2, levels[-1])
        Over the keys: `coincide.borders.peaks`.
    places : int32 array, shape (N, d, 2)
        Of each query's borders, by row.
    """

    values: np.ndarray
    keys: np.ndarray
    queries: np.ndarray
    levels: np.ndarray
    peaks: np.ndarray
    places: np.ndarray


class Removal(NamedTuple):
    """Rows to remove.

    Attributes
    ----------
    rows : int64 array, shape (n,)
        Ascending.
    places : intp array, shape (2, d, n)
        Of their borders in each order.
    """

    rows: np.ndarray
    places: np.ndarray


@dataclass(eq=False)
class BorderIndex:
    """Sorted borders of queries.

    Parameters
    ----------
    borders : Borders
    numbers : int64 array, shape (N,)
        What each row's query is called outside, ascending.
    closed : uint8 array, shape (N,)
        Which ends each row's range holds: bits of `coincide.borders.closed`.
    is_live : bool array, shape (N,)
        False: removed, and matched by nothing any more.
    removed : int
        How many.
    """

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
        """Sort the borders of queries: O(N log N).

        Parameters
        ----------
        lower, upper : float64 arrays, shape (N, d)
            lower <= upper, none of them NaN.
        numbers : int64 array, shape (N,)
            Ascending.
        closed : uint8 array, shape (N,), optional
            None: all are [lower, upper).
        """
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
        """The live rows of some numbers: int64 array, -1 where there is none."""
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
        # Of no value does the range hold what has its upper border before all places.
        self.borders.places[rows, :, UPPER] = -1
        self.is_live[rows] = False
        self.removed += rows.size

    def merged(self, later: BorderIndex) -> BorderIndex:
        """The live queries of two indexes, the numbers of the second after those of the first: O(N).

        Nothing is sorted anew: each order of the second is merged into that of the first.
        """
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
    """All arrays, from the borders in order and the rows that they are of."""
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
"""Borders in order, and the rows that they are of."""


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
