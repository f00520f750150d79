"""The most probable partner of each base event of a run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gpu_kernels.device.arrays import array_module, on_host
from gpu_kernels.device.memory import exclusive_scan, filled
from gpu_kernels.join.blocks import BandedSides, tile_owners
from gpu_kernels.kernels import tiles
from gpu_kernels.kernels.compilation import launch_tiles

_CANDIDATES_AT_ONCE = 1 << 30
"""What a block's tiles take grows with its candidates, of which a few events may have very many."""

_Best = tuple[np.ndarray, np.ndarray, np.ndarray]


def find_best(banded: BandedSides, ranks: Any, start: int, stop: int) -> _Best:
    """The most probable partner of each base event of a run, in parts of a bounded number of candidates.

    Parameters
    ----------
    banded : BandedSides
    ranks : int64 array, shape (n_right,), in device memory
        Order for ties by target position; no two are equal.
    start, stop : int
        Base positions.

    Returns
    -------
    int64 array, shape (stop - start,)
        Rank of the partner, the largest int64 for none.
    float64 array, shape (stop - start,)
        Its merit, -inf for none.
    int64 array, shape (3,)
        The tally, as `Block.tally`.
    """
    placed = Candidates(banded, start, stop)
    if placed.count <= _CANDIDATES_AT_ONCE:
        return placed.best(ranks)
    cuts = placed.cuts()
    del placed
    parts = [Candidates(banded, a, b).best(ranks) for a, b in pairwise(cuts)]
    least, top, tallies = zip(*parts, strict=True)
    return np.concatenate(least), np.concatenate(top), np.sum(tallies, axis=0)


class Candidates:
    """All candidates of a run of base events, those of inner ranges included.

    Parameters
    ----------
    banded : BandedSides
    start, stop : int
        Base positions.
    """

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
