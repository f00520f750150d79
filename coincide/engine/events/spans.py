"""Spans, of a column of starts and one of ends: events that last, in place of uncertain instants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from coincide.engine.events.intervals import IntervalColumns, IntervalNames
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import LengthModel, Pairs, SideModel
from coincide.model.condition import Closed, Window
from coincide.model.errors import ConditionError, argument, brief
from coincide.model.options import check_choice
from coincide.model.relations import SpanWindow
from coincide.model.timestamps.spans import SpanPairs
from coincide.model.units import TIME_LIMIT


@dataclass(frozen=True)
class Spans:
    """Events of one side that last. Made by `spans`.

    Parameters
    ----------
    start, end : str
        Columns.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the spans.
    """

    start: str
    end: str
    closed: Closed = "both"


def spans(start: str, end: str, *, closed: Closed = "both") -> Spans:
    """Say that the events of a side last, from a start to an end that are both known.

    A pair of columns alone is something else: the first and last possible time of an instant.

    Parameters
    ----------
    start, end : str
        Columns of times. A start must not be after its end; a null matches nothing.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the spans, as pandas says it. A span of length 0 without both ends holds no
        time, and matches nothing.

    Returns
    -------
    Spans
        For ``left_time`` or ``right_time`` of `coincide.correlate`, with a relation such as `overlapping`.

    Raises
    ------
    ConditionError
        If a column is no name, or `closed` is another word.

    Examples
    --------
    >>> spans("begin", "end", closed="left")
    Spans(start='begin', end='end', closed='left')
    """
    for name, given in (("start", start), ("end", end)):
        if not isinstance(given, str) or not given:
            raise ConditionError(
                f"{argument(name)} must be the name of a column (found {brief(given)})."
            )
    check_choice("closed", closed, get_args(Closed))
    return Spans(start, end, closed)


@dataclass(frozen=True)
class SpanNames(IntervalNames):
    """A column of starts and one of ends: `coincide.engine.events.timestamp_names.TimestampNames`."""

    closed: Closed = field(default="both", kw_only=True)

    @classmethod
    def of(cls, given: Spans) -> SpanNames:
        """What is meant by `spans`."""
        return cls(given.start, given.end, closed=given.closed)

    def resolved(  # noqa: D102
        self, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> SpanColumns:
        return SpanColumns(scales, longest, closed=self.closed)


@dataclass(frozen=True)
class SpanColumns(IntervalColumns):
    """Spans: `coincide.engine.events.timestamps.TimestampColumns`."""

    closed: Closed = field(default="both", kw_only=True)

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
        return SpanPairs(window.bounds((left.closed, right.closed)))

    def largest_useful(self, window: Window) -> int:  # noqa: D102
        return 2 * TIME_LIMIT
