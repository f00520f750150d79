"""Parts of files that hold whole streams, as the statistics of their row groups tell.

A part is a range of streams: it reads the row groups in which they may be, and leaves out the rows of
others. So no stream is in two parts, whatever the order, and disorder costs reading, never correctness.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from coincide.engine.files.footers import ONLY_NULLS, Footer, Range, Value
from coincide.engine.files.slices import Places, places_of
from coincide.model.errors import several

_LEAST_ROWS, AIMED_ROWS = 500_000, 2_000_000
"""Rows of a part: fewer do not pay a task, and more are read only where a stream has them."""


@dataclass(frozen=True, eq=False)
class StreamPart:
    """What one task reads."""

    places: Places
    owns: np.ndarray
    above: Value
    last: Value


@dataclass(frozen=True, eq=False)
class StreamParts:
    """All parts."""

    places: Places
    first: np.ndarray
    final: np.ndarray
    cuts: list[Value]

    def __len__(self) -> int:
        return len(self.cuts) + 1

    def __getitem__(self, number: int) -> StreamPart:
        """What a part reads."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        ends = [None, *self.cuts, None]
        reads = np.flatnonzero((self.first <= number) & (number <= self.final))
        places = self.places.take(reads)
        return StreamPart(places, self.first[reads] == number, ends[number], ends[number + 1])

    @property
    def rows(self) -> np.ndarray:
        """Rows of the row groups that each part reads: int64 array, shape (parts,)."""
        # Up where its first part begins, and down after its last.
        steps = np.zeros(len(self) + 1, np.int64)
        np.add.at(steps, self.first, self.places.rows)
        np.subtract.at(steps, self.final + 1, self.places.rows)
        return np.cumsum(steps)[:-1]

    @property
    def reads(self) -> float:
        """Rows to decode over rows in the files."""
        return float(self.rows.sum()) / max(1, int(self.places.rows.sum()))

    def describe(self) -> str:
        """The parts in one line."""
        return (
            f"{several(len(self), 'part')} of whole streams, each row read {self.reads:.2f} times"
        )


def stream_parts(footers: Sequence[Footer], stream: str, parallelism: int) -> StreamParts | None:
    """Cut files into parts of about equal work; None if a row group has no statistics of its streams."""
    places = places_of(footers)
    ranges = [one for footer in footers for one in footer.ranges[stream][1]]
    told = [_known(one) for one in ranges]
    if any(one is None for one in told):
        return None
    known: list[Any] = told
    cuts = _cuts(known, places.rows, parallelism)
    first, final = (
        np.array([0 if one == ONLY_NULLS else bisect_left(cuts, one[end]) for one in known], int)
        for end in (0, 1)
    )
    return StreamParts(places, first, final, cuts)


def aimed_rows(rows: int, parallelism: int) -> int:
    """How many rows a part should have, given the rows of files."""
    return min(AIMED_ROWS, max(_LEAST_ROWS, rows // parallelism))


def _known(one: Range | None) -> Range | None:
    return None if one is None or one[0] is None or one[1] is None else one


def _cuts(ranges: list[Any], rows: np.ndarray, parallelism: int) -> list[Value]:
    """Last streams of row groups, so that about as many rows are up to each as from there to the next."""
    aimed = aimed_rows(int(rows.sum()), parallelism)
    timed = zip(ranges, rows.tolist(), strict=True)
    # In order of where they end, most rows of a row group are between its end and that of the one before.
    ends = sorted((one[1], count) for one, count in timed if one != ONLY_NULLS)
    cuts: list[Value] = []
    held = 0
    for (end, count), (following, _) in pairwise(ends):
        held += count
        if held >= aimed and end < following:
            cuts.append(end)
            held = 0
    return cuts
