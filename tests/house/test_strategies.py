"""The cases that property tests draw."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from bench.hunt.intervals import LIMIT, Scale
from cpu_fallback.reference.join import correlate
from tests.helpers.strategies import (
    Interval,
    JoinCase,
    confidences,
    events,
    huge_join_cases,
    join_cases,
    random_cases,
    windows,
)


def check_case(case: JoinCase) -> None:
    """A case must keep to what the product takes."""
    assert -LIMIT <= case.lo <= case.hi <= LIMIT
    assert 2**-50 < case.confidence <= 1
    for row in [*case.left, *case.right]:
        times = [row[name] for name in ("min_time", "max_time") if row[name] is not None]
        assert times == sorted(times)
        assert all(isinstance(t, int) and abs(t) <= LIMIT for t in times)
        assert set(case.by) <= set(row)


@given(join_cases())
def test_join_cases_are_valid(case: JoinCase) -> None:
    check_case(case)


@given(huge_join_cases())
def test_huge_join_cases_are_valid(case: JoinCase) -> None:
    check_case(case)


@given(events(scale=Scale(0, 7, 9), keys=("station",)), windows(7), confidences())
def test_single_strategies_fit_together(
    side: list[dict[str, Any]], window: Interval, confidence: float
) -> None:
    check_case(JoinCase(side, side, *window, confidence, ("station",)))


@pytest.mark.parametrize("huge", [False, True])
def test_random_cases_have_matches_and_ties(huge: bool) -> None:
    matched = partial = 0
    n = 200
    for case in random_cases(7, n, max_size=12, huge=huge):
        check_case(case)
        found = correlate(*case[:5], by=case.by, probability=True)
        matched += bool(found)
        partial += any(0 < row["probability"] < 1 for row in found)
    assert matched > n / 3
    assert partial > n / 5


def test_random_cases_depend_on_the_seed_alone() -> None:
    again = list(random_cases(1, 5))
    assert list(random_cases(1, 5)) == again
    assert list(random_cases(2, 5)) != again
    assert list(random_cases(1, 3)) == again[:3]
