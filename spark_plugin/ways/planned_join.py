"""A join of two sides of DataFrames, whatever its condition: its way is chosen, and it is planned."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Observation

from coincide.options import CorrelateOptions
from spark_plugin.cluster.accelerator import is_accelerated
from spark_plugin.cluster.batch_size import advise_batch_size
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.queries import queries_told
from spark_plugin.dataframes.row_sizes import are_narrow
from spark_plugin.dataframes.stage import Stage
from spark_plugin.dataframes.stage_resources import gpu_profile
from spark_plugin.dataframes.statistics import Looks, SideStatistics
from spark_plugin.ways.broadcast.plan import BroadcastPlan
from spark_plugin.ways.broadcast.streaming_sides import check_streaming
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.ways.matching import AnyPlan, found_by, plan_way
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.wire.shipment import Shipment

_log = logging.getLogger("coincide")
TELLS_NOTHING = (
    "correlate: what nobody looks at before is counted while it is joined, if there is a report: of nulls,"
    " and that there is no pair, report=JoinReport() tells after an action"
)


@dataclass(frozen=True)
class PlannedJoin:
    """A planned join of two sides, whatever its condition.

    Parameters
    ----------
    dataframe, plan, observations, observable, shipment
        As of `spark_plugin.ways.correlation.Correlation`.
    sides : (EventFrame, EventFrame)
    statistics : (SideStatistics or None, SideStatistics or None)
        What is known of the rows of each side.
    is_one_stream : bool
        Whether both have the same rows.
    """

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
    """Choose the way of a join, and plan it; `observe`: whether workers count what they look at and find.

    Raises
    ------
    ConditionError, DataError, BackendError
    """
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
