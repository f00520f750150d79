"""A third model of timestamps, made here: it is this file, and one line that registers it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    CausalityCondition,
    ConditionError,
    Temporal,
    TimingCondition,
    causality_tables,
    correlate_tables,
    within,
)
from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.events.timestamp_names import NAMES_OF, TimestampNames
from coincide.engine.events.timestamps import Pairs, SideModel
from coincide.model.class_choice import Population
from coincide.model.classes import ShapeClasses
from coincide.model.compiled import compiled, product
from coincide.model.condition import Window
from coincide.model.probability import DECISION_SLACK, distance_from_middle
from coincide.model.timestamps import IntervalEvents
from coincide.model.timestamps.mixed import around_keys, support_bands
from coincide.model.timestamps.protocol import Events, PairModel
from coincide.model.units import TIME_LIMIT

_MERITS = 2.0**40


@dataclass(frozen=True)
class Triangular:
    """What users say: the likeliest time is the middle of an interval, whose ends are columns."""

    earliest: str
    latest: str


class TriangularColumns(IntervalColumns):
    @property
    def model(self) -> TriangularModel:  # type: ignore[override]
        return TriangularModel()


@dataclass(frozen=True)
class TriangularModel:
    """The shape is the length of the interval; see `SideModel`."""

    shape_is_length = is_symmetric = True
    is_uniform = False

    def pairs(self, window: Window, left: SideModel, right: SideModel) -> Pairs | None:
        return TriangularPairs(window) if left == right == self else None

    def longest(self, largest: int | None) -> int | None:
        return largest

    def largest_useful(self, window: Window) -> int:
        return 2 * TIME_LIMIT

    def lengths(self, shapes: np.ndarray) -> np.ndarray:
        return shapes

    def leans(self, shapes: np.ndarray) -> np.ndarray:
        return shapes

    def before_ends(self, shapes: np.ndarray) -> np.ndarray:
        return shapes

    def events(
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> IntervalEvents:
        return IntervalEvents(max_time - shapes, max_time, group, groups)


class TriangularRule(NamedTuple):
    """See `Rule`."""

    lo: int
    hi: int
    threshold: float

    def lean(self, side, shape):
        return shape

    def qualifies(self, s, left, right):
        return probability_of(s, left, right, self.lo, self.hi) >= self.threshold

    def probability(self, s, left, right):
        return probability_of(s, left, right, self.lo, self.hi)

    def merit(self, s, left, right):
        p = probability_of(s, left, right, self.lo, self.hi)
        return math.floor(product(p, _MERITS) + 0.5) / _MERITS if p >= self.threshold else -1.0

    def distance(self, s, left, right):
        return distance_from_middle(2 * s + (left - right), self.lo, self.hi)


@compiled(forceinline=True)
def probability_of(s, left, right, lo, hi):
    """P(lo <= T_right - T_left <= hi)."""
    if left == 0 and right == 0:
        return 1.0 if lo <= s <= hi else 0.0
    return cdf(hi - s, float(left), float(right)) - cdf(lo - s, float(left), float(right))


@compiled(forceinline=True)
def cdf(z, left, right):
    """P(Δ - s <= z): doubled, Δ - s + right is the sum of two uniform times on each of the lengths."""
    total = 2.0 * (z + right)
    if total <= 0.0 or total >= 2.0 * (left + right):
        return 0.0 if total <= 0.0 else 1.0
    power = 4 if left > 0.0 and right > 0.0 else 2
    found = 0.0
    for i in range(3 if left > 0.0 else 1):
        for j in range(3 if right > 0.0 else 1):
            weight = (-2.0 if i == 1 else 1.0) * (-2.0 if j == 1 else 1.0)
            found += weight * max(total - i * left - j * right, 0.0) ** power
    scale = 1.0
    for length in (left, right):
        if length > 0.0:
            scale *= length * length
    return found / (scale * (24.0 if power == 4 else 2.0))


@dataclass(frozen=True)
class TriangularPairs:
    """See `PairModel`: one class, and bounds by what supports can reach."""

    window: Window

    @property
    def rule(self) -> TriangularRule:
        window = self.window
        return TriangularRule(window.lo, window.hi, window.confidence - DECISION_SLACK)

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:
        return self, left, right

    def choose_classes(
        self, left: Population, right: Population, groups: int, classes: int | None
    ) -> tuple[ShapeClasses, ShapeClasses]:
        own, others = (
            ShapeClasses.one(0, int(side.shape_sample().max()) if side.size else 0)
            for side in (left, right)
        )
        return own, others

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        around = around_keys(None, own), around_keys(None, other)
        return support_bands(self._window_from(base_side), *around)

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        window = self._window_from(base_side)
        return window.lo - int(own.highest[-1]), window.hi + int(other.highest[-1])

    def _window_from(self, base_side: int) -> Window:
        return self.window.mirrored() if base_side else self.window


def names_of_triangular(given: Triangular) -> TimestampNames:
    return TimestampNames(given, (given.earliest, given.latest), TriangularColumns)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NAMES_OF, Triangular, names_of_triangular)


Ends = tuple[int, int]
TIMES = Triangular("low", "high")


def distribution(ends: Ends, x: Fraction) -> Fraction:
    """P(T <= x) of one event, whose interval is not empty."""
    low, high = ends
    if x <= low or x >= high:
        return Fraction(x >= high)
    half = Fraction(high - low) / 2
    if x <= low + half:
        return (x - low) ** 2 / (2 * half * half)
    return 1 - (high - x) ** 2 / (2 * half * half)


def density(ends: Ends, x: Fraction) -> Fraction:
    half = Fraction(ends[1] - ends[0]) / 2
    return max(Fraction(0), (half - abs(x - ends[0] - half)) / (half * half))


def chance(left: Ends, right: Ends, lo: int, hi: int) -> Fraction:
    """P(lo <= Δ <= hi), exactly: Simpson's rule on the cubics between the corners."""
    if left[0] == left[1]:
        if right[0] == right[1]:
            return Fraction(lo <= right[0] - left[0] <= hi)
        ends = (Fraction(left[0] + each) for each in (hi, lo))
        above, below = (distribution(right, end) for end in ends)
        return above - below
    if right[0] == right[1]:
        return chance(right, left, -hi, -lo)
    corners = {Fraction(sum(right)) / 2, *map(Fraction, right)}
    for shift in (lo, hi):
        corners |= {Fraction(x) + shift for x in (*left, Fraction(sum(left)) / 2)}
    inside = sorted(x for x in corners if right[0] <= x <= right[1])

    def at(x: Fraction) -> Fraction:
        return density(right, x) * (distribution(left, x - lo) - distribution(left, x - hi))

    return sum(
        ((b - a) / 6 * (at(a) + 4 * at((a + b) / 2) + at(b)) for a, b in pairwise(inside)),
        Fraction(0),
    )


def events(seed: int, size: int) -> pa.Table:
    random = np.random.default_rng(seed)
    low = random.integers(0, 400, size)
    length = random.choice([0, 1, 2, 7, 30, 90], size)
    return pa.table(
        {
            "id": np.arange(size),
            "low": low,
            "high": low + length,
            "key": random.integers(0, 2, size),
        }
    )


@pytest.mark.parametrize(
    ("lo", "hi", "confidence"), [(-20, 35, 0.62), (3, 8, 0.17), (-60, 60, 0.97), (-5, -5, 1.0)]
)
def test_joins_by_its_own_probability(lo: int, hi: int, confidence: float) -> None:
    """Pairs and probabilities are those of the definition, with keys and some exact instants."""
    left, right = events(1, 70), events(2, 60)
    found = correlate_tables(
        left, right, TimingCondition(within(lo, hi), confidence), left_time=TIMES, right_time=TIMES,
        by="key", probability=True,
    )  # fmt: skip
    wanted = {}
    for own in left.to_pylist():
        for other in right.to_pylist():
            p = chance((own["low"], own["high"]), (other["low"], other["high"]), lo, hi)
            if own["key"] == other["key"] and p >= confidence:
                wanted[own["id"], other["id"]] = float(p)
    rows = zip(*(found[name].to_pylist() for name in ("left_id", "right_id")), strict=True)
    got = dict(zip(rows, found["probability"].to_pylist(), strict=True))
    assert got.keys() == wanted.keys()
    assert wanted or confidence == 1.0
    assert all(math.isclose(got[pair], p, rel_tol=1e-9) for pair, p in wanted.items())


def test_is_not_an_interval() -> None:
    """The same ends as uniform intervals give other pairs, so nothing has taken one for the other."""
    left, right = events(1, 70), events(2, 60)
    condition = TimingCondition(within(-20, 35), 0.62)
    given = dict.fromkeys(("left_time", "right_time"), TIMES)
    uniform = dict.fromkeys(("left_time", "right_time"), ("low", "high"))
    assert correlate_tables(left, right, condition, **given) != correlate_tables(
        left, right, condition, **uniform
    )


def test_what_it_does_not_know_is_refused() -> None:
    left, right = events(1, 5), events(2, 5)
    condition = TimingCondition(within(-20, 35), 0.5)
    with pytest.raises(ConditionError, match=r"no join of TriangularModel .* with IntervalModel"):
        correlate_tables(left, right, condition, left_time=TIMES, right_time=("low", "high"))
    with pytest.raises(ConditionError, match="must be intervals or histograms here"):
        causality_tables(
            left, right, CausalityCondition(Temporal(0, 35)), cause_time=TIMES, effect_time=TIMES
        )
