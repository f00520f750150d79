"""Interval timestamps as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from bench.hunt.intervals import LIMIT
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window
from coincide.model.sides import LEFT, RIGHT
from coincide.model.templates.template import Template, template_table
from coincide.model.timestamps import IntervalEvents, MixedPairs, are_valid_times


def events(*intervals: tuple[int, int]) -> IntervalEvents:
    times = np.array(intervals, np.int64).reshape(-1, 2)
    return IntervalEvents(times[:, 0].copy(), times[:, 1].copy())


def test_lengths_and_midpoints() -> None:
    side = events((0, 10), (-3, 4), (5, 5), (-LIMIT, LIMIT), (LIMIT, LIMIT))
    assert side.lengths.tolist() == [10, 7, 0, 2 * LIMIT, 0]
    assert side.midpoints.tolist() == [10, 1, 10, 0, 2 * LIMIT]
    assert len(side) == 5


def test_no_events() -> None:
    assert len(events()) == 0


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("interval", "valid"),
    [
        ((-LIMIT, -LIMIT + 50), True),
        ((LIMIT - 50, LIMIT), True),
        ((7, 7), True),
        ((0, 51), False),
        ((5, 4), False),
        ((LIMIT, LIMIT + 1), False),
        ((-LIMIT - 1, -LIMIT), False),
        ((-(2**63), 2**63 - 1), False),
    ],
)
def test_valid_times(interval: tuple[int, int], valid: bool, place: int) -> None:
    rows = [(0, 1), (3, 50)]
    rows.insert(place, interval)
    side = events(*rows)
    assert are_valid_times(side.min_time, side.max_time, 50) is valid


def test_no_times_are_valid() -> None:
    assert are_valid_times(events().min_time, events().max_time, 0) is True


@pytest.mark.parametrize("longest", [10, 2**60, 2 * LIMIT])
@pytest.mark.parametrize("end", [100, LIMIT])
def test_bands_of_the_longest_intervals_beside_templates(longest: int, end: int) -> None:
    """They hold what supports can reach, or all that int64 holds."""
    table = template_table({"": Template([0, 10], [1.0])})
    model = MixedPairs(Window(-end, end, 0.5), None, table)
    lengths, templates = ShapeClasses.one(0, longest), ShapeClasses.one(0, 0)
    outer = min(2 * end + longest + 10, 2**63 - 2)
    assert model.bands(LEFT, lengths, templates)[0, 0].tolist() == [
        -outer,
        -outer,
        -outer - 1,
        outer,
    ]
    mirrored = model.bands(RIGHT, templates, lengths)[0, 0].tolist()
    assert mirrored == [-outer, outer + 1, outer, outer]
