"""What a planning job decides: a broadcast of the side that it has found small, or slices of equal work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from pyspark.sql import SparkSession

from coincide.engine.join.spec import AnySpec
from coincide.model.options import CorrelateOptions, SideName
from spark_plugin.cluster.connect import bytes_of, context_of, message_bytes, parallelism
from spark_plugin.frames.estimates import row_bytes
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.statistics import (
    NO_JOB,
    JobStatistics,
    SideStatistics,
    measure,
    refuse_invalid,
)
from spark_plugin.tasks.broadcast import chunk_rows, is_two_step
from spark_plugin.tasks.samples import (
    Reach,
    Sample,
    expected_matches,
    shifted,
    weight_between,
)
from spark_plugin.tasks.slice_plan import SlicePlan
from spark_plugin.ways.broadcast.join import BroadcastPlan
from spark_plugin.ways.exchange.planning import (
    KnownLengths,
    check_room,
    plan_by_lengths,
    plan_slices,
)
from spark_plugin.ways.join_sides import Sides
from spark_plugin.ways.limits import PlannerLimits

_RESULT_SETTING = "spark.driver.maxResultSize"


def plan_after_job(
    sides: Sides,
    spec: AnySpec,
    options: CorrelateOptions,
    limits: PlannerLimits,
    known: tuple[SideStatistics, SideStatistics] | None = None,
) -> tuple[JobStatistics, SlicePlan | BroadcastPlan]:
    """What this or an earlier planning job has shown of both sides, if one had to run; and the plan."""
    declared = declared_plan(sides, options)
    if declared is not None:
        return NO_JOB, declared
    statistics = known or measure_sides(sides, spec, options)
    own, others = (
        side.times.declared or (seen.shortest, seen.longest)
        for side, seen in zip(sides, statistics, strict=True)
    )
    reach = Reach.of(spec.pairs, own, others, spec.largest_useful)
    samples = statistics[0].sample(with_unmatchable=spec.keeps_unmatched), statistics[1].sample()
    spark = sides[0].spark
    tasks, options = parallelism(spark), as_transported(spark, options)
    are_computed = [side.is_computed for side in sides]
    left, right = map(candidate, sides, samples, statistics)
    if all(are_computed):  # a broadcast would compute one of them another time here
        left, right = replace(left, bytes=None), replace(right, bytes=None)
    small = choose_small_side(left, right, reach, spec, options, limits, tasks)
    if small is not None:
        return statistics, small
    plan_for = partial(
        plan_slices,
        *samples,
        options=options,
        parallelism=tasks,
        pair_work=spec.row.pair_work,
        keyed=bool(sides[0].by),
        row_bytes=(statistics[0].row_bytes, statistics[1].row_bytes),
    )
    # Their matches are many tasks', and an assignment and one stream need them together.
    is_whole = spec.is_one_stream or spec.choice.is_of_groups or not spec.shapes_are_lengths
    # And both sides are read another time.
    is_whole = is_whole or any(are_computed)
    lengths = None if is_whole else KnownLengths(samples[0], statistics[0].longest_of_group)
    plan = plan_by_lengths(plan_for, samples[1], lengths, reach, spec)
    check_room(plan, samples[1], options)
    return statistics, plan


def measure_sides(
    sides: Sides, spec: AnySpec, options: CorrelateOptions
) -> tuple[SideStatistics, SideStatistics]:
    """What reading both sides shows. Runs eagerly."""
    statistics = measure(*sides, spec.is_one_stream)
    if options.invalid == "raise":
        refuse_invalid_of(sides, statistics, spec)
    return statistics


def refuse_invalid_of(
    sides: Sides, statistics: tuple[SideStatistics, SideStatistics], spec: AnySpec
) -> None:
    """Raise if rows are invalid; of one stream the sides have the same rows."""
    count = 1 if spec.is_one_stream else 2
    refuse_invalid(sides[:count], statistics[:count])


def declared_plan(sides: Sides, options: CorrelateOptions) -> BroadcastPlan | None:
    """The plan where everything it needs is declared: the side to broadcast, and lengths."""
    named = options.small_side
    if named is None or options.invalid == "drop":
        return None
    has_lengths = all(side.times.declared is not None for side in sides)
    return BroadcastPlan(named, "as asked") if has_lengths else None


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


@dataclass(frozen=True, eq=False)
class Candidate:
    """A side that may be broadcast; `bytes` None: not known."""

    name: SideName
    sample: Sample
    partitions: np.ndarray
    bytes: int | None


def candidate(side: EventFrame, sample: Sample, statistics: SideStatistics) -> Candidate:
    """What decides whether a side is broadcast."""
    size = row_bytes(side)
    told = None if size is None else size[0] * sample.rows + statistics.own_bytes
    return Candidate(side.side, sample, statistics.partitions, told)


def choose_small_side(
    left: Candidate,
    right: Candidate,
    reach: Reach,
    spec: AnySpec,
    options: CorrelateOptions,
    limits: PlannerLimits,
    tasks: int,
) -> BroadcastPlan | None:
    """The side to broadcast, if any."""
    if options.way == "exchange" or (options.way == "auto" and options.slices is not None):
        return None
    if spec.is_one_stream:
        # What tells its events apart holds where all that are alike are together.
        return None
    if options.small_side:
        return BroadcastPlan(options.small_side, "as asked")
    if options.way == "broadcast":
        if not spec.adds_up:
            return BroadcastPlan(right.name, "tasks see all matches of a left event")
        small = left if left.sample.rows < right.sample.rows else right
        return BroadcastPlan(small.name, "the smaller side, as you chose")
    sides = [(right, left), (left, right)]
    if left.sample.rows < right.sample.rows and not is_two_step("left", spec):
        sides.reverse()
    for small, large in sides:
        if small.bytes is None or small.bytes > options.broadcast_bytes:
            continue
        if _is_worth_it(small, large, reach, spec, options, limits, tasks):
            return BroadcastPlan(small.name, described_size(small.bytes))
    return None


def described_size(size: int) -> str:
    """Bytes, in words."""
    return f"{size:,} bytes" if size < 100_000 else f"{size / 1e6:,.1f} MB"


def _is_worth_it(
    small: Candidate,
    large: Candidate,
    reach: Reach,
    spec: AnySpec,
    options: CorrelateOptions,
    limits: PlannerLimits,
    tasks: int,
) -> bool:
    """Whether tasks are even, and do and yield less than an exchange would move."""
    if is_two_step(small.name, spec) and not spec.adds_up:
        return False
    towards = reach if large.name == "left" else reach.reversed
    if most_small_rows(large, limits) < small.sample.rows:
        return False
    moved = large.sample.rows + small.sample.rows
    prepared = prepared_rows(small, large, towards, options.slice_rows)
    if limits.prepared_row * prepared > moved:
        return False
    matches = expected_matches(large.sample, small.sample, towards)
    if is_two_step(small.name, spec) and spec.row.holds_all_pairs:
        pairs = float((large.sample.weights * matches).sum())
        if not spec.one_row_per_event and pairs > large.sample.rows:
            return False
    return are_even(large, 1.0 + spec.row.pair_work * matches, limits, tasks)


def most_small_rows(large: Candidate, limits: PlannerLimits) -> int:
    """The most rows of what is broadcast to a large side: of more, a shuffle is faster."""
    return max(large.sample.rows // limits.many_more, limits.small_rows)


def are_even(large: Candidate, work: np.ndarray, limits: PlannerLimits, tasks: int) -> bool:
    """Whether no partition of the large side keeps the others waiting; `work` is each sampled row's."""
    if not large.partitions.size:
        return True
    work = large.sample.weights * work
    heaviest = np.bincount(np.unique(large.partitions, return_inverse=True)[1], work).max()
    return bool(heaviest <= max(limits.uneven * work.sum() / tasks, limits.little_work))


def prepared_rows(small: Candidate, large: Candidate, towards: Reach, slice_rows: int) -> float:
    """Rows of the small side that are near a chunk, over all chunks: each is prepared anew for each."""
    partitions, of = np.unique(large.partitions, return_inverse=True)
    earliest, latest = np.full(partitions.size, 2**62), np.full(partitions.size, -(2**62))
    np.minimum.at(earliest, of, large.sample.midpoints)
    np.maximum.at(latest, of, large.sample.midpoints)
    near = weight_between(
        small.sample, shifted(earliest, towards.first), shifted(latest, towards.last)
    )
    rows = np.bincount(of, large.sample.weights, partitions.size)
    return float((near * np.ceil(rows / chunk_rows(slice_rows, small.sample.rows))).sum())
