"""Rows that came too late, or at a time again: how many, how late, and what would have taken them."""

from __future__ import annotations

from coincide.units import NANOSECONDS_PER_UNIT, Tick
from coincide.warnings import LateRowsWarning
from spark_plugin.worker.arrow.time_words import length_words
from spark_plugin.worker.reports.warn import warn

_FEW = 10
"""So many of a unit say a length well enough; of fewer the next finer unit is taken."""


def warn_of_late(table: str, rows: int, late: int, by: int, tick: Tick, cure: str) -> None:
    """Warn of rows that came too late, if there are any.

    Parameters
    ----------
    table : str
        What messages call the rows.
    rows, late : int
        All, and those that were too late.
    by : int
        How far the latest of them lay behind what had come before it, ticks.
    tick : Tick
    cure : str
        What would have taken them; ``{delay}`` in it is a delay that does.
    """
    if late:
        words = cure.format(delay=delay_argument(by, tick))
        warn(
            f"{table}, {rows:,} rows: {late:,} came too late, by up to {length_words(by, tick, digits=4)},"
            f" and were left out. {words}",
            LateRowsWarning,
        )


def warn_of_repeated(table: str, rows: int, repeated: int, cure: str) -> None:
    """Warn where most rows are of a time that their stream has had."""
    if are_most(repeated, rows):
        warn(
            f"{table}, {rows:,} rows: {repeated:,} are of a time again that their stream has had, and were"
            f" left out. {cure}",
            LateRowsWarning,
        )


def are_most(some: int, rows: int) -> bool:
    """Whether some of the rows are more than half of them."""
    return 2 * some > rows


def delay_argument(ticks: int, tick: Tick) -> str:
    """A delay that is at least so long, as one writes it in Python: ``'64min'``, or ``5000`` bare ticks."""
    if tick.nanoseconds is None:
        return str(ticks)
    size = ticks * tick.nanoseconds
    units = [u for u, step in NANOSECONDS_PER_UNIT.items() if tick.nanoseconds <= step]
    fitting = [u for u in units if NANOSECONDS_PER_UNIT[u] * _FEW <= size]
    unit = fitting[-1] if fitting else units[0]
    return f"'{-(-size // NANOSECONDS_PER_UNIT[unit])}{unit}'"
