"""The widest window of any pair: that of a scan over distances, but for the scan's own steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from coincide import (
    CausalityCondition,
    ConditionError,
    Ellipsoidal,
    Propagation,
    Spatial,
    SpeedRange,
    Temporal,
)
from coincide.model.causality.deciding import window_between
from coincide.model.causality.template_rule import widest_window
from coincide.model.units import UNBOUNDED, Tick
from tests.helpers.causality_cases import Case, plane_cases


def widest(*predicates: Any) -> int:
    return widest_window(CausalityCondition(predicates).model(Tick("ms")))


@pytest.mark.parametrize(
    ("predicates", "width"),
    [
        ([Temporal("1s", "9s")], 8000),
        ([Temporal("1s", "9s"), Spatial(5)], 8000),
        ([Spatial(5)], UNBOUNDED),
        ([Spatial(5), Temporal(0, None)], UNBOUNDED),
        ([Propagation("3s", time="20s")], 3000),
        ([Propagation("3s", speed=2.0), Spatial(60)], 3000),
        # At 80 km from 80 / 8 - 0.5 to 80 / 4 + 0.5 s.
        ([SpeedRange(4, 8, "500ms"), Spatial(80)], 11_000),
        # It is widest where the slow end meets 12 s: at 48 km, from 6 s on.
        ([SpeedRange(4, 8), Temporal(0, "12s")], 6000),
        ([SpeedRange(4, math.inf), Temporal(0, "12s")], 12_000),
        ([Ellipsoidal(3, "150ms")], 300),
        ([Ellipsoidal(3, "150ms"), Temporal(0, None)], 150),
    ],
)
def test_by_hand(predicates: Any, width: int) -> None:
    assert width <= widest(*predicates) <= width + 1


def test_an_even_width_over_a_long_reach() -> None:
    """As wide at every distance: stretches of distances that cannot be told apart do not pile up."""
    predicates = [Propagation("3s", speed=0.5), Spatial(1e9), Temporal("-1h", None)]
    assert 3000 <= widest(*predicates) <= 3001
    assert widest(Propagation(0, speed=0.5), Temporal("7s", "7s")) == 0
    apart = Propagation("1s", speed=2), Propagation("1s", speed=4), Temporal("5s", None)
    assert (
        widest(*apart, Spatial(20)) == -1
    )  # they part at 4 km, when 2 s and then 3 s are the last


@settings(max_examples=60)
@given(plane_cases(most=0))
def test_no_distance_has_a_wider_one(case: Case) -> None:
    condition = CausalityCondition([*case.predicates, Temporal(-40, 60)])
    try:
        model = condition.model(Tick())
    except ConditionError:
        assume(False)
        raise
    reach = min(model.reach, 500.0)
    scanned = [window_between(model.rule, d * d, d * d) for d in np.linspace(0, reach, 700)]
    found, seen = widest_window(model), max(max(hi - lo, -1) for lo, hi in scanned)
    step = 4 * reach / 699 + 2  # the slowest front of the cases takes 4 ticks a unit of distance
    assert seen <= found <= seen + 2 * step
