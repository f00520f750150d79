"""A GPU whose memory does not do for a stream's block: in parts, or an error, and nothing counts twice.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.papers.streams import correlator as deferred
from bench.papers.streams.correlator import StreamCorrelator
from bench.papers.streams.results import StreamStats
from coincide import BackendError, DataError
from coincide.model.errors import MemoryBudgetError
from tests.helpers.simulator import gpu_problem
from tests.helpers.stream_cases import Pairs, StreamCase, dense_case, feed

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

from bench.papers.streams.gpu.live_blocks import ALGORITHMS, LiveBlocks
from gpu_kernels.device import memory
from tests.helpers.device_faults import allocating

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture(autouse=True)
def _classes_cut_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "ENOUGH", 12)


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
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that fails is done again in halves and nothing counts twice; anything else is an error."""
    expected = fed(FAULTY.correlator(algorithm, response=True), FAULTY)
    assert len(expected[0]) > 50
    total, whole, ended = allocations(FAULTY, algorithm), 0, 0
    for number in range(1, total + 1, 1 + total // 40):
        with monkeypatch.context() as patch:
            allocating(patch, lambda n, _, number=number: n == number)
            made = FAULTY.correlator(algorithm, response=True, live_blocks=LiveBlocks)
            try:
                found = fed(made, FAULTY)
            except MemoryBudgetError:
                ended += 1
                continue
        np.testing.assert_array_equal(found[0], expected[0])
        assert found[1] == expected[1], number
        whole += 1
    assert whole > 0
    assert ended > 0


@every_algorithm
def test_small_memory_splits_blocks(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = dense_case(3, emit="pairs", block=40)
    expected = fed(case.correlator(algorithm, response=True), case)
    # Live events fit, the work of a whole block does not.
    sizes = allocating(monkeypatch, lambda _, size: size > 400)
    made = case.correlator(algorithm, response=True, live_blocks=LiveBlocks)
    found = fed(made, case)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
    assert sum(size > 400 for size in sizes) >= 4


def test_no_memory_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
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

    made = FAULTY.correlator("lazy", live_blocks=LiveBlocks)
    monkeypatch.setattr(memory, "_allocate", fail)
    with pytest.raises(BackendError, match=r"GPU failed \(CUDADriverError: .*new process"):
        fed(made, FAULTY)
    with pytest.raises(DataError, match="an exception ended an earlier call while it correlated"):
        made.flush()
