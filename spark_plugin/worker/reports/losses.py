"""What is lost of a table's rows, in words: those left out, and times that were rounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coincide.units import Tick
from coincide.warnings import CoincideWarning, DroppedRowsWarning, RoundedTimesWarning
from spark_plugin.worker.arrow.time_words import length_words
from spark_plugin.worker.reports.warn import warn

Loss = tuple[type[CoincideWarning], str]
"""The category of a warning, and its words."""


def losses(
    dropped: Mapping[str, int],
    words: Mapping[str, str],
    rounded: float,
    tick: Tick | None,
    hint: str = "",
) -> list[Loss]:
    """What is lost of rows.

    Parameters
    ----------
    dropped : mapping of str to int
        Rows that were left out, by reason.
    words : mapping of str to str
        Of each reason, that follow a number of rows.
    rounded : float
        Largest change of a time by rounding it to ticks, in ticks.
    tick : Tick or None
        In what times are counted; None before the first row.
    hint : str
        What may help against what was left out.
    """
    found: list[Loss] = []
    count = sum(dropped.values())
    if count:
        reasons = ", ".join(f"{n:,} {words[why]}" for why, n in dropped.items() if n)
        told = f"{count:,} invalid, left out ({reasons})"
        found.append((DroppedRowsWarning, f"{told}: {hint}" if hint else told))
    if rounded and tick is not None:
        change = length_words(rounded, tick, digits=3)
        found.append((RoundedTimesWarning, f"times rounded by up to {change}"))
    return found


def warn_of_losses(table: str, rows: int, lost: Iterable[Loss]) -> None:
    """Warn of each, in the name of a table that has some rows."""
    for kind, words in lost:
        warn(f"{table}, {rows:,} rows: {words}", kind)
