"""The regions of Lee & Lee (2010), on the axis of max_time, for one base event."""

from __future__ import annotations

from typing import NamedTuple

from coincide.model.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO, band_table
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window


class RegionBounds(NamedTuple):
    """Bounds on the max_time of a target event, ticks; Lee & Lee (2010), Figure 1(b).

    Outside [outer_left, outer_right] (the papers' L_H and R_H) every target violates the condition;
    in [inner_left, inner_right] (L_L and R_L) every target satisfies it; the rest is probed. Where no
    max_time satisfies for all lengths, inner_left is above inner_right.
    """

    outer_left: int
    inner_left: int
    inner_right: int
    outer_right: int


def region_bounds(
    min_time: int, max_time: int, shortest: int, longest: int, window: Window
) -> RegionBounds:
    """Regions of a target stream for one base event on the left."""
    ends = [
        _ends(min_time, max_time, low, high, window)
        for low, high in ((shortest, shortest), (longest, longest))
    ]
    if window.width < max_time - min_time + longest:
        # The ends need not be monotone in the target's length: bounds over all lengths at once.
        ends.append(_ends(min_time, max_time, shortest, longest, window))
    outer_left, inner_left, inner_right, outer_right = zip(*ends, strict=True)
    return RegionBounds(min(outer_left), max(inner_left), min(inner_right), max(outer_right))


def _ends(
    min_time: int, max_time: int, shortest: int, longest: int, window: Window
) -> tuple[int, int, int, int]:
    """The four bounds from one band: those of the target's midpoint, moved to its max_time."""
    base = ShapeClasses.one(max_time - min_time, max_time - min_time)
    band = band_table(base, ShapeClasses.one(shortest, longest), window)[0, 0].tolist()
    middle = min_time + max_time
    return (
        -((-(middle + band[OUTER_LO] + shortest)) // 2),
        -((-(middle + band[INNER_LO] + longest)) // 2),
        (middle + band[INNER_HI] + shortest) // 2,
        (middle + band[OUTER_HI] + longest) // 2,
    )
