"""Interval timestamps as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from event_model.errors import DataError
from event_model.timestamps import IntervalEvents, check_intervals
from tests.strategies import LIMIT


def events(*intervals: tuple[int, int]) -> IntervalEvents:
    times = np.array(intervals, np.int64).reshape(-1, 2)
    return IntervalEvents(times[:, 0].copy(), times[:, 1].copy())


def test_lengths_and_midpoints() -> None:
    side = events((0, 10), (-3, 4), (5, 5), (-LIMIT, LIMIT), (LIMIT, LIMIT))
    assert side.lengths.tolist() == [10, 7, 0, 2 * LIMIT, 0]
    assert side.midpoints.tolist() == [10, 1, 10, 0, 2 * LIMIT]
    assert len(side) == 5
    check_intervals(side, "left")


def test_no_events() -> None:
    check_intervals(events(), "left")
    assert len(events()) == 0


@pytest.mark.parametrize("interval", [(0, LIMIT + 1), (-LIMIT - 1, 0), (2**62, 2**62)])
def test_out_of_range(interval: tuple[int, int]) -> None:
    with pytest.raises(DataError, match="right: a time reaches 2\\^61"):
        check_intervals(events((0, 1), interval, (0, 1)), "right")


def test_wrong_order() -> None:
    with pytest.raises(DataError, match=r"left: .*min_time above max_time"):
        check_intervals(events((0, 1), (5, 4)), "left")
