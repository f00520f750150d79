"""What is asked for as the timestamps of a side, before its columns are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spark_plugin.worker.arrow.time_columns import TimeScale, time_names
from spark_plugin.worker.clocks import Around
from spark_plugin.worker.histograms import Histograms
from spark_plugin.worker.timestamps.around import AroundNames
from spark_plugin.worker.timestamps.columns import TimestampColumns
from spark_plugin.worker.timestamps.histograms import HistogramNames
from spark_plugin.worker.timestamps.intervals import IntervalNames


class TimestampNames(Protocol):
    """The columns that make the timestamps of a side."""

    @property
    def clocks(self) -> tuple[str, str]:
        """The columns that hold the earliest and the latest time of an event; they may be one."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns that hold names: texts or whole numbers."""

    def check_longest(self, argument: str) -> None:
        """Refuse a declared longest length, where it cannot be declared.

        Raises
        ------
        ConditionError
        """

    def resolved(
        self, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> TimestampColumns:
        """The columns, once it is known how the clocks become ticks.

        Parameters
        ----------
        scales : (TimeScale, TimeScale)
            Of the `clocks`.
        longest : int or None
            Declared longest length, ticks.
        """


GivenTimes = str | Sequence[str] | Around | Histograms
"""What users may say of the timestamps of a side."""


def timestamp_names(side: str, given: GivenTimes) -> TimestampNames:
    """What is meant by `left_time` or `right_time`.

    Raises
    ------
    ConditionError
        If it is nothing that timestamps can be made of.
    """
    if isinstance(given, Histograms):
        return HistogramNames(given)
    if isinstance(given, Around):
        return AroundNames(given)
    return IntervalNames(*time_names(side, given))


def all_columns(names: TimestampNames) -> list[str]:
    """The columns that are needed, each once."""
    return list(dict.fromkeys((*names.clocks, *names.labels)))
