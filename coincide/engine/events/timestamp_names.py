"""What is asked for as the timestamps of a side, before its columns are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from coincide.engine.events.corrected import CorrectedClock, CorrectedNames, check_clock_key
from coincide.engine.events.histograms import HistogramNames
from coincide.engine.events.intervals import AroundNames, AroundRowsNames, IntervalNames
from coincide.engine.events.schemas import (
    arrow_time_column,
    can_be_key,
    can_be_label,
    can_be_width,
    check_label,
    check_width,
    type_of,
)
from coincide.engine.events.spans import SpanNames, Spans
from coincide.engine.events.time_arguments import Around, AroundByRow, Histograms
from coincide.engine.events.time_columns import TimeColumn, TimeScale, time_names
from coincide.engine.events.timestamps import TimestampColumns


class TimestampNames(Protocol):
    """The columns that make the timestamps of a side."""

    @property
    def clocks(self) -> tuple[str, str]:
        """The columns that hold the earliest and the latest time of an event; they may be one."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns that hold names: of templates texts or whole numbers, of clocks all that can be keys."""

    @property
    def widths(self) -> tuple[str, ...]:
        """Columns that hold half-widths: numbers."""

    def check_longest(self, name: str) -> None:
        """Refuse a declared longest length, where it cannot be declared."""

    def resolved(
        self, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> TimestampColumns:
        """The columns, once it is known how the `clocks` become ticks; `longest` is declared, ticks."""


NAMES_OF: dict[type, Callable[[Any], TimestampNames]] = {
    Histograms: HistogramNames,
    Around: AroundNames,
    AroundByRow: AroundRowsNames,
    CorrectedClock: CorrectedNames,
    Spans: SpanNames.of,
}
"""What becomes of what users say, by its type: the line by which a model of timestamps is registered."""

GivenTimes = str | Sequence[str] | Around | AroundByRow | Histograms | CorrectedClock | Spans
"""What users may say of the timestamps of a side."""


def timestamp_names(name: str, given: GivenTimes) -> TimestampNames:
    """What is meant by an argument, such as `left_time`."""
    if (names_of := NAMES_OF.get(type(given))) is not None:
        return names_of(given)
    return IntervalNames(*time_names(name, given))  # type: ignore[arg-type]  # which says so


def all_columns(names: TimestampNames) -> list[str]:
    """The columns that are needed, each once."""
    duration = names.duration if isinstance(names, SpanNames) else None
    lengths = () if duration is None else (duration,)
    return list(dict.fromkeys((*names.clocks, *lengths, *names.widths, *names.labels)))


def arrow_clocks(side: str, names: TimestampNames, schema: pa.Schema) -> list[TimeColumn]:
    """What the clocks of a side mean as times, in a table of this schema."""
    for name in names.labels:
        kind = type_of(schema, side, name)
        if isinstance(names, (CorrectedNames, SpanNames)):
            check_clock_key(side, name, str(kind), can_be_key(kind) or pa.types.is_null(kind))
        else:
            check_label(side, name, str(kind), can_be_label(kind))
    for name in names.widths:
        kind = type_of(schema, side, name)
        check_width(side, name, str(kind), can_be_width(kind))
    kinds = [type_of(schema, side, name) for name in names.clocks]
    if not isinstance(names, SpanNames):
        return list(map(partial(arrow_time_column, side), names.clocks, kinds))
    if names.open_ends and pa.types.is_null(kinds[1]):  # events that all go on
        kinds[1] = kinds[0]
    found = list(map(partial(arrow_time_column, side), names.clocks, kinds))
    if names.duration is None:
        return found
    kind = type_of(schema, side, names.duration)
    if names.open_ends and pa.types.is_null(kind):
        kind = pa.int64()
    return names.clocks_of(found, arrow_time_column(side, names.duration, kind))
