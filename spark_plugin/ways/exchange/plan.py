"""A plan of slices: how the time axis is cut, and which slices an event goes to. NumPy only, no Spark.

Each left event goes to exactly one slice and each right event to every slice that it can reach, so
each pair is found exactly once, whatever the cuts. A slice is one task. Where time alone cannot even
out the work, keys are dealt to buckets within a time slice, and the left events of a cell that is
still too heavy (a burst, a hot key) are dealt to several slices, each of which gets the cell's right
events whole. Where these are more than a worker shall hold, they are dealt too: a slice gets a part of
the left events and a part of the right ones, and each part of the left meets each part of the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from coincide.plurals import several
from spark_plugin.ways.exchange.worker import placing
from spark_plugin.ways.exchange.worker.placing import Places
from spark_plugin.ways.samples import FARTHEST, Reach, shifted


@dataclass(frozen=True, eq=False)
class SlicePlan:
    """Which slice an event goes to.

    Parameters
    ----------
    cuts : int64 array, shape (T - 1,), ascending
        Left events at or above cuts[t] (doubled midpoints) are in a time slice after t.
    buckets : int
        Key buckets per time slice, B.
    left_parts, right_parts : int64 arrays, shape (T * B,)
        Into how many parts the events of each cell (time slice t, bucket b) are dealt, cell = t * B + b.
        Each pair of parts is a slice: part i of the left and part j of the right of a cell are in its
        slice i * right_parts + j.
    reach : Reach
    replication : float
        Estimated copies per right event.
    apart : int or None
        Left events that are longer than that, ticks, are in no slice: each worker gets them.
    """

    cuts: np.ndarray
    buckets: int
    left_parts: np.ndarray
    right_parts: np.ndarray
    reach: Reach
    replication: float
    apart: int | None = None
    way: ClassVar[str] = "exchange"

    @cached_property
    def first_slices(self) -> np.ndarray:
        """First slice of each cell: int64 array, shape (T * B,)."""
        slices = self.left_parts * self.right_parts
        return np.cumsum(slices) - slices

    @property
    def count(self) -> int:
        """Number of slices."""
        return int((self.left_parts * self.right_parts).sum())

    @property
    def needs_keys(self) -> bool:
        """Whether the hash of an event's keys has a say."""
        return self.buckets > 1

    @property
    def is_split(self) -> bool:
        """Whether some cell is shared by several slices."""
        return bool((self.left_parts > 1).any()) or self.deals_right

    @property
    def deals_right(self) -> bool:
        """Whether some left events are in several slices, each with some of their partners."""
        return bool((self.right_parts > 1).any())

    @cached_property
    def first_parts(self) -> np.ndarray:
        """Slices with the first part of the right events of a cell: int64 array.

        Each left event is in just one of them.
        """
        slices = self.left_parts * self.right_parts
        within = np.arange(self.count) - np.repeat(self.first_slices, slices)
        return np.flatnonzero(within % np.repeat(self.right_parts, slices) == 0)

    @property
    def seen_cuts(self) -> tuple[np.ndarray, np.ndarray]:
        """The cuts as right events see them: two int64 arrays, shape (T - 1,).

        A right event at m reaches the time slices from the number of first cuts <= m up to the number
        of second cuts <= m, both included. The cuts move rather than m: no sum can overflow.
        """
        return shifted(self.cuts, self.reach.last), shifted(self.cuts, self.reach.first)

    def copies_of(self, places: Places, *, is_left: bool) -> np.ndarray:
        """In how many slices events are, at most: int64 array, shape (n,)."""
        copies = placing.copies_of_left if is_left else placing.copies_of_right
        return copies(places, self)

    def slices_of(self, places: Places, *, is_left: bool) -> tuple[np.ndarray, np.ndarray]:
        """The slices of events: `placing.slices_of_left`, `placing.slices_of_right`."""
        slices = placing.slices_of_left if is_left else placing.slices_of_right
        return slices(places, self)

    def describe(self) -> str:
        """The plan in one line, for the log."""
        parts = [several(self.count, "slice"), f"{self.cuts.size + 1} in time"]
        if self.buckets > 1:
            parts.append(several(self.buckets, "key bucket"))
        if self.is_split:
            heavy = (self.left_parts > 1) | (self.right_parts > 1)
            parts.append(f"{several(int(heavy.sum()), 'heavy cell')} split")
        told = f"{', '.join(parts)}, {self.replication:.2f} copies of a right event"
        return told if self.apart is None else f"{told}, left ones over {self.apart:,} ticks apart"


def uniform_plan(
    first: int, last: int, reach: Reach, slices: int, max_replication: float
) -> SlicePlan:
    """Slices of equal duration over doubled midpoints first ... last, for declared statistics.

    Fewer slices than asked for where more would copy right events too often.
    """
    copies_per_cut = (reach.last - reach.first) / max(last - first, 1)
    slices = max(1, int(min(slices, (max_replication - 1.0) / max(copies_per_cut, 1e-300))))
    edges = [first + (last - first) * i // slices for i in range(1, slices)]
    cuts = np.unique(np.array([max(-FARTHEST, min(FARTHEST, e)) for e in edges], np.int64))
    replication = 1.0 + cuts.size * min(copies_per_cut, 1.0)
    whole = np.ones(cuts.size + 1, np.int64)
    return SlicePlan(cuts, 1, whole, whole, reach, replication)
