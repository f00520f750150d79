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
    Faults,
    ReadTimes,
    TemplateModel,
    TimestampColumns,
)
from coincide.model.compiled import read_only
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps import are_valid_times
from coincide.model.units import TIME_LIMIT


@dataclass(frozen=True, kw_only=True)
class HistogramColumns(TimestampColumns):
    """Histograms of a column of times, and of one that names the template of each event."""

    template: str
    table: TemplateTable

    @classmethod
    def resolve(
        cls, given: Histograms, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> HistogramColumns:
        """For times that become ticks by a scale."""
        return cls(scales, template=given.template, table=given.table(scales[0].tick))

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

    def read(self, table: pa.Table) -> ReadTimes:  # noqa: D102
        side, templates = self.scale.column.side, self.table
        times = Ticks(column_of(table, side, self.scale.column.name), self.scale)
        labels = contiguous(column_of(table, side, self.template)).cast(pa.large_string())
        known = pc.index_in(labels, pa.array(templates.ids, pa.large_string()))
        numbers = known.fill_null(-1).to_numpy().astype(np.int64)
        latest = times.ticks + templates.offsets[numbers]
        earliest = latest - templates.lengths[numbers]
        are_valid = (
            times.shows_all
            and bool(numbers.min(initial=0) >= 0)
            and not times.out_of_range.any()
            and bool(are_valid_times(read_only(earliest), read_only(latest), 2 * TIME_LIMIT))
        )

        def faults() -> Faults:
            if times.not_finite.size:
                yield "not_finite", times.not_finite
            yield "range", times.out_of_range
            yield "template", numbers < 0
            yield "range", (earliest <= -TIME_LIMIT) | (latest >= TIME_LIMIT)

        return ReadTimes(latest, numbers, (times,), are_valid, faults)
