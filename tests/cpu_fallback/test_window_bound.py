"""The bound on what windows show, against every choice that a policy has."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_fallback.reference.windowed_causality import best_of_all
from cpu_fallback.windowed_causality import most_pairs

PAIRS = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda p: p[0] < p[1]))


def bound(pairs: list[tuple[int, int]], tuples: int, window: int) -> int:
    first, second = (np.array([p[k] for p in pairs], np.int64) for k in range(2))
    return most_pairs(first, second, tuples, window)


@settings(max_examples=80)
@given(PAIRS, st.integers(1, 3))
def test_no_policy_exceeds_it(pairs: set[tuple[int, int]], window: int) -> None:
    best = best_of_all(list(pairs), 8, window)
    assert best <= bound(sorted(pairs), 8, window) <= len(pairs)


def test_it_is_no_more_than_what_fits() -> None:
    # 100 tuples that come together, each with an effect long after: a window of 10 holds 10 of them.
    pairs = [(i, 500 + i) for i in range(100)]
    assert bound(pairs, 600, 10) in range(10, 14)
    assert bound(pairs, 600, 100) == 100
    assert bound([(0, 10)], 400_000, 2_000_000) == 1  # prices of all stays are beyond 64 bits
    assert bound([], 600, 1) == 0
