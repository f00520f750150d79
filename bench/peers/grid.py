"""A grid over two dimensions, each cell with the queries that meet it: an index for the paper's DiffRMQ."""

from __future__ import annotations

import numpy as np

from bench.borders import Ranges, Walks
from bench.peers.diff_rmq import Sets
from coincide.model.compiled import compiled

_POINTS_AT_ONCE = 1 << 12


class Grid:
    """Squares in the cells of a grid over a domain from 0, ascending in each cell."""

    def __init__(self, ranges: Ranges, side: float, cells: int) -> None:
        self._lower, self._upper = (np.ascontiguousarray(each) for each in ranges)
        self._cells, self._size = cells, side / cells
        corners = [
            (each / self._size).astype(np.int64).clip(0, cells - 1)
            for each in (self._lower, self._upper)
        ]
        self._offsets = np.zeros(cells * cells + 1, np.int64)
        _tally(*corners, cells, self._offsets)
        np.cumsum(self._offsets, out=self._offsets)
        self._rows = np.empty(self._offsets[-1], np.int32)
        _place(*corners, cells, self._offsets[:-1].copy(), self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the cells and of the queries' borders."""
        arrays = (self._offsets, self._rows, self._lower, self._upper)
        return sum(each.nbytes for each in arrays)

    def stab(self, walks: Walks) -> int:
        """Find the queries of all readings, and drop them; how many there were."""
        return sum(rows.size for rows, _ in self._found(walks))

    def sets(self, walks: Walks) -> Sets:
        """The queries of all readings."""
        rows, sizes = zip(*self._found(walks), strict=True)
        return Sets(np.append(0, np.cumsum(np.concatenate(sizes))), np.concatenate(rows))

    def _found(self, walks: Walks):
        n = walks.kinds.size
        index = (self._offsets, self._rows, self._lower, self._upper)
        most = int(np.diff(self._offsets).max())
        for start in range(0, n, _POINTS_AT_ONCE):
            values = walks.values[start : start + _POINTS_AT_ONCE]
            rows = np.empty(most * values.shape[0], np.int32)
            sizes = np.empty(values.shape[0], np.int64)
            found = _stab(values, self._size, self._cells, *index, rows, sizes)
            yield rows[:found].copy(), sizes


@compiled
def _tally(first, last, cells, offsets):
    for query in range(first.shape[0]):
        for x in range(first[query, 0], last[query, 0] + 1):
            for y in range(first[query, 1], last[query, 1] + 1):
                offsets[x * cells + y + 1] += 1


@compiled
def _place(first, last, cells, places, rows):
    for query in range(first.shape[0]):
        for x in range(first[query, 0], last[query, 0] + 1):
            for y in range(first[query, 1], last[query, 1] + 1):
                rows[places[x * cells + y]] = query
                places[x * cells + y] += 1


@compiled
def _stab(values, size, cells, offsets, queries, lower, upper, rows, sizes):
    found = 0
    for point in range(values.shape[0]):
        x, y = values[point, 0], values[point, 1]
        cell = min(int(x / size), cells - 1) * cells + min(int(y / size), cells - 1)
        before = found
        for k in range(offsets[cell], offsets[cell + 1]):
            query = queries[k]
            if lower[query, 0] <= x < upper[query, 0] and lower[query, 1] <= y < upper[query, 1]:
                rows[found] = query
                found += 1
        sizes[point] = found - before
    return found
