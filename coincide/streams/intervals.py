"""Interval timestamps in streams: the papers' regions, on the axis of max_time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coincide.bands import band_table, guard
from coincide.condition import Window
from coincide.length_classes import length_classes
from coincide.shape_classes import ShapeClasses
from coincide.streams.interval_intake import IntervalIntake
from coincide.streams.keys import clamped
from coincide.streams.options import SideLimits
from coincide.timestamps.intervals import IntervalPairs

DEFAULT_CLASSES = 6
_MOST_BINS = 64


@dataclass(frozen=True)
class IntervalStreams(IntervalPairs):
    """Streams of intervals: `coincide.streams.model.StreamModel`.

    Parameters
    ----------
    window : Window
        The timing condition, ticks.
    """

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> IntervalIntake:
        """As `StreamModel`, like all that follow."""
        return IntervalIntake(declared_lengths(limits), self.rule)

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:  # noqa: D102
        return ShapeClasses.even(limits.shortest, limits.longest, _MOST_BINS)

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """As `coincide.regions`, for ranges of lengths."""
        window = self._window_from(base_side)
        shortest, longest = int(other.lowest[0]), int(other.highest[0])
        at_shortest = _moved_bounds(own, shortest, shortest, window)
        at_longest = _moved_bounds(own, longest, longest, window)
        between = _moved_bounds(own, shortest, longest, window)
        rows = []
        for row, high in enumerate(own.highest.tolist()):
            ends = [at_shortest[row], at_longest[row]]
            if window.width < high + longest:
                # The ends need not be monotone in the target's length: bounds over all lengths at once.
                ends.append(between[row])
            outer_lo, inner_lo, inner_hi, outer_hi = zip(*ends, strict=True)
            rows.append(_tidy(min(outer_lo), max(inner_lo), min(inner_hi), max(outer_hi)))
        return np.array(rows, np.int64)

    def stream_classes(  # noqa: D102
        self, side: int, seen: np.ndarray, most: int | None, limits: tuple[int, int]
    ) -> ShapeClasses:
        return covering_classes(seen, most or DEFAULT_CLASSES, *limits)

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:  # noqa: D102
        longest = int(left.highest[0]), int(right.highest[0])
        if self.window.width < sum(longest):
            return None
        # From here on no rounding can lift a larger exact probability below the threshold.
        return min(self.rule.threshold + guard(*longest), 1.0)


def covering_classes(lengths: np.ndarray, most: int, shortest: int, longest: int) -> ShapeClasses:
    """Classes that are narrow where the given lengths are many, and hold every declared length.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
        Lengths seen so far, ticks; n > 0.
    most : int
        Upper limit on classes for the lengths seen. Where they take no more values than that, each
        value has a class of its own, and the gaps between have classes too, which may stay empty.
    shortest, longest : int
        The declared limits.
    """
    tight = length_classes(lengths, most)
    tops = set(tight.highest.tolist())
    if (tight.lowest == tight.highest).all():
        tops |= {low - 1 for low in tight.lowest.tolist() if low > shortest}
    else:
        # What lies beyond the longest length seen is rare: it joins the last class.
        tops.discard(int(tight.highest[-1]))
    ends = sorted(tops | {longest})
    lowest = [shortest, *(end + 1 for end in ends[:-1])]
    return ShapeClasses(
        np.array(lowest, np.int64), np.array(ends, np.int64), np.full(len(ends), 1 / len(ends))
    )


def declared_lengths(limits: tuple[SideLimits, SideLimits]) -> np.ndarray:
    """Shortest and longest length, ticks, of the left and the right side: int64 array."""
    return np.array([(side.shortest, side.longest) for side in limits], np.int64)


def _moved_bounds(
    bins: ShapeClasses, shortest: int, longest: int, window: Window
) -> list[tuple[int, int, int, int]]:
    """Bounds from one band per bin: those of the target's midpoint, moved to its max_time."""
    table = band_table(bins, ShapeClasses.one(shortest, longest), window)[:, 0]
    return [
        (
            outer_lo + shortest,
            inner_lo + longest,
            inner_hi + shortest if inner_lo <= inner_hi else inner_lo + longest - 1,
            outer_hi + longest,
        )
        for outer_lo, inner_lo, inner_hi, outer_hi in table.tolist()
    ]


def _tidy(outer_lo: int, inner_lo: int, inner_hi: int, outer_hi: int) -> list[int]:
    """Four ordered bounds; an empty inner range goes to the outer low end."""
    if inner_lo > inner_hi:
        inner_lo, inner_hi = outer_lo, outer_lo - 1
    return [clamped(end) for end in (outer_lo, inner_lo, inner_hi, outer_hi)]
