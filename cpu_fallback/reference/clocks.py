"""The line of a clock's error by definition: all lines through two pairs, in whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np


class ReferenceLine(NamedTuple):
    """Right less left is offset + drift * left, exactly; pairs within a reach of it."""

    offset: Fraction
    drift: Fraction
    pairs: int

    def at(self, time: int) -> Fraction:
        """The error at a left time."""
        return self.offset + self.drift * time


def best_line(
    left: Sequence[int],
    right: Sequence[int],
    max_offset: int,
    max_drift: Fraction,
    reach: int,
) -> ReferenceLine | None:
    """The line through two pairs that has most pairs within a reach, ticks; the first of equals."""
    # Cross-multiplied, so that nothing is rounded; below 2^63 where times are below 2^20.
    pairs = [(x, y - x) for x in left for y in right if abs(y - x) <= max_offset + reach]
    times, differences = np.array(pairs, np.int64).reshape(-1, 2).T
    best: ReferenceLine | None = None
    for (t, d), (u, e) in combinations(pairs, 2):
        run, rise = u - t, e - d
        if run < 0:
            run, rise = -run, -rise
        if run == 0 or abs(rise) * max_drift.denominator > max_drift.numerator * run:
            continue
        near = np.abs((differences - d) * run - rise * (times - t)) <= reach * run
        count = int(near.sum())
        if best is None or count > best.pairs:
            drift = Fraction(rise, run)
            best = ReferenceLine(d - drift * t, drift, count)
    return best
