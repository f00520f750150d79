"""A second model of timestamps: templates, and a table of integers that decides each pair of them.

An event is a max_time and the number of its side's template. A pair qualifies when s = max_right -
max_left lies in one of the ranges listed for its two templates. Templates have leans, so that keys are
more than max_times. Not for users: it holds the kernels to what `coincide.timestamps.protocol` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coincide.array_types import Int64s
from coincide.class_choice import Population
from coincide.shape_classes import MOST_CLASSES, ShapeClasses
from coincide.sides import LEFT, RIGHT
from coincide.streams.template_intake import TemplateIntake
from coincide.templates.table import TemplateTable

Range = tuple[int, int]
Extent = tuple[int, int, int, int]


class TemplateTimes(NamedTuple):
    """`Times` of templates; `leans` is by template, half ticks."""

    max_time: Int64s
    template: Int64s
    leans: Int64s

    def key_at(self, row: int) -> int:
        return 2 * self.max_time[row] - self.leans[self.template[row]]

    def shape_at(self, row: int) -> int:
        return self.template[row]

    def keys(self) -> Any:
        return 2 * self.max_time - self.leans[self.template]

    def shapes(self) -> Any:
        return self.template

    def of(self, rows: np.ndarray) -> TemplateTimes:
        return TemplateTimes(self.max_time[rows], self.template[rows], self.leans)


@dataclass(frozen=True, eq=False)
class TemplateEvents:
    """Events of one side."""

    max_time: np.ndarray
    template: np.ndarray
    leans: np.ndarray
    group: np.ndarray | None = None
    groups: int = 1

    def __len__(self) -> int:
        return self.max_time.size

    @property
    def times(self) -> TemplateTimes:
        return TemplateTimes(self.max_time, self.template, self.leans)


class TableRule(NamedTuple):
    """`Rule` of templates: ranges of s, in CSR by pair of templates, both ends inclusive."""

    starts: Int64s
    firsts: Int64s
    lasts: Int64s
    right_templates: int
    left_leans: Int64s
    right_leans: Int64s

    def lean(self, side: int, shape: Any) -> Any:
        return self.left_leans[shape] if side == LEFT else self.right_leans[shape]

    def qualifies(self, s: int, left: int, right: int) -> bool:
        pair = left * self.right_templates + right
        found = False
        for i in range(self.starts[pair], self.starts[pair + 1]):
            found |= self.firsts[i] <= s <= self.lasts[i]
        return found

    def probability(self, s: int, left: int, right: int) -> float:
        # Anything with ties, and higher for many a pair that does not qualify.
        return 1.0 / (1.0 + ((s + 3 * left + right) % 5))

    def merit(self, s: int, left: int, right: int) -> float:
        return self.probability(s, left, right) if self.qualifies(s, left, right) else -1.0

    def distance(self, s: int, left: int, right: int) -> np.uint64:
        return np.uint64(abs(2 * s + self.left_leans[left] - self.right_leans[right]))


@dataclass(frozen=True, eq=False)
class TemplatePairs:
    """`StreamModel` of templates: `ranges[i][j]` of left template i and right template j, ascending."""

    ranges: list[list[list[Range]]]
    left_leans: np.ndarray
    right_leans: np.ndarray

    @property
    def templates(self) -> tuple[int, int]:
        return self.left_leans.size, self.right_leans.size

    @cached_property
    def rule(self) -> TableRule:
        rows = [pair for row in self.ranges for pair in row]
        starts = np.cumsum([0, *map(len, rows)])
        ends = np.array([end for pair in rows for end in pair], np.int64).reshape(-1, 2)
        firsts, lasts = ends[:, 0].copy(), ends[:, 1].copy()
        return TableRule(
            starts, firsts, lasts, self.templates[RIGHT], self.left_leans, self.right_leans
        )

    def for_events(self, left: Any, right: Any) -> tuple[TemplatePairs, Any, Any]:
        return self, left, right

    def choose_classes(
        self, left: Population, right: Population, groups: int, classes: int | None
    ) -> tuple[ShapeClasses, ShapeClasses]:
        chosen = [
            population.classes_between(_grouped(0, count - 1, classes))
            if population.size
            else ShapeClasses.one(0, 0)
            for population, count in zip((left, right), self.templates, strict=True)
        ]
        return chosen[LEFT], chosen[RIGHT]

    def stream_classes(
        self, side: int, seen: np.ndarray, most: int | None, limits: Range
    ) -> ShapeClasses:
        ends = _grouped(*limits, most)
        lowest = np.concatenate([[limits[0]], ends[:-1] + 1])
        return ShapeClasses(lowest, ends, np.full(ends.size, 1 / ends.size))

    def base_bins(self, side: int, limits: Any) -> ShapeClasses:
        return ShapeClasses.even(limits.shortest, limits.longest, 3)

    def intake(self, limits: Any) -> TemplateIntake:
        tables = [TemplateTable.of_lengths(np.zeros(count, np.int64)) for count in self.templates]
        return TemplateIntake((tables[LEFT], tables[RIGHT]), self.rule)

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:
        return None

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        leans = self._leans(1 - base_side)
        table = [
            [self._band(base_side, mine, theirs, leans) for theirs in _members(other)]
            for mine in _members(own)
        ]
        return np.array(table, np.int64).reshape(own.count, other.count, 4)

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        (everything,) = _members(other)
        none = np.zeros_like(self._leans(1 - base_side))
        table = [self._band(base_side, mine, everything, none) for mine in _members(own)]
        return np.array(table, np.int64).reshape(own.count, 4)

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> Range:
        reached = [
            one
            for mine in _members(own)
            for theirs in _members(other)
            for i in mine
            for j in theirs
            for one in self._seen_from(base_side, i, j)
        ]
        return min((low for low, _ in reached), default=0), max((h for _, h in reached), default=0)

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:
        leans = self._leans(side)
        return np.array([leans[list(each)].max() for each in _members(classes)], np.int64)

    def _leans(self, side: int) -> np.ndarray:
        return self.left_leans if side == LEFT else self.right_leans

    def _seen_from(self, base_side: int, own: int, other: int) -> list[Range]:
        """Ranges of max_target - max_base."""
        if base_side == LEFT:
            return self.ranges[own][other]
        return [(-high, -low) for low, high in self.ranges[other][own]]

    def _band(self, base_side: int, mine: range, theirs: range, leans: np.ndarray) -> Extent:
        outer, inner = [], []
        for i in mine:
            for j in theirs:
                shift = int(self._leans(base_side)[i] - leans[j])
                moved = [
                    (2 * low + shift, 2 * high + shift)
                    for low, high in self._seen_from(base_side, i, j)
                ]
                outer += moved
                # Of several ranges, the widest may be taken unseen.
                inner.append(max(moved, key=lambda ends: ends[1] - ends[0], default=(1, 0)))
        if not outer:
            return 0, 0, -1, -1
        outer_lo, outer_hi = min(low for low, _ in outer), max(high for _, high in outer)
        inner_lo, inner_hi = max(low for low, _ in inner), min(high for _, high in inner)
        if inner_lo > inner_hi or (1, 0) in inner:
            inner_lo, inner_hi = outer_lo, outer_lo - 1
        return outer_lo, inner_lo, inner_hi, outer_hi


def _grouped(lowest: int, highest: int, classes: int | None) -> np.ndarray:
    """Ends of at most so many classes of neighbouring templates."""
    count = min(highest - lowest + 1, classes or MOST_CLASSES)
    return lowest + (np.arange(1, count + 1) * (highest - lowest + 1)) // count - 1


def _members(classes: ShapeClasses) -> list[range]:
    ends = zip(classes.lowest.tolist(), classes.highest.tolist(), strict=True)
    return [range(low, high + 1) for low, high in ends]


def drawn_model(rng: np.random.Generator, templates: Range, span: int = 60) -> TemplatePairs:
    """A model in which pairs of templates have no range, one, or several."""

    def ranges() -> list[Range]:
        cuts = np.sort(rng.choice(np.arange(-span, span), 2 * int(rng.integers(0, 4)), False))
        return [(int(low), int(high)) for low, high in cuts.reshape(-1, 2)]

    table = [[ranges() for _ in range(templates[1])] for _ in range(templates[0])]
    leans = [rng.integers(-9, 30, count) for count in templates]
    return TemplatePairs(table, *leans)


def drawn_events(
    rng: np.random.Generator, n: int, leans: np.ndarray, span: int, groups: int = 1
) -> TemplateEvents:
    """Events of all templates, in no order."""
    times, template = rng.integers(-span, span, n), rng.integers(0, leans.size, n)
    group = rng.integers(-1, groups, n) if groups > 1 else None
    return TemplateEvents(times, template, leans, group, groups)


def brute_pairs(
    model: TemplatePairs, left: TemplateEvents, right: TemplateEvents
) -> list[tuple[int, int]]:
    """Rows of all pairs that qualify: every pair is looked at."""
    return [
        (i, j)
        for i in range(len(left))
        for j in range(len(right))
        if _same_group(left, i, right, j)
        and any(
            low <= right.max_time[j] - left.max_time[i] <= high
            for low, high in model.ranges[left.template[i]][right.template[j]]
        )
    ]


def _same_group(left: TemplateEvents, i: int, right: TemplateEvents, j: int) -> bool:
    if left.group is None or right.group is None:
        return True
    return bool(left.group[i] == right.group[j] and left.group[i] >= 0)
