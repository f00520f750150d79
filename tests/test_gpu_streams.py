"""The stream correlators' block step on a GPU: pairs and counters of the CPU's, whatever happens.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

import copy
import logging
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cpu_fallback.streams import StreamCorrelator, StreamStats, deferred
from cpu_fallback.streams.live_blocks import LiveBlocks as HostBlocks
from event_model import BackendError, DataError, Window
from event_model.errors import MemoryBudgetError
from event_model.length_classes import LengthClasses
from event_model.streams import LiveEvents
from gpu_kernels import device
from gpu_kernels.simulation import SIMULATED
from tests.stream_cases import (
    Pairs,
    Stream,
    StreamCase,
    feed,
    middling_case,
    mixed,
    random_stream,
    small_cases,
    sorted_pairs,
)
from tests.test_stream_equality import pairs_by_join

if device.problem():
    pytest.skip(f"{device.problem()}; test_gpu_simulator runs these", allow_module_level=True)

if SIMULATED:
    from tests import simulator

    simulator.prepare()

from gpu_kernels import blocks, memory
from gpu_kernels.streams import ALGORITHMS, LiveBlocks, live_blocks
from spark_plugin.live_blocks import ResilientLiveBlocks
from tests.device_faults import allocating

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture(autouse=True)
def _classes_cut_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few events, so that small streams are correlated with classes too."""
    monkeypatch.setattr(deferred, "ENOUGH", 12)


def dense_case(seed: int, size: int = 40, **options: Any) -> StreamCase:
    """Some ten partners for each event, disorder, and few values of length now and then."""
    rng = np.random.default_rng([81, seed])
    longest = int(rng.choice([3, 40, 90]))
    origin = int(rng.choice([0, -(10**6), 1_700_000_000 * 10**6]))
    sides = []
    for _ in range(2):
        stream = random_stream(size, 1000, (0, longest), int(rng.choice([0, 30, 300])), rng)
        sides.append(
            Stream(*(t + origin for t in (stream.low, stream.high, stream.arrival)), stream.delay)
        )
    ends = [(-90, 130), (-longest, longest), (0, 200), (-200, -20), (3, 5)][rng.integers(5)]
    window = Window(*ends, float(rng.choice([1.0, 0.8, 0.4, 0.05])))
    re_evaluate = [{"block": 1}, {"block": 7}, {"block": 16, "every": 120}, {"block": 10**6}]
    given = {"every": None, **re_evaluate[seed % 4], "classes": int(rng.integers(1, 7))}
    return StreamCase(sides[0], sides[1], window, given | options)


def on_gpu(case: StreamCase, algorithm: str, **options: Any) -> StreamCorrelator:
    return case.correlator(algorithm, live_blocks=LiveBlocks, **options)


def check(case: StreamCase, algorithm: str, seed: int) -> int:
    """The same on both backends: pairs, those of the batch join, and counters. Returns the pairs."""
    made = case.correlator(algorithm, response=True), on_gpu(case, algorithm, response=True)
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
def test_random_streams(algorithm: str) -> None:
    assert sum(check(dense_case(seed), algorithm, seed) for seed in range(8)) > 1000


@every_algorithm
def test_adversarial_streams(algorithm: str) -> None:
    for i, case in small_cases(31, 12):
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
    made = case.correlator(algorithm, response=True), on_gpu(case, algorithm, response=True)
    cpu, gpu = (heartbeats_and_late_events(each, case) for each in made)
    assert gpu == cpu
    assert min(gpu[-1].invalidated) > 0
    np.testing.assert_array_equal(made[1]._live.counts, made[0]._live.counts)


@every_algorithm
def test_counts_without_pairs(algorithm: str) -> None:
    for response in (False, True):
        case = dense_case(1, emit="counts", response=response)
        totals = []
        for made in (case.correlator(algorithm), on_gpu(case, algorithm)):
            found = [made.push("left", case.left.events), made.push("right", case.right.events)]
            found.append(made.flush())
            assert all(each.left.size == each.right.size == 0 for each in found)
            totals.append((sum(each.count for each in found), made.stats))
        assert totals[0] == totals[1]
        assert totals[0][0] > 0


@every_algorithm
def test_blocks_in_many_parts(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_ENTRIES", 6)
    assert check(dense_case(3), algorithm, 3) > 50


def test_buffers_hold_what_the_cpus_hold() -> None:
    """To the event and in the same order, as far as keys go; equal keys in order of arrival."""
    for seed in (4, 5):
        case = dense_case(seed, block=6)
        for algorithm in ALGORITHMS:
            made = case.correlator(algorithm), on_gpu(case, algorithm)
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
@pytest.mark.parametrize("maker", [LiveBlocks, lambda name: ResilientLiveBlocks(name, "gpu")])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_goes_on_by_itself(algorithm: str, copied: Any, maker: Any) -> None:
    case = dense_case(2, block=9)
    made = case.correlator(algorithm, live_blocks=maker)
    before = made.push("left", case.left.events, arrival=case.left.arrival)
    assert made._live.counts[0] > 0
    for each in (copied(made), made):
        found = [before, each.push("right", case.right.events, arrival=case.right.arrival)]
        found.append(each.flush())
        np.testing.assert_array_equal(sorted_pairs(found), pairs_by_join(case))


# Memory that does not do.


def fed(made: StreamCorrelator, case: StreamCase) -> tuple[Pairs, StreamStats]:
    return feed(made, case, np.random.default_rng(6)), made.stats


def allocations(case: StreamCase, algorithm: str) -> int:
    """How often a run takes device memory."""
    with pytest.MonkeyPatch.context() as patch:
        sizes = allocating(patch, lambda *_: False)
        fed(on_gpu(case, algorithm, response=True), case)
    return len(sizes)


FAULTY = dense_case(6, 24, block=12, every=None)


@every_algorithm
def test_one_failed_allocation_at_each_place(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A part that fails is done again in halves, anything else on the CPU: nothing counts twice."""
    expected = fed(FAULTY.correlator(algorithm, response=True), FAULTY)
    assert len(expected[0]) > 50
    total, told = allocations(FAULTY, algorithm), 0
    for number in range(1, total + 1, 1 + total // 40):
        with monkeypatch.context() as patch:
            caplog.clear()
            allocating(patch, lambda n, _, number=number: n == number)
            made = FAULTY.correlator(
                algorithm,
                response=True,
                live_blocks=lambda name: ResilientLiveBlocks(name, "gpu"),
            )
            found = fed(made, FAULTY)
        np.testing.assert_array_equal(found[0], expected[0])
        assert found[1] == expected[1], number
        assert len(caplog.records) <= 1
        told += len(caplog.records)
    # Both happened: halves and the CPU.
    assert 0 < told < 30


@every_algorithm
def test_no_memory_at_all(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The GPU does half of the stream, the CPU the rest, with one warning."""
    expected = fed(FAULTY.correlator(algorithm), FAULTY)
    half = allocations(FAULTY, algorithm) // 2
    allocating(monkeypatch, lambda n, _: n > half)
    made = FAULTY.correlator(algorithm, live_blocks=lambda name: ResilientLiveBlocks(name, "gpu"))
    with caplog.at_level(logging.WARNING):
        found = fed(made, FAULTY)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
    assert isinstance(made._live._live, HostBlocks)
    assert isinstance(copy.deepcopy(made)._live._live, HostBlocks)
    (record,) = caplog.records
    assert record.message.startswith("going on on the CPU: the GPU has no memory for an array")
    assert "block of a stream" in record.message


@every_algorithm
def test_small_memory_splits_blocks(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    case = dense_case(3, emit="pairs", block=40)
    expected = fed(case.correlator(algorithm, response=True), case)
    # Live events fit, the work of a whole block does not.
    sizes = allocating(monkeypatch, lambda _, size: size > 400)
    made = case.correlator(
        algorithm, response=True, live_blocks=lambda name: ResilientLiveBlocks(name, "gpu")
    )
    found = fed(made, case)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
    assert sum(size > 400 for size in sizes) >= 4
    assert not caplog.records


def test_no_memory_for_what_a_copy_brings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    case = dense_case(2, block=9)
    made = case.correlator("classes", live_blocks=lambda name: ResilientLiveBlocks(name, "gpu"))
    found = [made.push("left", case.left.events, arrival=case.left.arrival)]

    def full(*_: Any) -> Any:
        raise memory.out_of_memory_errors()[0](0, 0)

    monkeypatch.setattr(live_blocks, "live_on_device", full)
    other = copy.deepcopy(made)
    assert isinstance(other._live._live, HostBlocks)
    assert [record.message[:24] for record in caplog.records] == ["going on on the CPU: the"]
    found += [other.push("right", case.right.events, arrival=case.right.arrival), other.flush()]
    np.testing.assert_array_equal(sorted_pairs(found), pairs_by_join(case))


def test_without_a_way_out_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    made = on_gpu(FAULTY, "lazy")
    allocating(monkeypatch, lambda *_: True)
    with pytest.raises(MemoryBudgetError, match=r"GPU has no memory for an array.*block of a str"):
        fed(made, FAULTY)
    with pytest.raises(DataError, match="make a new correlator"):
        made.flush()


def test_a_device_that_fails_is_told_and_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class CUDADriverError(RuntimeError):
        pass

    def fail(*_: Any) -> Any:
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    made = FAULTY.correlator("lazy", live_blocks=lambda name: ResilientLiveBlocks(name, "gpu"))
    monkeypatch.setattr(memory, "_allocate", fail)
    with pytest.raises(BackendError, match=r"GPU failed \(CUDADriverError: .*new process"):
        fed(made, FAULTY)
    with pytest.raises(DataError, match="make a new correlator"):
        made.flush()


def test_classes_that_nothing_falls_into() -> None:
    """Classes are told by their ends alone, and sides may have different numbers of them."""
    times = np.arange(20)
    events = LiveEvents(2 * times, times % 5, times, np.array([0, 20]))
    nothing = LiveEvents(*[times[:0]] * 3, np.array([0, 0]))
    ends = np.array([0, 2, 3, 9]), np.array([9])
    classes = tuple(LengthClasses(end, end, end / end.sum()) for end in ends)
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
        on_gpu(replace(FAULTY), "lookup")
