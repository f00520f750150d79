"""Slices without end: each pair meets once, and no event is late before its time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coincide.model.units import TIME_LIMIT
from spark_plugin.tasks.grid import Grid, Slices
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.slice_plan import Places

LONGEST = 40
"""Half ticks: the longest distance of an event's max_time from its midpoint."""


def grid_of(random: np.random.Generator, *, keeps_right: bool, is_one_stream: bool) -> Grid:
    first, last = np.sort(random.integers(-300, 301, 2)).tolist()
    right = max(last, 0) if keeps_right or is_one_stream else last
    left = right if is_one_stream else max(0, -first) if keeps_right else 0
    return Grid(
        length=int(random.integers(30, 400)), beyond=LONGEST + max(left, right),
        buckets=int(random.choice([1, 3])), reach=Reach(first, last), useful=(LONGEST, LONGEST),
        nanoseconds=1_000_000, keeps_right=keeps_right, is_one_stream=is_one_stream,
        delay=int(random.choice([0, 300])),
        together=1 if keeps_right else int(random.choice([1, 3, 16])),
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
        tells = not (i and grid.is_one_stream)
        check_side(grid, places, placed[i], is_left=i == 0, tells=tells)
    left, right = sides
    meetings: dict[tuple[int, int], int] = {}
    for one, rows in placed[0]:
        for other, others in placed[1]:
            if one.first is not None and one.label == other.label and one.is_own:
                for a, b in ((int(a), int(b)) for a in rows for b in others):
                    # A pack is there from its first slice to its last one.
                    home = int(left.midpoints[a]) // grid.length
                    assert one.first <= home <= one.last
                    if other.first is not None and other.first <= home <= other.last:
                        meetings[a, b] = meetings.get((a, b), 0) + 1
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
    grid: Grid,
    places: Places,
    placed: list[tuple[Slices, np.ndarray]],
    *,
    is_left: bool,
    tells: bool,
) -> None:
    """Each event comes out once; it is late after its max_time, before slices of its packs close."""
    due = grid.due(places.midpoints, is_left=is_left)
    own: list[int] = []
    timed: set[int] = set()
    for one, rows in placed:
        own += rows.tolist() if one.is_own else []
        if one.first is not None:
            timed |= set(rows.tolist())
            assert one.due_first == due[rows].min() <= one.first <= one.last
            assert one.due_last == due[rows].max() <= one.last
            assert one.first // grid.together == one.last // grid.together
            for row in rows.tolist():
                assert grid.closes(int(due[row])) * 2 >= places.midpoints[row] + LONGEST
    if tells:
        assert len(own) == len(set(own))
        assert timed <= set(own)


def test_slices_that_close_together_are_one_pack() -> None:
    grid = Grid(
        length=100, beyond=0, buckets=1, reach=Reach(-10, 10), useful=(0, 0), nanoseconds=10**6,
        keeps_right=False, is_one_stream=False, delay=200, together=16,
    )  # fmt: skip
    places = Places(np.arange(0, 2000, 10), shapes=np.zeros(200, np.int64))
    found = [(one.first, one.last, rows.size) for one, rows in grid.slices_of(places, is_left=True)]
    assert found == [(0, 15, 160), (16, 16, 10), (17, 17, 10), (18, 18, 10), (19, 19, 10)]
    soon = replace(grid, delay=0).slices_of(places, is_left=True)
    assert [(one.first, one.last) for one, _ in soon] == [(0, 15), (16, 18), (19, 19)]


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
