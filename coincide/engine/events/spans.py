"""Spans, of a column of starts and one of ends: events that last, in place of uncertain instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, get_args

import numpy as np
import pyarrow as pa

from coincide.engine.events.corrected import (
    FITTED,
    CorrectedClock,
    CorrectedColumns,
    PutRight,
    widest_fitted,
)
from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.events.schemas import column_of
from coincide.engine.events.span_ends import AnyTicks, duration_scale, read_ends
from coincide.engine.events.ticks import Ticks
from coincide.engine.events.time_arguments import check_column_name
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import Lacking, LengthModel, Pairs, ReadTimes, SideModel
from coincide.model.condition import Closed, Window
from coincide.model.errors import ConditionError, argument, brief, call, option, said_of
from coincide.model.options import check_choice, check_truth
from coincide.model.relations import SpanRelation, SpanWindow
from coincide.model.timestamps.spans import SpanPairs
from coincide.model.units import TIME_LIMIT, Duration, plain, size_of, unit_name

_WIDEST = 2**58
"""Sums of times and of this many ticks do not overflow."""


@dataclass(frozen=True)
class Spans:
    """Events of one side that last. Made by `spans`.

    Parameters
    ----------
    start : str
        Column.
    end : str or None
        Column; None where `duration` says how long events last.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the spans.
    around : (int or str, int or str)
        By how much the start and the end may be off.
    open_ends : bool
        Whether a null end is that of an event that goes on.
    duration, unit : str or None
        Column of how long events last, and what its numbers count.
    clocks : (CorrectedClock or None, CorrectedClock or None)
        What puts starts and ends right.
    """

    start: str
    end: str | None = None
    closed: Closed = "both"
    around: tuple[Duration, Duration] = (0, 0)
    open_ends: bool = False
    duration: str | None = None
    unit: str | None = None
    clocks: tuple[CorrectedClock | None, CorrectedClock | None] = (None, None)

    def __repr__(self) -> str:
        ends = zip((self.start, self.end), self.clocks, strict=True)
        said = [repr(clock or name) for name, clock in ends if name is not None]
        for each in fields(self)[2:-1]:
            value = getattr(self, each.name)
            said += [f"{each.name}={value!r}"] if value != each.default else []
        return f"spans({', '.join(said)})"

    @property
    def are_uncertain(self) -> bool:
        """Whether a start or an end may be off."""
        return any(size_of(width) > 0 for width in self.around)


def spans(
    start: str | CorrectedClock,
    end: str | CorrectedClock | None = None,
    *,
    closed: Closed = "both",
    around: Duration | tuple[Duration, Duration] | None = None,
    open_ends: bool = False,
    duration: str | None = None,
    unit: str | None = None,
) -> Spans:
    """Say that the events of a side last, from a start to an end.

    A pair of columns alone is something else: the first and last possible time of an instant.

    Parameters
    ----------
    start, end : str or CorrectedClock
        Columns of times. A start must not be after its end; a null matches nothing. By `corrected_clock`
        they are put right by the errors of their clock. What is in no segment of it, or between two, has
        no one time, and matches nothing. ``around`` of such a clock is that of its end here.
    duration : str, optional
        In place of `end`: the column of how long events last, durations or numbers. None may be negative.
    unit : str, optional
        What the numbers in `duration` count. Default: what the numbers in `start` count; timestamps need
        it.
    open_ends : bool
        Whether a null end, or a null duration, says that the event goes on. Such an end is after all
        others, at the last time that there is: 2^61 - 1 ticks, in the year 75,041 where a tick is 1 µs, and
        in 2043 where it is 1 ns.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the spans, as pandas says it. A span of length 0 without both ends holds no
        time, and matches nothing.
    around : int, str or timedelta, or two of them, optional
        By how much a start and an end may be off, or each of the two: ``around="10ms"`` is ± 10 ms. Both
        are uniform and independent, and a pair then needs a `confidence`. A row whose latest start is
        after its earliest end is invalid.

    Returns
    -------
    Spans
        For ``left_time`` or ``right_time`` of `coincide.correlate`, with a relation such as `overlapping`.

    Raises
    ------
    ConditionError
        If a column is no name, both or neither of `end` and `duration` are given, `closed` is another
        word, or a width is negative or given twice.

    Examples
    --------
    >>> spans("begin", "end", closed="left")
    spans('begin', 'end', closed='left')
    >>> spans("begin", duration="lasted", unit="ms", open_ends=True)
    spans('begin', open_ends=True, duration='lasted', unit='ms')
    """
    clocks = _clock_of(start), _clock_of(end)
    start = start.time if isinstance(start, CorrectedClock) else start
    end = end.time if isinstance(end, CorrectedClock) else end
    check_column_name("start", start)
    if (end is None) == (duration is None):
        found = "neither" if end is None else "both"
        raise ConditionError(
            f"{call('spans', start)} needs the column {argument('end')}, or {argument('duration')},"
            f" which says how long events last (found {found}). Name one of them."
        )
    for name, column in (("end", end), ("duration", duration)):
        if column is not None:
            check_column_name(name, column)
    if unit is not None and duration is None:
        raise ConditionError(
            f"{argument('unit')} says what numbers in {argument('duration')} count (found no such"
            f" column). Remove it; of starts and ends {option('unit', unit)} tells."
        )
    check_choice("closed", closed, get_args(Closed))
    check_truth("open_ends", open_ends)
    _check_widths(around, clocks)
    unit = None if unit is None else unit_name(unit)
    widths = (
        _widths(around) if around is not None else _widths_of(clocks, is_start_alone=end is None)
    )
    return Spans(start, end, closed, widths, open_ends, duration, unit, clocks)


def _clock_of(given: object) -> CorrectedClock | None:
    return given if isinstance(given, CorrectedClock) else None


def _widths(given: Any) -> tuple[Duration, Duration]:
    both = given if isinstance(given, (tuple, list)) else (given, given)
    if len(both) != 2:
        raise ConditionError(
            f"{argument('around')} takes a duration, or one for starts and one for ends (found"
            f" {brief(given)})."
        )
    if any(size_of(width) < 0 for width in both):
        raise ConditionError(
            f"{argument('around')} must not be negative (found {brief(given)}). Give the ± width."
        )
    return plain(both[0]), plain(both[1])


def _widths_of(
    clocks: tuple[CorrectedClock | None, CorrectedClock | None], *, is_start_alone: bool
) -> tuple[Duration, Duration]:
    """Those that clocks say; an end that is so long after its start is off by as much."""
    start, end = (0 if clock is None else clock.around or 0 for clock in clocks)
    return start, start if is_start_alone else end


def _check_widths(around: object, clocks: Sequence[CorrectedClock | None]) -> None:
    """Refuse widths that differ by segment, and two of one end."""
    wide = [clock for clock in clocks if clock is not None and clock.around is not None]
    widths = [clock.around for clock in wide]
    if FITTED in widths:
        fitted = [width for clock in wide if (width := widest_fitted(clock)) is not None]
        cure = f"a duration, such as {argument('around', '10ms')}"
        if fitted:
            largest = max(fitted, key=size_of)
            cure = f"{argument('around', largest)}, the largest that is fitted, or another duration"
        raise ConditionError(
            f"starts and ends of spans are all off by the same width (found {argument('around', FITTED)} in"
            f" corrected_clock). Give {cure}."
        )
    if widths and around is not None:
        raise ConditionError(
            f"{argument('around')} is given to spans and to corrected_clock (found {brief(around)} and"
            f" {brief(widths[0])}). Remove one of them."
        )


def check_no_spans(operator: str, cure: str, *given: object) -> None:
    """Refuse spans, or a relation of them, among arguments of an operator that takes none."""
    for each in given:
        if isinstance(each, (Spans, SpanRelation)):
            raise ConditionError(f"{operator} takes no spans (found {each}). {cure}")


def _beyond(*clocks: CorrectedColumns | None) -> tuple[int, int]:
    """What clocks move starts and ends by at most, back and on, ticks."""
    bounds = [(0, 0) if clock is None else clock.beyond for clock in clocks]
    return min(first for first, _ in bounds), max(last for _, last in bounds)


@dataclass(frozen=True)
class SpanColumns(IntervalColumns):
    """Spans of a column of starts, and one of ends or of how long after them."""

    disorder: ClassVar[str] = "ends"
    closed: Closed = field(default="both", kw_only=True)
    around: tuple[int, int] = field(default=(0, 0), kw_only=True)  # start's and end's, ticks
    open_ends: bool = field(default=False, kw_only=True)
    length: TimeScale | None = field(default=None, kw_only=True)  # in place of a column of ends
    clocks: tuple[CorrectedColumns | None, CorrectedColumns | None] = field(
        default=(None, None), kw_only=True
    )  # what puts starts and ends right

    @classmethod
    def resolve(
        cls, given: Spans, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> SpanColumns:
        """For starts and ends, or starts and lengths, that become ticks by two scales."""
        with said_of("around"):
            start, end = (scales[0].tick.count(width) for width in given.around)
        if max(start, end) >= _WIDEST:
            raise ConditionError(
                f"{argument('around')} must be below 2^58 ticks (found {brief(given.around)})."
            )
        column = scales[1].column.duration
        length = None if column is None else duration_scale(scales[0], column, given.unit)
        own, its = (
            None if clock is None else CorrectedColumns((scale, scale), given=clock)
            for scale, clock in zip(scales, given.clocks, strict=True)
        )
        first, last = _beyond(own, its if length is None else own)
        beyond = None if given.open_ends else (first, last)
        if length is not None:
            # Two scales of one column are one to whom it matters.
            scales = scales[0], scales[0]
            beyond = None if beyond is None or longest is None else (first, last + longest)
        return cls(
            scales, longest, beyond, closed=given.closed, around=(start, end),
            open_ends=given.open_ends, length=length, clocks=(own, its),
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        labels = [name for clock in self.clocks if clock is not None for name in clock.names]
        return tuple(dict.fromkeys([*self.blamed(""), *labels]))

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        if self.length is None:
            return tuple(dict.fromkeys(scale.column.name for scale in self.scales))
        return self.scales[0].column.name, self.length.column.name

    @property
    def shortest(self) -> int:
        """The latest start is not after the earliest end."""
        return sum(self.around)

    @property
    def of_ends(self) -> tuple[TimeScale, ...]:
        """How starts and ends, or lengths, become ticks."""
        return self.scales if self.length is None else (self.scales[0], self.length)

    def read(self, table: pa.Table) -> ReadTimes:  # noqa: D102
        start, (own, its) = self.scales[0], self.clocks
        starts: AnyTicks = Ticks(column_of(table, start.column.side, start.column.name), start)
        if own is not None:
            starts = PutRight(starts, own, table, is_open=False)
        ends: AnyTicks = read_ends(
            table, self.length or self.scales[1], starts,
            are_lengths=self.length is not None, are_open=self.open_ends,
        )  # fmt: skip
        if its is not None:
            ends = PutRight(ends, its, table, is_open=self.open_ends)
        return replace(self.between(starts, ends), lacking=partial(_lacking, starts, ends))

    @property
    def model(self) -> SpanModel:  # type: ignore[override]  # noqa: D102
        return SpanModel(self.closed)


def _lacking(starts: AnyTicks, ends: AnyTicks) -> Lacking:
    """Why spans have no time that have a start."""
    lost = np.zeros(starts.ticks.size, bool)
    for each in (starts, ends):
        if isinstance(each, PutRight):
            lost |= each.lost
    return [("no_segment", lost), ("no_end", ends.null & ~(starts.null | lost))]


@dataclass(frozen=True)
class SpanModel(LengthModel):
    """Spans: `coincide.engine.events.timestamps.SideModel`."""

    # As `is_uniform` has it: no pair is further apart than intervals that may be of a pair with any
    # chance, and merits are exact.
    closed: Closed
    is_symmetric = False

    def pairs(self, window: Window, left: SideModel, right: SideModel) -> Pairs | None:  # noqa: D102
        if not (isinstance(left, SpanModel) and isinstance(right, SpanModel)):
            return None
        if not isinstance(window, SpanWindow):
            return None
        return SpanPairs.of(window.bounds((left.closed, right.closed)), window.ends)

    def largest_useful(self, window: Window) -> int:  # noqa: D102
        return 2 * TIME_LIMIT
