"""The reference join: answers worked by hand, and what it accepts of choices made in floats."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given

from cpu_fallback.reference.join import best_is_acceptable, correlate
from tests.helpers.strategies import (
    Interval,
    JoinCase,
    join_cases,
)

# --- the join ---


def rows(*times: Interval | None, keys: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Rows with ids 0, 1, 2, ... and, if given, keys in the column ``k``."""
    result = []
    for i, ends in enumerate(times):
        low, high = (None, None) if ends is None else ends
        row = {"min_time": low, "max_time": high, "id": i}
        result.append(row if keys is None else {**row, "k": keys[i]})
    return result


# Within (-5, 5) at 0.5: left 0 meets right 0 (P = 1), 1 (P = 1) and 2 (P = 1/2); 1 none; 2 is null.
LEFT = rows((0, 10), (500, 510), None)
RIGHT = rows((5, 5), (4, 6), (10, 10), (100, 110))
ARGS = (LEFT, RIGHT, -5, 5, 0.5)


def test_pairs() -> None:
    assert correlate(*ARGS, probability=True) == [
        {"left_id": 0, "right_id": 0, "probability": 1.0},
        {"left_id": 0, "right_id": 1, "probability": float(Fraction(19, 20))},
        {"left_id": 0, "right_id": 2, "probability": 0.5},
    ]


def test_pairs_left() -> None:
    found = correlate(*ARGS, how="left", probability=True)
    assert found[3:] == [
        {"left_id": 1, "right_id": None, "probability": None},
        {"left_id": 2, "right_id": None, "probability": None},
    ]
    assert found[:3] == correlate(*ARGS, probability=True)


def test_lists() -> None:
    assert correlate(*ARGS, emit="lists") == [{"left_id": 0, "right_id": [0, 1, 2]}]
    found = correlate(*ARGS, emit="lists", how="left", probability=True)
    assert found[0]["probability"] == [1.0, 0.95, 0.5]
    assert found[1] == {"left_id": 1, "right_id": [], "probability": []}
    assert found[2] == {"left_id": 2, "right_id": [], "probability": []}


def test_lists_are_in_order_of_midpoint_then_upper_end_then_id() -> None:
    right = rows((7, 7), (4, 6), (5, 5), (5, 5), (3, 3))
    right[2]["id"], right[3]["id"] = 9, 8
    found = correlate(rows((5, 5)), right, -5, 5, 0.5, emit="lists")
    assert found == [{"left_id": 0, "right_id": [4, 8, 9, 1, 0]}]


def test_counts() -> None:
    assert correlate(*ARGS, emit="counts") == [{"left_id": 0, "matches": 3}]
    assert [row["matches"] for row in correlate(*ARGS, emit="counts", how="left")] == [3, 0, 0]


def test_best() -> None:
    assert correlate(*ARGS, emit="best", probability=True) == [
        {"left_id": 0, "right_id": 0, "probability": 1.0}
    ]
    found = correlate(*ARGS, emit="best", how="left", probability=True)
    assert found[1:] == [
        {"left_id": 1, "right_id": None, "probability": None},
        {"left_id": 2, "right_id": None, "probability": None},
    ]


@pytest.mark.parametrize(
    ("right", "window", "best"),
    [
        # all certain: the nearest midpoint
        (((3, 3), (9, 9), (1, 1)), (-20, 20), 2),
        # the window's middle, not zero, is what near means
        (((3, 3), (9, 9), (1, 1)), (0, 20), 1),
        # 4 to each side of the left midpoint: the smaller upper end
        (((4, 4), (-4, -4)), (-20, 20), 1),
        # midpoints 4 and -4, upper end 5 to both: the smaller lower end
        (((3, 5), (-13, 5)), (-20, 20), 1),
        # the same times: the smaller id
        (((4, 4), (4, 4)), (-20, 20), 0),
        # the more probable beats the nearer
        (((-100, 100), (9, 9)), (-20, 20), 1),
    ],
)
def test_ties_of_best(right: tuple[Interval, ...], window: Interval, best: int) -> None:
    found = correlate(rows((0, 0)), rows(*right), *window, 0.1, emit="best")
    assert found == [{"left_id": 0, "right_id": best}]


def test_semi_and_anti() -> None:
    assert correlate(*ARGS, how="semi") == [{"left_id": 0}]
    assert correlate(*ARGS, how="anti") == [{"left_id": 1}, {"left_id": 2}]


def test_keys_must_be_equal_and_null_keys_never_match() -> None:
    left = rows((0, 0), (0, 0), (0, 0), keys=["a", "b", None])
    right = rows((0, 0), (0, 0), (0, 0), keys=["a", None, "c"])
    assert correlate(left, right, 0, 0, 1.0, by=["k"]) == [{"k": "a", "left_id": 0, "right_id": 0}]
    assert correlate(left, right, 0, 0, 1.0, by=["k"], how="anti") == [
        {"k": "b", "left_id": 1},
        {"k": None, "left_id": 2},
    ]


@pytest.mark.parametrize("name", ["min_time", "max_time"])
def test_a_time_with_one_null_end_never_matches(name: str) -> None:
    broken = [{**rows((0, 0))[0], name: None}]
    whole = rows((0, 0))
    assert correlate(broken, whole, 0, 0, 1.0) == []
    assert correlate(whole, broken, 0, 0, 1.0) == []


def test_duplicate_rows_each_count() -> None:
    twice = rows((0, 0)) * 2
    assert len(correlate(twice, twice, 0, 0, 1.0)) == 4


def test_empty_sides() -> None:
    some = rows((0, 0))
    assert correlate([], some, 0, 0, 1.0, how="left") == []
    assert correlate(some, [], 0, 0, 1.0) == []
    assert correlate(some, [], 0, 0, 1.0, how="left") == [{"left_id": 0, "right_id": None}]


@pytest.mark.parametrize(
    "options",
    [
        {"how": "outer"},
        {"emit": "sets"},
        {"how": "semi", "emit": "lists"},
        {"how": "anti", "emit": "counts"},
        {"how": "semi", "probability": True},
        {"emit": "counts", "probability": True},
        {"confidence": 0.0},
        {"confidence": 1.1},
        {"confidence": float("nan")},
        {"lo": 6},
    ],
)
def test_invalid_options(options: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"lo": -5, "hi": 5, "confidence": 0.5, **options}
    with pytest.raises(ValueError, match=r"expected|takes no|has no pair"):
        correlate(LEFT, RIGHT, **arguments)


# --- accepting a choice made in floats ---


def accepts(left: Interval, right: Sequence[Interval], chosen: int | None, **extra: Any) -> bool:
    arguments: dict[str, Any] = {"lo": -5, "hi": 5, "confidence": 0.1, **extra}
    return best_is_acceptable(rows(left)[0], rows(*right), chosen, **arguments)


def test_acceptable_is_the_exact_best() -> None:
    assert accepts((0, 10), [(12, 14), (5, 6)], 1)
    assert not accepts((0, 10), [(12, 14), (5, 6)], 0)
    assert not accepts((0, 10), [(12, 14), (5, 6)], None)
    assert not accepts((0, 10), [(12, 14), (5, 6)], 7)


def test_acceptable_is_nearly_the_best() -> None:
    # P = 1/2, and less than 2**-61 below it: the same float64
    right, narrow = [(0, 2**60), (0, 2**60 + 1)], {"lo": 0, "hi": 2**59}
    assert accepts((0, 0), right, 0, **narrow)
    assert accepts((0, 0), right, 1, **narrow)
    exactly = {**narrow, "tolerance": Fraction(0)}
    assert accepts((0, 0), right, 0, **exactly)
    assert not accepts((0, 0), right, 1, **exactly)


def test_acceptable_keeps_the_tie_rule_where_floats_agree() -> None:
    assert accepts((0, 0), [(3, 3), (1, 1)], 1)
    assert not accepts((0, 0), [(3, 3), (1, 1)], 0)
    same_times = [(0, 10), (0, 10)]
    assert accepts((0, 0), same_times, 0)
    assert not accepts((0, 0), same_times, 1)


def test_acceptable_without_a_match() -> None:
    assert accepts((0, 0), [(90, 90)], None)
    assert not accepts((0, 0), [(90, 90)], 0)


def test_acceptable_respects_keys() -> None:
    left = rows((0, 0), keys=["a"])[0]
    right = rows((0, 0), (4, 4), keys=["b", "a"])
    assert best_is_acceptable(left, right, 1, -5, 5, 1.0, by=["k"])
    assert not best_is_acceptable(left, right, 0, -5, 5, 1.0, by=["k"])


@given(join_cases(max_size=8))
def test_the_answers_agree_with_each_other(case: JoinCase) -> None:
    args = (*case[:5],)
    pairs = correlate(*args, by=case.by)
    counts = correlate(*args, by=case.by, emit="counts", how="left")
    lists = correlate(*args, by=case.by, emit="lists", how="left")
    semi = correlate(*args, by=case.by, how="semi")
    anti = correlate(*args, by=case.by, how="anti")
    best = correlate(*args, by=case.by, emit="best", how="left")
    assert len(pairs) == sum(row["matches"] for row in counts)
    assert [row["matches"] for row in counts] == [len(row["right_id"]) for row in lists]
    assert len(semi) + len(anti) == len(case.left)
    for left_row, row in zip(case.left, best, strict=True):
        assert best_is_acceptable(left_row, case.right, row["right_id"], *case[2:])
