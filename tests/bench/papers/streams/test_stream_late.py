"""Events that come later than their side's delay: counted, returned, never paired, no harm done."""

from __future__ import annotations

import numpy as np
import pytest

from bench.papers.streams import ALGORITHMS, stream_correlator
from coincide import Window
from coincide.model.timestamps import IntervalEvents, IntervalPairs
from cpu_fallback import EventJoin
from tests.helpers.stream_cases import sorted_pairs

WINDOW = Window(-300, 200, 0.6)


def shuffled(seed: int, size: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Timestamps in an order with displacements of any size."""
    rng = np.random.default_rng(seed)
    high = np.sort(rng.integers(0, 6000, size))
    order = np.argsort(high + rng.exponential(60, size))
    high = high[order]
    return high - rng.integers(0, 80, size), high


def is_late(high: np.ndarray, delay: int) -> np.ndarray:
    return high < np.maximum.accumulate(high) - delay


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("delays", [(0, 0), (30, 90), (200, 0)])
def test_late_events_stand_aside(algorithm: str, delays: tuple[int, int]) -> None:
    sides = shuffled(1), shuffled(2)
    late = [is_late(side[1], delay) for side, delay in zip(sides, delays, strict=True)]
    correlator = stream_correlator(
        algorithm, WINDOW, left_delay=delays[0], right_delay=delays[1], left_longest=80,
        right_longest=80, block=40,
    )  # fmt: skip
    results = []
    for start in range(0, 300, 25):
        for name, (low, high) in zip(("left", "right"), sides, strict=True):
            rows = slice(start, start + 25)
            results.append(correlator.push(name, (low[rows], high[rows])))
    results.append(correlator.flush())
    kept = [np.flatnonzero(~each) for each in late]
    join = EventJoin(
        *(IntervalEvents(s[0][k], s[1][k]) for s, k in zip(sides, kept, strict=True)),
        IntervalPairs(WINDOW),
    )
    left, right = join.pairs(
        0, join.counts.size, kept[0][join.left_order], kept[1][join.right_order]
    )
    order = np.lexsort((right, left))
    expected = np.stack([left[order], right[order]], axis=1)
    assert len(expected) > 100
    np.testing.assert_array_equal(sorted_pairs(results), expected)
    assert correlator.stats.late == tuple(int(each.sum()) for each in late)
    assert sum(correlator.stats.late) > 0
    assert correlator.stats.arrived == (300, 300)
    for name, side, rows in zip(("left", "right"), sides, late, strict=True):
        handed = correlator.take_late(name)
        np.testing.assert_array_equal(handed.numbers, np.flatnonzero(rows))
        np.testing.assert_array_equal(handed.min_time, side[0][rows])
        np.testing.assert_array_equal(handed.max_time, side[1][rows])
        assert len(correlator.take_late(name)) == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_delay_itself_is_not_late(algorithm: str) -> None:
    correlator = stream_correlator(
        algorithm, Window(-50, 50, 0.5), left_delay=10, right_delay=0, left_longest=0,
        right_longest=0,
    )  # fmt: skip
    times = np.array([100, 90, 89, 100])
    found = [correlator.push("left", (times, times))]
    found.append(correlator.push("right", (np.array([95]), np.array([95]))))
    found.append(correlator.flush())
    assert sorted_pairs(found).tolist() == [[0, 0], [1, 0], [3, 0]]
    assert correlator.take_late("left").numbers.tolist() == [2]
    assert correlator.stats.late == (1, 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lateness_is_by_arrival_where_it_is_given(algorithm: str) -> None:
    correlator = stream_correlator(
        algorithm, Window(-50, 50, 0.5), left_delay=10, right_delay=10, left_longest=0,
        right_longest=0,
    )  # fmt: skip
    times = np.array([100, 101])
    # The first comes 11 ticks after its time, the second 10.
    correlator.push("left", (times, times), arrival=np.array([111, 111]))
    assert correlator.take_late("left").numbers.tolist() == [0]
    assert correlator.stats.late == (1, 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_side_is_not_late_because_the_other_is_ahead(algorithm: str) -> None:
    correlator = stream_correlator(
        algorithm, Window(-5, 5, 0.5), left_delay=0, right_delay=0, left_longest=0, right_longest=0
    )
    times = np.arange(0, 1000)
    found = [correlator.push("left", (times, times)), correlator.push("right", (times, times))]
    found.append(correlator.flush())
    assert correlator.stats.late == (0, 0)
    assert len(sorted_pairs(found)) == 11 * 1000 - 30


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_after_a_heartbeat_earlier_events_are_late(algorithm: str) -> None:
    correlator = stream_correlator(
        algorithm, Window(-5, 5, 0.5), left_delay=20, right_delay=0, left_longest=9, right_longest=9
    )
    correlator.push("left", (np.array([100]), np.array([100])))
    correlator.advance(150)
    correlator.push("left", (np.array([129, 130]), np.array([129, 130])))
    assert correlator.take_late("left").numbers.tolist() == [1]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_heartbeat_of_one_side_makes_nothing_late_on_the_other(algorithm: str) -> None:
    times = np.array([100, 120])
    for side, late in (("left", (0, 0)), ("right", (2, 0)), (None, (2, 0))):
        correlator = stream_correlator(
            algorithm, Window(-5, 5, 0.5), left_delay=0, right_delay=0, left_longest=0,
            right_longest=0,
        )  # fmt: skip
        correlator.push("left", (np.array([90]), np.array([90])))
        correlator.advance(10_000, None if side is None else ("left", "right")[side == "left"])
        correlator.push("left", (times, times))
        assert correlator.stats.late == late
        # The left event goes where the right side has moved on.
        assert (correlator.stats.invalidated[0] > 0) == (side != "right")
