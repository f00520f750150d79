"""A planned join of two DataFrames: its result, and what is known of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Observation

from coincide.engine.events.keys import names_of
from coincide.engine.events.sides import SideCounts
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.spec import AnySpec
from coincide.engine.reports.emptiness import NoPairs
from coincide.engine.reports.metrics import with_numbers
from coincide.engine.reports.reports import AccidentalPairs, JoinReport, JoinSummary
from coincide.model.options import CorrelateOptions
from coincide.model.results import JoinCounters
from spark_plugin.cluster.gateway_errors import SPARK_ERRORS
from spark_plugin.cluster.jobs import advise_batch_size
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.estimates import are_narrow
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.evidence import FrameEvidence
from spark_plugin.frames.output_columns import ResultColumns, with_rights
from spark_plugin.frames.queries import queries_told
from spark_plugin.frames.stage import (
    Counted,
    Stage,
    counted_by_tasks,
    gpu_profile,
    observed_numbers,
)
from spark_plugin.frames.statistics import Looks, SideStatistics
from spark_plugin.tasks.broadcast import BroadcastPlan
from spark_plugin.tasks.slices import SlicePlan
from spark_plugin.tasks.wire import Shipment
from spark_plugin.ways.broadcast.streaming_sides import check_streaming
from spark_plugin.ways.join_sides import (
    check_one_stream,
    check_payload,
    check_static,
    event_frames,
    settled,
    with_filter,
)
from spark_plugin.ways.matching import AnyPlan, found_by, plan_way
from spark_plugin.ways.shifts import accidental_pairs, plan_shifts

_log = logging.getLogger("coincide")
BATCH_PAIRS = 1 << 16
"""Pairs of an output batch: small ones let the JVM read one while the worker fills the next."""


@dataclass(frozen=True)
class Correlation:
    """A planned join."""

    dataframe: DataFrame
    left: SideCounts | None
    right: SideCounts | None
    plan: AnyPlan
    evidence: FrameEvidence
    observations: tuple[Observation, ...] = ()
    observable: bool = True
    shipment: Shipment | None = None
    matchless: str = "time or key"
    accidental: AccidentalPairs | None = None
    alone: Correlation | None = None

    @property
    def way(self) -> str:
        """How events meet: ``"exchange"``, ``"broadcast"`` or ``"collect"``."""
        return self.plan.way

    @property
    def slices(self) -> int | None:
        """Number of slices, hence of tasks, of an exchange."""
        return self.plan.count

    @property
    def replication(self) -> float | None:
        """Estimated copies per right event, in an exchange."""
        return self.plan.replication

    def counters(self) -> JoinCounters | None:
        """What the workers looked at and found. Waits for an action.

        None if not observable, if Spark has left out some of the tasks or stopped them, as for ``limit``,
        or if it has left the join out of what it did: of ``count()`` on a result of one row per event it
        needs no partners.
        """
        found = self._counted()
        return None if found is None else with_numbers(JoinCounters(), found.numbers)

    def summary(self) -> JoinSummary:
        """What the join did, as far as it was counted; waits for an action, as `counters` does.

        If nothing was found, jobs are run to say why.
        """
        found = self._counted()
        counters = None if found is None else with_numbers(JoinCounters(), found.numbers)
        # Rows of a part, or rows that were computed twice, would pass for all.
        left, right = map(self._rows, (0, 1)) if found and found.runs == 1 else (None, None)
        return replace(
            self._known,
            left=self.left or left,
            right=self.right or right,
            counters=counters,
            no_pairs=self._no_pairs() if counters and not counters.pairs else None,
        )

    def _counted(self) -> Counted | None:
        if not self.observable:
            return None
        if not self.observations:
            raise RuntimeError("the correlation was planned without observe=True")
        return counted_by_tasks(*self.observations)

    def _no_pairs(self) -> NoPairs | None:
        try:
            return self.evidence.no_pairs()
        except SPARK_ERRORS as error:  # the join itself has been done
            _log.warning("nothing was found, and cannot be looked at again to say why: %s", error)
            return None

    def tell(self, report: JoinReport | None) -> None:
        """Hand the report, if there is one, what is known by now, and warn of it."""
        known = replace(self._known, no_pairs=self.evidence.foreseen())
        JoinReport.tell(known, report, self.summary if self.observations else None)

    @property
    def _known(self) -> JoinSummary:
        left, right = self.evidence.sides
        tick = left.times.scales[0].tick
        return JoinSummary(
            self.left, self.right, None, None, self.way, tick, slices=self.slices,
            replication=self.replication, why=self.plan.describe(),
            sides=(left.called, right.called), matchless=self.matchless,
            accidental=self.accidental,
        )  # fmt: skip

    def _rows(self, side: int) -> SideCounts | None:
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
        for shipment in (self.shipment, self.alone and self.alone.shipment):
            if shipment is not None:
                shipment.close()

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """Let go of what was broadcast, if what is planned besides fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def plan_correlation(
    left: DataFrame, right: DataFrame | None, arguments: JoinArguments, *, observe: bool = False
) -> Correlation:
    """Plan a join of two DataFrames, or of one with itself."""
    if arguments.is_one_stream:
        check_one_stream(left, arguments.options.way, "right", "partners")
    sources = left, left if right is None else right
    if arguments.keeps_right:
        check_static(sources, arguments.how)
    arguments = settled(arguments, *sources)
    planned = planned_pairs(event_frames(sources, arguments), arguments, observe)
    alone = arguments.alone
    if alone is None:
        return planned
    with planned.closed_on_failure():
        rights = planned_pairs(event_frames((sources[1], sources[0]), alone), alone, False)
    measures = int(arguments.probability) + len(names_of(arguments.pair_columns))
    frame = with_rights(planned.dataframe, rights.dataframe, len(arguments.keys), measures)
    return replace(planned, dataframe=frame, alone=rights)


def planned_pairs(
    sides: tuple[EventFrame, EventFrame], arguments: PairArguments, observe: bool
) -> Correlation:
    """The join of two sides by arguments that are settled: `plan_correlation`."""
    options = arguments.options
    spec = arguments.spec([side.times for side in sides], 1, BATCH_PAIRS)
    spec = with_filter(spec, sides, arguments.where)
    check_payload(sides)
    shifts = plan_shifts(arguments.shifts, sides, spec)
    planned = planned_join(sides, spec, ResultColumns(sides, spec), options, spec.backend, observe)
    evidence = FrameEvidence(planned.sides, spec, planned.looked)
    with planned.closed_on_failure():
        counted = accidental_pairs(shifts, sides, spec, options, spec.backend, planned.looked)
    return Correlation(
        planned.dataframe, *planned.counts, planned.plan, evidence, planned.observations,
        planned.observable, planned.shipment, arguments.matchless, counted,
    )  # fmt: skip


TELLS_NOTHING = (
    "correlate: what nobody looks at before is counted while it is joined, if there is a report: of nulls,"
    " and that there is no pair, report=JoinReport() tells after an action"
)


@dataclass(frozen=True)
class PlannedJoin:
    """A planned join of two sides, whatever its condition."""

    dataframe: DataFrame
    plan: AnyPlan
    sides: tuple[EventFrame, EventFrame]
    statistics: Looks
    observations: tuple[Observation, ...]
    observable: bool
    shipment: Shipment | None
    is_one_stream: bool

    @property
    def looked(self) -> tuple[SideStatistics, SideStatistics] | None:
        """What a look at both sides has shown, if there was one."""
        left, right = self.statistics
        return None if left is None or right is None else (left, right)

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """Let go of what was shipped, if what is planned besides fails."""
        try:
            yield
        except BaseException:
            if self.shipment is not None:
                self.shipment.close()
            raise

    @property
    def counts(self) -> tuple[SideCounts | None, SideCounts | None]:
        """What the rows of each side were; those of one stream are told of once."""
        left, right = (None if known is None else known.counts for known in self.statistics)
        return left, None if self.is_one_stream else right


def planned_join(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    result: ResultColumns,
    options: CorrelateOptions,
    backend: str,
    observe: bool,
) -> PlannedJoin:
    """Choose the way of a join, and plan it; `observe`: whether workers count what they look at."""
    spark = sides[0].source.sparkSession
    check_streaming(sides, spec, options)
    check_workers(spark)
    with queries_told():
        statistics, plan = plan_way(sides, spec, options)
        _log.info("correlate: %s", plan.describe())
        advise_batch_size(spark, are_narrow=are_narrow(sides))
        if None in statistics and not observe and plan.way != "collect":
            _log.info(TELLS_NOTHING)
        observable = not is_accelerated(spark)
        observations = _observations(plan) if observe and observable else ()
        if observations:
            sides = _observed(sides, statistics, spec.is_one_stream)
        stage = Stage(
            raise_invalid=options.invalid == "raise",
            profile=gpu_profile(spark, backend),
            metrics=result.metrics_name if observations else None,
            observation=observations[0] if observations else None,
            apart=observations[-1] if observations else None,
        )
        found, shipment = found_by(sides, spec, result, plan, options, stage)
    if isinstance(plan, BroadcastPlan):
        plan = replace(plan, events=None)  # which have been sent: a report would keep them
    return PlannedJoin(
        result.decoded(found), plan, sides, statistics, observations, observable, shipment,
        spec.is_one_stream,
    )  # fmt: skip


def _observations(plan: AnyPlan) -> tuple[Observation, ...]:
    """One for each stage that joins."""
    is_apart = isinstance(plan, SlicePlan) and plan.apart is not None
    return (Observation(), Observation()) if is_apart else (Observation(),)


def _observed(
    sides: tuple[EventFrame, EventFrame], statistics: Looks, is_one_stream: bool
) -> tuple[EventFrame, EventFrame]:
    """The sides, with what counts the rows of those at which nobody has looked; of one stream once."""
    left, right = (
        replace(side, observation=Observation()) if known is None else side
        for side, known in zip(sides, statistics, strict=True)
    )
    return left, sides[1] if is_one_stream else right
