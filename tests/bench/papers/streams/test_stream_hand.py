"""Stream correlation worked by hand: Lee & Lee (2010), sections 4 and 5."""

from __future__ import annotations

import numpy as np
import pytest

from bench.papers.regions import region_bounds
from bench.papers.streams import ALGORITHMS, stream_correlator
from bench.papers.streams.models import (
    IntervalStreams,
    StreamOptions,
    max_time_regions,
    side_limits,
)
from bench.papers.streams.state import Regions
from coincide import Window
from tests.helpers.stream_cases import sorted_pairs


def instants(*times: int) -> tuple[np.ndarray, np.ndarray]:
    return np.array(times), np.array(times)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_pairs_and_responses_of_a_few_events(algorithm: str) -> None:
    """|@S1 - @S2| <= 10 on instants: (0, 8), (20, 12), (20, 30) and (31, 30), but not (0, 12)."""
    correlator = stream_correlator(
        algorithm, Window(-10, 10, 1.0), left_delay=4, right_delay=4, left_longest=0,
        right_longest=0, block=1, response=True,
    )  # fmt: skip
    found = [
        correlator.push("left", instants(0), arrival=[3]),
        correlator.push("right", instants(8), arrival=[8]),  # (0, 0) at 8, 0 after 8
        correlator.push("right", instants(12), arrival=[14]),
        correlator.push("left", instants(20), arrival=[21]),  # (1, 1) at 21, 1 after 20
        correlator.push("right", instants(30), arrival=[34]),  # (1, 2) at 34, 4 after 30
        correlator.push("left", instants(31), arrival=[34]),  # (2, 2) at 34, 3 after 31
        correlator.flush(),
    ]
    assert [result.count for result in found] == [0, 1, 0, 1, 1, 1, 0]
    assert sorted_pairs(found).tolist() == [[0, 0], [1, 1], [1, 2], [2, 2]]
    stats = correlator.stats
    assert (stats.response_mean, stats.response_max) == (2.0, 4.0)
    # Right at 34 may still be followed by 30: the left 0 is obsolete, 20 is not. As for the right,
    # left may be followed by 30: 8 and 12 are.
    assert stats.invalidated == (1, 2)
    assert stats.arrived == (3, 3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_probability_decides_in_the_probe_region(algorithm: str) -> None:
    """A base instant and targets of length 10, delta <= 20: P falls by a tenth with each tick."""
    for confidence, last in ((1.0, 20), (0.9, 21), (0.5, 25), (0.1, 29)):
        correlator = stream_correlator(
            algorithm, Window(0, 20, confidence), left_delay=0, right_delay=0, left_longest=0,
            right_longest=10, right_shortest=10,
        )  # fmt: skip
        found = [correlator.push("left", instants(100))]
        high = np.arange(110, 140)
        found += [correlator.push("right", (high - 10, high)), correlator.flush()]
        assert sorted_pairs(found)[-1].tolist() == [0, last - 10]


def lookup_run(targets: list[tuple[int, int]], bases: list[tuple[int, int]]):  # type: ignore[no-untyped-def]
    """Left targets in one block, then right base events in another: deadline 1000, ct 0.5."""
    correlator = stream_correlator(
        "lookup", Window(-1000, 1000, 0.5), left_delay=400, right_delay=400, left_longest=200,
        right_longest=200, left_shortest=20, right_shortest=20, block=len(bases),
    )  # fmt: skip
    results = []
    for side, events in (("left", targets), ("right", bases)):
        low, high = np.array(events).T
        results.append(correlator.push(side, (low, high)))
        results.append(correlator.advance(int(high.max())))
    results.append(correlator.flush())
    return sorted_pairs(results).tolist(), correlator.stats


def test_a_base_event_that_is_earlier_at_both_ends_needs_no_evaluation() -> None:
    """Theorem 2: the target [0, 100] is probed for [1000, 1090]; for [990, 1080] the table tells."""
    pairs, stats = lookup_run([(0, 100)] * 2, [(990, 1080), (1000, 1090)])
    assert pairs == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert (stats.evaluations, stats.hits, stats.hit_ratio) == (2, 2, 0.5)


def test_a_base_event_that_begins_later_is_evaluated() -> None:
    """[1000, 1089] ends before [985, 1090], but begins after it: what the one found says nothing."""
    pairs, stats = lookup_run([(0, 100)] * 2, [(985, 1090), (1000, 1089)])
    assert len(pairs) == 4
    assert (stats.evaluations, stats.hits) == (4, 0)


def test_a_violated_probe_tells_nothing() -> None:
    """Midpoints 1005 and 1006 apart, deadline 1000: neither satisfies, and each has to be evaluated."""
    pairs, stats = lookup_run([(0, 100)] * 2, [(960, 1150), (961, 1151)])
    assert pairs == []
    assert (stats.evaluations, stats.hits) == (4, 0)


def paper_regions(confidence: float) -> Regions:
    """Figure 9: d = 1,000, rho = 20, pi = 200."""
    limits = side_limits("left", 0, 20, 200), side_limits("right", 0, 20, 200)
    model = IntervalStreams(Window(-1000, 1000, confidence))
    return max_time_regions(StreamOptions(model, limits, 1000, None, "pairs", None, False))


@pytest.mark.parametrize("confidence", [1.0, 0.7, 0.4, 0.1])
def test_tables_hold_the_region_bounds_of_each_length(confidence: float) -> None:
    regions = paper_regions(confidence)
    window = Window(-1000, 1000, confidence)
    for length in range(20, 201):
        k = int(np.searchsorted(regions.tops[0], length))
        exact = region_bounds(5000 - length, 5000, 20, 200, window)
        table = [(10_000 - length + end) / 2 for end in regions.bands[0, k, 0].tolist()]
        # Three lengths share a line of the table, so it may be off by what they differ, never inwards.
        outer_left, inner_left, inner_right, outer_right = table
        assert exact.outer_left - 4 <= outer_left <= exact.outer_left
        assert exact.inner_left <= np.ceil(inner_left) <= exact.inner_left + 4
        assert exact.inner_right - 4 <= np.floor(inner_right) <= exact.inner_right
        assert exact.outer_right <= outer_right + 1 <= exact.outer_right + 5


def test_probe_regions_of_figure_9() -> None:
    """At ct = 1 there is no right probe region; as ct falls the left one shrinks, the right one grows."""
    sizes = []
    for confidence in (1.0, 0.7, 0.4, 0.1):
        bounds = region_bounds(4900, 5000, 20, 200, Window(-1000, 1000, confidence))
        sizes.append(
            (bounds.inner_left - bounds.outer_left, bounds.outer_right - bounds.inner_right)
        )
    lefts, rights = zip(*sizes, strict=True)
    assert (lefts[0], rights[0]) == (180, 0)
    assert list(lefts) == sorted(lefts, reverse=True)
    assert list(rights) == sorted(rights)
    # On the max_time axis both together are pi - rho wide, whatever the threshold.
    assert all(abs(left + right - 180) <= 2 for left, right in sizes)
