"""Histogram timestamps: Mok, Woo & Lee (2006). The shape of an event is the number of its template.

The decision is a table of integers (`coincide.model.templates.satisfaction`), so that no candidate's
probability is ever evaluated. A key is twice the mean of a timestamp, by which templates of any skew lie
best above each other. `coincide.model.timestamps.mixed` has what meets intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coincide.model.bands import mirrored
from coincide.model.class_choice import Costs, Population, cheapest_classes
from coincide.model.classes import ShapeClasses, class_ends
from coincide.model.compiled import Int64s, product, read_only
from coincide.model.condition import Window
from coincide.model.probability import distance_from_middle
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT
from coincide.model.templates.tails import SatisfactionTimes, window_tails
from coincide.model.templates.template import Buckets, TemplateTable, class_bands, class_extremes
from coincide.model.timestamps.protocol import Events, PairModel

_COSTS = Costs(probe=2.0)
"""As for intervals, except a probe: two comparisons with a row of the table."""

_MERITS = 2.0**40
"""For best matches: probabilities differ if they do so by more than one part in this number."""


class HistogramTimes(NamedTuple):
    """Histograms of one side: `coincide.model.timestamps.protocol.Times`."""

    max_time: Int64s  # int64, shape (n,): ticks
    template: Int64s  # int64, shape (n,): number of the template
    leans: Int64s  # int64, shape (templates,): of the templates, half ticks

    def key_at(self, row):  # noqa: D102
        return 2 * self.max_time[row] - self.leans[self.template[row]]

    def shape_at(self, row):  # noqa: D102
        return self.template[row]

    def keys(self) -> Any:  # noqa: D102
        return 2 * self.max_time - self.leans[self.template]

    def shapes(self) -> Any:  # noqa: D102
        return self.template

    def of(self, rows: np.ndarray) -> HistogramTimes:  # noqa: D102
        return HistogramTimes(self.max_time[rows], self.template[rows], self.leans)


@dataclass(frozen=True, eq=False)
class HistogramEvents:
    """Events whose timestamps are histograms, each of a template.

    Parameters
    ----------
    max_time : int64 array, shape (n,), C-contiguous
        Where the last edge of the event's template lies, ticks, |time| < 2**61.
    template : int64 array, shape (n,), C-contiguous
        Numbers of templates of the table.
    table : TemplateTable
    group : int64 array, shape (n,), or None
        As `IntervalEvents`.
    groups : int
        As `IntervalEvents`.
    """

    max_time: np.ndarray
    template: np.ndarray
    table: TemplateTable
    group: np.ndarray | None = None
    groups: int = 1

    def __len__(self) -> int:
        return self.max_time.size

    @property
    def times(self) -> HistogramTimes:
        """The histograms, for a join."""
        times, template, leans = map(read_only, (self.max_time, self.template, self.table.leans))
        return HistogramTimes(times, template, leans)


class HistogramRule(NamedTuple):
    """The decision on two histograms: `coincide.model.timestamps.protocol.Rule`."""

    first: Int64s  # int64: as `SatisfactionTimes`, the first two row by row
    last: Int64s  # int64: as `SatisfactionTimes`, the first two row by row
    gap_starts: Int64s  # int64: as `SatisfactionTimes`, the first two row by row
    gap_first: Int64s  # int64: as `SatisfactionTimes`, the first two row by row
    gap_last: Int64s  # int64: as `SatisfactionTimes`, the first two row by row
    right_templates: int  # Number of templates of the right side
    left_leans: Int64s  # int64: of the templates, half ticks and ticks
    right_leans: Int64s  # int64: of the templates, half ticks and ticks
    left_lengths: Int64s  # int64: of the templates, half ticks and ticks
    right_lengths: Int64s  # int64: of the templates, half ticks and ticks
    left: Buckets  # For probabilities of pairs
    right: Buckets  # For probabilities of pairs
    lo: int  # The window, ticks
    hi: int  # The window, ticks

    def lean(self, side, shape):  # noqa: D102
        return self.left_leans[shape] if side == LEFT else self.right_leans[shape]

    def qualifies(self, s, left, right):  # noqa: D102
        pair = left * self.right_templates + right
        # Both compared, without a branch: near a threshold it would be mispredicted at every other pair.
        inside = (self.first[pair] <= s) & (s <= self.last[pair])
        if self.gap_starts.size and inside:
            for gap in range(self.gap_starts[pair], self.gap_starts[pair + 1]):
                inside &= not self.gap_first[gap] <= s <= self.gap_last[gap]
        return inside

    def probability(self, s, left, right):  # noqa: D102
        outside = window_tails(self.left, left, self.right, right, self.lo - s, self.hi - s)
        return max(0.0, 1.0 - outside)

    def merit(self, s, left, right):  # noqa: D102
        if not self.qualifies(s, left, right):
            return -1.0
        # A sum over buckets in another order errs otherwise: what is equal must stay so.
        return math.floor(product(self.probability(s, left, right), _MERITS) + 0.5) / _MERITS

    def distance(self, s, left, right):  # noqa: D102
        # From the middles of the supports, as with intervals.
        apart = 2 * s + (self.left_lengths[left] - self.right_lengths[right])
        return distance_from_middle(apart, self.lo, self.hi)


@dataclass(frozen=True)
class HistogramPairs:
    """Histograms on both sides: `coincide.model.timestamps.protocol.PairModel`."""

    window: Window  # The timing condition, ticks
    left: TemplateTable
    right: TemplateTable

    def __getstate__(self) -> dict[str, object]:
        return {"window": self.window, "left": self.left, "right": self.right}

    @remembered
    def table(self) -> SatisfactionTimes:
        """The decision."""
        from coincide.model.templates.satisfaction import satisfaction_times  # for these alone

        return satisfaction_times(self.left, self.right, self.window)

    @remembered
    def rule(self) -> HistogramRule:
        """As `PairModel`, like all that follow."""
        table = self.table
        return self.chances._replace(
            first=table.first.reshape(-1), last=table.last.reshape(-1), gap_starts=table.gap_starts,
            gap_first=table.gap_first, gap_last=table.gap_last,
        )  # fmt: skip

    @property
    def chances(self) -> HistogramRule:
        """The rule without its decision, which takes time to solve: for probabilities alone."""
        left, right, none = self.left, self.right, np.zeros(0, np.int64)
        return HistogramRule(
            none, none, none, none, none, len(right), left.leans, right.leans, left.lengths,
            right.lengths, left.buckets, right.buckets, self.window.lo, self.window.hi,
        )  # fmt: skip

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:  # noqa: D102
        return self, left, right

    def choose_classes(  # noqa: D102
        self, left: Population, right: Population, groups: int, classes: int | None
    ) -> tuple[ShapeClasses, ShapeClasses]:
        sides = (left, self.left), (right, self.right)
        if classes is not None or not left.size or not right.size:
            k1, k2 = (_at_most(population, table, classes or 1) for population, table in sides)
            return k1, k2
        outer = self.bands(LEFT, *(_whole(table) for _, table in sides))[0, 0]
        return cheapest_classes(
            left, right, groups, _COSTS,
            lambda side, sample, mosts: _ends_of_each(sample, sides[side][1], mosts),
            lambda k1, k2: self.bands(LEFT, k1, k2),
            (int(outer[0]), int(outer[3])),
        )  # fmt: skip

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:  # noqa: D102
        left, right = (own, other) if base_side == LEFT else (other, own)
        table = class_bands(self.table, left, right, self.left.leans, self.right.leans)
        return table if base_side == LEFT else mirrored(table)

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:  # noqa: D102
        left, right = (own, other) if base_side == LEFT else (other, own)
        first, last = class_extremes(self.table, left, right)
        return (first, last) if base_side == LEFT else (-last, -first)


def _whole(table: TemplateTable) -> ShapeClasses:
    return ShapeClasses.one(0, len(table) - 1)


def _at_most(population: Population, table: TemplateTable, most: int) -> ShapeClasses:
    if population.size == 0:
        return ShapeClasses.one(0, 0)
    return population.classes_between(template_ends(population.shape_sample(), table, most))


def template_ends(sample: np.ndarray, table: TemplateTable, most: int) -> np.ndarray:
    """The last template of each of at most this many classes, of templates of near spread."""
    return _ends_of_each(sample, table, [most])[0]


def _ends_of_each(
    sample: np.ndarray, table: TemplateTable, mosts: Sequence[int]
) -> list[np.ndarray]:
    """As `template_ends` for each of several limits, what they share done once."""
    occurring = np.unique(sample)
    # Spreads rise with the number, but for templates that were added later.
    rising = np.maximum.accumulate(table.spreads)
    found = []
    for most, tops in zip(mosts, class_ends(rising[sample], mosts), strict=True):
        ends = occurring.copy()
        if occurring.size > most:
            ends = np.unique(np.searchsorted(rising, tops, side="right") - 1)
        ends[-1] = len(table) - 1
        found.append(ends)
    return found
