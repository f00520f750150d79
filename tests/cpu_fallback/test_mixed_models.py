"""Intervals on the left, templates on the right: a model is one of a pair, and the kernels do not mind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coincide.array_types import Int64s
from coincide.class_choice import Population
from coincide.length_classes import class_ends
from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT
from coincide.timestamps import IntervalEvents
from cpu_fallback import EventJoin
from tests.helpers.template_tables import drawn_events

LIMITS = np.array([0, 3, 40, 7, 15], np.int64)


class MixedRule(NamedTuple):
    """A pair qualifies when -length of the left <= s <= limit of the right's template."""

    limits: Int64s
    leans: Int64s

    def lean(self, side: int, shape: Any) -> Any:
        return shape if side == LEFT else self.leans[shape]

    def qualifies(self, s: int, left: int, right: int) -> bool:
        return -left <= s <= self.limits[right]


@dataclass(frozen=True, eq=False)
class MixedPairs:
    leans: np.ndarray

    @property
    def rule(self) -> MixedRule:
        return MixedRule(LIMITS, self.leans)

    def choose_classes(
        self, left: Population, right: Population, groups: int, classes: int | None
    ) -> tuple[ShapeClasses, ShapeClasses]:
        ends = class_ends(left.shape_sample(), [classes or 4])[0]
        return left.classes_between(ends), right.classes_between(np.arange(LIMITS.size))

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        table = np.empty((own.count, other.count, 4), np.int64)
        # A key less another is 2 s, and the length more, and the template's lean less.
        for i, (shortest, longest) in enumerate(zip(own.lowest, own.highest, strict=True)):
            for j, template in enumerate(other.lowest):
                low, high = -self.leans[template], 2 * LIMITS[template] - self.leans[template]
                table[i, j] = low - longest, low - shortest, high + shortest, high + longest
        return table


def test_intervals_meet_templates() -> None:
    rng = np.random.default_rng(1)
    model = MixedPairs(rng.integers(0, 9, LIMITS.size))
    low = rng.integers(-300, 300, 400)
    left = IntervalEvents(low, low + rng.integers(0, 30, 400) ** 2 // 9)
    right = drawn_events(rng, 300, model.leans, 300)
    join = EventJoin(left, right, model)  # type: ignore[arg-type]
    s = right.max_time - left.max_time[:, None]
    expected = (-left.lengths[:, None] <= s) & (s <= LIMITS[right.template])
    found = np.zeros_like(expected)
    found[join.pairs(0, len(left), join.left_order, join.right_order)] = True
    assert (found == expected).all()
    assert join.counters.pairs == expected.sum()
    assert 0 < join.counters.probed < join.counters.pairs
