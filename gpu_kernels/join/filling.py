"""Pairs of a block filled in, or only counted."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coincide.model.results import CountedJoin, runs_of_about
from gpu_kernels.device.arrays import array_module, on_host
from gpu_kernels.device.memory import Residents, exclusive_scan, filled, in_parts, translated
from gpu_kernels.device.transfers import ROOM, current
from gpu_kernels.device.usable import TURN as _DEVICE
from gpu_kernels.join.blocks import BandedSides, Block, tile_owners
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import launch_tiles

_PAIRS_AHEAD = 1 << 22
_PAIRS_AT_ONCE = ROOM // 8
"""Matches of a block: a column fits into a pinned buffer, and leaves while the next block is filled."""

_FILLED_KEPT = 2
"""Threads of the caller may ask for a batch when another has asked for one further on."""

_Values = tuple[np.ndarray | None, np.ndarray]
"""What to write for base events, if anything, and for targets."""


class _Filled(NamedTuple):
    """The matches of the base positions start ... stop, in host memory."""

    start: int
    stop: int
    values: _Values
    measured: bool
    columns: list[np.ndarray]

    def holds(self, start: int, stop: int, values: _Values, measured: bool) -> bool:
        """Whether these are the matches of start ... stop, written with these very arrays."""
        same = all(mine is other for mine, other in zip(self.values, values, strict=True))
        is_in = self.start <= start and stop <= self.stop
        return same and is_in and self.measured == measured


class BlockJoin(CountedJoin):
    """A join whose sides are on the device, ready to be counted and filled in blocks of base positions.

    All arrays that it returns are in host memory.
    """

    def __init__(self, size: int, empty: Callable[[int], np.ndarray]) -> None:
        self._size, self._empty = size, empty
        self._residents = Residents()
        self._filled: deque[_Filled] = deque(maxlen=_FILLED_KEPT)

    @abstractmethod
    def _blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut base positions into blocks of a bounded number of entries."""

    @abstractmethod
    def _block(self, start: int, stop: int) -> Block:
        """A run of base events, placed and probed."""

    def _outputs(self, matches: int, both: bool, measured: bool) -> list[np.ndarray]:
        """Where so many matches go: the column of the left side if `both`, of the right side, and more."""
        return [self._empty(matches) for _ in range(1 + both)]

    def _columns(self, start: int, stop: int, values: _Values, measured: bool) -> list[Any]:
        """The columns of the matches of a block, in device memory."""
        given = [None if array is None else self._residents.get(array) for array in values]
        left, right = self._block(start, stop).fill(given[0], given[1])
        return [right] if left is None else [left, right]

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The counts, and the tally of all blocks."""
        counts, tally = np.empty(self._size, np.int64), np.zeros(3, np.int64)

        def count(start: int, stop: int) -> None:
            block = self._block(start, stop)
            found, matches = block.tally, block.counts
            fetch(matches, counts[start:stop])
            np.add(tally, found, out=tally)

        with _DEVICE:
            if "_counted" in vars(self):  # another thread was first
                return self._counted
            with translated(), current().fetching() as fetch:
                for start, stop in self._blocks(0, counts.size):
                    in_parts(count, start, stop)
            vars(self)["_counted"] = counts, tally
        return counts, tally

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The matches of the base positions start ... stop."""
        left, right = self._fill(start, stop, (left_values, right_values))
        return left, right

    def partners(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the right side only: int64 array, shape (matches,)."""
        return self._fill(start, stop, (None, right_values))[0]

    def _fill(
        self, start: int, stop: int, values: _Values, measured: bool = False
    ) -> list[np.ndarray]:
        offsets = self.offsets
        with _DEVICE:
            asked = start, stop, values, measured
            filled = next((f for f in self._filled if f.holds(*asked)), None)
            if filled is None:
                filled = self._fill_ahead(*asked)
                self._filled.append(filled)
        rows = slice(offsets[start] - offsets[filled.start], offsets[stop] - offsets[filled.start])
        return [column[rows] for column in filled.columns]

    def _fill_ahead(self, start: int, stop: int, values: _Values, measured: bool) -> _Filled:
        """Fill start ... stop, and some way on: a batch of Spark's is too small to keep a GPU busy."""
        offsets = self.offsets
        ahead = int(np.searchsorted(offsets, offsets[start] + _PAIRS_AHEAD, side="right")) - 1
        stop = max(stop, ahead)
        outputs = self._outputs(
            int(offsets[stop] - offsets[start]), values[0] is not None, measured
        )

        def fill(a: int, b: int) -> None:
            columns = self._columns(a, b, values, measured)
            rows = slice(offsets[a] - offsets[start], offsets[b] - offsets[start])
            for column, out in zip(columns, outputs, strict=True):
                fetch(column, out[rows])

        with translated(), current().fetching() as fetch:
            for a, b in self._bounded_blocks(start, stop):
                in_parts(fill, a, b)
        return _Filled(start, stop, values, measured, outputs)

    def _bounded_blocks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks of a bounded number of entries, and of matches unless of one event."""
        for a, b in runs_of_about(self.offsets[start : stop + 1], _PAIRS_AT_ONCE):
            yield from self._blocks(start + a, start + b)


_CANDIDATES_AT_ONCE = 1 << 30
"""What a block's tiles take grows with its candidates, of which a few events may have very many."""

_Best = tuple[np.ndarray, np.ndarray, np.ndarray]


def find_best(banded: BandedSides, ranks: Any, start: int, stop: int) -> _Best:
    """The most probable partner of each base event of a run, in parts of a bounded number of candidates."""
    placed = Candidates(banded, start, stop)
    if placed.count <= _CANDIDATES_AT_ONCE:
        return placed.best(ranks)
    cuts = placed.cuts()
    del placed
    parts = [Candidates(banded, a, b).best(ranks) for a, b in pairwise(cuts)]
    least, top, tallies = zip(*parts, strict=True)
    return np.concatenate(least), np.concatenate(top), np.sum(tallies, axis=0)


class Candidates:
    """All candidates of a run of base events, those of inner ranges included."""

    def __init__(self, banded: BandedSides, start: int, stop: int) -> None:
        self._banded, self._start, self._stop = banded, start, stop
        self._run, self._spans, counts, _ = banded.place(start, stop, shells=False)
        self._scan = exclusive_scan(counts)
        self.count = int(self._scan[-1])

    def cuts(self) -> list[int]:
        """Base positions at which to cut: a part has few candidates, but for those of its last event."""
        xp = array_module()
        before = xp.ascontiguousarray(self._scan[:: self._banded.classes])
        goals = xp.arange(-(-self.count // _CANDIDATES_AT_ONCE), dtype=np.int64)
        firsts = on_host(xp.searchsorted(before, goals * _CANDIDATES_AT_ONCE, side="left"))
        cuts = {self._start, *(self._start + firsts).tolist(), self._stop}
        return sorted(cuts)

    def best(self, ranks: Any) -> _Best:
        """The best of them, as `find_best`.

        Three times over the candidates: highest merit, least distance among those, least rank.
        """
        spans, events = self._spans, self._stop - self._start
        top = filled(events, -np.inf, np.float64)
        qualified = filled(1, 0, np.int64)
        distances = filled(events, np.iinfo(np.uint64).max, np.uint64)
        least = filled(events, np.iinfo(np.int64).max, np.int64)
        work = (
            *(self.count, self._banded.sides, self._run, spans, self._scan),
            *(tile_owners(self._scan, self.count), top),
        )
        launch_tiles(tiles.most_probable, *work, qualified)
        launch_tiles(tiles.nearest, *work, distances)
        launch_tiles(tiles.foremost, *work, distances, ranks, least)
        sure = int((spans.shell - spans.inner).sum())
        tally = np.array([sure, self.count - sure, int(qualified[0]) - sure])
        return on_host(least), on_host(top), tally
