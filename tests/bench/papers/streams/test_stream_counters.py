"""What the six stream correlators report about their work, on streams like those of the paper."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from bench.papers.streams import ALGORITHMS, stream_correlator
from bench.papers.streams.correlator import StreamCorrelator
from bench.papers.streams.results import Matches, StreamStats
from coincide import Window
from tests.helpers.stream_cases import StreamCase, middling_case, mixed, paper_streams, push_mixed

RATE = 1600
DEADLINE_US = 1_000_000
BLOCK = 1000


@cache
def stats_at(
    algorithm: str,
    confidence: float = 0.8,
    block: int = BLOCK,
    deadline: int = DEADLINE_US,
    classes: int | None = None,
) -> StreamStats:
    """Statistics after six seconds of two streams at the paper's highest rate."""
    left, right = paper_streams(6.0, RATE)
    case = StreamCase(left, right, Window(-deadline, deadline, confidence))
    correlator = case.correlator(
        algorithm, emit="counts", block=block, classes=classes, response=True
    )
    push_mixed(correlator, case, np.random.default_rng(0), arrivals=True)
    correlator.flush()
    return correlator.stats


@pytest.mark.parametrize("confidence", [1.0, 0.8, 0.5, 0.1])
def test_evaluations_fall_from_simple_to_lookup(confidence: float) -> None:
    evaluations = {name: stats_at(name, confidence).evaluations for name in ALGORITHMS}
    assert evaluations["lookup"] <= evaluations["lazy"] <= evaluations["eager"]
    assert evaluations["eager"] < evaluations["simple"] / 4
    assert evaluations["simple"] == evaluations["simple-sort"]
    assert len({stats_at(name, confidence).pairs for name in ALGORITHMS}) == 1


def test_lookup_spares_evaluations_and_classes_spare_more() -> None:
    lookup, lazy, classes = (stats_at(name) for name in ("lookup", "lazy", "classes"))
    assert 0.3 < lookup.hit_ratio < 0.7
    assert lookup.evaluations + lookup.hits == lookup.probed == lazy.evaluations
    assert classes.evaluations < lookup.evaluations / 3
    assert lazy.hits == classes.hits == 0


def test_only_the_simple_algorithms_admit_no_pair_unseen() -> None:
    for name in ALGORITHMS:
        stats = stats_at(name)
        if name.startswith("simple"):
            assert stats.sure == 0
        else:
            assert stats.pairs * 0.9 < stats.sure <= stats.pairs


def test_more_classes_probe_less() -> None:
    probed = [stats_at("classes", classes=k).evaluations for k in (1, 2, 4, 8)]
    assert all(more > 1.5 * less for more, less in pairwise(probed))


def test_the_hit_ratio_rises_with_the_block_and_settles() -> None:
    ratios = [stats_at("lookup", block=block).hit_ratio for block in (1, 50, 200, 800, 1600)]
    assert ratios[0] == 0.0
    assert ratios == sorted(ratios)
    assert ratios[2] - ratios[1] > 4 * (ratios[4] - ratios[3])


def test_probe_regions_shrink_with_the_threshold() -> None:
    probed = [stats_at("lazy", confidence).probed for confidence in (1.0, 0.7, 0.4, 0.1)]
    assert probed == sorted(probed, reverse=True)


def test_eager_has_the_shortest_buffers_and_lazy_is_longer_by_a_block() -> None:
    total = {name: sum(stats_at(name).buffer_mean) for name in ALGORITHMS}
    others = set(ALGORITHMS) - {"eager"}
    assert all(total["eager"] < total[name] for name in others)
    for name in ("lazy", "lookup"):
        assert 0.6 * BLOCK < total[name] - total["eager"] < 1.4 * BLOCK
    longer = sum(stats_at("lazy", block=2 * BLOCK).buffer_mean) - total["lazy"]
    assert 0.6 * BLOCK < longer < 1.4 * BLOCK


def test_eager_answers_soonest_and_larger_blocks_later() -> None:
    eager, lazy, later = stats_at("eager"), stats_at("lazy"), stats_at("lazy", block=2 * BLOCK)
    # An eager pair waits for the delay of its later event alone.
    assert 0 < eager.response_mean <= eager.response_max <= 50_000
    assert eager.response_mean < lazy.response_mean < later.response_mean
    assert eager.response_mean == stats_at("simple").response_mean


def test_one_event_blocks_are_eager() -> None:
    eager, lazy = stats_at("eager", deadline=100_000), stats_at("lazy", block=1, deadline=100_000)
    assert lazy.evaluations == eager.evaluations
    assert lazy.sure == eager.sure
    assert lazy.response_mean == pytest.approx(eager.response_mean)
    assert sum(lazy.buffer_mean) == pytest.approx(sum(eager.buffer_mean), rel=0.01)


ONE_SIDED = [(0, 10**6), (100, 10**6), (-(10**6), 0), (-(10**6), -100)]
"""Windows in which a later event of the other side is always too late, or never."""


@pytest.mark.parametrize("ends", [None, *ONE_SIDED])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_response_times_against_their_definition(
    algorithm: str, ends: tuple[int, int] | None
) -> None:
    """The clock at which a pair comes out, less the later max_time of its events."""
    for seed in range(700, 725 if ends is None else 705):
        case = middling_case(seed)
        if ends is not None:
            case = replace(case, window=Window(*ends, case.window.confidence))
        correlator = case.correlator(algorithm, response=True)
        waits: list[np.ndarray] = [np.zeros(0)]
        for side, piece in pieces(case):
            stream = (case.left, case.right)[side]
            # One event at a time, so that the clock is known when its pairs come out.
            for i in range(piece.start, piece.stop):
                given, arrival = (stream.low[i : i + 1], stream.high[i : i + 1]), stream.arrival[i]
                found = correlator.push(("left", "right")[side], given, arrival=[arrival])
                waits.append(waits_of(case, found, correlator))
        waits.append(waits_of(case, correlator.flush(), correlator))
        every = np.concatenate(waits)
        stats = correlator.stats
        assert stats.pairs == every.size
        if every.size:
            assert stats.response_mean == pytest.approx(every.mean(), rel=1e-9, abs=1e-6)
            assert stats.response_max == every.max()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_responses_are_measured_on_request_only(algorithm: str) -> None:
    case = middling_case(700)
    measured, plain = (case.correlator(algorithm, response=wanted) for wanted in (True, False))
    for correlator in (measured, plain):
        push_mixed(correlator, case, np.random.default_rng(0), arrivals=True)
        correlator.flush()
    assert measured.stats.response_max is not None
    unmeasured = replace(measured.stats, response_mean=None, response_max=None)
    assert plain.stats == unmeasured


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_responses_of_events_that_come_before_they_are_over(algorithm: str) -> None:
    """All arrive 50 before their max_time: the pair of two at 100 and 103 is 53 early."""
    for times, mean, longest in (((100, 103), -53.0, -53.0), ((100, 103, 110), -56.5, -53.0)):
        correlator = stream_correlator(
            algorithm, Window(-20, 20, 0.5), left_delay=0, right_delay=0, left_longest=9,
            right_longest=9, block=1, response=True,
        )  # fmt: skip
        assert correlator.stats.response_max == 0.0
        for i, time in enumerate(times):
            given = (np.array([time - 9]), np.array([time]))
            correlator.push("right" if i else "left", given, arrival=[50])
        correlator.flush()
        stats = correlator.stats
        assert (stats.response_mean, stats.response_max) == (mean, longest)


def pieces(case: StreamCase) -> list[tuple[int, range]]:
    """The beginnings of both streams in a few pieces each, by turns."""
    found = []
    for start in range(0, 120, 30):
        for side, stream in enumerate((case.left, case.right)):
            found.append((side, range(min(start, len(stream)), min(start + 30, len(stream)))))
    return found


def waits_of(case: StreamCase, found: Matches, correlator: StreamCorrelator) -> np.ndarray:
    arrived = correlator.stats.arrived
    clocks = [
        stream.arrival[: arrived[side]].max(initial=-(2**61))
        for side, stream in enumerate((case.left, case.right))
    ]
    later = np.maximum(case.left.high[found.left], case.right.high[found.right])
    return (max(clocks) - later).astype(np.float64)


@pytest.mark.parametrize("algorithm", ["lazy", "lookup", "classes"])
def test_reevaluation_by_time(algorithm: str) -> None:
    left, right = paper_streams(2.0, 400)
    case = StreamCase(left, right, Window(-DEADLINE_US, DEADLINE_US, 0.8))
    correlator = case.correlator(algorithm, block=None, every=100_000, response=True)
    sides, low, high, arrival = mixed(case, np.random.default_rng(0))
    counts = []
    for start in range(0, sides.size, 20):
        rows = slice(start, start + 20)
        given = (low[rows], high[rows])
        counts.append(correlator.push_mixed(sides[rows], given, arrival=arrival[rows]).count)
    # Every 100 ms of 2 s; an event comes each millisecond or so, up to 50 ms after its time.
    assert 18 <= np.count_nonzero(counts) <= 21
    assert 100_000 < correlator.stats.response_max <= 160_000


def test_reevaluation_by_count_or_time_comes_with_the_first() -> None:
    left, right = paper_streams(1.0, 400)
    case = StreamCase(left, right, Window(-DEADLINE_US, DEADLINE_US, 0.8))
    response = {}
    for name, options in {
        "count": {"block": 200, "every": None},
        "time": {"block": None, "every": 50_000},
        "both": {"block": 200, "every": 50_000},
    }.items():
        correlator = case.correlator("lazy", response=True, **options)
        push_mixed(correlator, case, np.random.default_rng(0), arrivals=True)
        correlator.flush()
        response[name] = correlator.stats.response_mean
    assert response["both"] == response["time"] < response["count"]
