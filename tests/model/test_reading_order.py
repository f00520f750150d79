"""The order of readings of any order: by stream and time, of equal ones first that which counts."""

from __future__ import annotations

import numpy as np

from coincide.model.borders.crossings import _ordered


def test_readings_are_in_the_order_of_a_full_sort() -> None:
    random, ties = np.random.default_rng(3), 0
    for case in range(600):
        n = 40_000 if case == 0 else int(random.integers(0, 60))
        streams, times = random.integers(0, 4, n), random.integers(-5, 6, n)
        times = times * int(random.choice([1, 10**15]))
        values = random.integers(0, 3, (n, 2)).astype(float)
        values[random.random((n, 2)) < 0.1] = np.nan
        by_values = np.lexsort((*values.T[::-1], times, streams))
        assert (_ordered(streams, times, values, "least") == by_values).all()
        from_behind = n - 1 - np.lexsort((times[::-1], streams[::-1]))
        assert (_ordered(streams, times, values, "last") == from_behind).all()
        ties += n - np.unique(np.stack([streams, times]), axis=1).shape[1]
    assert ties > 1000
