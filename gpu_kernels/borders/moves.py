"""Points among the borders of an index in device memory: located, counted, told."""

from __future__ import annotations

import numpy as np

from coincide.borders.index import BorderIndex
from coincide.results import offsets_of
from gpu_kernels.borders.residents import resident
from gpu_kernels.device.memory import in_parts, take, translated
from gpu_kernels.device.transfers import current
from gpu_kernels.device.usable import TURN
from gpu_kernels.kernels import borders as kernels
from gpu_kernels.kernels.border_layout import Moves, Sought, Told, Values
from gpu_kernels.kernels.compilation import launch_each
from gpu_kernels.kernels.layout import Run

POINTS_AT_ONCE = 1 << 20
"""Points on the device at a time, of at most 17 + 16 d bytes each: enough to keep it busy."""

_WHAT = "border queries"


def located(index: BorderIndex, values: np.ndarray) -> np.ndarray:
    """How many borders are at most each value: int32 array, shape (n, d, 2).

    Parameters
    ----------
    index : BorderIndex
    values : float64 array, shape (n, d)

    Raises
    ------
    DeviceMemoryError
        If the device cannot hold the index.
    BackendError
        If it fails.
    """
    count, dimensions = values.shape
    segments = np.empty((count, dimensions, 2), np.int32)
    run = Run.of(0, dimensions)

    def locate(start: int, stop: int) -> None:
        points = current().send_one(values[start:stop].reshape(-1))
        found = take(2 * points.size, np.int32)
        among = Values(points, borders, len(index))
        launch_each(kernels.locate, points.size, among, run, found)
        fetch(found, segments[start:stop].reshape(-1))

    with TURN, translated(_WHAT), current().fetching() as fetch:
        borders = resident(index).values
        for start in range(0, count, POINTS_AT_ONCE):
            in_parts(locate, start, min(start + POINTS_AT_ONCE, count))
    return segments


class PointRun:
    """Points start ... stop, at most `POINTS_AT_ONCE`: their crossings are counted now.

    Nothing is left on the device.

    Parameters
    ----------
    index : BorderIndex
    segments : int32 array, shape (n, d, 2)
    kinds : int8 array, shape (n,)
    start, stop : int
    sought : Sought

    Attributes
    ----------
    offsets : int64 array, shape (stop - start + 1,)
        Exclusive scan of the crossings of each point.
    retrieved : int64 array, shape (stop - start,)
        Queries that each took out of the index.

    Raises
    ------
    DeviceMemoryError
        If the device cannot hold the index; later, if not the crossings of one point.
    BackendError
        If it fails.
    """

    def __init__(
        self,
        index: BorderIndex,
        segments: np.ndarray,
        kinds: np.ndarray,
        start: int,
        stop: int,
        sought: Sought,
    ) -> None:
        self._index, self._segments, self._kinds = index, segments, kinds
        self._start, self._sought = start, sought
        counts, self.retrieved = np.empty(stop - start, np.int64), np.empty(stop - start, np.int64)

        def count(a: int, b: int) -> None:
            moves = self._moves(a, b)
            found, retrieved = take(b - a, np.int64), take(b - a, np.int64)
            nothing = Told(*(take(0, kind) for kind in _KINDS))
            launch_each(
                kernels.tell, b - a, borders, moves, sought, False, found, retrieved, nothing
            )
            fetch(found, counts[a:b])
            fetch(retrieved, self.retrieved[a:b])

        with TURN, translated(_WHAT), current().fetching() as fetch:
            borders = resident(index).borders
            in_parts(count, 0, stop - start)
        self.offsets = offsets_of(counts)

    def told(self, first: int, last: int) -> Told:
        """The crossings of the points first ... last of these, counted from the first one."""
        offsets = self.offsets
        begin = offsets[first]
        out = Told(*(np.empty(offsets[last] - begin, kind) for kind in _KINDS))
        if not out.points.size:
            return out

        def fill(a: int, b: int) -> None:
            moves = self._moves(a, b)
            places = current().send_one(offsets[a:b] - offsets[a])
            found = Told(*(take(int(offsets[b] - offsets[a]), kind) for kind in _KINDS))
            launch_each(
                kernels.tell, b - a, borders, moves, self._sought, True, places, places, found
            )
            for column, whole in zip(found, out, strict=True):
                fetch(column, whole[offsets[a] - begin : offsets[b] - begin])

        with TURN, translated(_WHAT), current().fetching() as fetch:
            borders = resident(self._index).borders
            in_parts(fill, first, last)
        return out

    def _moves(self, a: int, b: int) -> Moves:
        """Points a ... b of these, and the one before them."""
        first = self._start + a
        lead = min(first, 1)
        rows = slice(first - lead, self._start + b)
        segments, kinds = next(
            current().send([self._segments[rows].reshape(-1), self._kinds[rows]])
        )
        return Moves(segments, kinds, lead, first)


_KINDS = (np.int64, np.int32, np.int8)
"""Of the columns of `Told`."""
