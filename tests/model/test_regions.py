"""The papers' regions, by brute force over targets."""

from __future__ import annotations

import pytest

from bench.papers.regions import region_bounds
from coincide import Window
from cpu_fallback.reference import decision as reference

Range = tuple[int, int]


def qualifying(base: Range, length: int, window: Window) -> list[int]:
    """The max_time of every target of a length that qualifies."""
    reach = window.width + (base[1] - base[0]) + length + 5
    center = base[1] + (window.lo + window.hi) // 2
    return [
        end
        for end in range(center - reach, center + reach + 1)
        if reference.qualifies(
            reference.satisfaction_probability(*base, end - length, end, window.lo, window.hi),
            window.confidence,
        )
    ]


@pytest.mark.parametrize("base", [(0, 0), (3, 10), (-50, -44)])
@pytest.mark.parametrize("lengths", [(0, 0), (4, 4), (0, 5), (6, 11)])
@pytest.mark.parametrize("ends", [(-20, 20), (-3, 5), (7, 7), (0, 12)])
@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.8, 1.0])
def test_regions_hold(base: Range, lengths: Range, ends: Range, confidence: float) -> None:
    window = Window(*ends, confidence)
    bounds = region_bounds(*base, *lengths, window)
    for length in range(lengths[0], lengths[1] + 1):
        found = qualifying(base, length, window)
        if found:
            assert bounds.outer_left <= found[0]
            assert found[-1] <= bounds.outer_right
        assert set(range(bounds.inner_left, bounds.inner_right + 1)) <= set(found)


@pytest.mark.parametrize("length", [0, 1, 4, 9])
@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.8, 1.0])
def test_one_length_leaves_no_probe_region(length: int, confidence: float) -> None:
    window = Window(-15, 20, confidence)
    found = qualifying((3, 10), length, window)
    bounds = region_bounds(3, 10, length, length, window)
    ends = (found[0], found[-1])
    assert (bounds.outer_left, bounds.outer_right) == ends
    assert (bounds.inner_left, bounds.inner_right) == ends


def test_hand_worked() -> None:
    # Base instant 100, targets of length 0 to 10, |delta| <= 20, at ct 0.5 the midpoint decides:
    # max_time in [80, 120] for length 0, in [85, 125] for length 10.
    assert region_bounds(100, 100, 10, 10, Window(-20, 20, 0.5)) == (85, 85, 125, 125)
    bounds = region_bounds(100, 100, 0, 10, Window(-20, 20, 0.5))
    assert bounds.inner_left == 85
    assert bounds.inner_right == 120
    assert 79 <= bounds.outer_left <= 80
    assert 125 <= bounds.outer_right <= 126
