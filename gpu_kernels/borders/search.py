"""The crossings of a sequence of points on a GPU, in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from coincide.borders.crossings import Found
from coincide.borders.index import BorderIndex
from coincide.results import runs_of_about
from gpu_kernels.borders.moves import POINTS_AT_ONCE, PointRun, located
from gpu_kernels.kernels.border_layout import Sought

_CROSSINGS_AHEAD = 1 << 22
"""Crossings on the device at a time, of 13 bytes each: more only where a chunk, or a point, has more."""


class BorderSearch:
    """Points among the borders of an index: as `cpu_fallback.borders.search`, in the same order.

    All arrays that it takes and returns are in host memory. Between calls the device holds a copy of the
    index, for as long as that lives, and nothing else. Several threads may call; they take turns.

    What it raises, `DeviceMemoryError` if the device cannot hold the index or the crossings of one point,
    and `BackendError` if it fails, leaves all chunks that were handed out in force: whoever goes on
    elsewhere, goes on where the last one stops.

    Parameters
    ----------
    index : BorderIndex
    values : float64 array, shape (n, d)
        Of the points, those of a stream one after the other, in order of time.
    kinds : int8 array, shape (n,)
        `FIRST`, `FROM_OUTSIDE` or `MOVE`.
    near : int32 array, shape (n, d, 2), or None
    threads : int
        Neither has an effect.

    Attributes
    ----------
    retrieved : int
        Queries that were taken out of the index for the chunks handed out so far.
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
        self._index, self._values, self._kinds = index, values, kinds
        self.retrieved = 0

    @cached_property
    def segments(self) -> np.ndarray:
        """How many borders are at most each value: int32 array, shape (n, d, 2)."""
        return located(self._index, self._values)

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
        sought = Sought(*wanted, processing)
        for first in range(start, stop, POINTS_AT_ONCE):
            last = min(first + POINTS_AT_ONCE, stop)
            run = PointRun(self._index, self.segments, self._kinds, first, last, sought)
            for a, b in runs_of_about(run.offsets, max(most, _CROSSINGS_AHEAD)):
                told, offsets = run.told(a, b), run.offsets[a : b + 1]
                for c, d in runs_of_about(offsets, most):
                    self.retrieved += int(run.retrieved[a + c : a + d].sum())
                    rows = slice(offsets[c] - offsets[0], offsets[d] - offsets[0])
                    columns = (column[rows] for column in told)
                    yield Found(first + a + c, first + a + d, *columns)
