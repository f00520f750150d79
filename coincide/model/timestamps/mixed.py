"""Sides of different models: intervals on one, template histograms on the other.

Intervals that meet templates are templates of one bucket, one for each length that occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coincide.model.bands import INNER_HI, INNER_LO, OUTER_LO, mirrored
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window
from coincide.model.sides import LEFT
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps.histograms import HistogramEvents, HistogramPairs
from coincide.model.timestamps.intervals import IntervalEvents, IntervalPairs
from coincide.model.timestamps.protocol import Events, PairModel

_FAR = 2**63 - 2


@dataclass(frozen=True)
class MixedPairs:
    """Intervals on one side, histograms on the other: a `PairModel` once the events are known."""

    window: Window
    left: TemplateTable | None  # None of the side of intervals
    right: TemplateTable | None  # None of the side of intervals

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:
        """The model of given events: lengths that occur among them are templates of one bucket."""
        first, second = _as_histograms(left), _as_histograms(right)
        return HistogramPairs(self.window, first.table, second.table), first, second

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        """As `PairModel`: of intervals shapes are lengths. No pair beyond these has a probability."""
        left, right = (own, other) if base_side == LEFT else (other, own)
        first = self.window.lo - _longest(self.left, left)
        last = self.window.hi + _longest(self.right, right)
        return (first, last) if base_side == LEFT else (-last, -first)

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """As `PairModel`: outer bounds, beyond which no pair has a probability; inside nothing is sure."""
        left, right = (own, other) if base_side == LEFT else (other, own)
        around = around_keys(self.left, left), around_keys(self.right, right)
        table = support_bands(self.window, *around)
        # Planning takes the outer bounds alone, and tasks know the lengths.
        table[:, :, INNER_LO] = table[:, :, OUTER_LO]
        table[:, :, INNER_HI] = table[:, :, OUTER_LO] - 1
        return table if base_side == LEFT else mirrored(table)


def pairs_model(
    window: Window, left: TemplateTable | None, right: TemplateTable | None
) -> IntervalPairs | HistogramPairs | MixedPairs:
    """The model of two sides, each of intervals (None) or of templates."""
    if left is None and right is None:
        return IntervalPairs(window)
    if left is None or right is None:
        return MixedPairs(window, left, right)
    return HistogramPairs(window, left, right)


def _as_histograms(events: Any) -> HistogramEvents:
    if isinstance(events, HistogramEvents):
        return events
    assert isinstance(events, IntervalEvents)
    lengths, numbers = np.unique(events.lengths, return_inverse=True)
    if not lengths.size:
        lengths = np.zeros(1, np.int64)
    table = TemplateTable.of_lengths(lengths)
    return HistogramEvents(
        events.max_time, numbers.astype(np.int64), table, events.group, events.groups
    )


def _longest(table: TemplateTable | None, classes: ShapeClasses) -> int:
    return int(classes.highest[-1] if table is None else table.lengths.max())


Around = tuple[np.ndarray, np.ndarray]
"""How far the supports of each class reach before and after their keys, half ticks: arrays of Python's
integers, which the longest intervals and the widest windows together do not wrap."""


def around_keys(table: TemplateTable | None, classes: ShapeClasses) -> Around:
    """The reach of classes of templates, or of lengths of intervals (None)."""
    if table is None:
        longest = classes.highest.astype(object)
        return longest, longest
    before, leans = 2 * table.lengths - table.leans, table.leans
    return classes.largest(before).astype(object), classes.largest(leans).astype(object)


def support_bands(window: Window, base: Around, target: Around) -> np.ndarray:
    """Bands of places of targets, by what supports can reach: valid for any timestamps within them."""
    # A pair has a chance where the supports reach each other through the window, and qualifies for
    # sure where no two times in them are further apart.
    before, after = np.add.outer(base[0], target[1]), np.add.outer(base[1], target[0])
    outer_lo, outer_hi = 2 * window.lo - before, 2 * window.hi + after
    inner_lo, inner_hi = 2 * window.lo + after, 2 * window.hi - before
    sure = inner_lo <= inner_hi
    outer_lo, outer_hi = (np.clip(ends, -_FAR, _FAR) for ends in (outer_lo, outer_hi))
    inner_lo = np.where(sure, np.clip(inner_lo, -_FAR, _FAR), outer_lo)
    inner_hi = np.where(sure, np.clip(inner_hi, -_FAR, _FAR), outer_lo - 1)
    return np.stack([outer_lo, inner_lo, inner_hi, outer_hi], axis=-1).astype(np.int64)
