"""Obsolete events leave the buffers, and buffers stay bounded however long the streams are."""

from __future__ import annotations

import numpy as np
import pytest

from bench.papers.streams import ALGORITHMS, stream_correlator
from bench.papers.streams.correlator import StreamCorrelator
from bench.papers.streams.live_blocks import Buffers
from bench.papers.streams.results import PairRoom
from coincide import Window
from tests.helpers.stream_cases import StreamCase, paper_streams, push_mixed

LAZY = ("lazy", "lookup", "classes")


def buffers_of(correlator: StreamCorrelator) -> Buffers:
    live = getattr(correlator, "_live", None)
    return correlator._buffers if live is None else live.buffers


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_buffers_are_bounded_over_a_long_stream(algorithm: str) -> None:
    rate, deadline = 300, 100_000
    left, right = paper_streams(40.0, rate)
    case = StreamCase(left, right, Window(-deadline, deadline, 0.8))
    correlator = case.correlator(algorithm, emit="counts", block=50)
    push_mixed(correlator, case, np.random.default_rng(0), arrivals=True)
    stats = correlator.stats
    # What can still be met: the window, the longest timestamp and the delay, in events, and a block.
    reach = rate * (deadline + 200_000 + 50_000) / 1e6
    assert max(stats.buffer_max) < 1.6 * reach + 2 * 50
    assert min(stats.invalidated) > 0.95 * len(left)
    ends = buffers_of(correlator).ends
    live = ends[:, :, 1] - ends[:, :, 0]
    waiting = correlator._progress.waiting
    kept = live.sum(axis=1) + waiting
    assert (kept == np.array(stats.arrived) - stats.invalidated).all()
    assert buffers_of(correlator).keys.shape[2] <= 2 * (1 << 14) + 4096


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_heartbeat_empties_the_buffers(algorithm: str) -> None:
    left, right = paper_streams(1.0, 300)
    case = StreamCase(left, right, Window(-100_000, 100_000, 0.8))
    correlator = case.correlator(algorithm, block=None, every=10_000)
    found = sum(
        r.count for r in push_mixed(correlator, case, np.random.default_rng(0), arrivals=True)
    )
    found += correlator.advance(5_000_000).count
    stats = correlator.stats
    assert stats.invalidated == stats.arrived
    assert correlator.flush().count == 0
    assert found == stats.pairs > 0
    # Going back in time says nothing.
    fresh = case.correlator(algorithm)
    fresh.advance(10)
    fresh.advance(-10)
    assert fresh.stats.arrived == (0, 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_silent_side_keeps_the_other(algorithm: str) -> None:
    """Nothing may leave while the other side could still come: its events may be anywhere in time."""
    times = np.arange(0, 100_000, 10)
    correlator = stream_correlator(
        algorithm,
        Window(-50, 50, 0.5),
        left_delay=0,
        right_delay=0,
        left_longest=0,
        right_longest=0,
    )
    correlator.push("left", (times, times))
    assert correlator.stats.invalidated == (0, 0)
    found = correlator.push("right", (times[:1], times[:1])).count + correlator.flush().count
    assert found == 6


@pytest.mark.parametrize("algorithm", LAZY)
@pytest.mark.parametrize("time", [-5, 5_000_000])
def test_a_heartbeat_gives_out_what_waits(algorithm: str, time: int) -> None:
    """In the default configuration too, where only a full block is due."""
    left, right = paper_streams(0.5, 300)
    case = StreamCase(left, right, Window(-100_000, 100_000, 0.8))
    correlator = case.correlator(algorithm)
    found = push_mixed(correlator, case, np.random.default_rng(0), arrivals=True)
    assert sum(result.count for result in found) == 0
    assert correlator.advance(time).count == correlator.stats.pairs > 0
    assert (correlator.stats.invalidated == correlator.stats.arrived) == (time > 0)
    assert correlator.flush().count == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("beat", [False, True])
def test_room_for_a_burst_is_given_back(algorithm: str, beat: bool) -> None:
    times = np.arange(30_000)
    correlator = stream_correlator(
        algorithm, Window(-5, 5, 0.5), left_delay=0, right_delay=0, left_longest=0, right_longest=0,
        block=20_000, emit="counts",
    )  # fmt: skip
    correlator.push("left", (times, times))
    assert buffers_of(correlator).keys.shape[2] >= 20_000
    correlator.advance(50_000)
    if not beat:
        late = np.array([60_000])
        correlator.push("right", (late, late))
        correlator.push("left", (late, late))
    assert buffers_of(correlator).keys.shape[2] <= 4096
    waiting = getattr(correlator, "_waiting", None)
    assert waiting is None or waiting.numbers.shape[1] <= 4096


def test_few_pairs_of_many_candidates_keep_little() -> None:
    room = PairRoom()
    room.take()
    large = np.arange(1_000_000)
    few, many = room.give(3, large, large), room.give(500_000, large, large)
    assert few.left.base is None
    assert few.right.base is None
    assert few.left.tolist() == few.right.tolist() == [0, 1, 2]
    assert many.left.base is large


@pytest.mark.parametrize("algorithm", LAZY)
def test_a_block_waits_whole(algorithm: str) -> None:
    times = np.arange(0, 100)
    correlator = stream_correlator(
        algorithm, Window(-5, 5, 0.5), left_delay=0, right_delay=0, left_longest=0, right_longest=0,
        block=60,
    )  # fmt: skip
    assert correlator.push("left", (times[:59], times[:59])).count == 0
    assert correlator.push("right", (times[:59], times[:59])).count == 0
    assert correlator.push("left", (times[59:60], times[59:60])).count == 11 * 59 - 30 + 5
    assert correlator.flush().count == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_results_stay_as_they_were(algorithm: str) -> None:
    """Room for pairs is used again, but never while someone holds it."""
    left, right = paper_streams(2.0, 600)
    case = StreamCase(left, right, Window(-300_000, 300_000, 0.5))
    correlator = case.correlator(algorithm, block=20)
    kept, copies = [], []
    for start in range(0, len(left), 20):
        rows = slice(start, start + 20)
        for side, stream in (("left", left), ("right", right)):
            given = (stream.low[rows], stream.high[rows])
            result = correlator.push(side, given, arrival=stream.arrival[rows])
            if start % 3 == 0:
                kept.append(result)
                copies.append((result.left.copy(), result.right.copy()))
    assert sum(result.count for result in kept) > 10_000
    for result, (lefts, rights) in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(result.left, lefts)
        np.testing.assert_array_equal(result.right, rights)
