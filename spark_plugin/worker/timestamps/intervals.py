"""Intervals, of a min and a max column; exact instants, of one column that is both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from coincide.timestamps import are_valid_times
from coincide.units import TIME_LIMIT
from spark_plugin.worker.arrow.schemas import column_of
from spark_plugin.worker.arrow.ticks import Ticks
from spark_plugin.worker.arrow.time_columns import TimeScale
from spark_plugin.worker.timestamps.columns import Faults, most_rounded
from spark_plugin.worker.timestamps.models import INTERVALS, IntervalModel


@dataclass(frozen=True)
class IntervalNames:
    """A min and a max column: `spark_plugin.worker.timestamps.names.TimestampNames`."""

    lower: str
    upper: str
    labels: tuple[str, ...] = ()
    widths: tuple[str, ...] = ()

    @property
    def clocks(self) -> tuple[str, str]:  # noqa: D102
        return self.lower, self.upper

    def check_longest(self, argument: str) -> None:  # noqa: D102
        pass

    def resolved(  # noqa: D102
        self, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> IntervalColumns:
        return IntervalColumns(scales, longest)


@dataclass(frozen=True)
class IntervalColumns:
    """Intervals: `spark_plugin.worker.timestamps.columns.TimestampColumns`.

    Parameters
    ----------
    scales : (TimeScale, TimeScale)
        Of the min and the max column.
    longest : int or None
        Declared longest length, ticks.
    """

    scales: tuple[TimeScale, TimeScale]
    longest: int | None = None
    beyond: tuple[int, int] = (0, 0)

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys(scale.column.name for scale in self.scales))

    @property
    def model(self) -> IntervalModel:  # noqa: D102
        return INTERVALS

    @property
    def declared(self) -> tuple[int, int] | None:  # noqa: D102
        return None if self.longest is None else (0, self.longest)

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        return self.names

    def read(self, table: pa.Table) -> ReadIntervals:  # noqa: D102
        lower, upper = (
            Ticks(column_of(table, scale.column.side, scale.column.name), scale)
            for scale in self.scales
        )
        return ReadIntervals(lower, upper, 2 * TIME_LIMIT if self.longest is None else self.longest)


class ReadIntervals:
    """Intervals of rows: `spark_plugin.worker.timestamps.columns.ReadTimes`."""

    def __init__(self, lower: Ticks, upper: Ticks, longest: int) -> None:
        self._lower, self._upper, self._longest = lower, upper, longest

    @property
    def are_valid(self) -> bool:  # noqa: D102
        lower, upper = self._lower, self._upper
        shows_all = lower.shows_all and upper.shows_all
        return shows_all and are_valid_times(lower.ticks, upper.ticks, self._longest)

    @cached_property
    def null(self) -> np.ndarray:  # noqa: D102
        return self._lower.null | self._upper.null

    @property
    def excused(self) -> np.ndarray:  # noqa: D102
        return self.null

    def faults(self) -> Faults:  # noqa: D102
        lower, upper = self._lower, self._upper
        for part in (lower.not_finite, upper.not_finite):
            if part.size:
                yield "not_finite", part
        yield "range", lower.out_of_range | upper.out_of_range
        yield "order", lower.ticks > upper.ticks
        yield "length", self.shapes > self._longest

    @property
    def max_time(self) -> np.ndarray:  # noqa: D102
        return self._upper.ticks

    @cached_property
    def shapes(self) -> np.ndarray:  # noqa: D102
        return self._upper.ticks - self._lower.ticks

    def rounded(self, valid: np.ndarray | None) -> float:  # noqa: D102
        return most_rounded((self._lower, self._upper), valid)
