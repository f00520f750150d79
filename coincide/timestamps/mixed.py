"""Sides of different models: intervals on one, template histograms on the other.

Intervals that meet templates are templates of one bucket, one for each length that occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coincide.bands import mirrored
from coincide.condition import Window
from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT
from coincide.templates.table import TemplateTable
from coincide.timestamps.histograms import HistogramEvents, HistogramPairs
from coincide.timestamps.intervals import IntervalEvents, IntervalPairs
from coincide.timestamps.protocol import Events, PairModel

_FAR = 2**63 - 2


@dataclass(frozen=True)
class MixedPairs:
    """Intervals on one side, histograms on the other: a `PairModel` once the events are known.

    Parameters
    ----------
    window : Window
    left, right : TemplateTable or None
        None of the side of intervals.
    """

    window: Window
    left: TemplateTable | None
    right: TemplateTable | None

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
        before_left, after_left = _around_keys(self.left, left)
        before_right, after_right = _around_keys(self.right, right)
        # In Python's integers: the longest intervals and the widest windows together leave int64.
        low = 2 * self.window.lo - np.add.outer(before_left, after_right)
        high = 2 * self.window.hi + np.add.outer(after_left, before_right)
        low, high = (np.clip(ends, -_FAR, _FAR).astype(np.int64) for ends in (low, high))
        table = np.stack([low, low, low - 1, high], axis=-1)
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


def _around_keys(
    table: TemplateTable | None, classes: ShapeClasses
) -> tuple[np.ndarray, np.ndarray]:
    """How far supports reach before and after keys, by class: two arrays of int, half ticks."""
    if table is None:
        return (classes.highest.astype(object),) * 2
    before, leans = 2 * table.lengths - table.leans, table.leans
    spans = list(zip(classes.lowest.tolist(), (classes.highest + 1).tolist(), strict=True))
    return (
        np.array([int(before[a:b].max()) for a, b in spans], object),
        np.array([int(leans[a:b].max()) for a, b in spans], object),
    )
