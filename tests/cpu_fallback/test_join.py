"""The interval join against the reference: pairs, counts and best matches, however it is run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from coincide import Window
from coincide.model.counters import JoinCounters
from coincide.model.threads import blocks_of
from coincide.model.timestamps import IntervalEvents, IntervalPairs
from cpu_fallback import EventJoin, event_probabilities
from cpu_fallback.reference import join as reference
from tests.helpers.comparison import (
    PROBABILITY_TOLERANCE,
    matching_rows,
    pair_probability,
    probability_is_right,
    sides_of,
    window_of,
)
from tests.helpers.strategies import JoinCase, random_cases

Pairs = list[tuple[int, int]]

N_CASES = 60


@pytest.fixture(scope="module")
def solved() -> list[tuple[JoinCase, Pairs]]:
    """Cases with the row pairs that the reference finds."""
    return [(case, matching_rows(case)) for case in random_cases(71, N_CASES)]


def pairs_of(join: EventJoin, start: int = 0, stop: int | None = None) -> Pairs:
    """Row pairs of a range of base positions."""
    stop = join.counts.size if stop is None else stop
    left, right = join.pairs(start, stop, join.left_order, join.right_order)
    return sorted(zip(left.tolist(), right.tolist(), strict=True))


def check_join(join: EventJoin, expected: Pairs, n_left: int) -> None:
    assert pairs_of(join) == expected
    per_row = np.zeros(n_left, np.int64)
    per_row[join.left_order] = join.counts
    assert per_row.tolist() == np.bincount([i for i, _ in expected], minlength=n_left).tolist()
    assert join.offsets.tolist() == [0, *np.cumsum(join.counts).tolist()]
    assert join.counters.pairs == len(expected)
    assert join.counters.probed <= join.counters.candidates
    assert len(expected) <= join.counters.candidates
    right = join.matches(0, n_left, join.right_order)
    assert sorted(right.tolist()) == sorted(j for _, j in expected)


def blocks_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coincide.model.threads._SMALLEST_BLOCK", 1)


@pytest.mark.parametrize("classes", [None, 1, 2, 3, 5, 16])
def test_any_number_of_classes(solved: list[tuple[JoinCase, Pairs]], classes: int | None) -> None:
    for case, expected in solved:
        join = EventJoin(*sides_of(case), IntervalPairs(window_of(case)), classes=classes)
        check_join(join, expected, len(case.left))


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_in_tiny_blocks(
    solved: list[tuple[JoinCase, Pairs]], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks_of_one(monkeypatch)
    for case, expected in solved:
        join = EventJoin(
            *sides_of(case), IntervalPairs(window_of(case)), classes=2, threads=threads
        )
        assert len(blocks_of(40, threads)) == threads * 4
        check_join(join, expected, len(case.left))


@pytest.mark.parametrize("batch_pairs", [1, 2, 7, 10**6])
def test_chunks(solved: list[tuple[JoinCase, Pairs]], batch_pairs: int) -> None:
    for case, expected in solved:
        join = EventJoin(*sides_of(case), IntervalPairs(window_of(case)))
        found: Pairs = []
        position = 0
        for start, stop in join.chunks(batch_pairs):
            assert start == position < stop
            position = stop
            part = pairs_of(join, start, stop)
            assert len(part) <= batch_pairs or stop - start == 1
            assert stop - start <= batch_pairs
            found += part
        assert position == len(case.left)
        assert sorted(found) == expected


def test_swapped_sides_mirror(solved: list[tuple[JoinCase, Pairs]]) -> None:
    for case, expected in solved:
        left, right = sides_of(case)
        mirrored = Window(-case.hi, -case.lo, case.confidence)
        assert pairs_of(EventJoin(right, left, IntervalPairs(mirrored))) == sorted(
            (j, i) for i, j in expected
        )


@pytest.mark.parametrize("shift", [1, -(10**17), 2**58])
def test_shifted_times(solved: list[tuple[JoinCase, Pairs]], shift: int) -> None:
    for case, expected in solved:
        shifted = [
            IntervalEvents(s.min_time + shift, s.max_time + shift, s.group, s.groups)
            for s in sides_of(case)
        ]
        assert pairs_of(EventJoin(*shifted, IntervalPairs(window_of(case)))) == expected


def test_one_shifted_side_shifts_the_window(solved: list[tuple[JoinCase, Pairs]]) -> None:
    for case, expected in solved:
        left, right = sides_of(case)
        right = IntervalEvents(
            right.min_time + 977, right.max_time + 977, right.group, right.groups
        )
        window = Window(case.lo + 977, case.hi + 977, case.confidence)
        assert pairs_of(EventJoin(left, right, IntervalPairs(window), classes=3)) == expected


def test_values_are_written_by_position() -> None:
    left = IntervalEvents(np.array([9, 0, 4]), np.array([9, 0, 4]))
    right = IntervalEvents(np.array([4, 9, 0, 5]), np.array([4, 9, 0, 5]))
    join = EventJoin(left, right, IntervalPairs(Window(0, 0, 1.0)))
    ids = np.array([90, 0, 40]), np.array([400, 900, 1, 500])
    values = ids[0][join.left_order], ids[1][join.right_order]
    found = join.pairs(0, 3, *values)
    assert [v.tolist() for v in found] == [[0, 40, 90], [1, 400, 900]]
    assert join.matches(1, 3, values[1]).tolist() == [400, 900]


def best_rows(join: EventJoin, ranks: np.ndarray) -> Iterator[tuple[int, int | None, float]]:
    n = join.left_order.size
    # In two runs, the second from the middle of a block.
    runs = [join.best(a, b, ranks[join.right_order]) for a, b in ((0, n // 3), (n // 3, n))]
    best, probabilities = (np.concatenate([run[i] for run in runs]) for i in range(2))
    assert runs[0][2] + runs[1][2] == join.counters
    for row, target, p in zip(join.left_order, best, probabilities, strict=True):
        yield int(row), None if target < 0 else int(join.right_order[target]), float(p)


@pytest.mark.parametrize("classes", [None, 1, 4])
@pytest.mark.parametrize("threads", [1, 3])
def test_best(
    solved: list[tuple[JoinCase, Pairs]],
    classes: int | None,
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks_of_one(monkeypatch)
    for case, _ in solved:
        keys = [(row["max_time"] or 0, row["min_time"] or 0, row["id"]) for row in case.right]
        ranks = np.empty(len(keys), np.int64)
        ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        join = EventJoin(
            *sides_of(case), IntervalPairs(window_of(case)), classes=classes, threads=threads
        )
        seen = set()
        for row, chosen, p in best_rows(join, ranks):
            seen.add(row)
            left = case.left[row]
            chosen_id = None if chosen is None else case.right[chosen]["id"]
            assert reference.best_is_acceptable(left, case.right, chosen_id, *case[2:])
            if chosen is None:
                assert np.isnan(p)
            else:
                exact = pair_probability(left, case.right[chosen], case.lo, case.hi)
                assert probability_is_right(p, exact, PROBABILITY_TOLERANCE)
        assert seen == set(range(len(case.left)))


def test_event_probabilities(solved: list[tuple[JoinCase, Pairs]]) -> None:
    for case, expected in solved:
        rows = np.array(expected, np.int64).reshape(-1, 2)
        left, right = sides_of(case)
        model = IntervalPairs(window_of(case))
        found = event_probabilities(left, rows[:, 0], right, rows[:, 1], model)
        for (i, j), p in zip(expected, found, strict=True):
            exact = pair_probability(case.left[i], case.right[j], case.lo, case.hi)
            assert probability_is_right(p, exact, PROBABILITY_TOLERANCE)


def lognormal_side(seed: int, n: int, groups: int) -> IntervalEvents:
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, 40 * n // groups, n))
    # Far apart now and then, so that cursors gallop.
    start += np.cumsum(rng.random(n) < 0.001) * 10_000
    length = rng.lognormal(4, 1, n).astype(np.int64)
    return IntervalEvents(start, start + length, rng.integers(-1, groups, n), groups)


def naive_pairs(left: IntervalEvents, right: IntervalEvents, window: Window) -> Pairs:
    """Every pair of equal groups, decided by the formula."""
    i, j = np.nonzero((left.group[:, None] == right.group[None, :]) & (left.group >= 0)[:, None])
    p = event_probabilities(left, i, right, j, IntervalPairs(window))
    kept = p >= window.confidence - 2.0**-50
    return list(zip(i[kept].tolist(), j[kept].tolist(), strict=True))


@pytest.mark.parametrize("groups", [1, 5, 300])
@pytest.mark.parametrize("window", [Window(-200, 150, 0.7), Window(30, 60, 0.2)])
def test_many_events(groups: int, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coincide.model.threads._SMALLEST_BLOCK", 64)
    left, right = lognormal_side(1, 2000, groups), lognormal_side(2, 1500, groups)
    expected = naive_pairs(left, right, window)
    assert len(expected) > 100
    for classes, threads in ((None, 1), (None, 3), (1, 1), (1, 3), (4, 2), (16, 1)):
        join = EventJoin(left, right, IntervalPairs(window), classes=classes, threads=threads)
        check_join(join, expected, len(left))


def test_more_classes_probe_less() -> None:
    left, right = lognormal_side(3, 5000, 1), lognormal_side(4, 5000, 1)
    probed = [
        EventJoin(left, right, IntervalPairs(Window(-2000, 2000, 0.8)), classes=k).counters.probed
        for k in (1, 4, 16)
    ]
    assert probed == sorted(probed, reverse=True)
    assert probed[2] < probed[0] / 4


def test_equal_lengths_probe_nothing() -> None:
    for length in (0, 100):
        start = np.arange(0, 50_000, 25)
        side = IntervalEvents(start, start + length)
        counters = EventJoin(side, side, IntervalPairs(Window(-500, 500, 0.9))).counters
        assert counters.probed == 0
        assert counters.candidates == counters.pairs > start.size


def test_certain_pairs_are_not_probed_at_confidence_1() -> None:
    start = np.arange(0, 50_000, 25)
    side = IntervalEvents(start, start + 10 + start % 3)
    counters = EventJoin(side, side, IntervalPairs(Window(-500, 500, 1.0))).counters
    assert counters.probed < counters.pairs / 4


@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (3, 0)])
def test_empty_sides(sizes: tuple[int, int]) -> None:
    left, right = (
        IntervalEvents(np.arange(n), np.arange(n), np.zeros(n, np.int64), 1) for n in sizes
    )
    join = EventJoin(left, right, IntervalPairs(Window(-5, 5, 0.5)), threads=2)
    check_join(join, [], sizes[0])
    best, _, counters = join.best(0, sizes[0], np.arange(sizes[1]))
    assert counters == JoinCounters()
    assert best.tolist() == [-1] * sizes[0]


def test_events_of_equal_midpoints_keep_the_order_of_their_rows() -> None:
    rng = np.random.default_rng(5)
    midpoint, half = rng.integers(0, 300, 20_000), rng.integers(0, 40, 20_000)
    side = IntervalEvents(midpoint - half, midpoint + half)
    join = EventJoin(side, side, IntervalPairs(Window(0, 0, 1.0)), classes=1)
    expected = np.argsort(side.midpoints, kind="stable")
    assert join.left_order.tolist() == join.right_order.tolist() == expected.tolist()
    assert join._sides.base.shapes.tolist() == side.lengths[expected].tolist()
