"""The two sides of a correlation, by name and by number."""

from __future__ import annotations

from coincide.errors import ConditionError

LEFT, RIGHT = 0, 1
"""Index of a side in every array that has one entry a side."""

SIDES = ("left", "right")


def side_index(side: object) -> int:
    """LEFT or RIGHT.

    Raises
    ------
    ConditionError
        If `side` is not ``"left"`` or ``"right"``.
    """
    if not isinstance(side, str) or side not in SIDES:
        raise ConditionError(f"side must be 'left' or 'right'; found {side!r}")
    return SIDES.index(side)
