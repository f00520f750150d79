"""Length classes: ranges that cover, fit tightly and are cut where it pays."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.hunt.intervals import LIMIT
from coincide.model.classes import ShapeClasses, class_ends, length_classes
from coincide.model.options import MAX_CLASSES

lengths_lists = st.lists(
    st.one_of(st.integers(0, 9), st.integers(0, 10**6), st.integers(0, 2 * LIMIT)),
    min_size=1,
    max_size=200,
)


def weighted_width(lengths: np.ndarray, classes: ShapeClasses) -> int:
    counts = np.bincount(classes.assign(lengths), minlength=classes.count)
    return int(counts @ (classes.highest - classes.lowest))


def check_classes(lengths: np.ndarray, classes: ShapeClasses, most: int) -> None:
    assert 1 <= classes.count <= most
    assert (classes.lowest <= classes.highest).all()
    assert (classes.highest[:-1] < classes.lowest[1:]).all()
    assigned = classes.assign(lengths)
    for k in range(classes.count):
        members = lengths[assigned == k]
        assert (members.min(), members.max()) == (classes.lowest[k], classes.highest[k])
        assert classes.share[k] == members.size / lengths.size


@given(lengths_lists, st.integers(1, MAX_CLASSES))
def test_classes_cover_and_fit(values: list[int], most: int) -> None:
    lengths = np.array(values, np.int64)
    check_classes(lengths, length_classes(lengths, most), most)


@pytest.mark.parametrize("most", [1, 2, 5, 16])
@pytest.mark.parametrize("n", [4095, 4097, 50_000])
def test_many_events(most: int, n: int) -> None:
    lengths = np.random.default_rng(n).lognormal(8, 2, n).astype(np.int64)
    classes = length_classes(lengths, most)
    check_classes(lengths, classes, most)
    assert classes.count == most


def test_few_distinct_lengths_are_classes_of_their_own() -> None:
    lengths = np.array([200, 400, 200, 0, 400] * 3000, np.int64)
    classes = length_classes(lengths, 8)
    assert classes.lowest.tolist() == classes.highest.tolist() == [0, 200, 400]
    assert classes.share.tolist() == [0.2, 0.4, 0.4]


def test_one_outlier_gets_a_class_of_its_own() -> None:
    lengths = np.random.default_rng(1).integers(1000, 2000, 100_000)
    lengths[77_777] = 10**9
    classes = length_classes(lengths, 2)
    assert classes.lowest.tolist()[1:] == [10**9]


def test_a_rare_longest_length_that_the_sample_misses_is_covered() -> None:
    lengths = np.full(100_001, 5, np.int64)
    lengths[99_999] = 7
    lengths[3] = 2
    classes = length_classes(lengths, 16)
    assert classes.lowest.tolist() == classes.highest.tolist() == [2, 5, 7]


@given(st.lists(st.integers(0, 60), min_size=4, max_size=40), st.integers(1, 4))
def test_cuts_are_the_best(values: list[int], most: int) -> None:
    lengths = np.array(values, np.int64)
    distinct = np.unique(lengths)
    # The program weighs an added longest and shortest length too.
    weighed = np.append(lengths, [lengths.min(), lengths.max()])

    def cost(cuts: tuple[int, ...]) -> int:
        parts = np.split(distinct, cuts)
        return sum(int(np.isin(weighed, part).sum()) * int(part[-1] - part[0]) for part in parts)

    best = min(
        cost(cuts)
        for k in range(min(most, distinct.size))
        for cuts in combinations(range(1, distinct.size), k)
    )
    classes = length_classes(lengths, most)
    found = sum(
        int(((weighed >= a) & (weighed <= b)).sum()) * int(b - a)
        for a, b in zip(classes.lowest, classes.highest, strict=True)
    )
    assert found == best


def test_more_classes_never_cost_more() -> None:
    lengths = np.random.default_rng(4).lognormal(10, 1, 3000).astype(np.int64)
    widths = [weighted_width(lengths, length_classes(lengths, k)) for k in range(1, 17)]
    assert widths[0] > 5 * widths[-1]
    assert all(b <= 1.02 * a for a, b in pairwise(widths))


def test_several_limits_at_once_give_what_each_gives_alone() -> None:
    lengths = np.random.default_rng(5).lognormal(8, 2, 5000).astype(np.int64)
    limits = [2, 16, 1, 5, 99]
    for limit, ends in zip(limits, class_ends(lengths, limits), strict=True):
        assert ends.tolist() == class_ends(lengths, [limit])[0].tolist()
        assert ends.size == min(limit, MAX_CLASSES)


def test_no_lengths() -> None:
    classes = length_classes(np.empty(0, np.int64), 5)
    assert classes.count == 1
    assert classes.assign(np.empty(0, np.int64)).size == 0


def test_more_than_the_limit_is_cut_to_it() -> None:
    lengths = np.arange(1000, dtype=np.int64)
    assert length_classes(lengths, 99).count == MAX_CLASSES
