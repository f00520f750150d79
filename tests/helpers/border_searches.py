"""Searches of both backends, side by side: the same to the crossing, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from coincide.model.borders.crossings import PointCrossings
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.moves import FIRST, FROM_OUTSIDE, MOVE
from cpu_fallback.borders import BorderSearch as HostSearch
from gpu_kernels.borders import BorderSearch

ALL = (True, True, True)


def joined(chunks: list[PointCrossings]) -> list[np.ndarray]:
    """The columns of chunks; each chunk begins where the one before stops."""
    assert all(one.stop == other.start for one, other in pairwise(chunks))
    return [np.concatenate(columns) for columns in list(zip(*chunks, strict=True))[2:]]


class BothSearches:
    """A search on the GPU that holds all it finds against the CPU's."""

    def __init__(self, index: BorderIndex, values: Any, kinds: Any, near: Any) -> None:
        self._gpu = BorderSearch(index, values, kinds, near)
        self._cpu = HostSearch(index, values, kinds, None if near is None else near.copy())

    @property
    def segments(self) -> np.ndarray:
        """As both say."""
        found = self._gpu.segments
        np.testing.assert_array_equal(found, self._cpu.segments)
        assert found.dtype == np.int32
        return found

    @property
    def retrieved(self) -> int:
        """As both say."""
        assert self._gpu.retrieved == self._cpu.retrieved
        return self._gpu.retrieved

    def found(self, start: int, stop: int, *given: Any) -> Iterator[PointCrossings]:
        """The GPU's chunks."""
        assert self.segments is not None
        gpu, cpu = (list(each.found(start, stop, *given)) for each in (self._gpu, self._cpu))
        if start < stop:
            assert (gpu[0].start, gpu[-1].stop) == (start, stop)
            for mine, theirs in zip(joined(gpu), joined(cpu), strict=True):
                np.testing.assert_array_equal(mine, theirs)
                assert mine.dtype == theirs.dtype
        most = given[-1]
        assert all(len(set(each.points.tolist())) <= 1 for each in gpu if each.rows.size > most)
        yield from gpu


def drawn_index(rng: np.random.Generator, queries: int, dimensions: int) -> BorderIndex:
    """Ranges between whole numbers below 100, narrow and wide."""
    lower = rng.integers(0, 90, (queries, dimensions)).astype(np.float64)
    # Few narrow ranges of many dimensions hold anything.
    upper = lower + rng.choice([1, 3, 30] if dimensions < 3 else [30, 90], lower.shape)
    return BorderIndex.of(lower, upper, np.arange(queries))


def drawn_points(
    rng: np.random.Generator, count: int, dimensions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Values and kinds of points of a few streams, that move little and far."""
    far = rng.integers(-5, 105, (count, dimensions))
    near = np.cumsum(rng.integers(-1, 2, (count, dimensions)), axis=0) + 50
    values = np.where(rng.random((count, 1)) < 0.5, far, near).astype(np.float64)
    kinds = rng.choice(np.array([FIRST, FROM_OUTSIDE] + 8 * [MOVE], np.int8), count)
    kinds[0] = FROM_OUTSIDE
    return values, kinds
