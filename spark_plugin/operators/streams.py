"""The probability join of two streaming DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from coincide.engine.join.arguments import TIMES, JoinArguments
from coincide.engine.join.join import correlate_tables
from coincide.engine.join.pair_arguments import (
    GivenWindow,
    check_second,
    check_words,
    condition_of,
)
from coincide.model.condition import Confidence, TimingCondition
from coincide.model.docstrings import documented
from coincide.model.relations import SpanRelation
from coincide.model.units import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@documented(correlate_tables)
def correlate_streams(
    left: DataFrame,
    right: DataFrame | None = None,
    condition: TimingCondition | SpanRelation | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    left_delay: Duration,
    right_delay: Duration | None = None,
    late: Literal["count", "rows"] = "count",
    left_ahead: Duration | None = None,
    right_ahead: Duration | None = None,
    idle_after: Duration | None = None,
    left_clock: DataFrame | None = None,
    right_clock: DataFrame | None = None,
    slice_length: Duration | None = None,
    key_buckets: int | None = None,
    name: str = "coincide",
    **arguments: Any,
) -> DataFrame:
    """Join two streaming DataFrames by satisfaction probability.

    All rows but late ones together are those of `coincide.correlate_tables` for all rows that are not late:
    each comes out once, and is final. Rows wait in Spark's state by slices of time. A slice is joined when
    the watermark has passed all that can reach it. Restarts from a checkpoint, and sinks that write
    exactly once, work as in any streaming query.

    Parameters
    ----------
    left, right : DataFrame
        Streams of events. Without `right` the stream `left` is joined with itself, as by
        `coincide.correlate`. A static side needs no watermark: `coincide.correlate` joins it.
    condition, within, confidence
        As in `coincide.correlate_tables`.
    left_delay, right_delay : int, str or timedelta
        How much later than a newer row of its side a row may come. A row within its delay is never
        late. Longer delays wait longer. One stream has only `left_delay`.
    late : {"count", "rows"}
        Spark's progress counts late rows. With ``"rows"`` they also come out, with the last column
        ``late``: the side of a late row, null for all other rows.
    left_ahead, right_ahead : int, str or timedelta, optional
        How far ahead of the median max_time of its side in its micro-batch a row may be, such as
        ``"1h"``. A row further ahead is set aside, so that it does not make all others late: it takes no
        part, and Spark's progress counts it. With ``late="rows"`` it comes out as late rows do. One task
        reads such a side.
    idle_after : int, str or timedelta, optional
        A side without rows is taken to have come as far as the other side, less this. Without it a
        silent side holds the other one up. Rows that come after a longer silence are late.
    left_clock, right_clock : DataFrame, optional
        A stream of one timestamp column: its side has come at least so far. Use it for heartbeats.
    slice_length : int, str or timedelta, optional
        Length of slices. None: so long that rows come out at most twice as late as they must, for
        delays longer than the window.
    key_buckets : int, optional
        Parts of a slice by keys, which are joined by different tasks. None: as many as
        ``spark.sql.shuffle.partitions``.
    name : str
        What the counts of rows are called in Spark's progress: ``coincide_left``, ``coincide_right``,
        ``coincide_late`` and ``coincide_output``. Joins of one query need different names.
    **arguments
        The others of `coincide.correlate`, such as ``left_time``, ``by``, ``left_columns``, ``how``,
        ``emit`` and ``options``; but for those of one to one matches, which compare pairs of all rows.

    Returns
    -------
    DataFrame
        A streaming DataFrame for output mode ``append``, with the columns of `coincide.correlate`.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or the session cannot keep the state: it needs RocksDB. A query
        that starts from the checkpoint of another join fails with it, by way of Spark.
    BackendError
        If the backend is not possible, or Spark is older than 4.1.

    Examples
    --------
    >>> pairs = correlate_streams(
    ...     orders, payments, within=("0s", "30s"), confidence=0.9, by="customer",
    ...     left_delay="10s", right_delay="10s",
    ... )
    >>> pairs.writeStream.option("checkpointLocation", "checkpoint").start("pairs")
    """
    from spark_plugin.ways.streaming.arguments import StreamArguments
    from spark_plugin.ways.streaming.join import join_streams

    check_second(right)
    check_words("correlate", JoinArguments, arguments)
    sides = ("left",) if right is None else ("left", "right")
    times = [arguments.get(f"{side}_time", TIMES) for side in sides]
    asked = StreamArguments(
        delays=(left_delay, right_delay), aheads=(left_ahead, right_ahead), late=late,
        idle_after=idle_after,
        clocks=(left_clock, right_clock), slice_length=slice_length, key_buckets=key_buckets,
        name=name,
    )  # fmt: skip
    meant = condition_of(condition, within, confidence, times, arguments.get("weights"))
    join = JoinArguments(meant, is_one_stream=right is None, **arguments)
    return join_streams({"left": left, "right": right}, join, asked)
