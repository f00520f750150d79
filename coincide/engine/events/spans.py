"""Spans, of a column of starts and one of ends: events that last, in place of uncertain instants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from coincide.engine.events.intervals import IntervalColumns, IntervalNames
from coincide.engine.events.time_arguments import check_column_name
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import LengthModel, Pairs, SideModel
from coincide.model.condition import Closed, Window
from coincide.model.errors import ConditionError, argument, brief, said_of
from coincide.model.options import check_choice
from coincide.model.relations import SpanRelation, SpanWindow
from coincide.model.timestamps.spans import SpanPairs
from coincide.model.units import TIME_LIMIT, Duration, plain, size_of

_WIDEST = 2**58
"""Sums of times and of this many ticks do not overflow."""


@dataclass(frozen=True)
class Spans:
    """Events of one side that last. Made by `spans`.

    Parameters
    ----------
    start, end : str
        Columns.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the spans.
    around : (int or str, int or str)
        By how much the start and the end may be off.
    """

    start: str
    end: str
    closed: Closed = "both"
    around: tuple[Duration, Duration] = (0, 0)

    @property
    def are_uncertain(self) -> bool:
        """Whether a start or an end may be off."""
        return any(size_of(width) > 0 for width in self.around)


def spans(
    start: str,
    end: str,
    *,
    closed: Closed = "both",
    around: Duration | tuple[Duration, Duration] | None = None,
) -> Spans:
    """Say that the events of a side last, from a start to an end.

    A pair of columns alone is something else: the first and last possible time of an instant.

    Parameters
    ----------
    start, end : str
        Columns of times. A start must not be after its end; a null matches nothing.
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
        If a column is no name, `closed` is another word, or a width is negative.

    Examples
    --------
    >>> spans("begin", "end", closed="left")
    Spans(start='begin', end='end', closed='left', around=(0, 0))
    """
    check_column_name("start", start)
    check_column_name("end", end)
    check_choice("closed", closed, get_args(Closed))
    return Spans(start, end, closed, _widths(around))


def _widths(given: Any) -> tuple[Duration, Duration]:
    both = given if isinstance(given, (tuple, list)) else (given, given)
    if given is None:
        return 0, 0
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


def check_no_spans(operator: str, cure: str, *given: object) -> None:
    """Refuse spans, or a relation of them, among arguments of an operator that takes none."""
    for each in given:
        if isinstance(each, (Spans, SpanRelation)):
            found = (
                each if isinstance(each, SpanRelation) else f"spans({each.start!r}, {each.end!r})"
            )
            raise ConditionError(f"{operator} takes no spans (found {found}). {cure}")


@dataclass(frozen=True)
class SpanNames(IntervalNames):
    """A column of starts and one of ends: `coincide.engine.events.timestamp_names.TimestampNames`."""

    closed: Closed = field(default="both", kw_only=True)
    around: tuple[Duration, Duration] = field(default=(0, 0), kw_only=True)

    @classmethod
    def of(cls, given: Spans) -> SpanNames:
        """What is meant by `spans`."""
        return cls(given.start, given.end, closed=given.closed, around=given.around)

    def resolved(  # noqa: D102
        self, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> SpanColumns:
        with said_of("around"):
            start, end = (scales[0].tick.count(width) for width in self.around)
        if max(start, end) >= _WIDEST:
            raise ConditionError(
                f"{argument('around')} must be below 2^58 ticks (found {brief(self.around)})."
            )
        return SpanColumns(scales, longest, closed=self.closed, around=(start, end))


@dataclass(frozen=True)
class SpanColumns(IntervalColumns):
    """Spans: `coincide.engine.events.timestamps.TimestampColumns`."""

    disorder: ClassVar[str] = "ends"
    closed: Closed = field(default="both", kw_only=True)
    around: tuple[int, int] = field(default=(0, 0), kw_only=True)  # of start and end, ticks

    @property
    def shortest(self) -> int:
        """The latest start is not after the earliest end."""
        return sum(self.around)

    @property
    def model(self) -> SpanModel:  # type: ignore[override]  # noqa: D102
        return SpanModel(self.closed)


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
