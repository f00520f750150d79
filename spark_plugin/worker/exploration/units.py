"""In which unit delays are drawn."""

from __future__ import annotations

from coincide.condition import Window
from coincide.units import NANOSECONDS_PER_UNIT, Tick


def suiting_unit(window: Window, tick: Tick) -> tuple[str, float]:
    """A unit in which the ends of a window are handy numbers, and how many ticks it has."""
    if tick.nanoseconds is None:
        return "ticks", 1.0
    largest = max(abs(window.lo), abs(window.hi), 1) * tick.nanoseconds
    fitting = [unit for unit, size in NANOSECONDS_PER_UNIT.items() if size <= largest]
    unit = fitting[-1]
    return unit, NANOSECONDS_PER_UNIT[unit] / tick.nanoseconds
