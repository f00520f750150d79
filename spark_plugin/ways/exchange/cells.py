"""Slices of cells: where an event goes if nobody has looked at the events. NumPy only, no Spark.

Time is cut into cells of equal duration, each many times as long as pairs reach, and cells are dealt to
slices by a hash. So nobody need know when events are, how dense, or how many: what is dense in one hour is
spread as what is even over a year. Each left event is in the slice of its cell, each right one in those of
the one or two cells that it reaches, so that each pair is found exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from coincide.plurals import several
from spark_plugin.ways.exchange.worker.placing import Places, stable_order
from spark_plugin.ways.samples import Reach, shifted

_REACHES, _REACHES_OF_KEYS = 8, 16
"""A cell is at least so many times as long as pairs reach: one right event in as many is in two.

Of fewer events where keys do not share a cell out, so that a short day has cells enough.
"""
_FINE_REACHES = 2
_LONGEST = 62
"""Binary logarithm of the longest cell, half ticks: two of them are all of time."""
_FARTHEST = 1 << _LONGEST
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class CellPlan:
    """Which slices an event goes to.

    Parameters
    ----------
    count : int
        Number of slices.
    reach : Reach
        Of events of any lengths that rows may have.
    needs_keys : bool
        Whether events of several keys in a cell are dealt to several slices.
    level : int
        How often slices have been divided: each time another hash deals their cells, which are shorter.
    """

    count: int
    reach: Reach
    needs_keys: bool
    level: int = 0
    way: ClassVar[str] = "exchange"
    is_split: ClassVar[bool] = False
    deals_right: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """Binary logarithm of a cell, half ticks."""
        span = max(1, self.reach.last - self.reach.first)
        reaches = _REACHES_OF_KEYS if self.needs_keys else _REACHES
        return min(((_FINE_REACHES if self.level else reaches) * span - 1).bit_length(), _LONGEST)

    @property
    def replication(self) -> float:
        """Expected copies per right event, at most."""
        return 1.0 + min(1.0, max(0, self.reach.last - self.reach.first) / 2**self.width)

    def describe(self) -> str:
        """The plan in one line, for the log."""
        return f"{several(self.count, 'slice')} of cells in time, no look at either side"

    def finer(self, count: int) -> CellPlan:
        """A plan that divides the events of a slice again."""
        return replace(self, count=count, needs_keys=False, level=self.level + 1)

    def copies_of(self, places: Places, *, is_left: bool) -> np.ndarray:
        """In how many slices events are, at most: int64 array, shape (n,)."""
        return np.full(places.midpoints.size, 1 if is_left else 2)

    def slices_of(self, places: Places, *, is_left: bool) -> tuple[np.ndarray, np.ndarray]:
        """The slices of events.

        Parameters
        ----------
        places : Places
            Of at least one event; those that match nothing go by their salts.
        is_left : bool
            Their side.

        Returns
        -------
        rows, slices : int64 arrays, shape (m,)
            Ascending by slice, and by midpoint within.
        """
        order = places.by_time
        cells = self._cells(places, order, is_left)
        keys = [places.hashes[order]] if self.needs_keys else []
        starts = _starts(*cells, *keys)
        first, last = (self._slices(*(part[starts] for part in (each, *keys))) for each in cells)
        runs, slices = _by_slice(first, last)
        lengths = np.diff(starts, append=order.size)[runs]
        begins = np.cumsum(lengths) - lengths
        rows = np.repeat(starts[runs] - begins, lengths) + np.arange(lengths.sum())
        return order[rows], np.repeat(slices, lengths)

    def _cells(
        self, places: Places, order: np.ndarray, is_left: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last cell that each event is in, or reaches; at most one apart."""
        midpoints = places.midpoints[order]
        if not is_left:
            # Beyond the ends of time there is no left event.
            first, last = (
                np.clip(shifted(midpoints, -end), -_FARTHEST, _FARTHEST - 1) >> self.width
                for end in (self.reach.last, self.reach.first)
            )
            return first, last
        cells = midpoints >> self.width
        if places.matchable is not None:  # what has no partner may be anywhere
            cells = np.where(places.matchable[order], cells, places.salts[order])
        return cells, cells

    def _slices(self, cells: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
        """The slice of each cell, or of a key in it: int64 array, shape as theirs."""
        blocks = cells // self.count
        bits = blocks.view(np.uint64) * np.uint64(_ODD[0]) + np.uint64(_ODD[self.level % 3])
        if keys is not None:
            bits += keys.view(np.uint64)
        for odd in _ODD[1:]:
            bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(odd)
        # Cells that follow each other are one in each slice, beginning with any: few are even, too.
        turn = ((bits >> np.uint64(32)) * np.uint64(self.count)) >> np.uint64(32)
        return (cells - blocks * self.count + turn.view(np.int64)) % self.count


def _starts(*columns: np.ndarray) -> np.ndarray:
    """Where rows differ from the one before, the first row among them: int64 array."""
    differs = np.zeros(columns[0].size - 1, bool)
    for column in columns:
        differs |= column[1:] != column[:-1]
    return np.concatenate([[0], np.flatnonzero(differs) + 1])


def _by_slice(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs of events by slice, in their order within, and those of two slices in both.

    Parameters
    ----------
    first, last : int64 arrays, shape (runs,)
        The slices of each.

    Returns
    -------
    runs, slices : int64 arrays
    """
    copies = 1 + (first != last)
    runs = np.repeat(np.arange(first.size), copies)
    slices = first[runs]
    slices[np.cumsum(copies) - 1] = last
    by_slice = stable_order(slices)
    return runs[by_slice], slices[by_slice]
