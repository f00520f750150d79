"""How far events are from each other, and from the box of a bucket.

None of these is for inner loops: a call that hands over arrays takes longer than a test does.
"""

from __future__ import annotations

from coincide.cause_and_effect.deciding import squared_gap
from coincide.cause_and_effect.points import H, X, Y, Z
from coincide.compiled import compiled


@compiled(allocates=True)
def gap_between(own, i, others, j):
    """|x - y|² of event i and event j of two arrays of `Points`."""
    return squared_gap(others[X, j] - own[X, i], others[Y, j] - own[Y, i], others[Z, j] - own[Z, i])


@compiled(allocates=True)
def height_between(own, i, others, j):
    """The difference of their heights."""
    return others[H, j] - own[H, i] if own.shape[0] > H else 0.0


@compiled(forceinline=True)
def gap_to_side(value, low, high):
    """How far a coordinate is from the nearest between two ends."""
    return max(max(low - value, value - high), 0.0)
