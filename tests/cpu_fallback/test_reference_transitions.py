"""The reference of region transitions: answers worked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cpu_fallback.reference.transitions import Event, Row, transitions
from tests.helpers.transition_cases import GARAGE, at


def between(low: int, high: int, kind: str) -> Event:
    return 1, "car", kind, low, high


def named(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Transition and latest time of each row."""
    return [(row[2], row[6]) for row in rows]


def test_a_parking_garage() -> None:
    rows, undecided = transitions(GARAGE, within=180, confidence=1.0)
    assert sorted(row[1:7] for row in rows) == [
        ("free", "I>O", 0, 0, 150, 150),
        ("free", "O>!I", 150, 150, 330, 330),
        ("pays", "I>!O", 0, 0, 180, 180),
        ("pays", "I>!O", 300, 300, 480, 480),
        ("pays", "O>I", 181, 181, 300, 300),
        ("still there", "I>!O", 400, 400, 580, 580),
        ("to the second", "I>O", 0, 0, 180, 180),
        ("to the second", "O>!I", 180, 180, 360, 360),
    ]
    assert undecided == 2  # "pays" left at 1000, and who came at 900 may leave by 1080


def test_the_end_of_the_data_decides_what_is_a_stay() -> None:
    assert transitions([at(0, "I")], 10, 1.0, until=10) == ([], 1)  # it may leave at 10
    rows, undecided = transitions([at(0, "I")], 10, 1.0, until=11)
    assert (named(rows), undecided) == ([("I>!O", 10)], 0)
    assert transitions([], 10, 1.0) == ([], 0)


def test_intervals_that_do_not_overlap() -> None:
    # Δ is triangular on [0, 20], so P(Δ <= 10) = 1/2.
    events = [between(0, 10, "I"), between(10, 20, "O")]
    assert named(transitions(events, 10, 0.5)[0]) == [("I>!O", 20), ("I>O", 20)]
    assert named(transitions(events, 10, 0.51)[0]) == []
    assert named(transitions(events, 15, 0.875)[0]) == [("I>O", 20)]
    assert named(transitions(events, 5, 0.875)[0]) == [("I>!O", 15)]


def test_intervals_that_overlap_are_known_to_be_in_order() -> None:
    # In and out between two readings: Δ is that of two points in [0, 10], P(Δ > 5) = 1/4.
    events = [between(0, 10, "I"), between(0, 10, "O")]
    assert named(transitions(events, 5, 0.75)[0]) == [("I>O", 10)]
    assert named(transitions(events, 5, 0.76)[0]) == []
    assert named(transitions(events, 5, 0.25, until=0)[0]) == [("I>!O", 15), ("I>O", 10)]
    assert named(transitions(events, 10, 1.0)[0]) == [("I>O", 10)]
    assert named(transitions(events, 0, 1.0, until=0)[0]) == [("I>!O", 10)]


def test_the_clock_passes_an_interval_little_by_little() -> None:
    waiting = [between(0, 10, "I")]
    assert transitions(waiting, 5, 0.5, until=9) == ([], 1)
    assert named(transitions(waiting, 5, 0.5, until=10)[0]) == [("I>!O", 15)]


@pytest.mark.parametrize(
    ("repeated", "expected"),
    [("first", [("I>O", 6)]), ("last", [("I>!O", 3), ("I>O", 6)])],
)
def test_repeated_events(repeated: str, expected: list[tuple[str, int]]) -> None:
    events = [at(0, "I"), at(5, "I"), at(6, "O")]
    assert named(
        transitions(events, 3 if repeated == "last" else 6, 1.0, repeated=repeated)[0]
    ) == (expected)
    with pytest.raises(ValueError, match="repeats"):
        transitions(events, 3, 1.0)
