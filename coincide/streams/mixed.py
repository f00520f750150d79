"""Streams of intervals beside streams of templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coincide.condition import Window
from coincide.shape_classes import MOST_CLASSES, ShapeClasses
from coincide.sides import LEFT
from coincide.streams.interval_intake import IntervalIntake
from coincide.streams.intervals import DEFAULT_CLASSES, covering_classes
from coincide.streams.length_numbers import LengthNumbers
from coincide.streams.mixed_intake import MixedIntake
from coincide.streams.template_intake import TemplateIntake
from coincide.templates.table import TemplateTable

if TYPE_CHECKING:
    from coincide.streams.options import SideLimits


@dataclass(frozen=True, eq=False)
class MixedStreams:
    """Intervals on one side, templates on the other: `coincide.streams.model.StreamModel`.

    An interval is a template of one bucket, and its shape the number of its length, in the order in
    which lengths come: its `Intake` has the table. So regions are bounded over all declared lengths: from
    outside by what supports can reach, from inside by where the longest are within the window for sure.

    Parameters
    ----------
    window : Window
        The timing condition, ticks.
    interval_side : int
    lengths : (int, int)
        Shortest and longest interval that is declared, ticks.
    table : TemplateTable
        Of the other side.
    most_lengths : int
        Different lengths that may come.
    """

    window: Window
    interval_side: int
    lengths: tuple[int, int]
    table: TemplateTable
    most_lengths: int

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> MixedIntake:
        """As `StreamModel`, like all that follow."""
        numbers = LengthNumbers(self.window, self.interval_side, self.table, self.most_lengths)
        intervals = IntervalIntake(np.array([self.lengths] * 2, np.int64))
        return MixedIntake(
            self.interval_side, intervals, TemplateIntake((self.table, self.table)), numbers
        )

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:  # noqa: D102
        most = 1 if side == self.interval_side else MOST_CLASSES
        return ShapeClasses.even(limits.shortest, limits.longest, most)

    def stream_classes(  # noqa: D102
        self, side: int, seen: np.ndarray, most: int | None, limits: tuple[int, int]
    ) -> ShapeClasses:
        if side == self.interval_side:
            # Lengths come in any order, so neighbours in number need not be near.
            return ShapeClasses.one(*limits)
        return covering_classes(seen, most or DEFAULT_CLASSES, *limits)

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:  # noqa: D102
        return None

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:  # noqa: D102
        above, below = self._around_key(1 - base_side, other)
        return self._bands(base_side, own, above, below)

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:  # noqa: D102
        # The place of a target is its doubled max_time: nothing is above it.
        longest = self._longest(1 - base_side, other)
        return self._bands(base_side, own, np.zeros_like(longest), 2 * longest)[:, 0]

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:  # noqa: D102
        lo, hi = self._window_from(base_side)
        before, after = self._longest(base_side, own), self._longest(1 - base_side, other)
        return lo - int(before.max()), hi + int(after.max())

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:  # noqa: D102
        return self._around_key(side, classes)[0]

    def _bands(
        self, base_side: int, own: ShapeClasses, above: np.ndarray, below: np.ndarray
    ) -> np.ndarray:
        """Bands of places of targets, whose supports reach so far above and below them, half ticks.

        A pair has a chance where the supports reach each other through the window, and qualifies for
        sure where no two times in them are further apart.
        """
        lo, hi = self._window_from(base_side)
        after, before = (each[:, np.newaxis] for each in self._around_key(base_side, own))
        outer_lo, outer_hi = 2 * lo - before - above, 2 * hi + after + below
        inner_lo, inner_hi = 2 * lo + after + below, 2 * hi - before - above
        sure = inner_lo <= inner_hi
        inner_lo, inner_hi = (
            np.where(sure, inner_lo, outer_lo),
            np.where(sure, inner_hi, outer_lo - 1),
        )
        return np.stack([outer_lo, inner_lo, inner_hi, outer_hi], axis=-1)

    def _around_key(self, side: int, classes: ShapeClasses) -> tuple[np.ndarray, np.ndarray]:
        """How far the supports of a class reach above and below a key, half ticks: two int64 arrays."""
        if side == self.interval_side:
            longest = np.full(classes.count, self.lengths[1], np.int64)
            return longest, longest
        table = self.table
        return _tops(table.leans, classes), _tops(2 * table.lengths - table.leans, classes)

    def _longest(self, side: int, classes: ShapeClasses) -> np.ndarray:
        """The longest support of each class, ticks."""
        if side == self.interval_side:
            return np.full(classes.count, self.lengths[1], np.int64)
        return _tops(self.table.lengths, classes)

    def _window_from(self, base_side: int) -> tuple[int, int]:
        """The window on T_target - T_base."""
        window = self.window if base_side == LEFT else self.window.mirrored()
        return window.lo, window.hi


def _tops(values: np.ndarray, classes: ShapeClasses) -> np.ndarray:
    """The largest value of the templates of each class."""
    ends = zip(classes.lowest.tolist(), classes.highest.tolist(), strict=True)
    return np.array([values[low : high + 1].max() for low, high in ends], np.int64)
