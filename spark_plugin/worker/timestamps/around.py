"""Intervals of one length, about the stamps of one column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.errors import ConditionError
from coincide.units import TIME_LIMIT
from spark_plugin.worker.arrow.schemas import column_of
from spark_plugin.worker.arrow.ticks import Ticks
from spark_plugin.worker.arrow.time_columns import TimeScale
from spark_plugin.worker.clocks import Around
from spark_plugin.worker.timestamps.columns import Faults, most_rounded
from spark_plugin.worker.timestamps.models import IntervalModel


@dataclass(frozen=True)
class AroundNames:
    """A column of stamps: `spark_plugin.worker.timestamps.names.TimestampNames`."""

    given: Around
    labels: tuple[str, ...] = ()
    widths: tuple[str, ...] = ()

    @property
    def clocks(self) -> tuple[str, str]:  # noqa: D102
        return self.given.time, self.given.time

    def check_longest(self, argument: str) -> None:  # noqa: D102
        raise ConditionError(
            f"{argument} declares how long intervals are, and around(...) and resolution(...) say it; leave"
            " it out"
        )

    def resolved(  # noqa: D102
        self, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> AroundColumns:
        return AroundColumns(scales[0], *self.given.margins(scales[0].tick))


@dataclass(frozen=True)
class AroundColumns:
    """A column of stamps: `spark_plugin.worker.timestamps.columns.TimestampColumns`.

    Parameters
    ----------
    scale : TimeScale
        Of the stamps.
    before, after : int
        Ticks by which an event may be earlier and later; their sum is at least 0.
    """

    scale: TimeScale
    before: int
    after: int
    longest: None = None

    @property
    def scales(self) -> tuple[TimeScale, TimeScale]:  # noqa: D102
        return self.scale, self.scale

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return (self.scale.column.name,)

    @property
    def model(self) -> IntervalModel:  # noqa: D102
        return IntervalModel(self.after)

    @property
    def length(self) -> int:
        """Of all events, ticks."""
        return self.before + self.after

    @property
    def declared(self) -> tuple[int, int]:  # noqa: D102
        return self.length, self.length

    @property
    def beyond(self) -> tuple[int, int]:  # noqa: D102
        return -self.before, self.after

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        return self.names

    def read(self, table: pa.Table) -> ReadAround:  # noqa: D102
        stamps = Ticks(column_of(table, self.scale.column.side, self.names[0]), self.scale)
        return ReadAround(stamps, self.after, np.full(stamps.ticks.size, self.length))


class ReadAround:
    """Intervals of rows: `spark_plugin.worker.timestamps.columns.ReadTimes`."""

    def __init__(self, stamps: Ticks, after: int | np.ndarray, lengths: np.ndarray) -> None:
        self._stamps = stamps
        self.max_time = stamps.ticks + after
        self.shapes = lengths

    @property
    def are_valid(self) -> bool:  # noqa: D102
        return self._stamps.shows_all and not self._is_far.any()

    @property
    def null(self) -> np.ndarray:  # noqa: D102
        return self._stamps.null

    @property
    def excused(self) -> np.ndarray:  # noqa: D102
        return self.null

    def faults(self) -> Faults:  # noqa: D102
        if self._stamps.not_finite.size:
            yield "not_finite", self._stamps.not_finite
        yield "range", self._is_far

    @property
    def _is_far(self) -> np.ndarray:
        """Whether a stamp or an end about it reaches 2^61 ticks: no sum overflows, as widths stay below."""
        ends = self.max_time, self.max_time - self.shapes
        return self._stamps.out_of_range | (ends[0] >= TIME_LIMIT) | (ends[1] <= -TIME_LIMIT)

    def rounded(self, valid: np.ndarray | None) -> float:  # noqa: D102
        return most_rounded([self._stamps], valid)
