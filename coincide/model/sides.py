"""The two sides of a correlation, by name and by number."""

from __future__ import annotations

from coincide.model.errors import ConditionError, argument

LEFT, RIGHT = 0, 1
"""Index of a side in every array that has one entry a side."""

SIDES = ("left", "right")


_FIRST = ("left", "cause", "event", "events")
"""What the left side is called: by `correlate`, of causes, and where there is but one side."""


_SECOND = "right", "effect"
"""What the right side is called."""


def has_own_unit(side: str) -> bool:
    """Whether an option says what numbers count on that side alone; streams in a row have none."""
    return side in (*_FIRST, *_SECOND)


def unit_option(side: str) -> str:
    """The option that says what a number in the time columns of a side counts."""
    return "left_unit" if side in _FIRST else "right_unit"


def side_index(side: object) -> int:
    """LEFT or RIGHT."""
    if not isinstance(side, str) or side not in SIDES:
        raise ConditionError(f"{argument('side')} must be 'left' or 'right' (found {side!r}).")
    return SIDES.index(side)
