"""A GPU whose memory does not do for a stream's block: in parts, then the CPU, and nothing counts twice.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

import copy
import logging
from typing import Any

import numpy as np
import pytest

from coincide import BackendError, DataError
from coincide.model.errors import MemoryBudgetError
from coincide.model.streams import correlator as deferred
from coincide.model.streams.correlator import StreamCorrelator
from coincide.model.streams.results import StreamStats
from cpu_fallback.streams import LiveBlocks as HostBlocks
from tests.cpu_fallback.streams.test_stream_equality import pairs_by_join
from tests.helpers.simulator import gpu_problem
from tests.helpers.stream_cases import Pairs, StreamCase, dense_case, feed, sorted_pairs

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

from coincide.engine.streams.correlators import ResilientLiveBlocks
from gpu_kernels.device import memory
from gpu_kernels.streams import ALGORITHMS, LiveBlocks, live_blocks
from tests.helpers.device_faults import allocating

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture(autouse=True)
def _classes_cut_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "ENOUGH", 12)


def resilient(name: Any) -> ResilientLiveBlocks:
    return ResilientLiveBlocks(name, "gpu")


def fed(made: StreamCorrelator, case: StreamCase) -> tuple[Pairs, StreamStats]:
    return feed(made, case, np.random.default_rng(6)), made.stats


def allocations(case: StreamCase, algorithm: str) -> int:
    """How often a run takes device memory."""
    with pytest.MonkeyPatch.context() as patch:
        sizes = allocating(patch, lambda *_: False)
        fed(case.correlator(algorithm, live_blocks=LiveBlocks, response=True), case)
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
                live_blocks=resilient,
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
    made = FAULTY.correlator(algorithm, live_blocks=resilient)
    with caplog.at_level(logging.WARNING):
        found = fed(made, FAULTY)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
    assert isinstance(made._live._live, HostBlocks)
    assert isinstance(copy.deepcopy(made)._live._live, HostBlocks)
    (record,) = caplog.records
    assert record.message.startswith("the CPU takes over: the GPU has no memory for an array")
    assert "block of a stream" in record.message


@every_algorithm
def test_small_memory_splits_blocks(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    case = dense_case(3, emit="pairs", block=40)
    expected = fed(case.correlator(algorithm, response=True), case)
    # Live events fit, the work of a whole block does not.
    sizes = allocating(monkeypatch, lambda _, size: size > 400)
    made = case.correlator(algorithm, response=True, live_blocks=resilient)
    found = fed(made, case)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
    assert sum(size > 400 for size in sizes) >= 4
    assert not caplog.records


def test_no_memory_for_what_a_copy_brings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    case = dense_case(2, block=9)
    made = case.correlator("classes", live_blocks=resilient)
    found = [made.push("left", case.left.events, arrival=case.left.arrival)]

    def full(*_: Any) -> Any:
        raise MemoryError("full")

    monkeypatch.setattr(live_blocks, "live_on_device", full)
    other = copy.deepcopy(made)
    assert isinstance(other._live._live, HostBlocks)
    assert [record.message[:23] for record in caplog.records] == ["the CPU takes over: the"]
    found += [other.push("right", case.right.events, arrival=case.right.arrival), other.flush()]
    np.testing.assert_array_equal(sorted_pairs(found), pairs_by_join(case))


def test_without_a_way_out_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    made = FAULTY.correlator("lazy", live_blocks=LiveBlocks)
    allocating(monkeypatch, lambda *_: True)
    with pytest.raises(MemoryBudgetError, match=r"GPU has no memory for an array.*block of a str"):
        fed(made, FAULTY)
    with pytest.raises(DataError, match="an exception ended an earlier call while it correlated"):
        made.flush()


def test_a_device_that_fails_is_told_and_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class CUDADriverError(RuntimeError):
        pass

    def fail(*_: Any) -> Any:
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    made = FAULTY.correlator("lazy", live_blocks=resilient)
    monkeypatch.setattr(memory, "_allocate", fail)
    with pytest.raises(BackendError, match=r"GPU failed \(CUDADriverError: .*new process"):
        fed(made, FAULTY)
    with pytest.raises(DataError, match="an exception ended an earlier call while it correlated"):
        made.flush()
