"""Region transitions of Arrow tables in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coincide.engine.transitions.monitor import TransitionMonitor, transitions_of_table
from coincide.engine.transitions.reports import TransitionReport
from coincide.model.options import CorrelateOptions
from coincide.model.transitions import Repeated
from coincide.model.units import Duration


def transition_tables(
    events: Any,
    *,
    within: Duration,
    confidence: float | None = None,
    until: Any = None,
    query: str = "query_id",
    stream: str | None = "stream_id",
    event: str = "event",
    time: str | Sequence[str] = ("min_time", "max_time"),
    repeated: Repeated = "raise",
    options: CorrelateOptions = CorrelateOptions(),
    report: TransitionReport | None = None,
) -> pa.Table:
    """Find transitions and stays among border-crossing events, in this process.

    The region transition events of the BMQ paper (section 6.2), on uncertain timestamps. Let Δ be the
    time from an event to the next one of its query and stream. Given that Δ is not negative, it is a
    transition when P(Δ <= within) reaches the confidence, and a stay when P(Δ > within) does. So above
    a confidence of 0.5 it is one of the two or neither, and up to 0.5 one or both. A last event, which
    nothing follows, is a stay when P(T + within < until) reaches the confidence.

    Parameters
    ----------
    events : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
        Border crossings, in any order. Those of one query and stream are taken in order of the
        midpoints of their timestamps; of equal ones the row that comes first is the first.
    within : int or str
        The longest dwell time of a transition, 0 or more: ticks, or with a unit, as ``"3min"``.
    confidence : float, optional
        The confidence threshold ct, 0 < ct <= 1; needed where timestamps are intervals. Up to 0.5 an event
        may be told as crossed and as stayed, which is counted (`both`) and warned of.
    until : int, float, datetime, numpy.datetime64 or pa.Scalar, optional
        The time up to which the data are known, as the time columns hold it: no event that is missing
        lies before it. By default the largest max_time of all events.
    query, stream : str
        Columns of the region and of what moves; of any type that can be a key. A `stream` of None: all
        events are of one, and the result has no such column.
    event : str
        Column of the words I (the stream enters the region) and O (it leaves it).
    time : str or (str, str)
        The min and max column of the timestamps; one name for exact instants.
    repeated : {"raise", "first", "last"}
        What an I after an I, or an O after an O, is: an error; left out, so that the first one counts;
        or the beginning anew of its dwell time, so that the one before can only be a stay.
    options : CorrelateOptions
        Its `unit`, `tick` and `invalid`. Events with nulls, other words or impossible times are refused
        or, with ``invalid="drop"``, left out and counted.
    report : TransitionReport, optional
        Is told what was found, left out, and is undecided.

    Returns
    -------
    pa.Table
        The columns of query and stream; ``transition``, one of I>O, O>I, I>!O and O>!I; the first
        event's ``first_min_time``, ``first_max_time``; and ``min_time``, ``max_time``, when it came
        true: of a transition the second event's, of a stay the first event's and `within`. Times are
        timestamps, or int64 ticks where the columns hold numbers. Rows of one query and stream are in
        order of their first events.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or timestamps are intervals and there is no confidence.
    DataError
        If events are invalid or repeated, and are to be refused.

    Warns
    -----
    DroppedRowsWarning, RoundedTimesWarning, AmbiguousCrossingsWarning
    """
    TransitionReport.check(report)
    monitor = TransitionMonitor(
        within=within, confidence=confidence, query=query, stream=stream, event=event, time=time,
        repeated=repeated, options=options,
    )  # fmt: skip
    found, summary = transitions_of_table(events, until, monitor)
    TransitionReport.tell(summary, report)
    return found
