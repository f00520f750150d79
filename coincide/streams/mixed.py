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
from coincide.timestamps.mixed import Around, around_keys, support_bands

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
        target = self._around_keys(1 - base_side, other)
        return support_bands(
            self._window_from(base_side), self._around_keys(base_side, own), target
        )

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:  # noqa: D102
        # The place of a target is its doubled max_time: nothing is above it.
        longest = self._longest(1 - base_side, other).astype(object)
        return support_bands(
            self._window_from(base_side),
            self._around_keys(base_side, own),
            (2 * longest, 0 * longest),
        )[:, 0]

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:  # noqa: D102
        window = self._window_from(base_side)
        before, after = self._longest(base_side, own), self._longest(1 - base_side, other)
        return window.lo - int(before.max()), window.hi + int(after.max())

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:  # noqa: D102
        return self._around_keys(side, classes)[1].astype(np.int64)

    def _around_keys(self, side: int, classes: ShapeClasses) -> Around:
        if side == self.interval_side:
            longest = self._longest(side, classes).astype(object)
            return longest, longest
        return around_keys(self.table, classes)

    def _longest(self, side: int, classes: ShapeClasses) -> np.ndarray:
        """The longest support of each class, ticks."""
        if side == self.interval_side:
            return np.full(classes.count, self.lengths[1], np.int64)
        return classes.largest(self.table.lengths)

    def _window_from(self, base_side: int) -> Window:
        """The window on T_target - T_base."""
        return self.window if base_side == LEFT else self.window.mirrored()
