"""A planned join of two DataFrames: its result, and what is known of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Observation

from coincide.engine.backends import check_task_devices
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.keys import names_of
from coincide.engine.join.arguments import JoinArguments, MirroredArguments
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.reports.emptiness import NoPairs
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.engine.reports.metrics import with_numbers
from coincide.model.counters import JoinCounters
from coincide.model.errors import CoincideError
from coincide.model.sides import LEFT, RIGHT
from spark_plugin.cluster.jobs import advise_batch_size
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.cluster.spark_errors import SPARK_ERRORS
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.estimates import are_narrow
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.evidence import FrameEvidence
from spark_plugin.frames.output_columns import (
    ResultColumns,
    decoded,
    like_key,
    metrics_name,
    put_back,
    with_rights,
)
from spark_plugin.frames.queries import queries_logged
from spark_plugin.frames.stage import (
    Counted,
    Stage,
    counted_by_tasks,
    counted_rows,
    gpu_profile,
)
from spark_plugin.frames.statistics import JobStatistics
from spark_plugin.tasks.slice_plan import SlicePlan
from spark_plugin.tasks.wire import Shipment
from spark_plugin.ways import limits
from spark_plugin.ways.broadcast.both import BothPlan
from spark_plugin.ways.broadcast.join import BroadcastPlan
from spark_plugin.ways.choosing import JOINS, WHOLE, AnyPlan, plan_way
from spark_plugin.ways.chosen_pairs import matched_join
from spark_plugin.ways.join_sides import (
    Job,
    check_one_stream,
    check_payload,
    check_static,
    check_streaming,
    event_frames,
    settled,
    with_filter,
    with_longest_matches,
)

_log = logging.getLogger("coincide")
BATCH_PAIRS = 1 << 16
"""Pairs of an output batch: small ones let the JVM read one while the worker fills the next."""


@dataclass(frozen=True)
class Correlation:
    """A planned join."""

    dataframe: DataFrame
    statistics: JobStatistics
    plan: AnyPlan
    evidence: FrameEvidence
    observations: tuple[Observation, ...]
    observable: bool
    shipment: Shipment | None
    matchless: str
    alone: Correlation | None = None
    is_swapped: bool = False

    @property
    def left(self) -> SideCounts | None:
        """What the rows of the left side were, if somebody has looked at them."""
        return None if self.statistics[0] is None else self.statistics[0].counts

    @property
    def right(self) -> SideCounts | None:
        """Those of the right one; those of one stream are given once."""
        is_told = self.statistics[1] is None or self.evidence.spec.is_one_stream
        return None if is_told or self.statistics[1] is None else self.statistics[1].counts

    @property
    def why(self) -> str:
        """The plan in words, in which sides are those that tasks join."""
        told = self.plan.describe()
        return f"with left and right swapped, {told}" if self.is_swapped else told

    def counters(self) -> JoinCounters | None:
        """What the workers looked at and found; waits for an action. None if some tasks were left out."""
        found = self._counted()
        return None if found is None else with_numbers(JoinCounters(), found.numbers)

    def summary(self) -> JoinSummary:
        """What the join did, as far as counted; waits for an action. Jobs say why nothing was found."""
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
            raise RuntimeError("the correlation was planned without observe=True.")
        return counted_by_tasks(*self.observations)

    def _no_pairs(self) -> NoPairs | None:
        try:
            return self.evidence.no_pairs()
        except (*SPARK_ERRORS, CoincideError) as error:  # the join itself has been done
            _log.warning("there is no pair, and the search for the reason failed: %s", error)
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
            self.left, self.right, None, None, self.plan.way, tick, slices=self.plan.count,
            replication=None if self.is_swapped else self.plan.replication, why=self.why,
            sides=(left.called, right.called), matchless=self.matchless,
        )  # fmt: skip

    def _rows(self, side: int) -> SideCounts | None:
        """What was counted of a side while it was joined."""
        return counted_rows(self.evidence.sides[side])

    def close(self) -> None:
        """Let go of what was broadcast, which else stays; `dataframe` can be computed no longer."""
        for shipment in (self.shipment, self.alone and self.alone.shipment):
            if shipment is not None:
                shipment.close()

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """Let go of what was broadcast, if what else is planned fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def plan_correlation(
    left: DataFrame, right: DataFrame | None, arguments: JoinArguments, *, observe: bool = False
) -> Correlation:
    """Plan a join of two DataFrames, or of one with itself."""
    arguments, sources = prepared(left, right, arguments)
    mirrored = arguments.mirrored
    if mirrored is not None:
        sides = event_frames((sources[1], sources[0]), mirrored)
        return _put_back(planned_pairs(sides, mirrored, observe), mirrored)
    planned = planned_pairs(event_frames(sources, arguments), arguments, observe)
    alone = arguments.alone
    if alone is None:
        return planned
    with planned.closed_on_failure():
        rights = planned_pairs(event_frames((sources[1], sources[0]), alone), alone, False)
    measures = int(arguments.probability) + len(names_of(arguments.pair_columns))
    frame = with_rights(planned.dataframe, rights.dataframe, len(arguments.keys), measures)
    return replace(planned, dataframe=frame, alone=rights)


def prepared(
    left: DataFrame, right: DataFrame | None, arguments: JoinArguments
) -> tuple[JoinArguments, tuple[DataFrame, DataFrame]]:
    """The arguments for two DataFrames, or for one stream, and both sides."""
    check_task_devices(arguments.options)
    if arguments.is_one_stream:
        check_one_stream(
            left, arguments.options.way, "right", "matches", "Use correlate_streams. Or: "
        )
    sources = left, left if right is None else right
    if arguments.keeps_right:
        check_static(sources, arguments.how)
    return settled(arguments, *sources), sources


def _put_back(planned: Correlation, mirrored: MirroredArguments) -> Correlation:
    """A join with its sides swapped, as it was asked for."""
    evidence, payload = planned.evidence, mirrored.payload
    right, left = evidence.sides
    kinds = [like_key(left.kind_of(own), right.kind_of(other)) for own, other in mirrored.key_names]
    keys = list(zip(mirrored.right_keys, kinds, strict=True))
    frame = put_back(planned.dataframe, keys, payload[RIGHT], payload[LEFT], evidence.spec)
    spec = mirrored.from_left.spec([left.times, right.times], 1, BATCH_PAIRS)
    of_right, of_left = planned.statistics
    known = None if of_right is None or of_left is None else (of_left, of_right)
    return replace(
        planned, dataframe=frame, statistics=(of_left, of_right),
        evidence=FrameEvidence((left, right), spec, known), is_swapped=True,
    )  # fmt: skip


def planned_pairs(
    sides: tuple[EventFrame, EventFrame], arguments: PairArguments, observe: bool
) -> Correlation:
    """The join of two sides by arguments that are settled: `plan_correlation`."""
    options, spark = arguments.options, sides[0].spark
    spec = arguments.spec([side.times for side in sides], 1, BATCH_PAIRS)
    spec = with_filter(spec, sides, arguments.where)
    sides = with_longest_matches(sides, spec)
    check_payload(sides)
    result = ResultColumns(sides, spec, arguments.output_keys)
    check_streaming(sides, spec, options)
    check_workers(spark)
    with queries_logged():
        statistics, plan = plan_way(sides, spec, options, limits.LIMITS)
        _log.info("correlate: %s", plan.describe())
        advise_batch_size(spark, are_narrow=are_narrow(sides))
        if None in statistics and not observe and not isinstance(plan, BothPlan):
            _log.info(TELLS_NOTHING)
        observable = not is_accelerated(spark)
        observations = _observations(plan) if observe and observable else ()
        seen = _observed(sides, statistics, spec.is_one_stream) if observations else sides
        stage = Stage(
            raise_invalid=options.invalid == "raise",
            profile=gpu_profile(spark, spec.backend),
            metrics=metrics_name(result.names) if observations else None,
            observation=observations[0] if observations else None,
            apart=observations[-1] if observations else None,
        )
        join, job = JOINS[type(plan)], Job(seen, spec, result, options, stage, arguments)
        is_final = spec.choice.one_to_one is None or isinstance(plan, WHOLE)
        found, shipment = join(job, plan) if is_final else matched_join(join, job, plan)
    if isinstance(plan, BroadcastPlan):
        plan = replace(plan, events=None)  # which have been sent: a report would keep them
    known = (
        None if statistics[0] is None or statistics[1] is None else (statistics[0], statistics[1])
    )
    return Correlation(
        decoded(found, result.columns), statistics, plan, FrameEvidence(seen, spec, known), observations,
        observable, shipment, arguments.matchless,
    )  # fmt: skip


TELLS_NOTHING = (
    "correlate: no planning job counted the rows of a large side. Pass report=JoinReport(), and"
    " after an action it tells of nulls and of a join without pairs"
)


def _observations(plan: AnyPlan) -> tuple[Observation, ...]:
    """One for each stage that joins."""
    is_apart = isinstance(plan, SlicePlan) and plan.apart is not None
    return (Observation(), Observation()) if is_apart else (Observation(),)


def _observed(
    sides: tuple[EventFrame, EventFrame], statistics: JobStatistics, is_one_stream: bool
) -> tuple[EventFrame, EventFrame]:
    """The sides, with what counts the rows of those at which no job has measured; of one stream once."""
    left, right = (
        replace(side, observation=Observation()) if known is None else side
        for side, known in zip(sides, statistics, strict=True)
    )
    return left, sides[1] if is_one_stream else right
