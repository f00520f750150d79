"""Causality joins: of DataFrames, and of Arrow tables in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from coincide.engine.causality.arguments import CAUSE_AND_EFFECT, CausalityArguments, Place
from coincide.engine.causality.join import causality_tables
from coincide.engine.events.keys import Keys
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.pair_arguments import check_words
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.reports.join_report import JoinReport
from coincide.model.aggregates import Aggregates, Weights
from coincide.model.causality.condition import CausalityCondition
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, argument
from coincide.model.options import (
    LARGEST_GROUP,
    Backend,
    CorrelateOptions,
    Emit,
    How,
    Matching,
    PreferEffect,
)
from coincide.model.units import Duration
from spark_plugin.operators.streams import correlate_streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@documented(causality_tables)
def causality(
    causes: DataFrame,
    effects: DataFrame | None,
    condition: CausalityCondition,
    *,
    cause_time: GivenTimes = "time",
    effect_time: GivenTimes | None = None,
    cause_place: Place = (),
    effect_place: Place | None = None,
    by: Keys = (),
    cause_columns: str | Sequence[str] = ("id",),
    effect_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    where: GivenWhere = None,
    prefer: PreferEffect = "probability",
    k: int = 1,
    matching: Matching | None = None,
    largest_group: int = LARGEST_GROUP,
    aggregates: Aggregates | None = None,
    weights: Weights | None = None,
) -> DataFrame:
    """Find all pairs of a cause and its effect in two DataFrames, on Spark.

    The same as `coincide.causality_tables`, with the same arguments and the same answer. Events meet like
    those of `coincide.correlate`. A small side goes to every worker, or slices of time bring both sides
    together. A slice holds each cause once, and each effect wherever its causes may be. Within a slice
    keys and places narrow the search. Where nothing bounds the time, blocks of causes meet blocks of
    effects.

    One small Spark job runs at once, to measure both sides and refuse invalid rows, unless both are large
    and it is known how far pairs reach. Where a side is small it is collected at once, too. The join itself
    runs when the result is used.

    Parameters
    ----------
    causes : DataFrame
        Events: time columns (timestamp, timestamp_ntz, integers or floats), coordinates, key columns,
        output columns. In options and units causes are the left side.
    effects : DataFrame or None
        None: `causes` are one stream. Every event is a cause, and every other one may be its effect, like
        in `coincide.causality_tables`.
    condition : CausalityCondition
    cause_time, effect_time, cause_place, effect_place, by, cause_columns, effect_columns
    how, emit, probability, backend, where, prefer, k, matching, largest_group, aggregates, weights
        As in `coincide.causality_tables`.
    options : CorrelateOptions
        What numbers in time columns count, what becomes of invalid rows, and how the join runs; length
        classes mean nothing here.
    report : JoinReport, optional
        Receives what the rows were and, once the DataFrame was computed, what was found.

    Returns
    -------
    DataFrame
        Columns `by`, ``cause_...``, ``effect_...`` (or ``matches``), ``delta_us`` (bigint; the name says
        what it counts), where there are places ``distance`` (double), if asked ``probability`` (double).

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    BackendError
        If the backend is not possible. Whether a worker has a GPU is seen when the DataFrame is computed.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning
        About rows that the first job has seen.
    """
    from spark_plugin.frames.keyed_rows import must_be_frame
    from spark_plugin.ways.causality import plan_causality

    JoinReport.check(report)
    arguments = CausalityArguments(
        condition, cause_time=cause_time, effect_time=effect_time, cause_place=cause_place,
        effect_place=effect_place, by=by, cause_columns=cause_columns,
        effect_columns=effect_columns, how=how, emit=emit, backend=backend, options=options,
        is_one_stream=effects is None, where=where, prefer=prefer, k=k,
        matching=matching, largest_group=largest_group, probability=probability, aggregates=aggregates,
        weights=weights,
    )  # fmt: skip
    if options.way == "files":
        raise ConditionError(
            f"{argument('way', 'files')} reads files (found DataFrames). Choose another way, or"
            " remove it."
        )
    must_be_frame(causes, "causes", "causality_tables")
    if effects is not None:
        must_be_frame(effects, "effects", "causality_tables")
    planned = plan_causality(causes, effects, arguments, observe=report is not None)
    planned.tell(report)
    return planned.dataframe


@documented(correlate_streams)
def causality_streams(
    causes: DataFrame,
    effects: DataFrame | None,
    condition: CausalityCondition,
    *,
    cause_delay: Duration,
    effect_delay: Duration | None = None,
    late: Literal["count", "rows"] = "count",
    cause_ahead: Duration | None = None,
    effect_ahead: Duration | None = None,
    idle_after: Duration | None = None,
    cause_clock: DataFrame | None = None,
    effect_clock: DataFrame | None = None,
    slice_length: Duration | None = None,
    key_buckets: int | None = None,
    name: str = "causality",
    **arguments: Any,
) -> DataFrame:
    """Find all pairs of a cause and its effect in two streaming DataFrames.

    All rows but late ones together are those of `coincide.causality_tables` for all rows that are not
    late. Rows wait by slices of time, like in `coincide.correlate_streams`.

    Parameters
    ----------
    causes : DataFrame
        A stream of events.
    effects : DataFrame or None
        None: `causes` are one stream, like in `coincide.causality_tables`.
    condition : CausalityCondition
        It must bound the time.
    cause_delay, effect_delay, cause_ahead, effect_ahead, cause_clock, effect_clock
        Like those of left and right in `coincide.correlate_streams`.
    late, idle_after, slice_length, key_buckets
        As in `coincide.correlate_streams`.
    name : str
        What the counts of rows are called in Spark's progress: ``causality_cause``, ``causality_effect``
        and ``causality_late``. Joins of one query need different names.
    **arguments
        ``cause_time``, ``effect_time``, ``cause_place``, ``effect_place``, ``by``,
        ``cause_columns``, ``effect_columns``, ``how``, ``emit``, ``probability``, ``backend``, ``options``,
        ``where``, ``prefer``, ``k``: as `coincide.causality` takes them.

    Returns
    -------
    DataFrame
        A streaming DataFrame for output mode ``append``, with the columns of `coincide.causality`.

    Raises
    ------
    SchemaError, ConditionError, BackendError
        As `coincide.correlate_streams`.

    Examples
    --------
    >>> felt = causality_streams(
    ...     quakes, reports, CausalityCondition([Temporal("0s", "5min"), Spatial(200)], Sphere("km")),
    ...     cause_place=("lat", "lon"), effect_place=("lat", "lon"),
    ...     cause_delay="1min", effect_delay="10min",
    ... )
    """
    from spark_plugin.ways.streaming.arguments import StreamArguments
    from spark_plugin.ways.streaming.join import join_streams

    check_words("causality", CausalityArguments, arguments)
    asked = StreamArguments(
        operator="causality_streams", sides=CAUSE_AND_EFFECT, delays=(cause_delay, effect_delay),
        aheads=(cause_ahead, effect_ahead),
        late=late, idle_after=idle_after, clocks=(cause_clock, effect_clock),
        slice_length=slice_length, key_buckets=key_buckets, name=name,
    )  # fmt: skip
    join = CausalityArguments(condition, is_one_stream=effects is None, **arguments)
    return join_streams({"causes": causes, "effects": effects}, join, asked)
