"""Region transitions: of DataFrames, and of Arrow tables in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coincide.engine.transitions.arguments import TransitionArguments
from coincide.engine.transitions.monitor import transition_tables
from coincide.engine.transitions.reports import TransitionReport
from coincide.model.condition import Confidence
from coincide.model.docstrings import documented
from coincide.model.options import CorrelateOptions
from coincide.model.transitions import Repeated
from coincide.model.units import Duration
from spark_plugin.operators.borders import border_crossing_streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@documented(transition_tables)
def transitions(
    events: DataFrame,
    *,
    within: Duration,
    confidence: Confidence | None = None,
    until: Any = None,
    query: str = "query_id",
    stream: str | None = "stream_id",
    event: str = "event",
    time: str | Sequence[str] = ("min_time", "max_time"),
    repeated: Repeated = "raise",
    options: CorrelateOptions = CorrelateOptions(),
    report: TransitionReport | None = None,
) -> DataFrame:
    """Find transitions and stays among border-crossing events, on Spark.

    The same as `coincide.transition_tables`, with the same arguments. The events of each query and
    stream are brought to one task and put in order of their midpoints there. Rows of a DataFrame have
    no order, so events of equal midpoints are taken so that I and O alternate. The first is what the one
    before them is not. Without one before them it is the kind with more events, and an I if both have
    as many. So a stream that `border_crossings` has seen pass through a region
    enters it first.

    Parameters
    ----------
    events : DataFrame
        Border crossings, in any order.
    within, confidence, query, stream, event, time, repeated, options
        As in `coincide.transition_tables`.
    until : int, float, datetime, numpy.datetime64 or pa.Scalar, optional
        The time up to which the data are known, as the time columns hold it. By default the largest
        max_time of all events. A job finds it at once and computes the events once more, unless they
        are nothing but Parquet files, which tasks read. For crossings give
        ``report.summary().last_reading`` of their `BorderReport`, after an action.
    report : TransitionReport, optional
        Takes what was found, left out, and is undecided, once the result was computed.

    Returns
    -------
    DataFrame
        As in `coincide.transition_tables`. Times have the events' types where these are timestamps, and
        else are bigint ticks, as durations are.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or events are streaming.
    BackendError
        If Spark's Python workers cannot run this.

    Events that are invalid or repeated, and are to be refused, and intervals without a confidence, fail
    the job in which the result is computed: then such an error comes from Spark, as a PythonException.
    It counts the repeated ones of one chunk.

    Warns
    -----
    DroppedRowsWarning, RoundedTimesWarning, AmbiguousCrossingsWarning
        When the report is asked.
    """
    from spark_plugin.ways.transitions import plan_transitions

    TransitionReport.check(report)
    arguments = TransitionArguments(
        within, confidence, query, stream, event, time, repeated, options
    )
    planned = plan_transitions(events, until, arguments, observe=report is not None)
    return planned.reported_to(report)


@documented(transitions, border_crossing_streams)
def transition_streams(
    events: DataFrame,
    *,
    within: Duration,
    confidence: Confidence | None = None,
    delay: Duration,
    longest: Duration | None = None,
    ahead: Duration | None = None,
    clock: DataFrame | None = None,
    slice_length: Duration | None = None,
    key_buckets: int | None = None,
    name: str = "transitions",
    query: str = "query_id",
    stream: str | None = "stream_id",
    event: str = "event",
    time: str | Sequence[str] = ("min_time", "max_time"),
    repeated: Repeated = "raise",
    options: CorrelateOptions = CorrelateOptions(),
) -> DataFrame:
    """Find transitions and stays in a streaming DataFrame of border-crossing events.

    All rows together are those of `coincide.transitions` for all events that are not late. Events wait in
    Spark's state by slices of time, like in `coincide.border_crossing_streams`. A last event is a stay
    when the watermark says so. The state also holds the last event of each query and stream.

    Parameters
    ----------
    events : DataFrame
        A stream of border crossings. Its times need a unit.
    within, confidence, query, stream, event, time, repeated, options
        As in `coincide.transitions`. Repeated events that are to be refused fail the query. A late
        event leaves a repeat behind.
    delay, ahead, clock, slice_length, key_buckets, name
        As in `coincide.border_crossing_streams`.
    longest : int, str or timedelta, optional
        The longest time from the min to the max time of an event; an event that is longer is invalid.
        Needed unless `time` is one column.

    Returns
    -------
    DataFrame
        A streaming DataFrame for output mode ``append``, with the columns of `coincide.transitions`. A
        stay comes out before it ends, so its end and durations are null.

    Raises
    ------
    SchemaError, ConditionError, BackendError
        As `coincide.border_crossing_streams`.
    """
    from spark_plugin.ways.streaming.monitors import MonitorArguments
    from spark_plugin.ways.streaming.transitions import transitions_of_stream

    asked = MonitorArguments(
        operator="transition_streams", side="events", delay=delay, ahead=ahead, clock=clock,
        slice_length=slice_length, key_buckets=key_buckets, name=name,
    )  # fmt: skip
    arguments = TransitionArguments(
        within, confidence, query, stream, event, time, repeated, options
    )
    return transitions_of_stream(events, arguments, longest, asked)
