"""Border crossings on a GPU: those of the CPU, in the same order.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from coincide import BackendError
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.monitor import Monitor
from coincide.model.borders.moves import EITHER, PEAKS, WALK
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import MemoryBudgetError
from cpu_fallback.borders import BorderSearch as HostSearch
from tests.helpers.border_cases import Case, answered, cases
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

from coincide.engine.borders.monitor import NewSearch
from gpu_kernels import borders as search
from gpu_kernels.borders import BorderSearch
from gpu_kernels.device import memory
from tests.helpers.border_searches import ALL, BothSearches, drawn_index, drawn_points, joined
from tests.helpers.device_faults import allocating


@settings(max_examples=40)
@given(cases())
def test_crossings_are_the_cpus(case: Case) -> None:
    assert answered(case, BothSearches) == answered(case)


@settings(max_examples=15)
@given(cases(most_readings=12))
def test_few_at_a_time(case: Case) -> None:
    """Runs of points and of crossings end anywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "POINTS_AT_ONCE", 3)
        patch.setattr(search, "_CROSSINGS_AHEAD", 4)
        assert answered(case, BothSearches) == answered(case)


@pytest.mark.parametrize("processing", [WALK, PEAKS, EITHER])
@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_moves_among_many_queries(dimensions: int, processing: int) -> None:
    """Peaks of several levels; in several dimensions few moves walk in all of them."""
    rng = np.random.default_rng(dimensions)
    index = drawn_index(rng, 600, dimensions)
    index.remove(index.removal(rng.choice(600, 50, replace=False)))
    values, kinds = drawn_points(rng, 80, dimensions)
    both = BothSearches(index, values, kinds, None)
    chunks = list(both.found(5, 80, ALL, processing, 100))
    points, _, events = joined(chunks)
    assert set(events.tolist()) == {0, 1, 2}
    assert points.size > 200
    assert both.retrieved >= points.size


@pytest.mark.parametrize("queries", [0, 1, 17])
def test_few_queries(queries: int) -> None:
    rng = np.random.default_rng(queries)
    index = drawn_index(rng, queries, 2)
    both = BothSearches(index, *drawn_points(rng, 30, 2), None)
    assert sum(each.rows.size for each in both.found(0, 30, ALL, EITHER, 5)) >= 4 * min(queries, 1)
    assert list(both.found(7, 7, ALL, EITHER, 5)) == []
    none = BothSearches(index, np.zeros((0, 2)), np.zeros(0, np.int8), None)
    assert none.segments.shape == (0, 2, 2)
    assert list(none.found(0, 0, ALL, EITHER, 5)) == []


def test_an_index_travels_once() -> None:
    rng = np.random.default_rng(9)
    index, points = drawn_index(rng, 40, 2), drawn_points(rng, 50, 2)

    gc.collect()
    before = set(search._residents)

    def copy(index: BorderIndex) -> search.Resident:
        list(BothSearches(index, *points, None).found(0, 50, ALL, EITHER, 1000))
        (key,) = set(search._residents) - before
        return search._residents[key]

    first = copy(index)
    assert copy(index) is first
    index.remove(index.removal(np.arange(10)))
    second = copy(index)
    assert second.values is first.values
    assert second.borders.peaks is first.borders.peaks
    assert second.borders.keys is not first.borders.keys
    assert copy(index) is second
    del index
    gc.collect()
    assert set(search._residents) == before


def test_one_failed_allocation_at_each_place() -> None:
    """What fails is done in halves, and nothing is reported or counted twice."""
    rng = np.random.default_rng(3)
    index, points = drawn_index(rng, 60, 2), drawn_points(rng, 40, 2)

    def found(fails: int) -> tuple[list[list[int]], int, int]:
        with pytest.MonkeyPatch.context() as patch:
            sizes = allocating(patch, lambda n, _: n == fails)
            made = BorderSearch(index, *points)
            chunks = list(made.found(0, 40, ALL, EITHER, 30))
        return [each.tolist() for each in joined(chunks)], made.retrieved, len(sizes)

    *expected, allocations = found(0)
    assert len(expected[0][0]) > 100
    for number in range(1, allocations + 1):
        *again, more = found(number)
        assert again == expected
        assert more > allocations


def test_without_memory_whoever_goes_on_finds_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    index, (values, kinds) = drawn_index(rng, 60, 1), drawn_points(rng, 60, 1)
    whole = HostSearch(index, values, kinds)
    expected = joined(list(whole.found(0, 60, ALL, EITHER, 1000)))
    monkeypatch.setattr(search, "POINTS_AT_ONCE", 16)
    made, chunks = BorderSearch(index, values, kinds), []

    def go_on(patch: pytest.MonkeyPatch) -> None:
        for chunk in made.found(0, 60, ALL, EITHER, 10):
            chunks.append(chunk)
            if chunk.stop > 30:
                allocating(patch, lambda *_: True)

    with monkeypatch.context() as patch, pytest.raises(MemoryBudgetError, match="no memory for"):
        go_on(patch)
    assert 30 < chunks[-1].stop < 60
    rest = HostSearch(index, values, kinds)
    chunks += rest.found(chunks[-1].stop, 60, ALL, EITHER, 1000)
    for found, column in zip(joined(chunks), expected, strict=True):
        np.testing.assert_array_equal(found, column)
    assert made.retrieved + rest.retrieved == whole.retrieved


def test_a_monitor_goes_on_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With one warning, whether memory is not to be had at once or after some batches."""
    rng = np.random.default_rng(7)
    index, (values, _) = drawn_index(rng, 60, 2), drawn_points(rng, 90, 2)
    lower, upper = index.ranges_of(np.arange(60))
    options = BorderOptions(batch_events=20, pass_through=True)

    def pushed(new_search: Any) -> tuple[list[Any], int]:
        monitor = Monitor(2, options, new_search)
        monitor.streams.resize(3)
        monitor.add(lower, upper)
        told: list[Any] = []
        for k in range(0, 90, 30):
            times = np.arange(k, k + 30)
            for part in monitor.push(times % 3, times, values[k : k + 30]):
                columns = (part.rows, part.queries, part.events, part.min_times, part.max_times)
                told += zip(*map(np.ndarray.tolist, columns), strict=True)
        return told, monitor.retrieved

    expected = pushed(HostSearch)
    assert len(expected[0]) > 300
    monkeypatch.setattr(search, "_CROSSINGS_AHEAD", 10)
    with monkeypatch.context() as patch:
        sizes = allocating(patch, lambda *_: False)
        assert pushed(NewSearch("gpu", 1)) == expected
        total = len(sizes)
    assert not caplog.records
    for last in (0, total // 3, total - 2):
        caplog.clear()
        new_search = NewSearch("gpu", 1)
        with monkeypatch.context() as patch:
            allocating(patch, lambda n, _, last=last: n > last)
            assert pushed(new_search) == expected
        assert [record.message[:23] for record in caplog.records] == ["the CPU takes over: the"]
        assert new_search.backend == "cpu"


def test_no_memory_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    made = BorderSearch(drawn_index(rng, 9, 1), *drawn_points(rng, 9, 1))
    allocating(monkeypatch, lambda *_: True)
    with pytest.raises(MemoryBudgetError, match="no memory for"):
        made.segments  # noqa: B018


def test_a_device_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class CUDADriverError(RuntimeError):
        pass

    def fail(*_: object) -> object:
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    rng = np.random.default_rng(6)
    made = BorderSearch(drawn_index(rng, 9, 1), *drawn_points(rng, 9, 1))
    monkeypatch.setattr(memory, "_allocate", fail)
    with pytest.raises(BackendError, match=r"GPU failed \(CUDADriverError: .*new process"):
        made.segments  # noqa: B018
