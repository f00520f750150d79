"""`correlate`: the probability join of two DataFrames."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from event_model.bands import OUTER_HI, OUTER_LO, band_table
from event_model.condition import TimingCondition, Window
from event_model.errors import ConditionError
from event_model.length_classes import LengthClasses
from event_model.options import Backend, CorrelateOptions, Emit, How
from event_model.results import JoinCounters
from event_model.units import Tick
from spark_plugin import dataframes as frames
from spark_plugin.accelerator import is_accelerated
from spark_plugin.emission import JoinSpec, check_output_names
from spark_plugin.events import REASONS, EventFrame
from spark_plugin.output_columns import decoded, output_columns, wire_schema
from spark_plugin.slice_columns import LABEL, label_left, label_right
from spark_plugin.slice_task import SliceTask
from spark_plugin.slices import PAIR_WORK, Reach, Sample, SlicePlan, plan_slices, uniform_plan
from spark_plugin.stage_resources import gpu_profile
from spark_plugin.statistics import SideStatistics, measure, refuse_invalid
from spark_plugin.tables import SideCounts, check_keys
from spark_plugin.time_columns import resolve_tick, scale_of, time_names
from spark_plugin.wire import CODED, METRICS, TIME, UNMATCHED, WireLayout, wire_layout
from spark_plugin.worker import (
    check_arguments,
    check_names,
    check_options,
    check_sides,
    declared_lengths,
    names_of,
)

_log = logging.getLogger("coincide")
_BATCH_PAIRS = 1 << 16
"""Pairs of an output batch: small ones let the JVM read one while the worker fills the next."""


def correlate(
    left: DataFrame,
    right: DataFrame,
    condition: TimingCondition,
    *,
    left_time: str | Sequence[str] = ("min_time", "max_time"),
    right_time: str | Sequence[str] = ("min_time", "max_time"),
    by: str | Sequence[str] = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
) -> DataFrame:
    """Join two DataFrames of events by satisfaction probability.

    A pair qualifies when P(lo <= T_right - T_left <= hi) reaches the confidence threshold, each
    timestamp being uniform on its interval, independently of the other.

    One small Spark job runs at once, to measure both sides and refuse invalid rows; the join itself
    runs when the result is used.

    Parameters
    ----------
    left, right : DataFrame
        Events: time columns (timestamp, timestamp_ntz, integers or floats), key columns, columns to
        hand out.
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    left_time, right_time : str or (str, str)
        The min and max column of the interval timestamps; one name for exact instants.
    by : str or sequence of str
        Columns that must be equal on both sides. A null equals nothing.
    left_columns, right_columns : str or sequence of str
        Columns to hand out, as ``left_<name>`` and ``right_<name>``.
    how : {"inner", "left", "semi", "anti"}
        ``left`` keeps left events without a partner, ``semi`` and ``anti`` give one row per left event
        that has, or lacks, a partner.
    emit : {"pairs", "lists", "counts", "best"}
        One row a pair; or one row per left event with arrays (in no particular order), with the number
        of its ``matches``, or with its most probable partner. With ``how="inner"`` events without a
        partner are left out, with ``how="left"`` they have empty arrays, 0, or nulls.
    probability : bool
        Add the satisfaction probability (double), a column or an array.
    backend : {"auto", "cpu", "gpu"}
    options : CorrelateOptions

    Returns
    -------
    DataFrame
        Columns `by`, ``left_...``, ``right_...`` (or ``matches``), ``probability``.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    BackendError
        If the backend is not here.
    """
    return plan_correlation(
        left, right, condition, left_time=left_time, right_time=right_time, by=by,
        left_columns=left_columns, right_columns=right_columns, how=how, emit=emit,
        probability=probability, backend=backend, options=options,
    ).dataframe  # fmt: skip


@dataclass(frozen=True)
class Correlation:
    """A planned join.

    Parameters
    ----------
    dataframe : DataFrame
        The result, not yet computed.
    left, right : SideCounts or None
        What the rows were; None where declared statistics spared the look.
    plan : SlicePlan
    observation : Observation or None
        Collects the counters, if asked for.
    observable : bool
        Whether it can be asked for: the RAPIDS Accelerator fails plans that are observed.
    """

    dataframe: DataFrame
    left: SideCounts | None
    right: SideCounts | None
    plan: SlicePlan
    observation: Observation | None = None
    observable: bool = True

    @property
    def slices(self) -> int:
        """Number of slices, hence of tasks."""
        return self.plan.count

    @property
    def replication(self) -> float:
        """Estimated copies per right event."""
        return self.plan.replication

    def counters(self) -> JoinCounters | None:
        """What the workers looked at and found, None if not observable. Waits for an action."""
        if not self.observable:
            return None
        if self.observation is None:
            raise RuntimeError("the correlation was planned without observe=True")
        found = self.observation.get
        return JoinCounters(*(int(found[name] or 0) for name in ("candidates", "probed", "pairs")))


def plan_correlation(
    left: DataFrame,
    right: DataFrame,
    condition: TimingCondition,
    *,
    left_time: str | Sequence[str] = ("min_time", "max_time"),
    right_time: str | Sequence[str] = ("min_time", "max_time"),
    by: str | Sequence[str] = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    observe: bool = False,
) -> Correlation:
    """As `correlate`, with the plan and, if `observe`, the workers' counters."""
    check_arguments(condition, how, emit, probability, backend)
    check_sides(left, right, DataFrame, "a Spark DataFrame")
    check_names(
        left_time=left_time, right_time=right_time, by=by,
        left_columns=left_columns, right_columns=right_columns,
    )  # fmt: skip
    check_options(options)
    keys = names_of(by)
    _check_keys(left, right, keys)
    names = time_names("left", left_time), time_names("right", right_time)
    sides, tick = _event_frames(
        (left, right), names, keys, (names_of(left_columns), names_of(right_columns)), options
    )
    spec = JoinSpec(
        condition.window(tick), how, emit, probability, backend, options.classes,
        options.threads or 1, options.batch_pairs or _BATCH_PAIRS,
    )  # fmt: skip
    result = _Result(sides, spec)
    counts, plan = _plan(sides, spec, options)
    _log.info("correlate: %s", plan.describe())
    declared = counts is None
    wire = _exchanged(sides, spec, result.layout, plan, declared and options.invalid == "raise")
    observable = not is_accelerated(left.sparkSession)
    metrics = result.metrics_name if observe and observable else None
    task = SliceTask(spec, result.layout, result.names, metrics)
    profile = gpu_profile(left.sparkSession, backend)
    pairs = wire.mapInArrow(task, result.wire_schema(metrics), profile=profile)
    observation = None
    if metrics is not None:
        observation = Observation("coincide")
        pairs = _observed(pairs, observation, metrics)
    left_counts, right_counts = counts or (None, None)
    return Correlation(
        result.decoded(pairs), left_counts, right_counts, plan, observation, observable
    )


def _check_keys(left: DataFrame, right: DataFrame, by: list[str]) -> None:
    check_keys(by, frames.key_kinds(left, "left", by), frames.key_kinds(right, "right", by))


def _event_frames(
    sources: tuple[DataFrame, DataFrame],
    names: tuple[tuple[str, str], tuple[str, str]],
    by: list[str],
    payload: tuple[list[str], list[str]],
    options: CorrelateOptions,
) -> tuple[tuple[EventFrame, EventFrame], Tick]:
    columns = [
        frames.spark_time_column(side, frames.field_of(source, side, name))
        for side, source, pair in zip(("left", "right"), sources, names, strict=True)
        for name in pair
    ]
    tick = resolve_tick(columns, options.unit)
    scales = [scale_of(column, tick, options.unit) for column in columns]
    longest = declared_lengths(options, tick)
    sides = [
        EventFrame(side, sources[i], (scales[2 * i], scales[2 * i + 1]), by, payload[i], longest[i])
        for i, side in enumerate(("left", "right"))
    ]
    return (sides[0], sides[1]), tick


def _plan(
    sides: tuple[EventFrame, EventFrame], spec: JoinSpec, options: CorrelateOptions
) -> tuple[tuple[SideCounts, SideCounts] | None, SlicePlan]:
    tasks = parallelism(sides[0].source.sparkSession)
    left, right = sides
    if left.longest is not None and right.longest is not None and options.time_range is not None:
        first, last = options.time_range
        reach = _reach(spec.window, (0, left.longest), (0, right.longest))
        if options.invalid == "drop":
            raise ConditionError(
                "invalid='drop' must count what it drops, which needs the look at the data that declared"
                " lengths and time_range spare; leave one of them out, or use invalid='raise'"
            )
        slices = options.slices or 4 * tasks
        return None, uniform_plan(2 * first, 2 * last, reach, slices, options.max_replication)
    statistics = measure(left, right)
    if options.invalid == "raise":
        refuse_invalid(sides, statistics)
    reach = _reach(spec.window, *((s.shortest, s.longest) for s in statistics))
    plan = plan_slices(
        _sample(statistics[0], spec.keeps_unmatched),
        _sample(statistics[1], False),
        reach,
        parallelism=tasks,
        slices=options.slices,
        slice_rows=options.slice_rows,
        max_replication=options.max_replication,
        pair_work=PAIR_WORK[spec.emit],
        keyed=bool(left.by),
    )
    return (statistics[0].counts, statistics[1].counts), plan


def _sample(side: SideStatistics, with_unmatchable: bool) -> Sample:
    rows = side.matchable + (side.counts.unmatchable if with_unmatchable else 0)
    return Sample(side.midpoints, side.weights, side.hashes, rows)


def _reach(window: Window, left: tuple[int, int], right: tuple[int, int]) -> Reach:
    """The outer range of D over all lengths."""
    band = band_table(LengthClasses.one(*left), LengthClasses.one(*right), window)[0, 0]
    return Reach(int(band[OUTER_LO]), int(band[OUTER_HI]))


def parallelism(spark: SparkSession) -> int:
    """Tasks at once; where the session cannot say (Spark Connect), what its settings say."""
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        return max(1, context.defaultParallelism)
    fallback = spark.conf.get("spark.sql.shuffle.partitions", "200") or "200"
    return max(1, int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or fallback))


def _exchanged(
    sides: tuple[EventFrame, EventFrame],
    spec: JoinSpec,
    layout: WireLayout,
    plan: SlicePlan,
    raise_invalid: bool,
) -> DataFrame:
    """Events of both sides on the wire, each slice in a partition of its own."""
    left, right = (_wire_rows(side, layout, spec.keeps_unmatched, raise_invalid) for side in sides)
    columns = [LABEL, *layout.columns]
    left = label_left(left, plan, _salt(sides[0], layout)).select(*columns)
    rows = left.unionAll(label_right(right, plan).select(*columns))
    return rows.repartition(plan.count, LABEL).select(*layout.columns)


def _salt(left: EventFrame, layout: WireLayout) -> str:
    """SQL that tells left events of one instant apart, to deal them to several slices."""
    kinds = [frames.field_of(left.source, "left", name).dataType for name in left.payload]
    hashable = [
        wire for wire, kind in zip(layout.left, kinds, strict=True) if frames.can_be_hashed(kind)
    ]
    return f"xxhash64({', '.join([TIME, CODED, *layout.keys, *hashable])})"


def _wire_rows(
    side: EventFrame, layout: WireLayout, keeps_unmatched: bool, raise_invalid: bool
) -> DataFrame:
    """Wire columns of one side, with `midpoint` and `key_hash` for the slice labels."""
    is_left = side.side == "left"
    payload = layout.left if is_left else layout.right
    columns = {**_encoded(side, layout.keys, side.by), **_encoded(side, payload, side.payload)}
    rows = side.source.selectExpr(
        *side.columns, *(f"{value} AS {name}" for name, value in columns.items())
    )
    with_null = is_left and keeps_unmatched
    rows = rows.where(_kept(side, with_null, raise_invalid))
    time, coded = "high", "high - low" if is_left else "low - high - 1L"
    midpoint = "low + high"
    if with_null:
        time, coded, midpoint = (
            f"CASE WHEN {side.is_ok} THEN {x} END" for x in (time, coded, midpoint)
        )
        time, coded = f"coalesce({time}, 0L)", f"coalesce({coded}, {frames.literal(UNMATCHED)})"
    slots = [name if name in columns else f"NULL AS {name}" for name in layout.columns[2:]]
    return rows.selectExpr(
        f"{time} AS {TIME}", f"{coded} AS {CODED}", *slots, f"{midpoint} AS midpoint", "key_hash"
    )


def _kept(side: EventFrame, with_null: bool, raise_invalid: bool) -> str:
    """Which rows go on: events that can match, and with_null those of no time or key."""
    if not with_null and not raise_invalid:
        return side.is_ok
    last = REASONS.index("null" if with_null else "ok")
    keep = f"{side.reason} <= {last}"
    if not raise_invalid:
        return keep
    text = f"{side.side}: invalid times in a row; run without declared statistics to see which"
    raised = f"CAST(raise_error('{text}') AS BOOLEAN)"
    return f"CASE WHEN {side.reason} > {REASONS.index('null')} THEN {raised} ELSE {keep} END"


def _encoded(side: EventFrame, wire_names: Sequence[str], names: list[str]) -> dict[str, str]:
    return {
        wire: frames.encode(
            frames.quoted(name), frames.field_of(side.source, side.side, name).dataType
        )
        for wire, name in zip(wire_names, names, strict=True)
    }


def _observed(pairs: DataFrame, observation: Observation, metrics: str) -> DataFrame:
    """Sum the metrics rows of all tasks on their way, and leave them out."""
    totals = [
        F.expr(f"sum({metrics}[{i}])").alias(name)
        for i, name in enumerate(("candidates", "probed", "pairs"))
    ]
    return pairs.observe(observation, *totals).where(f"{metrics} IS NULL").drop(metrics)


class _Result:
    """The output columns: their names, their types, and how they cross the wire."""

    def __init__(self, sides: tuple[EventFrame, EventFrame], spec: JoinSpec) -> None:
        left, right = sides
        keys, mine, theirs = (
            [(name, frames.field_of(side.source, side.side, name).dataType) for name in names]
            for side, names in ((left, left.by), (left, left.payload), (right, right.payload))
        )
        cross = [[frames.crosses_as_int64(kind) for _, kind in side] for side in (mine, theirs)]
        self.layout = wire_layout(len(keys), *cross)
        self.columns = output_columns(spec, keys, mine, theirs)
        check_output_names(list(self.names))
        self.wire_schema(None)  # refuses types that Arrow cannot carry

    @property
    def metrics_name(self) -> str:
        """A name for the column of counters that no output column has."""
        name = METRICS
        while name in (other.lower() for other in self.names):
            name += "_"
        return name

    def wire_schema(self, metrics: str | None) -> T.StructType:
        """What the worker yields."""
        return wire_schema(self.columns, metrics)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the output columns, on the wire and off it."""
        return tuple(column.name for column in self.columns)

    def decoded(self, pairs: DataFrame) -> DataFrame:
        """The worker's columns in their own types."""
        return decoded(pairs, self.columns)
