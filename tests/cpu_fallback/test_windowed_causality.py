"""Causality through a window against the reference: every policy, cut into any batches."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coincide import ConditionError
from coincide.model.windowed_causality import POLICIES
from tests.helpers.windowed_cases import WindowCase, expected_of, found_by, model_of, window_cases


def check(case: WindowCase, cuts: tuple[int, ...] = ()) -> None:
    try:
        model_of(case)
    except ConditionError:
        assume(False)
    for policy in POLICIES:
        pairs, join = found_by(case, policy, cuts)
        seen = expected_of(case, policy)
        assert sorted(pairs) == sorted(seen.pairs), policy
        assert (join.counts.matches, join.counts.found) == (seen.matches, seen.found), policy
        kept = join.kept()
        assert kept.size == join.counts.kept == min(case.size, len(case.tuples))
        assert join.counts.arrived == join.counts.kept + join.counts.evicted == len(case.tuples)


@settings(max_examples=40)
@given(window_cases(), st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_every_policy_shows_what_the_reference_shows(
    case: WindowCase, cuts: tuple[int, ...]
) -> None:
    check(case, cuts)


@pytest.mark.slow
@settings(max_examples=60)
@given(window_cases(most=60))
def test_every_policy_shows_what_the_reference_shows_at_length(case: WindowCase) -> None:
    check(case)
