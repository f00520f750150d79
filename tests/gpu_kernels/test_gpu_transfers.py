"""Copies while kernels run: the same answers if each happens as late as it may; and threads that raise.

Runs in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which `test_gpu_simulator` runs it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coincide import MemoryBudgetError
from coincide.model.timestamps import IntervalEvents, IntervalPairs
from gpu_kernels.device import usable as device
from gpu_kernels.kernels.simulation import SIMULATED

if not SIMULATED:
    pytest.skip("the simulator's; test_gpu_simulator runs these", allow_module_level=True)

import gpu_kernels
from gpu_kernels import EventJoin, join
from gpu_kernels import sides as placing
from gpu_kernels.device import memory, transfers
from gpu_kernels.device.columns import Narrowed
from gpu_kernels.device.transfers import Transfers
from tests.gpu_kernels.test_gpu_join import FAULTY, allocating, assert_same, check_join
from tests.helpers.deferred_link import DeferredLink, refusing

ITEMS = 16
"""Int64s of a pinned buffer."""


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> DeferredLink:
    """The device's link, with pinned buffers so small that everything takes many pieces."""
    made = DeferredLink()
    monkeypatch.setattr(transfers, "ROOM", 8 * ITEMS)
    monkeypatch.setattr(transfers, "MOST_PINNED", 0)
    monkeypatch.setattr(join, "_PAIRS_AT_ONCE", ITEMS)
    monkeypatch.setattr(transfers, "_of_device", {0: Transfers(made)})
    real = memory._allocate

    def allocate(size: Any, dtype: Any) -> Any:
        made.kernel_writes()
        return real(size, dtype)

    monkeypatch.setattr(memory, "_allocate", allocate)
    return made


@pytest.mark.parametrize("batch_pairs", [3, 10**6])
@pytest.mark.parametrize("classes", [1, 2])
def test_the_same_answers(link: DeferredLink, classes: int, batch_pairs: int) -> None:
    cpu = check_join(*FAULTY, classes, batch_pairs)
    assert cpu.counters.pairs > 10 * ITEMS
    assert {"to_device", "to_host"} <= set(link.log)
    assert link.pending == 0
    assert [room.size for room in link.rooms] == [8 * ITEMS] * 2


def test_a_fill_has_blocks_that_can_overlap() -> None:
    assert join._PAIRS_AHEAD >= 2 * join._PAIRS_AT_ONCE


def test_results_leave_while_the_next_block_is_filled(
    link: DeferredLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]))
    values = found.left_order, found.right_order
    n = found.counts.size
    found.pairs(0, 1, *values)
    found._filled.clear()
    under_way: list[int] = []
    real = memory._allocate

    def allocate(size: Any, dtype: Any) -> Any:
        under_way.append(link.pending)
        return real(size, dtype)

    monkeypatch.setattr(memory, "_allocate", allocate)
    found.pairs(0, n, *values)
    assert max(under_way) == 2
    assert sum(count > 0 for count in under_way) > len(under_way) / 2


def test_the_right_side_is_copied_while_the_left_is_sorted(
    link: DeferredLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = placing.by_key

    def sort(*columns: Any) -> Any:
        link.log.append("sort")
        return real(*columns)

    monkeypatch.setattr(placing, "by_key", sort)
    left, right = FAULTY[0]
    gpu_kernels.EventJoin(left, right, IntervalPairs(FAULTY[1]))
    # Keys of 8 bytes; lengths and groups of 4.
    pieces = [-(-len(side) // ITEMS) + 2 * -(-len(side) // (2 * ITEMS)) for side in (left, right)]
    copies = [["to_device"] * n + ["kernels_follow", "sort"] for n in pieces]
    assert link.log == ["copies_follow", *copies[0], *copies[1]]


def test_a_source_may_change_once_it_is_sent(link: DeferredLink) -> None:
    array = np.arange(5 * ITEMS)
    sent = transfers.current().send_one(array)
    array[:] = -1
    assert_same(sent, np.arange(5 * ITEMS))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from([0, 1, ITEMS - 1, ITEMS, ITEMS + 1, 5 * ITEMS]), max_size=4),
    st.sampled_from([np.int64, np.int32, np.uint8, np.float64]),
    st.sampled_from([1, 3]),
)
def test_there_and_back(link: DeferredLink, sizes: list[int], kind: type, step: int) -> None:
    given = [np.arange(step * size).astype(kind)[::step] for size in sizes]
    there = transfers.current()
    sent = next(there.send(given))
    back = [np.full(size, 3, kind) for size in sizes]
    with there.fetching() as fetch:
        while sent:
            fetch(sent.pop(), back[len(sent)])
    for found, expected in zip(back, given, strict=True):
        assert_same(found, expected)
    assert link.pending == 0


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("size", [0, 1, 5 * ITEMS + 3])
def test_columns_of_int32_grow_on_their_way_back(
    link: DeferredLink, size: int, overlap: bool
) -> None:
    there, values = transfers.current(), np.arange(size) * 1000 - 7
    there.overlap = overlap
    (sent,) = next(there.send([Narrowed(values)]))
    assert sent.dtype == np.int32
    back = np.full(size, 3, np.int64)
    with there.fetching() as fetch:
        fetch(sent, back)
    assert_same(back, values)
    assert overlap == (link.rooms != []) or not size


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("longest", [2**31 - 1, 2**31, 2**33])
def test_lengths_of_intervals_take_four_bytes_if_all_can(
    link: DeferredLink, longest: int, overlap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    transfers.current().overlap = overlap
    last, lengths = np.arange(90) * 5 + 2**40, np.arange(90)
    lengths[77] = longest
    sides = [IntervalEvents(last - each, last) for each in (lengths, lengths % 7)]
    fetched: list[int] = []
    real = Transfers.send_one
    monkeypatch.setattr(
        Transfers,
        "send_one",
        lambda self, array: (fetched.append(array.size), real(self, array))[1],
    )
    for side, found in zip(sides, placing.ordered(*sides), strict=True):
        order = np.argsort(side.midpoints, kind="stable")
        assert_same(found.order, order)
        assert_same(found.keys, side.midpoints[order])
        assert_same(found.shapes, side.lengths[order])
    assert fetched == ([90] if longest >= 2**31 else [])


def test_instants_are_sent_once(link: DeferredLink) -> None:
    now = np.arange(4 * ITEMS)
    (found,) = placing.ordered(IntervalEvents(now, now))
    assert link.log.count("to_device") == 4
    assert found.are_instants
    assert_same(found.keys, 2 * now)


@pytest.mark.parametrize("number", [1, 20, 45, 90, 150])
def test_one_failed_allocation_changes_nothing(
    link: DeferredLink, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = allocating(monkeypatch, lambda n, _: n == number)
    check_join(*FAULTY, 2)
    assert len(sizes) > number
    assert link.pending == 0


def test_a_failed_block_lets_those_before_arrive_first(
    link: DeferredLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hold memory, which the second attempt may need."""
    found = gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]))
    values = found.left_order, found.right_order
    expected = found.pairs(0, 70, *values)
    found._filled.clear()
    failed: list[int] = []
    left: list[int] = []

    def fails(number: int, _: int) -> bool:
        if failed and not left:
            left.append(link.pending)
        if not failed and link.pending:
            failed.append(link.pending)
            return True
        return False

    allocating(monkeypatch, fails)
    for one, other in zip(found.pairs(0, 70, *values), expected, strict=True):
        assert_same(one, other)
    assert failed[0] > 0
    assert left == [0]


def test_no_copy_is_left_behind_by_a_failure(
    link: DeferredLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]))
    values = found.left_order, found.right_order
    assert found.counts.sum() > 0
    with monkeypatch.context() as broken:
        allocating(broken, lambda *_: bool(link.pending) or len(link.log) > 60)
        with pytest.raises(MemoryBudgetError, match="slice_rows"):
            found.pairs(0, 70, *values)
    assert "to_host" in link.log
    assert link.pending == 0
    check_join(*FAULTY, 2)


@pytest.mark.parametrize("name", ["to_device", "mark"])
def test_a_side_half_sent_is_waited_for(
    link: DeferredLink, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, interrupted = getattr(link, name), []

    def interrupt(*given: Any) -> Any:
        if link.pending and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(link, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        gpu_kernels.EventJoin(*FAULTY[0], IntervalPairs(FAULTY[1]))
    assert "to_device" in link.log
    assert link.pending == 0


def test_what_arrives_after_an_error_is_dropped(link: DeferredLink) -> None:
    out = np.zeros(ITEMS, np.int64)
    there = transfers.current()
    sent = there.send_one(np.arange(ITEMS))

    def fails() -> None:
        with there.fetching() as fetch:
            fetch(sent, out)
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        fails()
    assert link.pending == 0
    assert not out.any()


def test_without_memory_to_pin(link: DeferredLink, caplog: pytest.LogCaptureFixture) -> None:
    refusing(link)
    with caplog.at_level(logging.DEBUG, "gpu_kernels.device.transfers"):
        check_join(*FAULTY, 2)
    assert not transfers.current().overlap
    assert not {"to_device", "to_host"} & set(link.log)
    assert [record.getMessage() for record in caplog.records] == [
        "no host memory can be pinned, so copies are slower: 128 bytes"
    ]


def test_without_overlap(link: DeferredLink) -> None:
    transfers.current().overlap = False
    check_join(*FAULTY, 2)
    assert not {"to_device", "to_host"} & set(link.log)
    assert link.rooms == []


@pytest.mark.parametrize("columns", [1, 3, 1000])
def test_results_arrive_where_they_stay(
    link: DeferredLink, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some or all: as many columns as may be pinned."""
    size = 8 * check_join(*FAULTY, 2).counters.pairs
    assert len(link.rooms) == 2
    monkeypatch.setattr(transfers, "MOST_PINNED", columns * size)
    check_join(*FAULTY, 2, 30)
    assert link.pending == 0
    results = [room.size for room in link.rooms[2:]]
    assert results.count(size) > 0
    assert sum(results) <= columns * size


def test_a_result_is_pinned_again_once_the_last_is_let_go(
    link: DeferredLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "MOST_PINNED", 8 * 25)
    there = transfers.current()

    def result(size: int) -> np.ndarray:
        return there.result(size, np.int64, lambda: np.zeros(size, np.int64))

    first, second = result(10), result(15)
    assert [room.size for room in link.rooms[2:]] == [80, 120]
    del link.rooms[-1]  # the stand-in's own reference
    part = second[3:5]
    del second
    assert result(10).base is None, "pinned, though part of the last is held"
    assert result(0).size == 0
    del part
    third = result(15)
    assert third.base is link.rooms[-1]
    with there.fetching() as fetch:
        fetch(np.arange(15), third)
        fetch(np.arange(10), first)
        assert link.log.count("to_host") == 2
    assert_same(third, np.arange(15))
    assert_same(first, np.arange(10))


def test_what_is_pinned_counts_for_the_process(
    link: DeferredLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is held of a device that was let go of, or of another one."""
    monkeypatch.setattr(transfers, "MOST_PINNED", 8 * 25)

    def result(there: Transfers, size: int) -> np.ndarray:
        return there.result(size, np.int64, lambda: np.zeros(size, np.int64))

    first = result(transfers.current(), 20)
    transfers.release()
    other = Transfers(DeferredLink())
    assert result(other, 6).base is None
    assert result(other, 5).base is not None
    assert first.size == 20


def test_much_is_copied_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "_BYTES_OF_THREAD", 64)
    monkeypatch.setattr(transfers, "cores", lambda: 3)
    copied: list[int] = []
    real = np.copyto
    monkeypatch.setattr(
        transfers.np, "copyto", lambda to, given: (copied.append(to.size), real(to, given))
    )
    for size in (0, 1, 7, 8, 9, 24, 25, 100):
        source, target = np.arange(size), np.zeros(size, np.int64)
        transfers._copy(source, target)
        assert_same(target, source)
    assert max(copied) == 34
    assert len(copied) == 4 + 2 + 3 + 3 + 3


def test_pinned_memory_is_given_back(link: DeferredLink) -> None:
    before = transfers.current()
    sent = before.send_one(np.arange(ITEMS))
    with before.fetching() as fetch:
        fetch(sent, np.empty(ITEMS, np.int64))
        assert link.pending == 1
        device.release()
        assert link.pending == 0
    assert transfers._of_device == {}
    assert transfers.current() is not before


def test_what_a_thread_raises_is_raised() -> None:
    """Also by a kernel whose threads wait for each other: the others do not wait for ever."""
    sides = FAULTY[0]
    banded = EventJoin(*sides, IntervalPairs(FAULTY[1]))._banded
    block = banded.blocks(0, len(sides[0]))[0]
    targets = banded.sides.targets._replace(keys=np.empty(0, np.int64))
    broken = replace(banded, sides=banded.sides._replace(targets=targets))
    with pytest.raises(IndexError):
        join.Block(broken, *block)
