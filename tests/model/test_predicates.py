"""Timing predicates."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide import Tick, Within, deadline, delay, mutual_deadline, within
from coincide.model.errors import ConditionError

US = Tick("us")


def test_constructors() -> None:
    assert mutual_deadline(5) == within(-5, 5) == Within(-5, 5)
    assert mutual_deadline("5ms").window(US) == (-5000, 5000)
    assert mutual_deadline(0).window(US) == (0, 0)
    assert deadline(5) == Within(None, 5)
    assert delay("1s") == Within("1s", None)


@pytest.mark.parametrize(
    ("closed", "ticks", "words"),
    [
        ("both", (0, 5000), "0s <= delta <= 5ms"),
        ("left", (0, 4999), "0s <= delta < 5ms"),
        ("right", (1, 5000), "0s < delta <= 5ms"),
        ("neither", (1, 4999), "0s < delta < 5ms"),
    ],
)
def test_an_end_that_does_not_belong_is_moved_in_by_a_tick(
    closed: Any, ticks: tuple[int, int], words: str
) -> None:
    predicate = within("0s", "5ms", closed=closed)
    assert predicate.window(US) == ticks
    assert str(predicate) == words
    assert predicate.mirrored().window(US) == (-ticks[1], -ticks[0])
    assert predicate.mirrored().mirrored().window(US) == ticks
    same = [pickle.loads(pickle.dumps(predicate)), eval(repr(predicate)), predicate]
    assert len(set(same)) == 1
    assert (predicate == within("0s", "5ms")) == (closed == "both")


def test_closed_of_a_mutual_deadline() -> None:
    assert mutual_deadline("5ms", closed="left").window(US) == (-5000, 4999)
    assert mutual_deadline(1, closed="neither").window(Tick()) == (0, 0)


@pytest.mark.parametrize(
    ("ends", "closed"), [((5, 5), "left"), ((5, 5), "right"), ((5, 6), "neither")]
)
def test_a_window_emptied_by_its_ends_is_refused(ends: tuple[int, int], closed: Any) -> None:
    with pytest.raises(ConditionError, match=r"closed='\w+' leaves no whole tick between 5 and"):
        within(*ends, closed=closed).window(Tick())


def test_closed_is_one_of_four() -> None:
    with pytest.raises(ConditionError, match="closed must be one of both, left, right, neither"):
        within(0, 1, closed="open")  # type: ignore[arg-type]


@pytest.mark.parametrize("predicate", [deadline(5), delay("5s"), deadline("-1s")])
def test_a_join_needs_both_ends(predicate: Within) -> None:
    with pytest.raises(ConditionError, match="needs both ends") as caught:
        predicate.window(US)
    assert "within(" in str(caught.value)


def test_ints_and_texts_mix() -> None:
    assert within(-7, "1ms").window(US) == (-7, 1000)
    with pytest.raises(ConditionError, match=r"lo .* above hi"):
        within(2000, "1ms").window(US)


@pytest.mark.parametrize("ends", [(1, 0), ("1s", "999ms"), ("0.1s", "-0.1s")])
def test_an_empty_window_is_refused_at_once(ends: tuple[Any, Any]) -> None:
    with pytest.raises(ConditionError, match=r"lo .* above hi"):
        within(*ends)


@pytest.mark.parametrize(
    "ends", [(None, None), (0.5, 1), (0, 1.0), (True, 2), ("x", "y"), (0, 2**61), ([], 1)]
)
def test_bad_bounds(ends: tuple[Any, Any]) -> None:
    with pytest.raises(ConditionError):
        Within(*ends)


def test_negative_mutual_deadline() -> None:
    for d in (-5, "-5s", "- 5 ms"):
        with pytest.raises(ConditionError, match=r"deadline must not be negative .found .*5"):
            mutual_deadline(d)


@pytest.mark.parametrize("d", [None, 0.5, "soon", [], 2**61])
def test_mutual_deadline_that_is_no_duration(d: Any) -> None:
    with pytest.raises(ConditionError):
        mutual_deadline(d)


@pytest.mark.parametrize(
    ("predicate", "mirrored"),
    [
        (within(-3, 5), (-5, 3)),
        (within("-3ms", "5ms"), (-5000, 3000)),
        (within("+3ms", " 5 ms"), (-5000, -3000)),
        (within("- 3ms", 7), (-7, 3000)),
        (within("0s", "0s"), (0, 0)),
    ],
)
def test_mirrored(predicate: Within, mirrored: tuple[int, int]) -> None:
    assert predicate.mirrored().window(US) == mirrored
    assert predicate.mirrored().mirrored().window(US) == predicate.window(US)


def test_mirrored_one_sided() -> None:
    assert deadline(5).mirrored() == delay(-5)


@given(st.integers(-(2**61) + 1, 2**61 - 1), st.integers(-(2**61) + 1, 2**61 - 1))
def test_any_window(a: int, b: int) -> None:
    lo, hi = sorted((a, b))
    predicate = within(lo, hi)
    assert predicate.window(Tick()) == (lo, hi)
    assert predicate.mirrored().window(Tick()) == (-hi, -lo)


def test_predicates_are_values() -> None:
    assert len({within(0, 1), within(0, 1), within(0, 2)}) == 2
    assert pickle.loads(pickle.dumps(within(0, "1s"))) == within(0, "1s")
    assert str(within("-1s", 5)) == "-1s <= delta <= 5"
    assert str(deadline(5)) == "delta <= 5"
    assert str(delay(5)) == "delta >= 5"
