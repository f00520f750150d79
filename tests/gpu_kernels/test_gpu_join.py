"""The GPU join against the CPU join and the reference: equal to the bit, and in the same order.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cpu_fallback
from coincide import (
    BackendError,
    CorrelateOptions,
    MemoryBudgetError,
    Window,
    accidental_pair_tables,
    containing,
    correlate_tables,
    following,
    overlapping,
    relation,
    spans,
)
from coincide.engine.backends import load_backend
from coincide.model.counters import JoinCounters
from coincide.model.timestamps import IntervalEvents, IntervalPairs
from gpu_kernels.kernels.compilation import TILE
from gpu_kernels.kernels.simulation import SIMULATED
from tests.helpers.comparison import (
    SHAPES,
    condition_of,
    matching_rows,
    sides_of,
    ticks_of,
    window_of,
)
from tests.helpers.simulator import gpu_problem
from tests.helpers.strategies import random_cases

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

import gpu_kernels
from gpu_kernels import join
from gpu_kernels import sides as placing
from gpu_kernels.dealt import DealtJoin
from gpu_kernels.device import memory, transfers, usable
from tests.helpers.device_faults import allocating
from tests.helpers.letting_go import check_nothing_is_kept

CLASSES = (None, 1, 2, 16)
BLOCK = 50

Sides = tuple[IntervalEvents, IntervalEvents]


def test_the_first_kernel_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the simulator, where all else that a GPU could lack is not asked about."""
    usable._problem.cache_clear()
    assert usable.problem() is None
    usable._problem.cache_clear()
    monkeypatch.setattr(join.tiles.pair_probabilities, "launch", lambda *_: 1 / 0)
    assert "a first kernel failed (ZeroDivisionError" in str(usable.problem())
    usable._problem.cache_clear()


def assert_same(found: Any, expected: Any) -> None:
    """Equal arrays, to the last bit, or equal values."""
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
    else:
        assert found == expected


def assert_all_same(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


def check_join(
    sides: Sides, window: Window, classes: int | None = None, batch_pairs: int = 10**6
) -> cpu_fallback.EventJoin:
    """Compare everything that both joins answer; returns the CPU's."""
    gpu, cpu = (
        package.EventJoin(*sides, IntervalPairs(window), classes=classes)
        for package in (gpu_kernels, cpu_fallback)
    )
    names = ("bands", "left_order", "right_order", "counts", "offsets", "counters")
    for name in names:
        assert_same(getattr(gpu, name), getattr(cpu, name))
    values = cpu.left_order * 3 + 1, cpu.right_order * 7 - 5
    runs = list(cpu.chunks(batch_pairs))
    assert list(gpu.chunks(batch_pairs)) == runs
    for run in runs:
        assert_all_same(gpu.pairs(*run, *values), cpu.pairs(*run, *values))
        assert_same(gpu.matches(*run, gpu.right_order), cpu.matches(*run, cpu.right_order))
    check_best(gpu, cpu)
    rows = cpu.pairs(0, cpu.counts.size, cpu.left_order, cpu.right_order)
    pairs = sides[0], rows[0], sides[1], rows[1], IntervalPairs(window)
    assert_same(gpu_kernels.event_probabilities(*pairs), cpu_fallback.event_probabilities(*pairs))
    return cpu


def check_best(gpu: Any, cpu: Any) -> None:
    n, targets = cpu.left_order.size, cpu.right_order.size
    rng = np.random.default_rng(n * 1000 + targets)
    # Few ranks leave ties to the position.
    for run, ranks in (
        ((0, n // 3), rng.permutation(targets)),
        ((n // 3, n), rng.integers(0, 2, targets)),
    ):
        assert_all_same(gpu.best(*run, ranks), cpu.best(*run, ranks))


@pytest.mark.parametrize("block", range(6))
def test_random_cases(block: int) -> None:
    """300 cases in 6 blocks; the number of classes and the size of batches go round with the case."""
    huge = block % 3 == 2
    for n, case in enumerate(random_cases(4050 + block, BLOCK, huge=huge)):
        sides = sides_of(case)
        cpu = check_join(sides, window_of(case), CLASSES[n % 4], (10**6, 3, 20)[n % 3])
        rows = cpu.pairs(0, cpu.counts.size, cpu.left_order, cpu.right_order)
        found = sorted(zip(*(side.tolist() for side in rows), strict=True))
        assert found == matching_rows(case)


def spread(seed: int, n: int, span: int, longest: int, groups: int = 1) -> IntervalEvents:
    rng = np.random.default_rng(seed)
    start, length = rng.integers(0, span, n), rng.integers(0, longest, n)
    return IntervalEvents(start, start + length, rng.integers(-1, groups, n), groups)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("groups", [1, 40])
def test_candidates_of_many_tiles(classes: int | None, groups: int) -> None:
    sides = spread(1, 200, 4000, 300, groups), spread(2, 150, 4000, 500, groups)
    cpu = check_join(sides, Window(-400, 300, 0.7), classes, 300)
    if groups == 1:
        assert cpu.counters.candidates > 30 * TILE or not SIMULATED
        assert cpu.counters.pairs > 20 * TILE or not SIMULATED


@pytest.mark.parametrize("classes", [1, 3])
def test_one_burst_shares_its_work(classes: int) -> None:
    """One event with nearly all candidates, among many with none."""
    lonely = np.arange(100) * 10**6 + 10**8
    times = np.concatenate([lonely[:50] - 10**9, [0], lonely[50:]])
    left = IntervalEvents(times, times + 40)
    start = np.random.default_rng(3).integers(-100, 100, 900)
    right = IntervalEvents(start, start + np.arange(900) % 97)
    cpu = check_join((left, right), Window(-60, 60, 0.8), classes)
    assert cpu.counters.candidates > 10 * TILE or not SIMULATED
    assert cpu.counters.probed > TILE or not SIMULATED
    assert np.count_nonzero(cpu.counts) == 1


def test_narrow_window_and_equal_times() -> None:
    start = np.repeat(np.arange(12) * 50, 8)
    sides = IntervalEvents(start, start + 100), IntervalEvents(start, start + 30)
    assert check_join(sides, Window(3, 4, 0.01), 2).counters.pairs > 0


def test_many_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "_FEW_ENTRIES", 7)
    monkeypatch.setattr(join, "_MANY_ENTRIES", 7)
    sides = spread(5, 60, 900, 100, 3), spread(6, 50, 900, 100, 3)
    for classes in CLASSES:
        check_join(sides, Window(-90, 80, 0.6), classes)


@pytest.mark.parametrize("most", [1, 7, 60, 3000])
def test_best_of_few_candidates_at_once(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, real = [], join.Candidates.best

    def best(self: join.Candidates, ranks: Any) -> Any:
        counts.append((self.count, self._stop - self._start))
        return real(self, ranks)

    monkeypatch.setattr(join, "_CANDIDATES_AT_ONCE", most)
    monkeypatch.setattr(join.Candidates, "best", best)
    sides = spread(5, 60, 500, 200, 2), spread(6, 50, 500, 200, 2)
    check_best(
        *(
            p.EventJoin(*sides, IntervalPairs(Window(-80, 90, 0.6)))
            for p in (gpu_kernels, cpu_fallback)
        )
    )
    assert sum(n for n, _ in counts) > 200
    # Only the last event of a part may lead beyond the bound, with at most as many as there are targets.
    assert all(n < most + 50 or events == 1 for n, events in counts)
    assert (len(counts) > 4) == (most < 100)


@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (3, 0)])
@pytest.mark.parametrize("classes", [None, 2])
def test_empty_sides(sizes: tuple[int, int], classes: int | None) -> None:
    sides = tuple(
        IntervalEvents(np.arange(n), np.arange(n), np.zeros(n, np.int64), 1) for n in sizes
    )
    assert check_join(sides, Window(-5, 5, 0.5), classes).counters == JoinCounters()


def test_nobody_has_a_group() -> None:
    sides = (
        IntervalEvents(np.arange(4), np.arange(4), np.full(4, -1), 3),
        IntervalEvents(np.arange(4), np.arange(4), np.zeros(4, np.int64), 3),
    )
    assert check_join(sides, Window(-5, 5, 0.5)).counters.pairs == 0


def test_output_that_is_not_pinned_goes_where_the_caller_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfers, "MOST_PINNED", 0)
    taken: list[np.ndarray] = []

    def empty(size: int) -> np.ndarray:
        taken.append(np.empty(size, np.int64))
        return taken[-1]

    sides = spread(7, 20, 200, 30), spread(8, 20, 200, 30)
    found = gpu_kernels.EventJoin(*sides, IntervalPairs(Window(-20, 20, 0.5)), empty=empty)
    left, right = found.pairs(0, 20, found.left_order, found.right_order)
    assert left.size == right.size > 0
    assert np.shares_memory(left, taken[0])
    assert np.shares_memory(right, taken[1])


@pytest.mark.parametrize("sizes", [(40, 30), (1, 9), (0, 3)])
def test_a_join_dealt_over_all_devices(
    sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: `test_gpu_devices` has more of it where there are several."""
    monkeypatch.setattr(join, "_PAIRS_AHEAD", 20)
    sides = [spread(13 + i, n, 900, 90, 2) for i, n in enumerate(sizes)]
    gpu, cpu = (
        kind(*sides, IntervalPairs(Window(-90, 80, 0.6)), classes=2)
        for kind in (DealtJoin, cpu_fallback.EventJoin)
    )
    for name in ("bands", "left_order", "right_order", "counts", "row_counts", "counters"):
        assert_same(getattr(gpu, name), getattr(cpu, name))
    for run in gpu.chunks(5):
        values = cpu.left_order, cpu.right_order
        assert_all_same(gpu.pairs(*run, *values), cpu.pairs(*run, *values))
        assert_same(gpu.matches(*run, values[1]), cpu.matches(*run, values[1]))
    check_best(gpu, cpu)


@pytest.mark.parametrize("ahead", [1, 7, 200])
def test_batches_filled_ahead(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches asked for in any order, with other values in between, are cut from what is filled."""
    monkeypatch.setattr(join, "_PAIRS_AHEAD", ahead)
    sides, window = (spread(13, 40, 900, 90), spread(14, 40, 900, 90)), Window(-50, 80, 0.6)
    gpu, cpu = (p.EventJoin(*sides, IntervalPairs(window)) for p in (gpu_kernels, cpu_fallback))
    values = [(cpu.left_order * k, cpu.right_order + k) for k in (2, 3)]
    runs = list(cpu.chunks(5))
    for i in np.random.default_rng(15).permutation(len(runs)):
        pair = values[i % 2]
        assert_all_same(gpu.pairs(*runs[i], *pair), cpu.pairs(*runs[i], *pair))
        assert_same(gpu.matches(*runs[i], pair[1]), cpu.matches(*runs[i], pair[1]))


def test_each_match_is_filled_once_whoever_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads take the batches of a join in turns, and none waits for the one before."""
    monkeypatch.setattr(join, "_PAIRS_AHEAD", 25)
    sides, window = (spread(13, 40, 900, 90), spread(14, 40, 900, 90)), Window(-50, 80, 0.6)
    gpu, cpu = (p.EventJoin(*sides, IntervalPairs(window)) for p in (gpu_kernels, cpu_fallback))
    filled, real = [], gpu._outputs
    monkeypatch.setattr(gpu, "_outputs", lambda n, *more: (filled.append(n), real(n, *more))[1])
    values, runs = (cpu.left_order, cpu.right_order), list(gpu.chunks(6))
    pairs = cpu.counters.pairs
    assert pairs > 60
    for i in range(0, len(runs) - 1, 2):
        for run in (runs[i + 1], runs[i]):
            assert_all_same(gpu.pairs(*run, *values), cpu.pairs(*run, *values))
    assert sum(filled) <= pairs
    assert max(filled) < 25 + max(6, int(cpu.counts.max()))
    assert gpu.pairs(1, 40, *values)[0].size == int(cpu.offsets[40] - cpu.offsets[1])


def test_small_batches_are_filled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = spread(13, 40, 900, 90), spread(14, 40, 900, 90)
    found = gpu_kernels.EventJoin(*sides, IntervalPairs(Window(-50, 80, 0.6)))
    runs = list(found.chunks(1))
    sizes = allocating(monkeypatch, lambda *_: False)
    for run in runs:
        found.pairs(*run, found.left_order, found.right_order)
    assert len(runs) > 30 > len(sizes)


@pytest.mark.parametrize(
    ("asked", "is_one"),
    [
        ({"probability": True}, False),
        ({"emit": "counts"}, True),
        ({"emit": "best", "where": "left_id < right_id"}, False),
        (
            {
                "pair_columns": "delta",
                "where": "left_max_time < right_max_time",
                "how": "left",
            },
            False,
        ),
        ({"where": "left_max_time < right_max_time", "shifts": (40,)}, False),
        ({"pair_columns": "delta", "where": "left_max_time < right_max_time", "how": "left"}, True),
        ({"matching": "mutual", "prefer": "nearest"}, True),
        ({"matching": "optimal", "prefer": "nearest"}, False),
    ],
)
def test_a_join_lets_go_of_its_memory_at_its_end(
    asked: dict[str, Any], is_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = pa.table({"id": np.arange(9), "min_time": np.arange(9), "max_time": np.arange(9) + 3})

    operator: Any = accidental_pair_tables if "shifts" in asked else correlate_tables

    def work() -> None:
        operator(
            times, None if is_one else times, within=(-5, 5), confidence=0.5, backend="gpu", **asked
        )

    check_nothing_is_kept(monkeypatch, gpu_kernels, "EventJoin", work)


@pytest.mark.parametrize(
    "asked",
    [
        overlapping(share=(0.5, 0.2)),
        following(20),
        relation("overlapped-by"),
        replace(overlapping(), confidence=0.3),
        replace(containing(), confidence=0.9),
    ],
    ids=str,
)
def test_spans(asked: Any) -> None:
    """Bounds on ends, or their chances, and the best by the bits of the time in common."""
    is_uncertain = asked.confidence is not None
    rng, sides = np.random.default_rng(1), []
    for size in (120, 110):
        start, length = rng.integers(0, 900, size), rng.choice([0, 1, 5, 40, 300], size)
        length += 7 * is_uncertain
        columns = {"id": np.arange(size), "start": start, "end": start + length}
        sides.append(pa.table({**columns, "key": rng.integers(0, 2, size)}))
    given: dict[str, Any] = {
        "left_time": spans("start", "end", closed="left", around=3 if is_uncertain else None),
        "right_time": spans("start", "end", around=(0, 7) if is_uncertain else None),
        "by": "key", "pair_columns": "overlap", "probability": is_uncertain,
        "options": CorrelateOptions(threads=1),
    }  # fmt: skip
    for emit in ("pairs", "best"):
        gpu, cpu = (
            correlate_tables(*sides, asked, emit=emit, backend=backend, **given)  # type: ignore[arg-type]
            for backend in ("gpu", "cpu")
        )
        assert gpu == cpu
        assert cpu.num_rows > 20


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tables(shape: tuple[str, str, bool], threads: int) -> None:
    """All the way from tables to tables, as a worker goes: the same rows in the same order."""
    how, emit, probability = shape
    seed = 900 + SHAPES.index(shape)
    for n, case in enumerate(random_cases(seed, 4)):
        gpu, cpu = (
            correlate_tables(
                ticks_of(case.left, case.by),
                ticks_of(case.right, case.by),
                condition_of(case),
                by=case.by,
                how=how,
                emit=emit,
                probability=probability,
                backend=backend,
                options=CorrelateOptions(threads=threads, batch_pairs=(5, 10**6)[n % 2]),
            )
            for backend in ("gpu", "cpu")
        )
        assert gpu.equals(cpu)


@pytest.mark.parametrize(
    "asked",
    [
        {"emit": "best", "prefer": "first", "k": 2, "how": "left"},
        {"matching": "mutual", "prefer": "probability"},
        {"matching": "optimal", "prefer": "nearest"},
    ],
    ids=lambda asked: asked.get("matching", "best"),
)
def test_tables_of_chosen_matches(asked: dict[str, Any]) -> None:
    """Chosen from the pairs that either backend finds."""
    for case in random_cases(977, 4):
        gpu, cpu = (
            correlate_tables(
                ticks_of(case.left, case.by),
                ticks_of(case.right, case.by),
                condition_of(case),
                by=case.by,
                backend=backend,
                probability=True,
                **asked,
            )
            for backend in ("gpu", "cpu")
        )
        assert gpu.equals(cpu)


@pytest.mark.parametrize("emit", ["pairs", "counts", "best"])
def test_pairs_that_meet_more_than_the_time(emit: str) -> None:
    for n, case in enumerate(random_cases(950, 3)):
        left, right = ticks_of(case.left, case.by), ticks_of(case.right, case.by)
        for sides in ((left, right), (left,)):
            gpu, cpu = (
                correlate_tables(
                    *sides,
                    condition=condition_of(case),
                    by=case.by,
                    emit=emit,
                    where="left_id <> right_id + 1",
                    backend=backend,
                    options=CorrelateOptions(threads=1, batch_pairs=(5, 10**6)[n % 2]),
                )
                for backend in ("gpu", "cpu")
            )
            assert gpu.equals(cpu)


def test_backend_auto_takes_the_gpu() -> None:
    assert load_backend("auto") is load_backend("gpu") is gpu_kernels
    assert load_backend("cpu") is cpu_fallback


FAULTY = (spread(11, 70, 900, 120, 2), spread(12, 60, 900, 150, 2)), Window(-90, 80, 0.6)


@pytest.mark.parametrize("number", [1, 3, 5, 8, 13])
def test_one_failed_allocation_changes_nothing(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = allocating(monkeypatch, lambda n, _: n == number)
    check_join(*FAULTY, 2)
    assert len(sizes) > number


def test_small_memory_splits_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = allocating(monkeypatch, lambda _, size: size > 1000)
    check_join(*FAULTY, 2)
    refused = [size for size in sizes if size > 1000]
    assert len(refused) >= 10


def test_memory_too_small_for_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]), classes=2)
    allocating(monkeypatch, lambda *_: True)
    for attempt in (
        lambda: found.counts,
        lambda: found.best(0, 70, np.arange(60)),
        lambda: gpu_kernels.event_probabilities(
            FAULTY[0][0], np.arange(5), FAULTY[0][1], np.arange(5), IntervalPairs(FAULTY[1])
        ),
    ):
        with pytest.raises(MemoryBudgetError, match=r"GPU has no memory for an array.*slice_rows"):
            attempt()


def test_sides_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "ordered", fails_once(None, MemoryError("full")))
    with pytest.raises(MemoryBudgetError, match="GPU has no memory for both sides of the join"):
        gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]))


def fails_once(work: Any, error: Exception) -> Any:
    """The same function, but its first call raises an error."""
    errors = [error]

    def failing(*given: Any, **more: Any) -> Any:
        if errors:
            raise errors.pop()
        return work(*given, **more)

    return failing


class CUDAError(Exception):
    """An error with the name that cuda-core gives."""


def test_a_driver_out_of_memory_splits_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a kernel cannot be loaded, since CuPy's pool holds what the driver would need."""
    for name in ("launch_tiles", "launch_each"):
        error = CUDAError("CUDA_ERROR_OUT_OF_MEMORY: not enough memory")
        monkeypatch.setattr(join, name, fails_once(getattr(join, name), error))
        check_join(*FAULTY, 2)


def test_a_sort_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its workspace is not one of the arrays that `memory._allocate` takes; the error is a plain one."""
    xp, full = placing.array_module(), MemoryError("std::bad_alloc")

    class Module:
        argsort = staticmethod(fails_once(xp.argsort, full))

        def __getattr__(self, name: str) -> Any:
            return getattr(xp, name)

    with monkeypatch.context() as patch:
        patch.setattr(join, "_ranked", fails_once(join._ranked, full))
        check_join(*FAULTY, 2)
    monkeypatch.setattr(placing, "array_module", Module)
    with pytest.raises(MemoryBudgetError, match=r"for both sides of the join \(std::bad_alloc\)"):
        gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]))


def test_device_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class CUDADriverError(RuntimeError):
        pass

    def fail(*_: Any) -> Any:
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    found = gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]))
    monkeypatch.setattr(memory, "_allocate", fail)
    with pytest.raises(BackendError, match=r"GPU failed \(CUDADriverError: .*ILLEGAL.*new process"):
        _ = found.counts


def test_errors_of_ours_are_not_blamed_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]))
    monkeypatch.setattr(memory, "_allocate", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        _ = found.counts
