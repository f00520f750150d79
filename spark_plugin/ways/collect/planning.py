"""The plan of a join whose sides are collected."""

from __future__ import annotations

import pyarrow as pa

from coincide.errors import ConditionError
from coincide.options import CorrelateOptions
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.statistics import SideStatistics
from spark_plugin.ways.broadcast.worker.small_side import sorted_table
from spark_plugin.ways.choice import declared_plan, parallelism, refuse_invalid_of
from spark_plugin.ways.collect.collecting import CollectedSide, collected_sides, wire_table
from spark_plugin.ways.collect.plan import CollectPlan, Expected
from spark_plugin.ways.samples import Reach, Sample
from spark_plugin.worker.emission.spec import AnySpec, JoinSpec

Sides = tuple[EventFrame, EventFrame]


def plan_collected(
    sides: Sides, spec: AnySpec, options: CorrelateOptions, *, any_computed: bool = False
) -> tuple[tuple[SideStatistics, SideStatistics], CollectPlan] | None:
    """What the rows of both sides are, and what becomes of them; None if they are not collected.

    `any_computed` is that of `may_be_collected`.

    Raises
    ------
    ConditionError
        If it is asked for and cannot be.
    DataError
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
