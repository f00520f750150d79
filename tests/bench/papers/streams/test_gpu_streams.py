"""The stream correlators' block step on a GPU: pairs and counters of the CPU's, whatever happens.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.papers.streams import correlator as deferred
from bench.papers.streams.correlator import StreamCorrelator
from bench.papers.streams.live_blocks import LiveBlocks as HostBlocks
from bench.papers.streams.results import StreamStats
from bench.papers.streams.state import LiveEvents
from coincide import BackendError
from coincide.model.classes import ShapeClasses
from tests.bench.papers.streams.test_stream_equality import pairs_by_join
from tests.helpers.simulator import gpu_problem
from tests.helpers.stream_cases import (
    StreamCase,
    dense_case,
    feed,
    middling_case,
    mixed,
    small_cases,
    sorted_pairs,
)

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

from bench.papers.streams.gpu.live_blocks import ALGORITHMS, LiveBlocks
from gpu_kernels import join

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture(autouse=True)
def _classes_cut_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few events, so that small streams are correlated with classes too."""
    monkeypatch.setattr(deferred, "ENOUGH", 12)


def check(case: StreamCase, algorithm: str, seed: int) -> int:
    """The same on both backends: pairs, those of the batch join, and counters. Returns the pairs."""
    made = (
        case.correlator(algorithm, response=True),
        case.correlator(algorithm, live_blocks=LiveBlocks, response=True),
    )
    cpu, gpu = (feed(each, case, np.random.default_rng(seed)) for each in made)
    np.testing.assert_array_equal(gpu, cpu)
    np.testing.assert_array_equal(gpu, pairs_by_join(case))
    assert_same_stats(made[1].stats, made[0].stats)
    return len(gpu)


def assert_same_stats(found: StreamStats, expected: StreamStats) -> None:
    """Equal, but for how a sum of response times is rounded."""
    assert found.response_mean == pytest.approx(expected.response_mean, rel=1e-12)
    assert replace(found, response_mean=None) == replace(expected, response_mean=None)


@every_algorithm
@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 100), marks=pytest.mark.slow)])
def test_random_streams(algorithm: str, seeds: range) -> None:
    found = sum(check(dense_case(seed), algorithm, seed) for seed in seeds)
    assert found > 100 * len(seeds)


@every_algorithm
def test_adversarial_streams(algorithm: str) -> None:
    for i, case in small_cases(31, 50):
        check(case, algorithm, i)
    for seed in range(40, 46):
        check(middling_case(seed, 40), algorithm, seed)


def heartbeats_and_late_events(made: StreamCorrelator, case: StreamCase) -> tuple[Any, ...]:
    """Push in fives, with delays declared too short, and let time pass in between."""
    sides, low, high, arrival = mixed(case, np.random.default_rng(5))
    results, late = [], []
    for start in range(0, sides.size, 5):
        rows = slice(start, start + 5)
        results.append(made.push_mixed(sides[rows], (low[rows], high[rows]), arrival=arrival[rows]))
        if start % 20 == 15:
            moved = (int(arrival[rows][-1]), ("left", None, "right")[start // 20 % 3])
            results.append(made.advance(*moved))
            late += [made.take_late(side).numbers.tolist() for side in ("left", "right")]
    results += [made.flush()]
    return sorted_pairs(results).tolist(), [r.count for r in results], late, made.stats


@every_algorithm
@pytest.mark.parametrize("seed", [100, 101, 102])
def test_late_events_and_heartbeats(algorithm: str, seed: int) -> None:
    case = dense_case(seed, left_delay=20, right_delay=3)
    made = (
        case.correlator(algorithm, response=True),
        case.correlator(algorithm, live_blocks=LiveBlocks, response=True),
    )
    cpu, gpu = (heartbeats_and_late_events(each, case) for each in made)
    assert gpu == cpu
    assert min(gpu[-1].invalidated) > 0
    np.testing.assert_array_equal(made[1]._live.counts, made[0]._live.counts)


@every_algorithm
def test_counts_without_pairs(algorithm: str) -> None:
    for response in (False, True):
        case = dense_case(1, emit="counts", response=response)
        totals = []
        for made in (
            case.correlator(algorithm),
            case.correlator(algorithm, live_blocks=LiveBlocks),
        ):
            found = [made.push("left", case.left.events), made.push("right", case.right.events)]
            found.append(made.flush())
            assert all(each.left.size == each.right.size == 0 for each in found)
            totals.append((sum(each.count for each in found), made.stats))
        assert totals[0] == totals[1]
        assert totals[0][0] > 0


@every_algorithm
def test_blocks_in_many_parts(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "_FEW_ENTRIES", 6)
    monkeypatch.setattr(join, "_MANY_ENTRIES", 6)
    assert check(dense_case(3), algorithm, 3) > 50


def test_buffers_hold_what_the_cpus_hold() -> None:
    """To the event and in the same order, as far as keys go; equal keys in order of arrival."""
    for seed in (4, 5):
        case = dense_case(seed, block=6)
        for algorithm in ALGORITHMS:
            made = case.correlator(algorithm), case.correlator(algorithm, live_blocks=LiveBlocks)
            for each in made:
                each.push("left", case.left.events, arrival=case.left.arrival)
                each.push("right", case.right.events, arrival=case.right.arrival)
            for side in (0, 1):
                cpu, gpu = (each._live.events(side) for each in made)
                for name in LiveEvents._fields:
                    np.testing.assert_array_equal(getattr(gpu, name), getattr(cpu, name))


def test_memory_of_obsolete_events_is_given_back() -> None:
    times = np.arange(1500)
    stays = LiveEvents(2 * times, 0 * times, times, np.array([0, 1500]))
    nothing = LiveEvents(*[times[:0]] * 3, np.array([0, 0]))
    made = LiveBlocks("classes", (stays, nothing))
    live = made._sides[0]
    made._keep((live._replace(ends=np.array([[1400, 1500]])), None))
    made.reserve(10)
    assert made._sides[0].events.keys.size == 100
    np.testing.assert_array_equal(made.events(0).numbers, times[1400:])


@every_algorithm
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_goes_on_by_itself(algorithm: str, copied: Any) -> None:
    case = dense_case(2, block=9)
    made = case.correlator(algorithm, live_blocks=LiveBlocks)
    before = made.push("left", case.left.events, arrival=case.left.arrival)
    assert made._live.counts[0] > 0
    for each in (copied(made), made):
        found = [before, each.push("right", case.right.events, arrival=case.right.arrival)]
        found.append(each.flush())
        np.testing.assert_array_equal(sorted_pairs(found), pairs_by_join(case))


def test_classes_that_nothing_falls_into() -> None:
    """Classes differ by their ends alone, and sides may have different numbers of them."""
    times = np.arange(20)
    events = LiveEvents(2 * times, times % 5, times, np.array([0, 20]))
    nothing = LiveEvents(*[times[:0]] * 3, np.array([0, 0]))
    ends = np.array([0, 2, 3, 9]), np.array([9])
    classes = tuple(ShapeClasses(end, end, end / end.sum()) for end in ends)
    cpu, gpu = (
        kind("classes", (events, nothing)).reclassed(classes) for kind in (HostBlocks, LiveBlocks)
    )
    for side in (0, 1):
        for one, other in zip(gpu.events(side), cpu.events(side), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(gpu.events(0).offsets, [0, 4, 12, 16, 20])


def test_the_gpu_has_no_look_up_table() -> None:
    with pytest.raises(BackendError, match=r"no stream correlator 'lookup'.*'classes' or 'lazy'"):
        LiveBlocks("lookup")
    with pytest.raises(BackendError, match="no stream correlator 'lookup'"):
        dense_case(0).correlator("lookup", live_blocks=LiveBlocks)
