"""A GPU whose memory does not do: the CPU goes on from there, and says so once."""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Iterator
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cpu_fallback
from coincide import CorrelateOptions, TimingCondition, correlate_tables, within
from coincide.engine import resilient
from coincide.engine.borders import monitor
from coincide.engine.borders.monitor import NewSearch
from coincide.engine.join import timing
from coincide.engine.pairs.resilient import resilient_ranked
from coincide.model.borders.crossings import PointCrossings
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.moves import FROM_OUTSIDE
from coincide.model.counters import RowValues
from coincide.model.errors import MemoryBudgetError
from tests.helpers.comparison import OF_ONE_STREAM

CALLS = ("left_order", "right_order", "counts", "offsets", "counters", "pairs", "matches", "best")


def made_up_gpu(fails_at: int) -> ModuleType:
    """A GPU backend that has no more memory from some use on; use 0 is making the join."""
    used = count()

    def use() -> None:
        if next(used) >= fails_at:
            raise MemoryBudgetError("the GPU's memory is full")

    class Join(cpu_fallback.EventJoin):
        def __init__(self, *given: Any, **more: Any) -> None:
            use()
            super().__init__(*given, **more)

        def __getattribute__(self, name: str) -> Any:
            if name in CALLS:
                use()
            return super().__getattribute__(name)

        orders_values = True

        def pairs(self, start: int, stop: int, *values: Any) -> tuple[np.ndarray, np.ndarray]:
            orders = self.left_order, self.right_order
            return super().pairs(start, stop, *map(_placed, values, orders))

        def matches(self, start: int, stop: int, values: Any) -> np.ndarray:
            return super().matches(start, stop, _placed(values, self.right_order))

    def event_probabilities(*given: Any) -> np.ndarray:
        use()
        return cpu_fallback.event_probabilities(*given)

    package = ModuleType("gpu_kernels")
    vars(package).update(EventJoin=Join, event_probabilities=event_probabilities)
    return package


def _placed(values: Any, order: np.ndarray) -> np.ndarray:
    return values.values[order] if isinstance(values, RowValues) else values


def table(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    low = random.integers(0, 20_000, 800)
    columns = {"min_time": low, "max_time": low + random.integers(0, 90, 800), "id": range(800)}
    return pa.table(columns)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("fails_at", [0, 1, 2, 5, 6, 8, 9, 14, 20, 10**9])
def test_no_pair_is_lost_or_doubled(
    fails_at: int,
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tables, condition = (table(1), table(2)), TimingCondition(within(-50, 70), 0.4)
    options = CorrelateOptions(batch_pairs=300, threads=threads)
    # right and full are two joins, each of which would warn.
    for how, emit, probability in OF_ONE_STREAM:
        shape = {"how": how, "emit": emit, "probability": probability, "options": options}
        expected = correlate_tables(*tables, condition, **shape, backend="cpu")
        gpu = made_up_gpu(fails_at)
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            caplog.clear()
            patch.setattr(timing, "load_task_backend", lambda name, gpu=gpu: gpu)
            patch.setitem(sys.modules, gpu.__name__, gpu)
            found = correlate_tables(*tables, condition, **shape)
        assert found.equals(expected)
        told = [record.message for record in caplog.records]
        assert told.count("the CPU takes over: the GPU's memory is full") == len(told) <= 1
        if fails_at == 0:
            assert len(told) == 1
        if fails_at == 10**9:
            assert not told


class _Failing:
    """A join that has no memory for its counts, and notes who is asked and whether another is there."""

    def __init__(self, calls: list[tuple[str, bool]], name: str, others: list[Any]) -> None:
        self._calls, self._name, self._others = calls, name, others

    @property
    def counts(self) -> np.ndarray:
        self._calls.append((self._name, any(each() is not None for each in self._others)))
        raise MemoryBudgetError(f"{self._name} has no memory")


def test_the_gpu_join_is_gone_before_the_cpu_begins_and_a_cpu_that_fails_is_asked_once() -> None:
    calls: list[tuple[str, bool]] = []
    gpu: list[Any] = []

    def made(package: str) -> Any:
        if package == "cpu_fallback":
            return _Failing(calls, "cpu", gpu)
        join = _Failing(calls, "gpu", [])
        gpu.append(weakref.ref(join))
        return join

    join = resilient_ranked(SimpleNamespace(__name__="gpu_kernels"), made)  # type: ignore[arg-type]
    for asked in (1, 2):
        with pytest.raises(MemoryBudgetError, match="cpu has no memory"):
            _ = join.counts
        assert calls == [("gpu", False)] + [("cpu", False)] * asked


def border_gpu(fails_at: int) -> ModuleType:
    """A GPU backend whose search of borders has no more memory from some use on; use 0 is making it."""
    used = count()

    def use() -> None:
        if next(used) >= fails_at:
            raise MemoryBudgetError("the GPU's memory is full")

    class Search(cpu_fallback.BorderSearch):  # type: ignore[misc]
        def __init__(self, *given: Any, threads: int) -> None:
            use()
            super().__init__(*given, threads=threads)

        def found(self, *given: Any) -> Iterator[PointCrossings]:
            chunks = super().found(*given)
            for _ in count():
                use()
                chunk = next(chunks, None)
                if chunk is None:
                    return
                yield chunk

    package = ModuleType("gpu_kernels")
    vars(package).update(BorderSearch=Search)
    return package


@pytest.mark.parametrize("fails_at", [0, 1, 4, 10**9])
def test_a_search_of_borders_goes_on_where_the_gpu_stopped(
    fails_at: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    random, released = np.random.default_rng(2), list[str]()
    lower = random.integers(0, 90, (60, 2)).astype(np.float64)
    index = BorderIndex.of(lower, lower + 30, np.arange(60))
    values = random.integers(-5, 105, (80, 2)).astype(np.float64)
    given = index, values, np.full(80, FROM_OUTSIDE, np.int8), None
    asked = 0, 80, (True, True, True), 0, 20
    expected = NewSearch("cpu", 1)(*given)
    chunks, gpu = list(expected.found(*asked)), border_gpu(fails_at)
    assert len(chunks) > 10
    monkeypatch.setattr(monitor, "load_backend", lambda name: gpu)
    monkeypatch.setattr(resilient, "release_gpu", lambda: released.append("memory"))
    monkeypatch.setitem(sys.modules, gpu.__name__, gpu)
    new_search = NewSearch("auto", 1)
    search = new_search(*given)
    found = list(search.found(*asked))
    for one, other in zip(found, chunks, strict=True):
        assert (one.start, one.stop, one.rows.tolist()) == (
            other.start,
            other.stop,
            other.rows.tolist(),
        )
    assert search.retrieved == expected.retrieved
    is_over = fails_at < 10**9
    assert [each.message for each in caplog.records] == is_over * [
        "the CPU takes over: the GPU's memory is full"
    ]
    assert (new_search.backend, released) == (("cpu", ["memory"]) if is_over else ("auto", []))
