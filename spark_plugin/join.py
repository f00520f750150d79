"""`correlate`: the probability join of two DataFrames."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation

from coincide.condition import TimingCondition
from coincide.options import Backend, CorrelateOptions, Emit, How, SideName
from coincide.results import JoinCounters
from coincide.units import Tick
from spark_plugin.cluster.accelerator import is_accelerated
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.evidence import FrameEvidence
from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.stage import Stage, observed_numbers
from spark_plugin.dataframes.stage_resources import gpu_profile
from spark_plugin.ways.broadcast.join import broadcast_join
from spark_plugin.ways.broadcast.plan import BroadcastPlan
from spark_plugin.ways.broadcast.streaming_sides import check_streaming
from spark_plugin.ways.broadcast.worker.small_side import Shipment
from spark_plugin.ways.choice import plan_ways
from spark_plugin.ways.exchange.join import exchange_join
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.worker.arrow.tables import SideCounts, check_keys
from spark_plugin.worker.arrow.time_columns import resolve_tick, scale_of, time_names
from spark_plugin.worker.emission import JoinSpec
from spark_plugin.worker.join import (
    check_arguments,
    check_names,
    check_options,
    check_sides,
    declared_lengths,
    handed_out,
    names_of,
)
from spark_plugin.worker.reports.emptiness import NoPairs
from spark_plugin.worker.reports.metrics import counters_of
from spark_plugin.worker.reports.reports import JoinReport, JoinSummary, check_report, tell

_log = logging.getLogger("coincide")
BATCH_PAIRS = 1 << 16
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
    report: JoinReport | None = None,
) -> DataFrame:
    """Join two DataFrames of events by satisfaction probability.

    A pair qualifies when P(lo <= T_right - T_left <= hi) reaches the confidence threshold, each
    timestamp being uniform on its interval, independently of the other.

    One small Spark job runs at once, to measure both sides and refuse invalid rows. Where a side is
    small it is collected at once, too. The join itself runs when the result is used.

    Parameters
    ----------
    left, right : DataFrame
        Events: time columns (timestamp, timestamp_ntz, integers or floats), key columns, columns to
        hand out. One side may be streaming, if the other one is broadcast and lengths are declared.
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    left_time, right_time : str or (str, str)
        The min and max column of the interval timestamps; one name for exact instants.
    by : str or sequence of str
        Columns that must be equal on both sides. A null equals nothing.
    left_columns, right_columns : str or sequence of str
        Columns to hand out, as ``left_<name>`` and ``right_<name>``. `right_columns` have no meaning,
        and need not exist, with ``how="semi"``, ``how="anti"`` and ``emit="counts"``, which hand out
        nothing of a partner.
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
    report : JoinReport, optional
        Is told what the rows were and, once the DataFrame was computed, what was found.

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
        If the backend cannot be. Whether a worker has a GPU is seen when the DataFrame is computed: then
        such an error comes from Spark, as a PythonException.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning
        Of what the first job has seen. It knows of an empty result where no timestamps are short enough
        for the confidence, no times near enough for the window, or, of few rows, no keys equal.
    """
    check_report(report)
    planned = plan_correlation(
        left, right, condition, left_time=left_time, right_time=right_time, by=by,
        left_columns=left_columns, right_columns=right_columns, how=how, emit=emit,
        probability=probability, backend=backend, options=options, observe=report is not None,
    )  # fmt: skip
    planned.tell(report)
    return planned.dataframe


@dataclass(frozen=True)
class Correlation:
    """A planned join.

    Parameters
    ----------
    dataframe : DataFrame
        The result, not yet computed.
    left, right : SideCounts or None
        What the rows were; None where declared statistics spared the look.
    plan : SlicePlan or BroadcastPlan
        Events meet by an exchange, or one side goes to every worker.
    observation : Observation or None
        Collects the counters, if asked for.
    observable : bool
        Whether it can be asked for: the RAPIDS Accelerator fails plans that are observed.
    shipment : Shipment or None
        What was broadcast.
    evidence : FrameEvidence
        What is known of the sides, should nothing be found.
    """

    dataframe: DataFrame
    left: SideCounts | None
    right: SideCounts | None
    plan: SlicePlan | BroadcastPlan
    evidence: FrameEvidence
    observation: Observation | None = None
    observable: bool = True
    shipment: Shipment | None = None

    @property
    def way(self) -> str:
        """How events meet: ``"exchange"`` or ``"broadcast"``."""
        return "broadcast" if isinstance(self.plan, BroadcastPlan) else "exchange"

    @property
    def slices(self) -> int | None:
        """Number of slices, hence of tasks, of an exchange."""
        return None if isinstance(self.plan, BroadcastPlan) else self.plan.count

    @property
    def replication(self) -> float | None:
        """Estimated copies per right event, in an exchange."""
        return None if isinstance(self.plan, BroadcastPlan) else self.plan.replication

    def counters(self) -> JoinCounters | None:
        """What the workers looked at and found. Waits for an action.

        None if not observable, or if Spark has left the join out of what it did: of ``count()`` on a
        result of one row per event it needs no partners.
        """
        if not self.observable:
            return None
        if self.observation is None:
            raise RuntimeError("the correlation was planned without observe=True")
        found = observed_numbers(self.observation)
        return None if found is None else counters_of(found)

    def summary(self) -> JoinSummary:
        """What the join did, as far as it was counted; waits for an action, as `counters` does.

        If nothing was found, jobs are run to say why.
        """
        counters = self.counters()
        return replace(
            self._known,
            left=self.left or self._counted(0),
            right=self.right or self._counted(1),
            counters=counters,
            no_pairs=self._no_pairs() if counters and not counters.pairs else None,
        )

    def _no_pairs(self) -> NoPairs | None:
        try:
            return self.evidence.no_pairs()
        except (PySparkException, Py4JError) as error:  # the join itself has been done
            _log.warning("nothing was found, and cannot be looked at again to say why: %s", error)
            return None

    def tell(self, report: JoinReport | None) -> None:
        """Hand the report, if there is one, what is known by now, and warn of it."""
        known = replace(self._known, no_pairs=self.evidence.foreseen())
        tell(known, report, self.summary if self.observation else None)

    @property
    def _known(self) -> JoinSummary:
        tick = self.evidence.sides[0].scales[0].tick
        return JoinSummary(self.left, self.right, None, None, self.way, tick)

    def _counted(self, side: int) -> SideCounts | None:
        """What was counted of a side while it was joined."""
        observation = self.evidence.sides[side].observation
        found = None if observation is None else observed_numbers(observation)
        if found is None:
            return None
        return SideCounts(found["rows"], found["unmatchable"], {}, found["rounded"] or 0.0)

    def close(self) -> None:
        """Let go of what was broadcast, which else stays until the session ends.

        `dataframe` can be computed no longer.
        """
        if self.shipment is not None:
            self.shipment.close()


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
    remedy = (
        "spark.createDataFrame(...) makes one of a pandas or an Arrow table, spark.read of files"
    )
    check_sides(left, right, DataFrame, "a Spark DataFrame", remedy)
    check_names(
        left_time=left_time, right_time=right_time, by=by,
        left_columns=left_columns, right_columns=right_columns,
    )  # fmt: skip
    check_options(options)
    keys = names_of(by)
    _check_keys(left, right, keys)
    names = time_names("left", left_time), time_names("right", right_time)
    payload = names_of(left_columns), handed_out(right_columns, how, emit)
    sides, tick = _event_frames((left, right), names, keys, payload, options)
    spec = JoinSpec(
        condition.window(tick), how, emit, probability, backend, options.classes,
        options.threads or 1, options.batch_pairs or BATCH_PAIRS,
    )  # fmt: skip
    for side in sides:
        for name in side.payload:
            frames.field_of(side.source, side.side, name)
    result = ResultColumns(sides, spec)
    check_streaming(left, right, spec, options)
    check_workers(left.sparkSession)
    statistics, plan = plan_ways(sides, spec, options)
    _log.info("correlate: %s", plan.describe())
    observable = not is_accelerated(left.sparkSession)
    observation = Observation("coincide") if observe and observable else None
    if observation and statistics is None:
        sides = _observed_side(sides[0]), _observed_side(sides[1])
    stage = Stage(
        raise_invalid=options.invalid == "raise",
        profile=gpu_profile(left.sparkSession, backend),
        metrics=None if observation is None else result.metrics_name,
        observation=observation,
    )
    shipment = None
    if isinstance(plan, BroadcastPlan):
        found, shipment = broadcast_join(sides, spec, result, plan, options, stage)
    else:
        found = exchange_join(sides, spec, result, plan, stage)
    left_counts, right_counts = (s.counts for s in statistics) if statistics else (None, None)
    evidence = FrameEvidence(sides, spec, statistics)
    return Correlation(
        result.decoded(found), left_counts, right_counts, plan, evidence, observation, observable,
        shipment,
    )  # fmt: skip


def _observed_side(side: EventFrame) -> EventFrame:
    return replace(side, observation=Observation(f"coincide_{side.side}"))


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
    tick = resolve_tick(columns, options)
    scales = [scale_of(column, tick, options) for column in columns]
    longest = declared_lengths(options, tick)
    left, right = (
        EventFrame(side, sources[i], (scales[2 * i], scales[2 * i + 1]), by, payload[i], longest[i])
        for i, side in enumerate(get_args(SideName))
    )
    return (left, right), tick
