"""Bounds on differences of keys."""

from __future__ import annotations

FARTHEST = 2**63 - 1


def clamped(bound: int) -> int:
    """A bound as an int64: differences of keys are smaller than any that it is cut to."""
    return max(-FARTHEST, min(FARTHEST - 1, bound))
