"""The named timestamps of a side, before its columns are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.corrected import CorrectedClock, CorrectedColumns, check_clock_key
from coincide.engine.events.histograms import HistogramColumns
from coincide.engine.events.intervals import AroundColumns, AroundRowsColumns, IntervalColumns
from coincide.engine.events.schemas import (
    arrow_time_column,
    can_be_key,
    can_be_label,
    can_be_width,
    check_label,
    check_width,
    type_of,
)
from coincide.engine.events.spans import SpanColumns, Spans
from coincide.engine.events.time_arguments import Around, AroundByRow, Histograms
from coincide.engine.events.time_columns import TimeColumn, TimeScale, time_names
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.reports.warnings import warn
from coincide.model.errors import ConditionError, UnmatchableRowsWarning, argument

Resolve = Callable[[tuple[TimeScale, TimeScale], int | None], TimestampColumns]


@dataclass(frozen=True)
class TimestampNames:
    """The columns that make the timestamps of a side.

    Parameters
    ----------
    given : object
        What the user said: two of equal ones are equal.
    clocks : (str, str)
        The columns that hold the earliest and the latest time of an event; they may be one.
    resolve : callable
        From how the `clocks` become ticks, and the longest length that is declared, ticks, to the columns.
    is_exact : bool
        Whether events are instants, or begin and end at the time of one column.
    templates, clock_keys, widths : tuple of str
        Columns that hold ids of templates, texts or whole numbers; that name clocks, all that can be keys;
        that hold half-widths, numbers.
    duration : str or None
        Column of how long events last.
    open_ends : bool
        Whether a null end is that of an event that goes on.
    corrected : tuple of CorrectedClock
        The clocks that are put right.
    lengths : str or None
        What gives the lengths of events, where none can be declared.
    """

    given: object
    clocks: tuple[str, str]
    resolve: Resolve = field(compare=False)
    is_exact: bool = False
    templates: tuple[str, ...] = ()
    clock_keys: tuple[str, ...] = ()
    widths: tuple[str, ...] = ()
    duration: str | None = None
    open_ends: bool = False
    corrected: tuple[CorrectedClock, ...] = ()
    lengths: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that are needed, each once."""
        lengths = () if self.duration is None else (self.duration,)
        labels = *self.templates, *self.clock_keys
        return list(dict.fromkeys((*self.clocks, *lengths, *self.widths, *labels)))

    def check_longest(self, name: str) -> None:
        """Refuse a declared longest length, where it cannot be declared."""
        if self.lengths is not None:
            raise ConditionError(
                f"{argument(name)} declares the longest interval, but {self.lengths}. Remove it."
            )
        if self.open_ends:
            raise ConditionError(
                f"{argument(name)} declares the longest event, but {argument('open_ends', True)} lets"
                f" events go on. Remove {argument(name)}, or give such events an end."
            )


def interval_names(lower: str, upper: str) -> TimestampNames:
    """A min and a max column, or one of exact instants."""
    clocks = lower, upper
    return TimestampNames(clocks, clocks, IntervalColumns, is_exact=lower == upper)


def _around_names(given: Around) -> TimestampNames:
    return TimestampNames(
        given, (given.time, given.time), partial(AroundColumns.resolve, given),
        is_exact=given.is_exact, lengths=f"the clock of {given.time!r} gives the lengths already",
    )  # fmt: skip


def _around_rows_names(given: AroundByRow) -> TimestampNames:
    return TimestampNames(
        given, (given.time, given.time), partial(AroundRowsColumns.resolve, given),
        widths=(given.before, given.after),
    )  # fmt: skip


def _histogram_names(given: Histograms) -> TimestampNames:
    return TimestampNames(
        given, (given.time, given.time), partial(HistogramColumns.resolve, given),
        templates=(given.template,), lengths="histograms have the lengths of their templates",
    )  # fmt: skip


def _corrected_names(given: CorrectedClock) -> TimestampNames:
    return TimestampNames(
        given, (given.time, given.time), partial(CorrectedColumns.resolve, given),
        clock_keys=tuple(name for name, _ in given.by), corrected=(given,),
        lengths=f"the errors of the clock of {given.time!r} give the lengths already",
    )  # fmt: skip


def _span_names(given: Spans) -> TimestampNames:
    end = given.start if given.end is None else given.end
    clocks = tuple(clock for clock in given.clocks if clock is not None)
    keys = dict.fromkeys(name for clock in clocks for name, _ in clock.by)
    return TimestampNames(
        given, (given.start, end), partial(SpanColumns.resolve, given), is_exact=given.start == end,
        clock_keys=tuple(keys), duration=given.duration, open_ends=given.open_ends, corrected=clocks,
    )  # fmt: skip


NAMES_OF: dict[type, Callable[[Any], TimestampNames]] = {
    Histograms: _histogram_names,
    Around: _around_names,
    AroundByRow: _around_rows_names,
    CorrectedClock: _corrected_names,
    Spans: _span_names,
}
"""What becomes of what users say, by its type: the line by which a model of timestamps is registered."""

GivenTimes = str | Sequence[str] | Around | AroundByRow | Histograms | CorrectedClock | Spans
"""What users may say of the timestamps of a side."""


def timestamp_names(name: str, given: GivenTimes) -> TimestampNames:
    """What is meant by an argument, such as `left_time`."""
    if (names_of := NAMES_OF.get(type(given))) is not None:
        return names_of(given)
    return interval_names(*time_names(name, given))  # type: ignore[arg-type]  # which says so


def arrow_clocks(side: str, names: TimestampNames, schema: pa.Schema) -> list[TimeColumn]:
    """What the clocks of a side mean as times, in a table of this schema."""
    for name in names.templates:
        kind = type_of(schema, side, name)
        check_label(side, name, str(kind), can_be_label(kind))
    for name in names.clock_keys:
        kind = type_of(schema, side, name)
        check_clock_key(side, name, str(kind), can_be_key(kind) or pa.types.is_null(kind))
    for name in names.widths:
        kind = type_of(schema, side, name)
        check_width(side, name, str(kind), can_be_width(kind))
    kinds = [type_of(schema, side, name) for name in names.clocks]
    if names.open_ends and pa.types.is_null(kinds[1]):  # events that all go on
        kinds[1] = kinds[0]
    found = list(map(partial(arrow_time_column, side), names.clocks, kinds))
    if names.duration is None:
        return found
    kind = type_of(schema, side, names.duration)
    if names.open_ends and pa.types.is_null(kind):
        kind = pa.int64()
    return lasting(found, arrow_time_column(side, names.duration, kind))


def lasting(clocks: Sequence[TimeColumn], duration: TimeColumn) -> list[TimeColumn]:
    """What clocks mean as times, where the ends are so long after the starts."""
    return [clocks[0], replace(clocks[1], duration=duration)]


def warn_of_ends(prefixes: Sequence[str], times: Sequence[TimestampNames]) -> None:
    """Say of a stream that stamps after the last segment of a corrected clock have no time."""
    said: list[CorrectedClock] = []
    for prefix, clock in (
        (prefix, clock)
        for prefix, names in zip(prefixes, times, strict=False)
        for clock in names.corrected
    ):
        if clock not in said:
            said.append(clock)
            last = pc.max(clock.errors["end"]).as_py()
            found = "none is found" if last is None else f"found {last}"
            warn(
                f"stamps of {argument(f'{prefix}_time')} after the last segment of their clock match"
                f" nothing, and do not move the clock of the stream ({found}). Find the errors again before"
                " then, and start the stream anew.",
                UnmatchableRowsWarning,
            )
