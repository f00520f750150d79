"""Slices of row groups: every row once, right row groups owned once, reading bounded."""

from __future__ import annotations

import pickle
import tracemalloc
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide import Window
from coincide.engine.events.sides import Side
from coincide.engine.files.slices import (
    NEVER,
    DirectPlan,
    Places,
    RowGroups,
    Spans,
    direct_plan,
    needed_groups,
)
from coincide.model.units import TIME_LIMIT
from tests.helpers.interval_sides import interval_side

WINDOW = Window(-5, 10, 0.5)

Group = tuple[int, int, int] | tuple[int, None, None]
"""Rows, first and last time; None: no events."""


def side(groups: list[Group]) -> RowGroups:
    """A file of these row groups."""
    first, last = (
        np.array([(NEVER, -NEVER)[end - 1] if g[end] is None else g[end] for g in groups], np.int64)
        for end in (1, 2)
    )
    return made(np.array([g[0] for g in groups], np.int64), first, last)


def made(rows: np.ndarray, first: np.ndarray, last: np.ndarray) -> RowGroups:
    places = Places(np.zeros(rows.size, np.int32), np.arange(rows.size, dtype=np.int32), rows)
    known = np.ones(rows.size, bool)
    return RowGroups(places, Spans(first, last), Spans(first, last), known, ~known)


@st.composite
def row_groups(draw: st.DrawFn) -> list[Group]:
    groups: list[Group] = []
    for _ in range(draw(st.integers(0, 12))):
        rows, first = draw(st.integers(1, 50)), draw(st.none() | st.integers(-100, 100))
        length = draw(st.integers(0, 80))
        groups.append((rows, None, None) if first is None else (rows, first, first + length))
    return groups


def plan(left: list[Group], right: list[Group], slices: int | None, **options: int) -> DirectPlan:
    settings = {"parallelism": 2, "slice_rows": 1_000_000, **options}
    return direct_plan(side(left), side(right), WINDOW, slices=slices, **settings)


def parts(found: DirectPlan) -> list[list[tuple[int, int, int]]]:
    """By slice: row group, first row, and the one after the last."""
    return [
        list(zip(s.left.places.index.tolist(), s.left.start.tolist(), s.left.stop.tolist(), strict=True))
        for s in found.slices
    ]  # fmt: skip


def events(*intervals: tuple[int, int]) -> Side:
    low, high = (np.array([i[end] for i in intervals], np.int64) for end in (0, 1))
    return interval_side(low, high)


@given(row_groups(), row_groups(), st.none() | st.integers(1, 40))
def test_every_row_is_in_one_slice(
    left: list[Group], right: list[Group], slices: int | None
) -> None:
    found = plan(left, right, slices)
    rows = Counter(
        (group, row)
        for slice_ in parts(found)
        for group, start, stop in slice_
        for row in range(start, stop)
    )
    assert rows == {(i, row): 1 for i, group in enumerate(left) for row in range(group[0])}
    owned = Counter(found.right.index[n] for slice_ in found.slices for n in slice_.accounts_for)
    assert owned == {i: 1 for i in range(len(right))}
    assert 1 <= len(found.slices) <= max(slices or 40, 1)
    assert found.reads >= 1.0 or not (left or right)


@given(row_groups(), row_groups(), st.integers(1, 9))
def test_the_estimate_of_reading_is_that_of_the_definition(
    left: list[Group], right: list[Group], slices: int
) -> None:
    """Each slice reads all row groups that meet its time, from the first row group to the last."""
    found = plan(left, right, slices)
    decoded = 0
    readers = Counter({i: 0 for i in range(len(right))})
    for slice_ in parts(found):
        decoded += sum(left[group][0] for group, _, _ in slice_)
        timed = [left[group][1:] for group, _, _ in slice_ if left[group][1] is not None]
        low, high = min((t[0] for t in timed), default=0), max((t[1] for t in timed), default=0)
        for i, (_, first, last) in enumerate(right):
            meets = timed and first is not None
            readers[i] += bool(meets and first <= high + WINDOW.hi and last >= low + WINDOW.lo)
    decoded += sum(max(readers[i], 1) * group[0] for i, group in enumerate(right))
    total = sum(group[0] for group in (*left, *right))
    assert found.reads == decoded / max(total, 1)


def test_cuts_fall_on_row_groups_that_end_near() -> None:
    left: list[Group] = [(100 + i % 3, 10 * i, 10 * i + 9) for i in range(20)]
    for slices in (2, 4, 5):
        found = plan(left, [], slices)
        assert len(found.slices) == slices
        assert all(slice_.left.are_whole for slice_ in found.slices)
        assert found.reads == 1.0


def test_one_large_row_group_is_dealt_out() -> None:
    found = plan([(1000, 0, 999)], [], 4)
    assert parts(found) == [[(0, 0, 250)], [(0, 250, 500)], [(0, 500, 750)], [(0, 750, 1000)]]
    assert found.reads == 4.0


def test_the_right_side_weighs_too() -> None:
    """The first left row group has nearly all matches, so it is worth a slice of its own."""
    left: list[Group] = [(100, 1000 * i, 1000 * i + 99) for i in range(10)]
    found = plan(left, [(500, i, i + 5) for i in range(20)], 2)
    assert [len(slice_) for slice_ in parts(found)] in ([1, 10], [1, 9])


def test_a_right_row_group_weighs_where_it_lies() -> None:
    """It is as long as all left ones together, each of which reaches a tenth of it."""
    left: list[Group] = [(100, 1000 * i, 1000 * i + 999) for i in range(10)]
    found = plan(left, [(10_000, 0, 4999)], 2)
    # The first three left row groups have 6,600 less 1,100 of 11,000 rows of work, about half.
    first = sum(stop - start for _, start, stop in parts(found)[0])
    assert 240 <= first <= 300


def test_slices_by_rows_and_tasks() -> None:
    left: list[Group] = [(100_000, i, i) for i in range(20)]
    assert len(plan(left, [], None, slice_rows=500_000).slices) == 4
    assert len(plan(left, [], None).slices) == 2
    assert len(plan(left[:1], [], None).slices) == 1
    assert len(plan(left, [], None, parallelism=3, slice_rows=500_000).slices) == 6


def test_right_row_groups_that_many_slices_read_are_accounted_for_in_turn() -> None:
    left: list[Group] = [(100, 10 * i, 10 * i + 9) for i in range(10)]
    found = plan(left, [(10, -1000, 1000)] * 40 + [(10, 9000, 9000)] * 10, 10)
    assert [slice_.accounts_for.size for slice_ in found.slices] == [5] * 10


def test_right_groups_that_no_event_reaches_are_not_read() -> None:
    """Neither in the gap between two left row groups, nor where the footer alone tells of events."""
    right = side([(10, 100 * i, 100 * i + 99) for i in range(12)]).spans
    found = needed_groups(right, events((1000, 1100), (0, 7), (50, 100)), WINDOW)
    assert found.tolist() == [0, 1, 9, 10, 11]
    assert not needed_groups(right, events(), WINDOW).size
    unmatchable = interval_side([0, 0], [2000, 2000], np.zeros(2, bool))
    assert not needed_groups(right, unmatchable, WINDOW).size


@pytest.mark.parametrize(
    ("first", "last", "near"),
    [(111, 120, False), (110, 120, True), (-30, -6, False), (-30, -5, True),
     (NEVER, -NEVER, False), (-TIME_LIMIT, TIME_LIMIT, True), (TIME_LIMIT, TIME_LIMIT, False)],
)  # fmt: skip
def test_reach_is_the_window(first: int, last: int, near: bool) -> None:
    spans = Spans(np.array([first]), np.array([last]))
    assert needed_groups(spans, events((0, 100)), WINDOW).tolist() == [0] * near


@pytest.mark.parametrize("bound", [1 - TIME_LIMIT, TIME_LIMIT - 1])
def test_the_widest_windows_do_not_overflow(bound: int) -> None:
    window = Window(-abs(bound), abs(bound), 0.5) if bound < 0 else Window(bound, bound, 0.5)
    ends = np.array([-TIME_LIMIT, 0, TIME_LIMIT, NEVER])
    spans = Spans(ends, np.array([-TIME_LIMIT, 0, TIME_LIMIT, -NEVER]))
    found = needed_groups(spans, events((1 - TIME_LIMIT, 1 - TIME_LIMIT), (0, 5)), window)
    assert found.tolist() == ([0, 1, 2] if bound < 0 else [1, 2])
    groups = made(np.array([5, 5, 5, 5]), spans.first, spans.last)
    settings = {"parallelism": 1, "slices": 3, "slice_rows": 10}
    assert len(direct_plan(groups, groups, window, **settings).slices) == 3


@given(row_groups(), st.lists(st.tuples(st.integers(-150, 150), st.integers(0, 60)), max_size=9))
def test_needed_groups_are_those_that_some_event_meets(
    right: list[Group], lefts: list[tuple[int, int]]
) -> None:
    intervals = [(low, low + length) for low, length in lefts]
    want = [
        i
        for i, (_, first, last) in enumerate(right)
        if first is not None
        and any(first <= h + WINDOW.hi and last >= low + WINDOW.lo for low, h in intervals)
    ]
    assert needed_groups(side(right).spans, events(*intervals), WINDOW).tolist() == want


# At scale: what grows with row groups or slices, and nothing with both


def ordered(groups: int) -> RowGroups:
    """Row groups of 100,000 rows, each overlapping its neighbours."""
    first = 1_700_000_000_000_000 + np.arange(groups) * 10_000_000
    return made(np.full(groups, 100_000), first, first + 12_000_000)


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def planned(groups: int, slices: int) -> DirectPlan:
    both = ordered(groups)
    return direct_plan(both, both, WINDOW, parallelism=64, slices=slices, slice_rows=1_000_000)


def test_a_hundred_thousand_row_groups_in_ten_thousand_slices() -> None:
    found = planned(100_000, 10_000)
    assert len(found.slices) == 10_000
    assert found.reads < 1.5
    assert sum(len(found.slices[n].left.places) for n in range(0, 10_000, 100)) >= 1000
    assert peak_of(lambda: planned(100_000, 10_000)) < 200e6


def test_memory_of_planning_grows_with_groups_and_slices_not_with_both() -> None:
    planned(100, 10)
    small, more, both = (
        peak_of(lambda shape=shape: planned(*shape))  # type: ignore[misc]
        for shape in ((20_000, 500), (20_000, 8000), (80_000, 8000))
    )
    assert more < 1.5 * small
    assert both < 5 * more


def test_what_a_task_is_sent_grows_with_groups_and_slices_not_with_both() -> None:
    few, many = (len(pickle.dumps(planned(20_000, slices))) for slices in (100, 10_000))
    assert few < 60 * 20_000
    assert many - few < 40 * 10_000
    assert len(pickle.dumps(planned(40_000, 100))) < 2.1 * few


def test_a_right_row_group_that_all_slices_read() -> None:
    """Also where every row group spans all time, planning makes no table of readers."""
    groups = made(np.full(50_000, 10), np.zeros(50_000, np.int64), np.full(50_000, 10**9))
    settings = {"parallelism": 1, "slices": 5000, "slice_rows": 10}
    assert peak_of(lambda: direct_plan(groups, groups, WINDOW, **settings)) < 100e6
    found = direct_plan(groups, groups, WINDOW, **settings)
    assert found.reads == pytest.approx(2500, rel=0.1)
    assert max(slice_.accounts_for.size for slice_ in found.slices) <= 11
