"""Slices without end: each pair meets once, and no event is late before its time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coincide.model.units import TIME_LIMIT
from spark_plugin.tasks.grid import Grid, Slice
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.slices import Places

LONGEST = 40
"""Of an event, half ticks, which is how far its max_time is from its midpoint at most."""


def grid_of(random: np.random.Generator, *, keeps_right: bool, is_one_stream: bool) -> Grid:
    first, last = np.sort(random.integers(-300, 301, 2)).tolist()
    right = max(last, 0) if keeps_right or is_one_stream else last
    left = right if is_one_stream else max(0, -first) if keeps_right else 0
    return Grid(
        length=int(random.integers(30, 400)), beyond=LONGEST + max(left, right),
        buckets=int(random.choice([1, 3])), reach=Reach(first, last), useful=(LONGEST, LONGEST),
        nanoseconds=1_000_000, keeps_right=keeps_right, is_one_stream=is_one_stream,
    )  # fmt: skip


def events(random: np.random.Generator) -> Places:
    shapes = random.integers(0, LONGEST + 10, 60)
    matchable = random.random(60) < 0.9
    midpoints = random.integers(-2000, 2000, 60)
    return Places(midpoints, matchable, random.integers(0, 3, 60), shapes=shapes)


@pytest.mark.parametrize("kind", ["usual", "keeps_right", "is_one_stream"])
@pytest.mark.parametrize("seed", range(20))
def test_pairs_meet_once_and_rows_are_late_as_a_whole(seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    grid = grid_of(random, keeps_right=kind == "keeps_right", is_one_stream=kind == "is_one_stream")
    sides = events(random), events(random)
    placed = [list(grid.slices_of(places, is_left=i == 0)) for i, places in enumerate(sides)]
    for i, places in enumerate(sides):
        check_side(grid, places, placed[i], tells=not (i and grid.is_one_stream))
    left, right = sides
    meetings: dict[tuple[int, int], int] = {}
    for one, rows in placed[0]:
        for other, others in placed[1]:
            if one.closes is not None and one.label == other.label and one.is_own:
                for pair in ((int(a), int(b)) for a in rows for b in others):
                    meetings[pair] = meetings.get(pair, 0) + 1
    assert set(meetings.values()) <= {1}
    for a in timed(grid, left, 0):
        for b in timed(grid, right, 1):
            distance = right.midpoints[b] - left.midpoints[a]
            is_near = grid.reach.first <= distance <= grid.reach.last
            if is_near and left.hashes[a] == right.hashes[b]:
                assert meetings.get((int(a), int(b))) == 1


def timed(grid: Grid, places: Places, side: int) -> np.ndarray:
    assert places.matchable is not None
    return np.flatnonzero(places.matchable & (places.shapes <= grid.useful[side]))


def check_side(
    grid: Grid, places: Places, placed: list[tuple[Slice, np.ndarray]], *, tells: bool
) -> None:
    """Each event comes out once, and all its parts are late from the same time on, after its own."""
    due: dict[int, set[int]] = {}
    own: list[int] = []
    for one, rows in placed:
        own += rows.tolist() if one.is_own else []
        for row in rows.tolist():
            if one.due is not None and one.closes is not None:
                assert one.due <= one.closes
                due.setdefault(row, set()).add(one.due)
                assert one.due * 2 >= places.midpoints[row] + LONGEST
    assert all(len(each) == 1 for each in due.values())
    if tells:
        assert len(own) == len(set(own)) >= len(due)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_slice_beyond_a_time_is_the_first_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    grid = grid_of(random, keeps_right=False, is_one_stream=False)
    for time in random.integers(-1000, 1000, 20).tolist():
        number = grid.first_beyond(time)
        assert grid.begin_after(number - 1) <= time < grid.begin_after(number)
    assert grid.begin_after(1 << 70) == TIME_LIMIT


def test_slices_of_other_lengths_are_told_apart() -> None:
    grid = grid_of(np.random.default_rng(1), keeps_right=False, is_one_stream=False)
    lengths = (7_200_000_000, 7_200_002_000, 7_200_002_001)
    told = [replace(grid, length=length).ticks for length in lengths]
    assert told == ["3600000000", "3600001000", "3600001000.5"]
