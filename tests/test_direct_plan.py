"""Slices of row groups: every row once, right row groups owned once, reading bounded."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from event_model import Window
from spark_plugin.direct.footers import RowGroup
from spark_plugin.direct.plan import DirectPlan, direct_plan, reaches

WINDOW = Window(-5, 10, 0.5)


def group(index: int, rows: int, first: int | None, last: int | None) -> RowGroup:
    return RowGroup(0, index, rows, first, last, True)


@st.composite
def row_groups(draw: st.DrawFn) -> list[RowGroup]:
    groups = []
    for index in range(draw(st.integers(0, 12))):
        first = draw(st.none() | st.integers(-100, 100))
        length = draw(st.integers(0, 80))
        groups.append(
            group(index, draw(st.integers(1, 50)), first, None if first is None else first + length)
        )
    return groups


def plan(
    left: list[RowGroup], right: list[RowGroup], slices: int | None, **options: int
) -> DirectPlan:
    settings = {"parallelism": 2, "slice_rows": 1_000_000, **options}
    return direct_plan(left, right, WINDOW, slices=slices, **settings)


@given(row_groups(), row_groups(), st.none() | st.integers(1, 40))
def test_every_row_is_in_one_slice(
    left: list[RowGroup], right: list[RowGroup], slices: int | None
) -> None:
    found = plan(left, right, slices)
    rows = Counter(
        (part.group.index, row)
        for slice_ in found.slices
        for part in slice_.left
        for row in range(part.start, part.stop)
    )
    assert rows == {(g.index, row): 1 for g in left for row in range(g.rows)}
    owned = Counter(g.index for slice_ in found.slices for g in slice_.accounts_for)
    assert owned == {g.index: 1 for g in right}
    assert 1 <= len(found.slices) <= max(slices or 40, 1)
    assert found.reads >= 1.0 or not (left or right)


def test_cuts_fall_on_row_groups_that_end_near() -> None:
    left = [group(i, 100 + i % 3, 10 * i, 10 * i + 9) for i in range(20)]
    for slices in (2, 4, 5):
        found = plan(left, [], slices)
        assert len(found.slices) == slices
        whole = [part.stop - part.start == part.group.rows for s in found.slices for part in s.left]
        assert all(whole)
        assert found.reads == 1.0


def test_one_large_row_group_is_dealt_out() -> None:
    found = plan([group(0, 1000, 0, 999)], [], 4)
    assert [(p.start, p.stop) for s in found.slices for p in s.left] == [
        (0, 250), (250, 500), (500, 750), (750, 1000)
    ]  # fmt: skip
    assert found.reads == 4.0


def test_the_right_side_weighs_too() -> None:
    """The first left row group has nearly all partners, so it is worth a slice of its own."""
    left = [group(i, 100, 1000 * i, 1000 * i + 99) for i in range(10)]
    right = [group(i, 500, i, i + 5) for i in range(20)]
    found = plan(left, right, 2)
    assert [len(slice_.left) for slice_ in found.slices] in ([1, 10], [1, 9])


def test_slices_by_rows_and_tasks() -> None:
    left = [group(i, 100_000, i, i) for i in range(20)]
    assert len(plan(left, [], None, slice_rows=500_000).slices) == 4
    assert len(plan(left, [], None).slices) == 2
    assert len(plan(left[:1], [], None).slices) == 1
    assert len(plan(left, [], None, parallelism=3, slice_rows=500_000).slices) == 6


def test_right_groups_in_the_gap_between_two_left_ones_are_not_read() -> None:
    left = [group(0, 10, 0, 100), group(1, 10, 1000, 1100)]
    right = [group(i, 10, 100 * i, 100 * i + 99) for i in range(12)]
    found = plan(left, right, 1)
    (only,) = found.slices
    read = [g.index for g in right if reaches(g, only, (0, 1100), WINDOW)]
    assert read == [0, 1, 9, 10, 11]
    assert not any(reaches(g, only, None, WINDOW) for g in right)


def test_thousands_of_row_groups() -> None:
    groups = [group(i, 1000, 10 * i, 10 * i + 12) for i in range(4000)]
    found = plan(groups, groups, 400)
    assert len(found.slices) == 400
    assert found.reads < 1.4


@pytest.mark.parametrize(
    ("first", "last", "near"),
    [(111, 120, False), (110, 120, True), (-30, -6, False), (-30, -5, True), (None, None, False)],
)
def test_reach_is_the_window(first: int | None, last: int | None, near: bool) -> None:
    (only,) = plan([group(0, 1, 0, 100)], [], 1).slices
    assert reaches(group(0, 1, first, last), only, (0, 100), WINDOW) is near
