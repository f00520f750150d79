"""Streams of tables, joined by keys as their rows arrive. Needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coincide.engine.events.keys import Keys
from coincide.engine.events.spans import check_no_spans
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import correlate_tables
from coincide.engine.join.pair_arguments import GivenWindow, OneStreamError, condition_of
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.streams.reading import StreamArguments
from coincide.engine.streams.stream_join import StreamJoin
from coincide.model.aggregates import Aggregates, Weights
from coincide.model.condition import Confidence, TimingCondition
from coincide.model.docstrings import documented
from coincide.model.errors import (
    ConditionError,
    SchemaError,
    argument,
    found_instead,
)
from coincide.model.options import (
    Backend,
    CorrelateOptions,
    Emit,
    How,
    Matching,
    Prefer,
    check_no_most,
    check_one_device,
)
from coincide.model.units import Duration


@documented(correlate_tables)
def stream_tables(
    condition: TimingCondition | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    left_delay: Duration,
    right_delay: Duration | None = None,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: Keys = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    left_schema: Any = None,
    right_schema: Any = None,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    where: GivenWhere = None,
    prefer: Prefer = "probability",
    k: int = 1,
    matching: Matching | None = None,
    left_ahead: Duration | None = None,
    right_ahead: Duration | None = None,
    aggregates: Aggregates | None = None,
    weights: Weights | None = None,
) -> StreamJoin:
    """Join two streams of tables as their rows arrive, or one with itself, by any number of keys.

    What it gives out, all in all, is what `coincide.correlate_tables` gives of all rows that were pushed,
    but for late ones. Events are kept for as long as something may come that they can be a match of.

    Parameters
    ----------
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    within, confidence
        As in `coincide.correlate_tables`.
    left_delay, right_delay : int, str or timedelta
        How long after its max_time an event of the side may arrive, such as ``"250ms"``; an int counts
        ticks. An event arrives at the largest max_time that its side has seen, over all keys, and one
        that comes later than this is left out, counted, and kept for `StreamJoin.take_late`. Without
        `right_delay` there is one stream, which is joined with itself as by ``correlate_tables(events)``:
        left is every event, right every other one, and pairs are given once. If two events have
        the same timestamp, the one that came first is left.
    left_time, right_time, by, left_columns, right_columns
        As in `coincide.correlate_tables`.
    how, emit
        As in `coincide.correlate_tables`. Pairs (``how="inner"``, ``emit="pairs"``) are returned when the
        second of the two events comes. All else tells of left events, and is returned when no event
        may come any more that could be a match: ``how="anti"`` tells of deadlines that were missed.
    probability : bool
        Add the satisfaction probability (float64).
    left_schema, right_schema : pa.Schema, optional
        The schemas of the tables to come. Without one the first table of a side has the types. Events
        wait until the types of both sides are known. With ``"*"`` a schema says which columns there are.
    backend : {"auto", "cpu", "gpu"}
        ``"auto"`` takes a GPU, where there is one, for blocks of many events.
    options : CorrelateOptions
        ``left_longest`` and ``right_longest`` let events go sooner. Without it an
        interval may be as long as the window and the confidence allow.
    where : str or pyarrow.compute.Expression, optional
        As in `coincide.correlate_tables`.
    prefer, k, matching
        As in `coincide.correlate_tables`. A pair of ``matching="mutual"`` is returned when no event may
        come that could be a better match of either. One of ``"unambiguous"`` is returned when no event may
        come that could be another match.
        There is no ``"optimal"`` here.
    left_ahead, right_ahead : int, str or timedelta, optional
        How far ahead of the median max_time of the last 31 rows of its side a row may be, such as
        ``"1h"``. A row further ahead is set aside: it takes no part and moves no clock. It is counted,
        and kept for `StreamJoin.take_ahead`. None: a row may be as far ahead as it likes.
    aggregates, weights
        As in `coincide.correlate_tables`.

    Returns
    -------
    StreamJoin
        Events go into its `push`.

    Raises
    ------
    ConditionError
        If the condition or an argument makes no sense.
    SchemaError
        If a schema is not one, or lacks a column.
    BackendError
        If the backend is unknown.
    """
    times = (left_time, left_time if right_delay is None else right_time)
    cure = "Use correlate_streams on Spark, or correlate_tables once the rows are there."
    check_no_spans("stream_tables", cure, condition, *times)
    check_one_device(options, "a push of a stream is small")
    asked = condition_of(condition, within, confidence, times, weights)
    if not isinstance(asked, TimingCondition):
        raise SchemaError(
            f"{argument('condition')} must be a TimingCondition(predicate, confidence), such as"
            f" TimingCondition(within('0s', '3s'), 0.9) (found {found_instead(asked)})."
        )
    try:
        join = JoinArguments(
            asked, left_time=left_time, right_time=right_time, by=by,
            left_columns=left_columns, right_columns=right_columns, how=how, emit=emit,
            probability=probability, backend=backend, options=options, is_one_stream=right_delay is None,
            where=where, prefer=prefer, k=k, matching=matching, aggregates=aggregates,
            weights=weights,
        )  # fmt: skip
    except OneStreamError as error:
        raise ConditionError(f"{argument('right_delay')} is missing, or else {error}") from None
    check_no_most(options, "a stream has no end")
    if join.has_open_window:
        raise ConditionError(
            f"a stream keeps events as long as its window reaches, and {asked.predicate} reaches without"
            f" end. Give both ends, such as {argument('within', ('-1h', '0s'))}."
        )
    asked_of_streams = StreamArguments(join, left_delay, right_delay, left_ahead, right_ahead)
    return StreamJoin(asked_of_streams, (left_schema, right_schema))
