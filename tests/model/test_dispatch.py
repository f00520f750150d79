"""How kernels find the methods of a model's named tuples."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Annotated, NamedTuple

import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

from coincide.model.compiled import Int64s, compiled
from coincide.model.condition import Window
from coincide.model.probability import distance_from_middle, window_probability
from coincide.model.sides import LEFT, RIGHT
from coincide.model.timestamps import IntervalEvents, IntervalPairs, IntervalRule
from coincide.model.timestamps.protocol import difference, max_time_of, numba_type
from tests.helpers.places import ROOT


class Inner(NamedTuple):
    table: Annotated[np.ndarray, types.Array(types.float64, 2, "C")]


class Outer(NamedTuple):
    count: int
    share: float
    flag: bool
    array: Int64s
    inner: Inner

    def lean(self, side: int, shape: int) -> int:
        return self.count * side + self.array[shape] + int(self.inner.table[0, 1])


class Wrong(NamedTuple):
    name: str


OUTER = Outer(3, 0.5, True, np.arange(5), Inner(np.full((2, 2), 7.0)))


def test_a_type_is_what_numba_finds() -> None:
    @compiled
    def itself(value):  # type: ignore[no-untyped-def]
        return value.count

    assert itself(OUTER) == 3
    assert itself.signatures == [(numba_type(Outer),)]
    assert numba_type(Outer).instance_class is Outer
    with pytest.raises(TypeError, match="cannot be annotated as <class 'str'>"):
        numba_type(Wrong)


def test_a_method_is_found_by_type() -> None:
    for side in (LEFT, RIGHT):
        assert max_time_of(OUTER, side, 101, 4) == (101 + 3 * side + 4 + 7) >> 1
        assert max_time_of.py_func(OUTER, side, 101, 4) == (101 + 3 * side + 4 + 7) >> 1
    with pytest.raises(TypingError, match="lean"):
        max_time_of(Inner(np.zeros((1, 1))), LEFT, 0, 0)


@pytest.mark.parametrize("origin", [0, -(2**60), 2**60])
def test_intervals_by_their_rule(origin: int) -> None:
    """s and the distance as from the four ends, at the ends of time, too."""
    rng = np.random.default_rng(1)
    window = Window(-30, 50, 0.4)
    rule = IntervalPairs(window).rule
    assert rule == IntervalRule.of(window)
    for _ in range(300):
        low = rng.integers(-40, 40, 2) + origin
        low[1] *= rng.choice([1, -1])
        side = IntervalEvents(low, low + rng.integers(0, 60, 2))
        (k1, k2), (l1, l2) = side.midpoints, side.lengths
        s = difference(rule, k1, l1, k2, l2)
        assert s == int(side.max_time[1]) - int(side.max_time[0])
        probability = window_probability(s, l1, l2, window.lo, window.hi)
        assert rule.probability(s, l1, l2) == probability
        assert rule.qualifies(s, l1, l2) == (probability >= rule.threshold)
        apart = distance_from_middle(k2 - k1, window.lo, window.hi)
        assert rule.distance(s, l1, l2) == apart == abs(int(k2) - int(k1) - 20)


PLAIN = """
import numpy as np
from coincide.model.condition import Window
from coincide.model.timestamps import HistogramEvents, IntervalEvents, IntervalPairs, pairs_model
from cpu_fallback import EventJoin
from tests.helpers.histogram_streams import drawn_table

rng = np.random.default_rng(1)
times = rng.integers(0, 200, 50)
side = IntervalEvents(times, times + rng.integers(0, 9, 50))
table = drawn_table(rng, 5, 20)
shaped = HistogramEvents(times, rng.integers(0, 5, 50), table)
model, left, right = pairs_model(Window(-9, 20, 0.4), table, table).for_events(shaped, shaped)
print(EventJoin(left, right, model, classes=2).counters)
print(EventJoin(side, side, IntervalPairs(Window(-5, 7, 0.6)), classes=2).counters)
"""


def test_the_same_without_a_compiler() -> None:
    found = []
    for disabled in "01":
        done = subprocess.run(
            [sys.executable, "-c", PLAIN],
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout)
    assert "pairs=0" not in found[0]
    assert found[0] == found[1]
