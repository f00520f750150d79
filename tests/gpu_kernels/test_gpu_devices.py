"""Joins dealt over several GPUs: the answers of one GPU and of the CPU, to the bit and in their order.

Runs where there are two GPUs at least; `test_virtual_gpu` runs it on two virtual ones, neither of which
sees the memory of the other.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cpu_fallback
from coincide import (
    BackendError,
    CorrelateOptions,
    EventArrays,
    JoinReport,
    Window,
    containing,
    correlate_arrays,
    correlate_tables,
    explore_tables,
    histograms,
    overlapping,
    sequence_tables,
    spans,
)
from coincide.engine.pairs.resilient import resilient_ranked
from coincide.model.errors import MemoryBudgetError
from coincide.model.timestamps import IntervalEvents, IntervalPairs, pairs_model
from gpu_kernels.device import driver
from gpu_kernels.kernels.simulation import SIMULATED
from tests.helpers.comparison import SHAPES, condition_of, sides_of, ticks_of, window_of
from tests.helpers.simulator import gpu_problem
from tests.helpers.strategies import random_cases
from tests.helpers.workplace import Workplace

if SIMULATED or driver.count(driver.load()) < 2:
    pytest.skip("one GPU at most; test_virtual_gpu runs these", allow_module_level=True)
if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

import gpu_kernels
from gpu_kernels import dealt, join
from gpu_kernels.dealt import DealtJoin
from gpu_kernels.device import memory, transfers, turn, usable
from gpu_kernels.kernels import compilation
from tests.gpu_kernels.test_gpu_aggregates import ASKED, bits_of, drawn
from tests.gpu_kernels.test_gpu_histograms import drawn_side
from tests.helpers.letting_go import check_nothing_is_kept

ALL = CorrelateOptions(devices="all", batch_pairs=40)
ONE = CorrelateOptions(batch_pairs=40)
WINDOW = Window(-50, 80, 0.6)

Launches = Counter[int]


@pytest.fixture(autouse=True)
def _many_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small joins are filled in many parts, too."""
    monkeypatch.setattr(join, "_PAIRS_AHEAD", 100)
    monkeypatch.setattr(join, "_PAIRS_AT_ONCE", 60)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Launches:
    """How many kernels were launched on each device, as the driver knows it."""
    found: Launches = Counter()
    real = compilation.cuLaunchKernel

    def launch(*given: Any) -> Any:
        found[int(compilation.cuCtxGetDevice()[1])] += 1
        return real(*given)

    monkeypatch.setattr(compilation, "cuLaunchKernel", launch)
    return found


def spread(seed: int, n: int, groups: int = 1) -> IntervalEvents:
    rng = np.random.default_rng(seed)
    start, length = rng.integers(0, 5 * n, n), rng.choice([0, 4, 30], n)
    return IntervalEvents(start, start + length, rng.integers(-1, groups, n), groups)


def both(n: int = 400, groups: int = 3) -> tuple[IntervalEvents, IntervalEvents]:
    return spread(1, n, groups), spread(2, n - 50, groups)


def idle() -> None:
    """Wait until no device works any more."""
    for number in usable.all_devices():
        turn.thread_of(number).submit(int).result()


def assert_equal(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def answers(found: Any) -> list[bytes]:
    """All that a join can answer, order and bits included."""
    n, targets = found.left_order.size, found.right_order.size
    arrays = [found.left_order, found.right_order, found.counts, found.offsets, found.row_counts]
    for run in found.chunks(40):
        arrays += found.pairs(*run, found.left_order, found.right_order)
        arrays.append(found.matches(*run, found.right_order))
    rng = np.random.default_rng(1)
    counters = [found.counters]
    for run, ranks in (
        ((0, n), rng.permutation(targets)),
        ((n // 3, n), rng.integers(0, 2, targets)),
    ):
        *best, looked_at = found.best(*run, ranks)
        arrays += best
        counters.append(looked_at)
    kinds = [(each.dtype.str, each.shape) for each in arrays]
    return [*(each.tobytes() for each in arrays), repr((counters, kinds)).encode()]


@pytest.mark.parametrize("classes", [None, 1, 3])
@pytest.mark.parametrize("groups", [1, 5])
def test_all_answers_of_intervals(groups: int, classes: int | None, launched: Launches) -> None:
    sides, model = both(groups=groups), IntervalPairs(WINDOW)
    dealt, one, cpu = (
        kind(*sides, model, classes=classes)
        for kind in (DealtJoin, gpu_kernels.EventJoin, cpu_fallback.EventJoin)
    )
    launched.clear()
    found = answers(dealt)
    assert set(launched) == set(usable.all_devices())
    assert min(launched.values()) > max(launched.values()) / 2
    assert found == answers(one) == answers(cpu)
    assert cpu.counters.pairs > 1000


@pytest.mark.parametrize("kinds", ["hh", "hi", "ih"])
def test_all_answers_of_histograms(kinds: str, launched: Launches) -> None:
    rng = np.random.default_rng(7)
    sides = [drawn_side(rng, n, kind) for n, kind in zip((160, 150), kinds, strict=True)]
    tables = [getattr(side, "table", None) for side in sides]
    model, left, right = pairs_model(Window(-90, 70, 0.6), *tables).for_events(*sides)
    found, expected = (
        answers(kind(left, right, model)) for kind in (DealtJoin, cpu_fallback.EventJoin)
    )
    assert found == expected
    assert len(launched) == 2


@pytest.mark.parametrize("part", range(4))
def test_random_cases(part: int, launched: Launches) -> None:
    """Ties, duplicates, null keys, empty sides, and sides of fewer events than devices."""
    for case in random_cases(90 + part, 25, nulls=False, huge=part == 3):
        sides, model = sides_of(case), IntervalPairs(window_of(case))
        found, expected = (
            answers(kind(*sides, model)) for kind in (DealtJoin, cpu_fallback.EventJoin)
        )
        assert found == expected, case
    assert len(launched) == 2


@pytest.mark.parametrize(("how", "emit", "probability"), SHAPES)
def test_tables(how: Any, emit: Any, probability: bool) -> None:
    for case in random_cases(50, 6, nulls=False):
        left, right = (ticks_of(rows, case.by) for rows in (case.left, case.right))
        dealt, cpu = (
            correlate_tables(
                left, right, condition_of(case), by=case.by, how=how, emit=emit,
                probability=probability, backend=backend, options=options,
            )
            for backend, options in (("gpu", ALL), ("cpu", ONE))
        )  # fmt: skip
        # The CPU orders the matches of instants in another way.
        assert _rows(dealt) == _rows(cpu)


def _rows(table: pa.Table) -> list[str]:
    rows = table.to_pylist()
    for row in rows:
        lists = [value for value in row.values() if isinstance(value, list)]
        if lists:
            order = np.lexsort([np.array(each) for each in lists])
            row |= {
                name: [value[i] for i in order]
                for name, value in row.items()
                if isinstance(value, list)
            }
    return sorted(map(repr, rows))


@pytest.mark.parametrize(("how", "emit", "probability"), SHAPES)
def test_tables_are_those_of_one_device(
    how: Any, emit: Any, probability: bool, launched: Launches
) -> None:
    """In the same order, with the same numbers in the report."""
    left, right = drawn(3, 200), drawn(4, 180)
    found, reports = [], []
    for options in (ALL, ONE):
        report = JoinReport()
        found.append(
            correlate_tables(
                left, right, within=(-20, 45), confidence=0.7, by="key", how=how, emit=emit,
                probability=probability, backend="gpu", options=options, report=report,
            )
        )  # fmt: skip
        reports.append(report.summary().counters)
    assert found[0].equals(found[1])
    assert reports[0] == reports[1]
    assert found[0].num_rows > 0
    assert len(launched) == 2


def test_aggregates(launched: Launches) -> None:
    left, right = drawn(5, 300), drawn(6, 280)
    dealt, cpu = (
        correlate_tables(
            left, right, within=(-20, 45), confidence=0.7, how="left", by="key", emit="aggregates",
            aggregates=ASKED, backend=backend, options=options,
        )
        for backend, options in (("gpu", ALL), ("cpu", ONE))
    )  # fmt: skip
    for name in cpu.column_names:
        assert bits_of(dealt[name]) == bits_of(cpu[name]), name
    assert len(launched) == 2


@pytest.mark.parametrize("around", [None, "7"])
def test_spans(around: Any, launched: Launches) -> None:
    rng, sides = np.random.default_rng(1), []
    for size in (120, 110):
        start, length = rng.integers(0, 900, size), rng.choice([14, 15, 40, 300], size)
        columns = {"id": np.arange(size), "start": start, "end": start + length}
        sides.append(pa.table({**columns, "key": rng.integers(0, 2, size)}))
    given: dict[str, Any] = {"confidence": None} if around is None else {"confidence": 0.4}
    time = spans("start", "end") if around is None else spans("start", "end", around=7)
    for relation in (overlapping(), containing()):
        dealt, one, cpu = (
            correlate_tables(
                *sides, relation, left_time=time, right_time=time, by="key", **given,
                backend=backend, options=options,
            )
            for backend, options in (("gpu", ALL), ("gpu", ONE), ("cpu", ONE))
        )  # fmt: skip
        assert dealt.equals(one)
        assert _rows(dealt) == _rows(cpu)
        assert dealt.num_rows > 20
    assert len(launched) == 2


def test_histograms_in_tables(launched: Launches) -> None:
    templates = pa.table({
        "template": ["a", "a", "b"], "lower": [-9, -4, -20], "upper": [-4, 0, 0],
        "mass": [0.25, 0.75, 1.0],
    })  # fmt: skip
    rng = np.random.default_rng(2)
    sides = [
        pa.table({
            "id": np.arange(n), "seen": rng.integers(0, 400, n), "kind": rng.choice(["a", "b"], n),
        })
        for n in (90, 80)
    ]  # fmt: skip
    time = histograms("seen", template="kind", templates=templates)
    dealt, cpu = (
        correlate_tables(
            *sides, within=(-30, 20), confidence=0.5, left_time=time, right_time=time,
            probability=True, backend=backend, options=options,
        )
        for backend, options in (("gpu", ALL), ("cpu", ONE))
    )  # fmt: skip
    assert dealt.equals(cpu)
    assert dealt.num_rows > 50
    assert len(launched) == 2


def test_one_stream_and_a_matching(launched: Launches) -> None:
    events = drawn(8, 150)
    for asked in (
        {},
        {"matching": "mutual"},
        {"emit": "best", "k": 2},
        {"where": "left_b < right_b"},
    ):
        dealt, cpu = (
            correlate_tables(
                events, within=(-30, 30), confidence=0.6, by="key", backend=backend,
                options=options, **asked,
            )  # type: ignore[call-overload]
            for backend, options in (("gpu", ALL), ("cpu", ONE))
        )  # fmt: skip
        assert dealt.equals(cpu), asked
    assert len(launched) == 2


@pytest.mark.parametrize("emit", ["pairs", "lists", "counts", "best"])
def test_arrays_of_the_host(emit: Any, launched: Launches) -> None:
    sides = [EventArrays(each.times.min_time, each.times.max_time, each.group) for each in both()]
    found, expected = (
        correlate_arrays(
            *sides, within=(-50, 80), confidence=0.6, emit=emit, order="left", backend=backend,
            options=options,
        )
        for backend, options in (("gpu", ALL), ("cpu", ONE))
    )  # fmt: skip
    for mine, other in zip(found, expected, strict=True):
        assert (mine is None) == (other is None)
        if other is not None:
            assert mine.tobytes() == other.tobytes()
    assert len(launched) == 2


@pytest.mark.parametrize("way", ["exchange", "files"])
def test_on_the_command_line(way: str, work: Workplace, launched: Launches) -> None:
    """All at once, or slice by slice."""
    sides = [drawn(seed, 200).sort_by("min_time") for seed in (3, 4)]
    for path, side in zip((work.left, work.right), sides, strict=True):
        pq.write_table(side, path, row_group_size=40)
    code, out, err = work.join(
        *("--within", "-20", "45", "--confidence", "0.7", "--by", "key", "--way", way),
        *("--backend", "gpu", "--devices", "all", "--batch-pairs", "40"),
        engine="auto",
    )
    assert code == 0, err
    assert "all GPUs of one process" in out
    expected = correlate_tables(*sides, within=(-20, 45), confidence=0.7, by="key", backend="cpu")
    assert _rows(work.result()) == _rows(expected)
    assert len(launched) == 2


def test_sequences(launched: Launches) -> None:
    """Each step is a join in time."""
    streams = {f"s{seed}": drawn(seed, 60) for seed in (3, 4, 5)}
    dealt, cpu = (
        sequence_tables(
            streams, [(-20, 45), (0, 30)], 0.7, by="key", backend=backend, options=options,
        )
        for backend, options in (("gpu", ALL), ("cpu", ONE))
    )  # fmt: skip
    assert _rows(dealt) == _rows(cpu)
    assert dealt.num_rows > 20
    assert len(launched) == 2


def test_explorations() -> None:
    left, right = drawn(3, 120), drawn(4, 110)
    found, expected = (
        explore_tables(left, right, within=(-20, 45), backend=backend, options=options)
        for backend, options in (("gpu", ALL), ("cpu", ONE))
    )
    assert found.probabilities.equals(expected.probabilities)


def test_threads_ask_in_any_order() -> None:
    """Also with other values in between: each gets what it asked for."""
    sides, model = both(), IntervalPairs(WINDOW)
    dealt, cpu = (kind(*sides, model) for kind in (DealtJoin, cpu_fallback.EventJoin))
    values = [(cpu.left_order * k, cpu.right_order + k) for k in (2, 3)]
    runs = list(dealt.chunks(9))
    assert runs == list(cpu.chunks(9))
    assert len(runs) > 100

    def ask(i: int) -> None:
        pair = values[i % 2]
        assert_equal(dealt.pairs(*runs[i], *pair), cpu.pairs(*runs[i], *pair))
        assert_equal(
            [dealt.matches(*runs[i], pair[1])], [cpu.matches(*runs[i], pair[1])],
        )  # fmt: skip

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(60)))
        list(pool.map(ask, np.random.default_rng(3).permutation(len(runs)).tolist()))


def test_others_fill_while_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each match is filled once, and what comes next is there before it is asked for."""
    dealt = DealtJoin(*both(), IntervalPairs(WINDOW))
    values, runs, filled = (dealt.left_order, dealt.right_order), list(dealt.chunks(9)), []
    real = dealt_share()._fill_ahead

    def fill(self: Any, start: int, *given: Any) -> Any:
        made = real(self, start, *given)
        filled.append((turn.chosen(), made.start, made.stop))
        return made

    monkeypatch.setattr(dealt_share(), "_fill_ahead", fill)
    dealt.pairs(*runs[0], *values)
    idle()
    assert sorted(device for device, *_ in filled) == [0, 1]
    for run in runs:
        dealt.pairs(*run, *values)
    idle()
    parts = sorted((start, stop) for _, start, stop in filled)
    assert all(stop == start for (_, stop), (start, _) in pairwise(parts))
    assert (parts[0][0], parts[-1][1]) == (0, 400)
    share = Counter(device for device, *_ in filled)
    assert abs(share[0] - share[1]) <= 1


def dealt_share() -> Any:
    return dealt._Share


@pytest.mark.parametrize(
    ("count", "devices", "sizes"),
    [
        (0, 2, []),
        (1, 2, [1]),
        (5, 2, [3, 2]),
        (7, 3, [3, 3, 1]),
        (1 << 17, 2, [1 << 16] * 2),
        (1 << 22, 2, [1 << 17] * 32),
    ],
)
def test_how_base_events_are_cut(count: int, devices: int, sizes: list[int]) -> None:
    runs = dealt._runs(10, 10 + count, devices)
    assert [stop - start for start, stop in runs] == sizes
    edges = [10, *(stop for _, stop in runs)]
    assert [start for start, _ in runs] == edges[:-1]


def test_a_device_that_is_free_takes_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is at its first run, the other does all else."""
    monkeypatch.setattr(dealt, "_LEAST_RUN", 10)
    done, are_done = [], threading.Event()

    def work(_: Any, start: int, __: int) -> int:
        if start:
            done.append(start)
            if len(done) == 30:
                are_done.set()
        else:
            assert are_done.wait(20)
        return turn.chosen()

    found = DealtJoin(*both(), IntervalPairs(WINDOW))._deal(0, 400, work)
    assert found == [0] + 30 * [1]  # 400 events by 13


def full_on(monkeypatch: pytest.MonkeyPatch, number: int, least: int) -> list[int]:
    """Let allocations of `least` bytes or more fail on one device; returns the sizes of these."""
    real, failed = memory._allocate, list[int]()

    def allocate(size: Any, dtype: Any) -> Any:
        wanted = int(np.prod(size)) * np.dtype(dtype).itemsize
        if turn.chosen() == number and wanted >= least:
            failed.append(wanted)
            raise MemoryError("full")
        return real(size, dtype)

    monkeypatch.setattr(memory, "_allocate", allocate)
    return failed


def test_a_device_with_little_memory_does_half_after_half(monkeypatch: pytest.MonkeyPatch) -> None:
    sides, model = both(), IntervalPairs(WINDOW)
    expected = answers(cpu_fallback.EventJoin(*sides, model))
    found = DealtJoin(*sides, model)
    failed = full_on(monkeypatch, 1, 4000)
    assert answers(found) == expected
    assert failed


@pytest.mark.parametrize("number", [0, 1])
def test_the_cpu_takes_over_where_one_device_has_no_memory(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all devices give back what they hold."""
    sides, model = both(), IntervalPairs(WINDOW)
    kinds = {"gpu_kernels": DealtJoin, "cpu_fallback": cpu_fallback.EventJoin}
    found = resilient_ranked(gpu_kernels, lambda package: kinds[package](*sides, model))
    held = set(transfers._of_device)
    assert held >= {0, 1}
    with monkeypatch.context() as patch:
        full_on(patch, number, 1)
        with pytest.raises(MemoryBudgetError, match="the GPU has no memory"):
            DealtJoin(*sides, model).counts  # noqa: B018
        assert answers(found) == answers(cpu_fallback.EventJoin(*sides, model))
    assert transfers._of_device == {}


def test_tables_that_one_device_has_no_memory_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full_on(monkeypatch, 1, 1)
    left, right = drawn(3, 60), drawn(4, 60)
    dealt, cpu = (
        correlate_tables(
            left, right, within=(-20, 45), confidence=0.7, backend=backend, options=options
        )
        for backend, options in (("gpu", ALL), ("cpu", ONE))
    )
    assert dealt.equals(cpu)
    assert "the CPU takes over" in caplog.text


def test_orders_are_sent_to_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own, equal to the one in the host's memory."""
    found = DealtJoin(*both(), IntervalPairs(WINDOW))
    values, sent, real = (found.left_order, found.right_order), [], memory._sent
    monkeypatch.setattr(memory, "_sent", lambda array: (sent.append(array), real(array))[1])
    for run in found.chunks(40):
        found.pairs(*run, *values)
    idle()
    assert sent == []
    found.pairs(0, 400, values[0] + 1, values[1])
    assert len(sent) == 1


def test_an_error_waits_for_the_other_devices() -> None:
    """What they share may be let go of then."""
    done = []

    def fail() -> None:
        raise ZeroDivisionError

    def work() -> None:
        time.sleep(0.3)
        done.append(1)

    with pytest.raises(ZeroDivisionError):
        dealt.on_devices({0: fail, 1: work})
    assert done == [1]


def test_an_error_ends_the_work_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealt, "_LEAST_RUN", 10)
    found = DealtJoin(*both(), IntervalPairs(WINDOW))
    first, second, *others = dealt._runs(0, 400, 2)
    has_failed, begun = threading.Event(), []

    def work(_: Any, start: int, stop: int) -> int:
        begun.append((start, stop))
        if (start, stop) == second:
            has_failed.set()
            raise ZeroDivisionError
        has_failed.wait(20)
        time.sleep(0.05)  # until the other thread has said so
        return start

    with pytest.raises(ZeroDivisionError):
        found._deal(0, 400, work)
    assert {first, second} <= set(begun)
    assert len(begun) < 4 < len(others)
    assert found.counters.pairs > 0


@pytest.mark.parametrize(("batch_pairs", "devices"), [(1 << 23, 2), (10_000_000, 2), (1 << 24, 4)])
def test_devices_take_turns_however_large_batches_are(batch_pairs: int, devices: int) -> None:
    runs = [(k, k + 1) for k in range(40)]
    order = dealt._FillOrder.of(runs, np.arange(41) * batch_pairs)
    fills = [order.fill_at(start) for start, _ in runs]
    turns = np.bincount(np.array(fills) % devices, minlength=devices)
    assert turns.min() >= 40 // devices - 1
    assert order.first_run_from(fills[5] + 1, 0) in runs
    assert dealt._FillOrder.none().fill_at(3) == 0


def test_a_dealt_join_lets_go_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = drawn(3, 60), drawn(4, 60)

    def work() -> None:
        correlate_tables(left, right, within=(-20, 45), confidence=0.7, backend="gpu", options=ALL)
        idle()

    check_nothing_is_kept(monkeypatch, dealt, "_Share", work)


def test_one_of_them_is_enough(launched: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "count", lambda _: 1)
    sides, model = both(), IntervalPairs(WINDOW)
    found, expected = (answers(kind(*sides, model)) for kind in (DealtJoin, cpu_fallback.EventJoin))
    assert found == expected
    assert set(launched) == {0}


def test_a_device_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    real = driver.problem
    monkeypatch.setattr(
        driver, "problem", lambda found, number=0: "it is old" if number else real(found, number)
    )
    usable._problem.cache_clear()
    left, right = drawn(3, 60), drawn(4, 60)
    try:
        with pytest.raises(
            BackendError,
            match=r"devices='all'\) is not possible: GPU 1 cannot be used \(it is old\)",
        ):
            correlate_tables(left, right, within=(0, 9), confidence=0.7, backend="gpu", options=ALL)
    finally:
        usable._problem.cache_clear()


def test_arrays_of_one_device_are_refused() -> None:
    import cupy

    times = cupy.asarray(np.arange(9))
    with pytest.raises(Exception, match=r"joined on that GPU .* bring the arrays to the host"):
        correlate_arrays(times, times, within=(0, 9), backend="gpu", options=ALL)


@pytest.mark.skipif("VIRTUAL_GPU_LOG" not in os.environ, reason="a GPU may read another's memory")
class TestFaults:
    """The virtual GPUs see work that goes to the wrong device."""

    def test_work_for_another_device(self) -> None:
        """Kernels and copies of one device that are given arrays of the other."""
        from tests.virtual_gpu.faults import real_faults

        found = DealtJoin(*both(), IntervalPairs(WINDOW))
        _ = found.counts, found.left_order
        assert real_faults() == []
        found._devices.reverse()
        with pytest.raises(BackendError, match="the GPU failed"):
            found.best(0, 400, np.zeros(350, np.int64))
        faults = "\n".join(real_faults())
        assert "memory of another device" in faults

    def test_copies_of_another_device(self) -> None:
        from tests.virtual_gpu.faults import real_faults

        def sent() -> Any:
            with turn.TURN:
                return transfers.current().send_one(np.arange(9))

        def fetched(array: Any) -> None:
            with turn.TURN, transfers.current().fetching() as fetch:
                fetch(array, np.empty(9, np.int64))

        array = turn.thread_of(1).submit(sent).result()
        turn.thread_of(1).submit(fetched, array).result()
        assert real_faults() == []
        turn.thread_of(0).submit(fetched, array).result()
        assert "an array that lies on another device" in "\n".join(real_faults())
