"""Histogram timestamps: of a column of times, and one that names the template of each event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import column_of
from coincide.engine.events.ticks import Ticks, contiguous
from coincide.engine.events.time_arguments import Histograms
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import (
    NOTHING_LACKS,
    Faults,
    Lacking,
    TemplateModel,
    most_rounded,
)
from coincide.model.remembered import remembered
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps import are_valid_times
from coincide.model.units import TIME_LIMIT


@dataclass(frozen=True)
class HistogramColumns:
    """Times and templates: `coincide.engine.events.timestamps.TimestampColumns`."""

    scale: TimeScale
    template: str
    table: TemplateTable
    longest: None = None

    @classmethod
    def resolve(
        cls, given: Histograms, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> HistogramColumns:
        """For times that become ticks by a scale."""
        return cls(scales[0], given.template, given.table(scales[0].tick))

    @property
    def scales(self) -> tuple[TimeScale, TimeScale]:  # noqa: D102
        return self.scale, self.scale

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys((self.scale.column.name, self.template)))

    @property
    def model(self) -> TemplateModel:  # noqa: D102
        return TemplateModel(self.table)

    @property
    def declared(self) -> tuple[int, int]:  # noqa: D102
        return 0, len(self.table) - 1

    @property
    def beyond(self) -> tuple[int, int]:  # noqa: D102
        offsets = self.table.offsets
        return int((offsets - self.table.lengths).min()), int(offsets.max())

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        return (self.template if reason == "template" else self.scale.column.name,)

    def read(self, table: pa.Table) -> ReadHistograms:  # noqa: D102
        side = self.scale.column.side
        times = Ticks(column_of(table, side, self.scale.column.name), self.scale)
        labels = contiguous(column_of(table, side, self.template)).cast(pa.large_string())
        known = pc.index_in(labels, pa.array(self.table.ids, pa.large_string()))
        numbers = known.fill_null(-1).to_numpy().astype(np.int64)
        return ReadHistograms(times, numbers, self.table)


class ReadHistograms:
    """Histograms of rows: `coincide.engine.events.timestamps.ReadTimes`."""

    def __init__(self, times: Ticks, numbers: np.ndarray, table: TemplateTable) -> None:
        self._times, self.shapes = times, numbers
        self.max_time = times.ticks + table.offsets[numbers]
        self._table = table

    @property
    def are_valid(self) -> bool:  # noqa: D102
        if not self._times.shows_all or self.shapes.min(initial=0) < 0:
            return False
        is_far = self._times.out_of_range.any()
        return not is_far and are_valid_times(self._min_time, self.max_time, 2 * TIME_LIMIT)

    @property
    def null(self) -> np.ndarray:  # noqa: D102
        return self._times.null

    @property
    def excused(self) -> np.ndarray:  # noqa: D102
        return self.null

    def faults(self) -> Faults:  # noqa: D102
        if self._times.not_finite.size:
            yield "not_finite", self._times.not_finite
        yield "range", self._times.out_of_range
        yield "template", self.shapes < 0
        yield "range", (self._min_time <= -TIME_LIMIT) | (self.max_time >= TIME_LIMIT)

    def lacking(self) -> Lacking:  # noqa: D102
        return NOTHING_LACKS

    @remembered
    def _min_time(self) -> np.ndarray:
        return self.max_time - self._table.lengths[self.shapes]

    def rounded(self, valid: np.ndarray | None) -> float:  # noqa: D102
        return most_rounded([self._times], valid)
