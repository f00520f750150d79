"""The plan of a join whose sides are collected, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from coincide.engine.join.spec import AnySpec
from coincide.engine.join.timing import JoinSpec
from coincide.model.errors import ConditionError, several
from coincide.model.options import CorrelateOptions
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.queries import ship
from spark_plugin.frames.stage import Stage
from spark_plugin.frames.statistics import SideStatistics
from spark_plugin.tasks.broadcast import CollectedTask, sorted_table
from spark_plugin.tasks.samples import PAIR_WORK, Reach, Sample, expected_partners
from spark_plugin.tasks.wire import Shipment
from spark_plugin.ways.choosing import declared_plan, parallelism, refuse_invalid_of
from spark_plugin.ways.collect.collecting import CollectedSide, collected_sides, wire_table

_SMALLEST_WORK = 500_000.0
"""Below this much work, in rows that an exchange moves, a further task does not pay."""
_SAMPLES = 4096


@dataclass(frozen=True, eq=False)
class CollectPlan:
    """A join of rows that the driver has, and sends to tasks."""

    rows: pa.Table
    left_rows: int
    bounds: tuple[int, ...]
    way: ClassVar[str] = "collect"
    count: ClassVar[None] = None
    replication: ClassVar[None] = None

    def describe(self) -> str:
        """The plan in one line, for the log."""
        tasks = len(self.bounds) - 1
        return f"both sides collected, {self.rows.nbytes:,} bytes to {several(tasks, 'task')}"


@dataclass(frozen=True, eq=False)
class Expected:
    """What a thin sample of the left events says of the work."""

    stride: int
    partners: np.ndarray

    @classmethod
    def of(cls, left: Sample, right: Sample, reach: Reach) -> Expected:
        """Of samples that hold every event that can match."""
        own, others = _thinned(left), _thinned(right)
        stride = -(-left.midpoints.size // max(1, own.midpoints.size))
        return cls(stride, expected_partners(own, others, reach))

    def bounds(self, spec: AnySpec, left_rows: int, tasks: int) -> tuple[int, ...]:
        """Where to cut the left events, so that tasks have about equal work."""
        # Of one stream events are numbered where all that are alike are together, and what is one to
        # one is known where all are.
        if spec.is_one_stream or spec.matching is not None or not self.partners.size:
            return 0, left_rows
        done = np.cumsum(1.0 + PAIR_WORK[spec.emit] * self.partners)
        count = max(1, min(tasks, int(done[-1] * self.stride // _SMALLEST_WORK)))
        cuts = np.searchsorted(done, np.arange(1, count) / count * done[-1]) * self.stride
        return 0, *np.unique(cuts[(cuts > 0) & (cuts < left_rows)]).tolist(), left_rows


def _thinned(sample: Sample) -> Sample:
    stride = -(-sample.midpoints.size // _SAMPLES)
    if stride <= 1:
        return sample
    midpoints, hashes = sample.midpoints[::stride], sample.hashes[::stride]
    weights = np.full(midpoints.size, sample.midpoints.size / midpoints.size)
    return Sample(midpoints, weights, hashes, sample.rows)


Sides = tuple[EventFrame, EventFrame]


def plan_collected(
    sides: Sides, spec: AnySpec, options: CorrelateOptions, *, any_computed: bool = False
) -> tuple[tuple[SideStatistics, SideStatistics], CollectPlan] | None:
    """What the rows of both sides are, and what becomes of them; None if they are not collected.

    `any_computed` is that of `may_be_collected`.
    """
    if not _may_be(sides, spec, options):
        return None
    assert isinstance(spec, JoinSpec)
    collected = collected_sides(sides, spec, options, any_computed=any_computed)
    if collected is None:
        return None
    left, right = collected
    statistics = left.statistics, right.statistics
    if options.invalid == "raise":
        refuse_invalid_of(sides, statistics, spec)
    own, others = (
        side.times.declared or _lengths(s) for side, s in zip(sides, statistics, strict=True)
    )
    reach = Reach.of(spec.pairs, own, others, spec.largest_useful)
    expected = Expected.of(_sample(statistics[0]), _sample(statistics[1]), reach)
    return statistics, _dealt(sides, collected, spec, expected)


def _may_be(sides: Sides, spec: AnySpec, options: CorrelateOptions) -> bool:
    if options.way == "collect":
        if isinstance(spec, JoinSpec):
            return True
        raise ConditionError(
            "way='collect' is of correlate; leave it out, or collect both sides by df.toArrow() and give"
            " them to causality_tables"
        )
    if options.way != "auto" or options.slices is not None or not isinstance(spec, JoinSpec):
        return False
    return declared_plan(sides, spec, options) is None


def _dealt(
    sides: Sides, collected: tuple[CollectedSide, CollectedSide], spec: JoinSpec, expected: Expected
) -> CollectPlan:
    """The rows on the wire, and which task gets which."""
    layout = ResultColumns(sides, spec).layout
    left, right = (
        sorted_table(
            wire_table(each.events, side, layout),
            layout.only(side.side),
            side.side,
            side.times.model,
        )
        for each, side in zip(collected, sides, strict=True)
    )
    bounds = expected.bounds(spec, left.num_rows, parallelism(sides[0].source.sparkSession))
    both = pa.concat_tables([left, right], promote_options="default")
    return CollectPlan(both, left.num_rows, bounds)


def _lengths(statistics: SideStatistics) -> tuple[int, int]:
    return statistics.shortest, statistics.longest


def _sample(statistics: SideStatistics) -> Sample:
    s = statistics
    return Sample(s.midpoints, s.weights, s.hashes, s.matchable)


def collect_join(
    spark: SparkSession, spec: AnySpec, result: ResultColumns, plan: CollectPlan, stage: Stage
) -> tuple[DataFrame, Shipment]:
    """The result in wire types, and what it needs."""
    shipment = ship(plan.rows, spark, "both sides", "leave way= to us")
    parts = len(plan.bounds) - 1
    task = CollectedTask(
        spec, result.layout, result.names, stage.metrics, rows=shipment, left_rows=plan.left_rows,
        bounds=plan.bounds,
    )  # fmt: skip
    return stage.run(spark.range(0, parts, 1, parts), task, result.wire_schema), shipment
