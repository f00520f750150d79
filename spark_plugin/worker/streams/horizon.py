"""How far apart the max_times of a pair can be: what tells when an event can have no partner any more."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from coincide.bands import DOUBT, longest_useful
from coincide.condition import Window
from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT
from coincide.units import TIME_LIMIT
from spark_plugin.worker.join import TablePlan
from spark_plugin.worker.timestamps.columns import TimestampColumns

_ENDLESS = 2 * TIME_LIMIT


class Horizon(NamedTuple):
    """A pair can qualify only if first <= max_time of right - max_time of left <= last.

    Of all events that may come, whatever their lengths; ticks.
    """

    first: int
    last: int

    def left_until(self, right_to_come: int) -> int:
        """The earliest max_time of left events that right ones from a max_time on can be partners of."""
        return right_to_come - self.last

    def right_until(self, left_to_come: int) -> int:
        """The same of right events and left ones to come."""
        return left_to_come + self.first


def horizon_of(plan: TablePlan) -> Horizon:
    """The horizon of a join."""
    window = plan.spec.widest
    shapes = [_shapes(columns, window) for columns in plan.times]
    if plan.spec.has_histograms:
        left, right = (ShapeClasses.one(*each) for each in shapes)
        found = Horizon(*map(int, plan.spec.pairs.reach(LEFT, left, right)))
    else:
        found = _of_intervals(window, shapes[0][1], shapes[1][1])
    spec, is_exact = plan.spec, all(shape == (0, 0) for shape in shapes)
    if not spec.pairs_once or spec.how != "inner" or spec.where is not None:
        return found
    if window.lo + window.hi == 0 or (
        is_exact and not spec.has_histograms and window.lo + window.hi > 0
    ):
        # Pairs are given with the event of the earlier max_time left, as that order qualifies if one does.
        return found._replace(first=max(0, found.first))
    return found


def _shapes(columns: TimestampColumns, window: Window) -> tuple[int, int]:
    """Smallest and largest shape of the events of a side that can be of a pair."""
    if columns.model.table is not None:
        return columns.declared or (0, len(columns.model.table) - 1)
    declared = _ENDLESS if columns.declared is None else columns.declared[1]
    return 0, min(declared, longest_useful(window))


def _of_intervals(window: Window, left: int, right: int) -> Horizon:
    """Of intervals up to these lengths.

    Where T_right <= hi + T_left <= hi + max_left has the probability ct, right's interval has that part
    before hi + max_left, and reaches no further beyond it than by the rest of its length. Left likewise.
    """
    rest = 1 - Fraction(window.confidence) + DOUBT
    return Horizon(
        window.lo - math.floor(rest * left) - 1, window.hi + math.floor(rest * right) + 1
    )
