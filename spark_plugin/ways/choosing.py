"""How events of two DataFrames meet: what is known of them, and the way that follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from coincide.engine.join.spec import AnySpec
from coincide.model.errors import ConditionError
from coincide.model.options import CorrelateOptions
from spark_plugin.cluster.connect import bytes_of, context_of, message_bytes
from spark_plugin.frames.estimates import row_bytes
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.statistics import NO_LOOK, Looks, SideStatistics, measure, refuse_invalid
from spark_plugin.tasks.broadcast import BroadcastPlan, Candidate, choose_small_side
from spark_plugin.tasks.samples import PAIR_WORK, Reach, Sample
from spark_plugin.tasks.slices import SlicePlan, uniform_plan
from spark_plugin.tasks.wire import Shipment
from spark_plugin.ways.broadcast.join import broadcast_join
from spark_plugin.ways.exchange.join import exchange_join
from spark_plugin.ways.exchange.planning import (
    KnownLengths,
    check_copies,
    plan_by_lengths,
    plan_slices,
)

JOINS: dict[str, Callable[..., tuple[DataFrame, Shipment | None]]] = {
    "exchange": exchange_join,
    "broadcast": broadcast_join,
}
"""What each way of DataFrames makes of its plan."""
_RESULT_SETTING = "spark.driver.maxResultSize"


def plan_ways(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    options: CorrelateOptions,
    known: tuple[SideStatistics, SideStatistics] | None = None,
) -> tuple[Looks, SlicePlan | BroadcastPlan]:
    """What the look at both sides has shown, if there had to be one, and how events meet.

    What an earlier look has shown may be given, as `known`.
    """
    declared = declared_plan(sides, spec, options)
    if declared is not None:
        return NO_LOOK, declared
    statistics = known or look_at(sides, spec, options)
    own, others = (_shapes(*each) for each in zip(sides, statistics, strict=True))
    reach = Reach.of(spec.pairs, own, others, spec.largest_useful)
    left, right = _sample(statistics[0], spec.keeps_unmatched), _sample(statistics[1], False)
    spark = sides[0].source.sparkSession
    tasks, options = parallelism(spark), as_transported(spark, options)
    are_computed = [side.is_computed for side in sides]
    candidates = [_candidate(*each) for each in zip(sides, (left, right), statistics, strict=True)]
    if all(are_computed):  # a broadcast would compute one of them another time here
        candidates = [replace(candidate, bytes=None) for candidate in candidates]
    plan: SlicePlan | BroadcastPlan | None
    plan = choose_small_side(candidates[0], candidates[1], reach, spec, options, tasks)
    if plan is None:
        plan_for = partial(
            plan_slices,
            left,
            right,
            options=options,
            parallelism=tasks,
            pair_work=PAIR_WORK[spec.emit],
            keyed=bool(sides[0].by),
            row_bytes=(statistics[0].row_bytes, statistics[1].row_bytes),
        )
        # Their partners are many tasks', which an assignment and one stream have to be told of together.
        is_whole = spec.is_one_stream or spec.matching == "optimal" or not spec.shapes_are_lengths
        # And both sides are read another time.
        is_whole = is_whole or any(are_computed)
        lengths = None if is_whole else KnownLengths(left, statistics[0].longest_of_group)
        plan = plan_by_lengths(plan_for, right, lengths, reach, spec)
        check_copies(plan, right, options)
    return statistics, plan


def look_at(
    sides: tuple[EventFrame, EventFrame], spec: AnySpec, options: CorrelateOptions
) -> tuple[SideStatistics, SideStatistics]:
    """What a look at both sides shows. Runs eagerly."""
    statistics = measure(*sides, spec.is_one_stream)
    if options.invalid == "raise":
        refuse_invalid_of(sides, statistics, spec)
    return statistics


def declared_plan(
    sides: tuple[EventFrame, EventFrame], spec: AnySpec, options: CorrelateOptions
) -> SlicePlan | BroadcastPlan | None:
    """The plan where everything it needs is declared."""
    left, right = (side.times.declared for side in sides)
    named = options.small_side
    if left is None or right is None or not (named or options.time_range):
        return None
    if options.way == "broadcast":  # of the smaller side, which only a look can tell
        return None
    if options.invalid == "drop":
        if named:
            return None
        raise ConditionError(
            "invalid='drop' must count what it drops, which needs the look at the data that declared"
            " lengths and time_range spare; leave one of them out, or use invalid='raise'"
        )
    if named:
        return BroadcastPlan(named, "as asked")
    assert options.time_range is not None
    first, last = options.time_range
    reach = Reach.of(spec.pairs, left, right, spec.largest_useful)
    slices = options.slices or 4 * parallelism(sides[0].source.sparkSession)
    return uniform_plan(2 * first, 2 * last, reach, slices, options.max_replication)


def refuse_invalid_of(
    sides: tuple[EventFrame, EventFrame],
    statistics: tuple[SideStatistics, SideStatistics],
    spec: AnySpec,
) -> None:
    """Raise if rows are invalid; of one stream the sides have the same rows."""
    count = 1 if spec.is_one_stream else 2
    refuse_invalid(sides[:count], statistics[:count])


def as_transported(spark: SparkSession, options: CorrelateOptions) -> CorrelateOptions:
    """With less to broadcast by itself where it travels with the plan, or the driver takes less."""
    context = context_of(spark)
    if context is None:
        most = message_bytes(spark)
    else:  # it is collected first; 0 is no bound
        most = bytes_of(context.getConf().get(_RESULT_SETTING, None) or "") or None
    if most is None:
        return options
    return replace(options, broadcast_bytes=min(options.broadcast_bytes, most // 2))


def _shapes(side: EventFrame, statistics: SideStatistics) -> tuple[int, int]:
    """Smallest and largest shape to plan for: as declared, else the lengths as they are now."""
    return side.times.declared or (statistics.shortest, statistics.longest)


def _candidate(side: EventFrame, sample: Sample, statistics: SideStatistics) -> Candidate:
    size = row_bytes(side)
    told = None if size is None else size[0] * sample.rows + statistics.own_bytes
    return Candidate(side.side, sample, statistics.partitions, told)


def _sample(side: SideStatistics, with_unmatchable: bool) -> Sample:
    rows = side.matchable + (side.counts.unmatchable if with_unmatchable else 0)
    return Sample(side.midpoints, side.weights, side.hashes, rows, side.shapes)


def parallelism(spark: SparkSession) -> int:
    """Tasks at once; where the session cannot say (Spark Connect), what its settings say."""
    context = context_of(spark)
    if context is not None:
        return max(1, context.defaultParallelism)
    fallback = spark.conf.get("spark.sql.shuffle.partitions", "200") or "200"
    return max(1, int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or fallback))
