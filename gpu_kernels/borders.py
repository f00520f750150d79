"""Border crossings on a GPU, in chunks of bounded size."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from coincide.model.borders.crossings import PointCrossings
from coincide.model.borders.index import BorderIndex
from coincide.model.counters import offsets_of, runs_of_about
from coincide.model.remembered import remembered
from gpu_kernels.device.arrays import array_module
from gpu_kernels.device.memory import in_parts, take, translated
from gpu_kernels.device.transfers import current
from gpu_kernels.device.turn import TURN
from gpu_kernels.kernels import borders as kernels
from gpu_kernels.kernels.borders import Moves, SortedBorders, Sought, Told, Values
from gpu_kernels.kernels.compilation import launch_each
from gpu_kernels.kernels.join import Run
from gpu_kernels.kernels.simulation import SIMULATED

POINTS_AT_ONCE = 1 << 20
"""Points on the device at a time, of at most 17 + 16 d bytes each: enough to keep it busy."""

_WHAT = "border queries"


def located(index: BorderIndex, values: np.ndarray) -> np.ndarray:
    """How many borders are at most each value: int32 array, shape (n, d, 2)."""
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
        count = int(offsets[last] - begin)
        if count == 0:
            return Told(*(np.empty(0, kind) for kind in _KINDS))

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
            out = Told(*(_result(count, kind) for kind in _KINDS))
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


def _result(size: int, kind: type) -> np.ndarray:
    return current().result(size, kind, lambda: np.empty(size, kind))


_KINDS = (np.int64, np.int32, np.int8)
"""The types of the columns of `Told`."""


class Resident(NamedTuple):
    """A copy of an index."""

    live: int  # Queries that had not been removed: those of an index only become fewer
    values: Any  # float64, shape (d * 2 * N,)
    borders: SortedBorders


_Key = tuple[int, int]
_residents: dict[_Key, Resident] = {}
"""By index, for as long as it lives, and device."""


def resident(index: BorderIndex) -> Resident:
    """The current device's copy of an index. Called by one thread at a time.

    A query takes 40 bytes a dimension, and half a byte for peaks.
    """
    key = id(index), 0 if SIMULATED else array_module().cuda.runtime.getDevice()
    found, live = _residents.get(key), index.live
    if found is not None and found.live == live:
        return found
    if found is None:
        values = index.borders.values
        made = Resident(live, _sent(values), _all_sent(index))
        weakref.finalize(index, _residents.pop, key, None).atexit = False
    else:
        # What `BorderIndex.remove` writes.
        keys, places = (_sent(index.borders.keys), _sent(index.borders.places))
        made = Resident(live, found.values, found.borders._replace(keys=keys, places=places))
    _residents[key] = made
    return made


def _all_sent(index: BorderIndex) -> SortedBorders:
    borders = index.borders
    keys, queries, peaks, places = map(
        _sent, (borders.keys, borders.queries, borders.peaks, borders.places)
    )
    return SortedBorders(
        keys, queries, _sent(borders.levels), peaks, places,
        len(index), borders.peaks.shape[2], index.dimensions,
    )  # fmt: skip


def _sent(array: np.ndarray) -> Any:
    return current().send_one(array.reshape(-1))


_CROSSINGS_AHEAD = 1 << 22
"""Crossings on the device at a time, of 13 bytes each: more only where a chunk, or a point, has more."""


class BorderSearch:
    """Points among the borders of an index: as `cpu_fallback.borders`, in the same order.

    All arrays that it takes and returns are in host memory. Between calls the device holds a copy of the
    index, for as long as that lives, and nothing else. Several threads may call; they take turns.

    What it raises, `DeviceMemoryError` if the device cannot hold the index or the crossings of one point,
    and `BackendError` if it fails, leaves all chunks that were taken in force: whoever goes on
    elsewhere, goes on where the last one stops.
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

    @remembered
    def segments(self) -> np.ndarray:
        """How many borders are at most each value: int32 array, shape (n, d, 2)."""
        return located(self._index, self._values)

    def found(
        self, start: int, stop: int, wanted: tuple[bool, bool, bool], processing: int, most: int
    ) -> Iterator[PointCrossings]:
        """The crossings of points start ... stop, in their order."""
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
                    yield PointCrossings(first + a + c, first + a + d, *columns)
