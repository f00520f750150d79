"""How events of two DataFrames meet: the one place where a way is chosen, with every number that decides.

Both sides are broadcast where Spark takes them for small, one where it is small beside the other, and both
are exchanged where they are large. Only where Spark's estimate cannot tell, both are looked at first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from coincide.engine.causality.arguments import PlacedColumns
from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.spec import AnySpec
from coincide.engine.join.timing import JoinSpec
from coincide.model.bands import midpoint_reach
from coincide.model.errors import ConditionError, argument
from coincide.model.options import CorrelateOptions, SideName
from coincide.model.units import TIME_LIMIT
from spark_plugin.cluster.connect import bytes_of, context_of, message_bytes
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.estimates import (
    Estimate,
    estimate_of_rows,
    estimated_bytes,
    is_surely_larger,
    row_bytes,
)
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.statistics import (
    NO_JOB,
    JobStatistics,
    SideStatistics,
    measure,
    refuse_invalid,
)
from spark_plugin.tasks.broadcast import SMALLEST_CHUNK, chunk_rows, is_two_step
from spark_plugin.tasks.samples import (
    PAIR_WORK,
    Reach,
    Sample,
    expected_matches,
    shifted,
    weight_between,
)
from spark_plugin.tasks.slice_plan import CellPlan, SlicePlan
from spark_plugin.tasks.wire import Shipment
from spark_plugin.ways.broadcast.both import BothPlan, both_join, dealt
from spark_plugin.ways.broadcast.collecting import collected_sides
from spark_plugin.ways.broadcast.join import BroadcastPlan, broadcast_join
from spark_plugin.ways.exchange.gap_slices import GapPlan, gap_join
from spark_plugin.ways.exchange.join import exchange_join
from spark_plugin.ways.exchange.planning import (
    MOST_TIME_SLICES,
    KnownLengths,
    check_copies,
    plan_by_lengths,
    plan_slices,
)
from spark_plugin.ways.join_sides import Sides
from spark_plugin.ways.matching import check_identifiable

AnyPlan = SlicePlan | CellPlan | GapPlan | BroadcastPlan | BothPlan
JOINS: dict[type, Callable[..., tuple[DataFrame, Shipment | None]]] = {
    SlicePlan: exchange_join,
    CellPlan: exchange_join,
    GapPlan: gap_join,
    BroadcastPlan: broadcast_join,
    BothPlan: both_join,
}
"""What makes the result of each plan."""
WHOLE = (GapPlan, BothPlan)
"""Plans by which tasks see events with all of their matches, and those of these: matchings are final."""

# What Spark's estimate decides, before anything is read.
BOTH_ROWS = 1 << 20
"""Rows a side that are broadcast on both sides: more are read faster by many tasks than by the driver."""
BOTH_BYTES = 28 * BOTH_ROWS
"""What Spark may take both sides for: so many rows of a time, a key and an id. Files count as on disk."""
SMALL_BYTES = 12 << 20
"""What it may take one small side for: `SMALLEST_CHUNK` rows of twice that width. Else rows are counted."""
FAR_LARGER = 4
"""How many times as large the other side is: of less, a look at it costs less than a worker's copies."""
_LEAST_LARGE = 2 << 20
"""Bytes of that other side: of less, both are broadcast faster."""
LARGE_BYTES = 6 << 20
"""Bytes of each side that is exchanged without a look: of less, the driver is faster than a shuffle."""
LARGE_FILTERED_BYTES = BOTH_BYTES // 2
"""Where both have a filter: of less they are collected, if the filters leave few rows."""
_PACKED = 2
"""Files hold about so many times the bytes and rows that they have on disk."""
_SMALLEST_SLICE_ROWS = 1 << 14
"""Of fewer, a task of its own does not pay."""
_WAVES_OF_FILTERED = 16
"""Most slices for each core where filters may leave nothing in them: empty ones take tenths of a second."""
_WAVES_OF_COMPUTED = 4
"""Slices for each core where nobody knows the rows: so that no core waits long for the last one."""

# What a look decides.
_MANY_MORE = 2
"""More than `SMALLEST_CHUNK` rows are broadcast only to so many times as many: else a shuffle is faster."""
_PREPARED_ROW = 0.3
"""Work of preparing a row of the small side for a chunk, in rows that an exchange moves."""
_UNEVEN = 2.0
"""A partition of so many times its share of the work would keep the other tasks waiting."""
_LITTLE_WORK = 5_000_000.0
"""Below this much work, in rows, an uneven partition is done before an exchange would be."""
_RESULT_SETTING = "spark.driver.maxResultSize"


def plan_way(
    sides: Sides, spec: AnySpec, options: CorrelateOptions
) -> tuple[JobStatistics, AnyPlan]:
    """What is known of the rows of both sides, and how events meet. Runs eagerly what has to run."""
    if spec.compares_tasks:
        check_identifiable(
            spec,
            [side.times for side in sides],
            [side.by for side in sides],
            [side.payload for side in sides],
        )
    planned = _plan_without_job(sides, spec, options)
    if planned is not None:
        return planned
    if spec.matching is None or spec.compares_tasks:
        return plan_after_job(sides, spec, options)
    if options.way not in ("auto", "exchange"):
        of = "one stream" if spec.is_one_stream else "'optimal'"
        raise ConditionError(
            f"matching of {of} must see each connected group of events in one task, so it uses an"
            f" exchange. Remove {argument('way', options.way)}."
        )
    statistics, plan = plan_after_job(sides, spec, replace(options, way="exchange"))
    assert isinstance(plan, SlicePlan)
    return statistics, GapPlan(plan.count, plan.reach)


# --- before a look ---


def _plan_without_job(
    sides: Sides, spec: AnySpec, options: CorrelateOptions
) -> tuple[JobStatistics, AnyPlan] | None:
    """A plan that Spark's estimate allows, or that is asked for; None if only a look can tell."""
    if options.way == "broadcast-both":
        if isinstance(spec, JoinSpec):
            return _plan_both(sides, spec, options)
        raise ConditionError(
            f"{argument('way', options.way)} works for correlate only. Remove it, or collect both"
            " sides with df.toArrow() and give them to causality_tables."
        )
    if options.way != "auto" or options.slices is not None or not isinstance(spec, JoinSpec):
        return None
    planned = None
    if not _needs_job(sides, spec, options):
        planned = _large_or_uneven(sides, spec, options)
    if planned is None and _may_be_both(sides, options):
        planned = _plan_both(sides, spec, options)
    return planned


def _needs_job(sides: Sides, spec: JoinSpec, options: CorrelateOptions) -> bool:
    """Whether something is asked for that only rows can tell; RAPIDS fails plans that are observed."""
    is_whole = spec.is_one_stream or spec.matching == "optimal"
    return is_whole or options.invalid == "drop" or is_accelerated(sides[0].spark)


def _large_or_uneven(
    sides: Sides, spec: JoinSpec, options: CorrelateOptions
) -> tuple[JobStatistics, AnyPlan] | None:
    """A plan that spares the look at sides that are large, or uneven, or computed; None if none does."""
    computed = _computed_cells(sides, spec)
    uneven = small_and_large(sides, spec, options)
    if uneven is not None:
        return (
            plan_unseen(*uneven, spec, options) or computed or plan_after_job(sides, spec, options)
        )
    cells = _cells(sides, spec, options)
    if cells is not None or computed is None:
        return cells
    if _may_be_both(sides, options, any_computed=True):
        return _plan_both(sides, spec, options, any_computed=True) or computed
    left, right = (side.is_computed for side in sides)
    if left == right:
        return computed
    small, other = sides if left else sides[::-1]
    if _shuffles_pairs(small.side, spec):
        return computed
    return plan_unseen(small, other, spec, options) or computed


def _may_be_both(sides: Sides, options: CorrelateOptions, *, any_computed: bool = False) -> bool:
    """Whether Spark takes both sides, or those not computed, for so small that they are collected."""
    most = min(BOTH_BYTES, options.broadcast_bytes, options.slice_bytes)
    sizes = [estimated_bytes(each) for each in sides if not (any_computed and each.is_computed)]
    return all(size is not None for size in sizes) and sum(size or 0 for size in sizes) <= most


def _plan_both(
    sides: Sides, spec: JoinSpec, options: CorrelateOptions, *, any_computed: bool = False
) -> tuple[JobStatistics, BothPlan] | None:
    """What the rows of both sides are, and which task gets which; None if they are too many."""
    most = None
    if options.way != "broadcast-both":
        most = min(options.broadcast_bytes, options.slice_bytes), min(BOTH_ROWS, options.slice_rows)
    known = [estimated_bytes(each) or 0 for each in sides if most and not each.is_computed]
    collected = collected_sides(sides, spec, most, are_many=sum(known) > SMALL_BYTES)
    if collected is None:
        return None
    statistics = collected[0].statistics, collected[1].statistics
    if options.invalid == "raise":
        refuse_invalid_of(sides, statistics, spec)
    return statistics, dealt(sides, collected, spec, parallelism(sides[0].spark))


def small_and_large(
    sides: Sides, spec: JoinSpec, options: CorrelateOptions
) -> tuple[EventFrame, EventFrame] | None:
    """The side that Spark takes for small, and the other one; None if only a look could tell more."""
    left, right = map(estimated_bytes, sides)
    if left is None or right is None:
        return None
    small, other = (sides[1], sides[0]) if right <= left else sides
    least = max(FAR_LARGER * min(left, right), _LEAST_LARGE)
    if min(left, right) > min(SMALL_BYTES, options.broadcast_bytes) or max(left, right) < least:
        return None
    if not is_surely_larger(other, least) or _shuffles_pairs(small.side, spec):
        return None
    return small, other


def _shuffles_pairs(small: SideName, spec: JoinSpec) -> bool:
    """Whether all pairs would be shuffled, of which nobody knows whether they are few."""
    shuffles = is_two_step(small, spec) and spec.emit in ("pairs", "lists")
    return shuffles and not spec.one_row_per_event


def plan_unseen(
    small: EventFrame, other: EventFrame, spec: JoinSpec, options: CorrelateOptions
) -> tuple[JobStatistics, BroadcastPlan] | None:
    """What the rows of the small side are, and its broadcast; None if it is not as small as it seemed."""
    # Of more rows each chunk of the large side would prepare more than it has itself.
    most = (
        min(options.broadcast_bytes, options.slice_bytes),
        min(SMALLEST_CHUNK, options.slice_rows),
    )
    collected = collected_sides([small], spec, most)
    if collected is None:
        return None
    (found,) = collected
    refuse_invalid([small], [found.statistics])
    statistics = found.statistics
    why = f"{_described_size(statistics.own_bytes)}, no planning job for {other.called}"
    plan = BroadcastPlan(small.side, why, found.events)
    return ((statistics, None) if small.side == "left" else (None, statistics)), plan


def _cells(
    sides: Sides, spec: JoinSpec, options: CorrelateOptions
) -> tuple[JobStatistics, CellPlan] | None:
    """An exchange by cells of time of two sides that Spark takes for large; None for others."""
    reach = reach_of_any(sides, spec)
    sizes = map(estimated_bytes, sides)
    if reach is None or any(size is None or size < LARGE_BYTES for size in sizes):
        return None
    left, right = map(estimate_of_rows, sides)
    if left is None or right is None or not _are_large(left, right):
        return None
    tasks = parallelism(sides[0].spark)
    slices = _slices(left + right, options, tasks)
    if slices > (_WAVES_OF_FILTERED * tasks if left.is_filtered else MOST_TIME_SLICES):
        return None
    return NO_JOB, CellPlan(slices, reach, needs_keys=bool(sides[0].by))


def _computed_cells(sides: Sides, spec: JoinSpec) -> tuple[JobStatistics, CellPlan] | None:
    """An exchange by cells of sides that are slow to compute; None: neither is, or only a job tells."""
    reach = reach_of_any(sides, spec) if any(side.is_computed for side in sides) else None
    if reach is None:
        return None
    slices = _WAVES_OF_COMPUTED * parallelism(sides[0].spark)
    return NO_JOB, CellPlan(slices, reach, needs_keys=bool(sides[0].by))


def _are_large(left: Estimate, right: Estimate) -> bool:
    """Whether both are large, and neither is likely to be small compared with the other."""
    # What a filter leaves of a single side may be better broadcast.
    small, large = sorted((left.bytes, right.bytes))
    least = LARGE_FILTERED_BYTES if left.is_filtered else LARGE_BYTES
    return left.is_filtered == right.is_filtered and least <= small and large < FAR_LARGER * small


def reach_of_any(sides: Sides, spec: AnySpec) -> Reach | None:
    """How far pairs reach whose lengths nobody has seen; None if that has no bound."""
    left, right = (lengths_of(side.times) for side in sides)
    if left is not None and right is not None:
        return Reach.of(spec.pairs, left, right, spec.largest_useful)
    apart = midpoint_reach(spec.widest, max(spec.largest_useful)) if spec.are_uniform else None
    any_length = 0, 2 * TIME_LIMIT
    return None if apart is None else Reach(*apart, any_length, any_length)


def lengths_of(times: TimestampColumns) -> tuple[int, int] | None:
    """The least and the greatest length of events that were not read yet; None if not stated."""
    own = times.times if isinstance(times, PlacedColumns) else times
    is_exact = isinstance(own, IntervalColumns) and len(own.names) == 1
    return (0, 0) if is_exact else times.declared


def _slices(size: Estimate, options: CorrelateOptions, tasks: int) -> int:
    """Slices of as many rows and bytes as options let them have, and enough that each core has one."""
    rows, stored = _PACKED * size.rows, _PACKED * size.bytes
    slices = max(
        1,
        -(-rows // options.slice_rows),
        -(-stored // options.slice_bytes),
        min(tasks, rows // _SMALLEST_SLICE_ROWS),
    )
    if slices > tasks:  # whole waves of tasks, so that no core idles in the last one
        slices = -(-slices // tasks) * tasks
    return slices


# --- by a look ---


def plan_after_job(
    sides: Sides,
    spec: AnySpec,
    options: CorrelateOptions,
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
    tasks, options = parallelism(spark), _as_transported(spark, options)
    are_computed = [side.is_computed for side in sides]
    left, right = map(_candidate, sides, samples, statistics)
    if all(are_computed):  # a broadcast would compute one of them another time here
        left, right = replace(left, bytes=None), replace(right, bytes=None)
    small = choose_small_side(left, right, reach, spec, options, tasks)
    if small is not None:
        return statistics, small
    plan_for = partial(
        plan_slices,
        *samples,
        options=options,
        parallelism=tasks,
        pair_work=PAIR_WORK[spec.emit],
        keyed=bool(sides[0].by),
        row_bytes=(statistics[0].row_bytes, statistics[1].row_bytes),
    )
    # Their matches are many tasks', which an assignment and one stream have to be told of together.
    is_whole = spec.is_one_stream or spec.matching == "optimal" or not spec.shapes_are_lengths
    # And both sides are read another time.
    is_whole = is_whole or any(are_computed)
    lengths = None if is_whole else KnownLengths(samples[0], statistics[0].longest_of_group)
    plan = plan_by_lengths(plan_for, samples[1], lengths, reach, spec)
    check_copies(plan, samples[1], options)
    return statistics, plan


def measure_sides(
    sides: Sides, spec: AnySpec, options: CorrelateOptions
) -> tuple[SideStatistics, SideStatistics]:
    """What a look at both sides shows. Runs eagerly."""
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


def _as_transported(spark: SparkSession, options: CorrelateOptions) -> CorrelateOptions:
    """With less to broadcast by itself where it travels with the plan, or the driver takes less."""
    context = context_of(spark)
    if context is None:
        most = message_bytes(spark)
    else:  # it is collected first; 0 is no bound
        most = bytes_of(context.getConf().get(_RESULT_SETTING, None) or "") or None
    if most is None:
        return options
    return replace(options, broadcast_bytes=min(options.broadcast_bytes, most // 2))


def parallelism(spark: SparkSession) -> int:
    """Tasks at once; where the session cannot say (Spark Connect), what its settings say."""
    context = context_of(spark)
    if context is not None:
        return max(1, context.defaultParallelism)
    fallback = spark.conf.get("spark.sql.shuffle.partitions", "200") or "200"
    return max(1, int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or fallback))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A side that may be broadcast; `bytes` None: nobody knows."""

    name: SideName
    sample: Sample
    partitions: np.ndarray
    bytes: int | None


def _candidate(side: EventFrame, sample: Sample, statistics: SideStatistics) -> Candidate:
    size = row_bytes(side)
    told = None if size is None else size[0] * sample.rows + statistics.own_bytes
    return Candidate(side.side, sample, statistics.partitions, told)


def choose_small_side(
    left: Candidate,
    right: Candidate,
    reach: Reach,
    spec: AnySpec,
    options: CorrelateOptions,
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
        small = left if left.sample.rows < right.sample.rows else right
        return BroadcastPlan(small.name, "the smaller side, as you chose")
    sides = [(right, left), (left, right)]
    if left.sample.rows < right.sample.rows and not is_two_step("left", spec):
        sides.reverse()
    for small, large in sides:
        if small.bytes is None or small.bytes > options.broadcast_bytes:
            continue
        if _is_worth_it(small, large, reach, spec, options, tasks):
            return BroadcastPlan(small.name, _described_size(small.bytes))
    return None


def _described_size(size: int) -> str:
    """Bytes, in words."""
    return f"{size:,} bytes" if size < 100_000 else f"{size / 1e6:,.1f} MB"


def _is_worth_it(
    small: Candidate,
    large: Candidate,
    reach: Reach,
    spec: AnySpec,
    options: CorrelateOptions,
    tasks: int,
) -> bool:
    """Whether tasks are even, and do and yield less than an exchange would move."""
    towards = reach if large.name == "left" else reach.reversed
    if max(large.sample.rows / _MANY_MORE, SMALLEST_CHUNK) < small.sample.rows:
        return False
    moved = large.sample.rows + small.sample.rows
    if _PREPARED_ROW * _prepared_rows(small, large, towards, options.slice_rows) > moved:
        return False
    matches = expected_matches(large.sample, small.sample, towards)
    if is_two_step(small.name, spec) and spec.emit in ("pairs", "lists"):
        pairs = float((large.sample.weights * matches).sum())
        if not spec.one_row_per_event and pairs > large.sample.rows:
            return False
    if not large.partitions.size:
        return True
    work = large.sample.weights * (1.0 + PAIR_WORK[spec.emit] * matches)
    heaviest = np.bincount(np.unique(large.partitions, return_inverse=True)[1], work).max()
    return bool(heaviest <= max(_UNEVEN * work.sum() / tasks, _LITTLE_WORK))


def _prepared_rows(small: Candidate, large: Candidate, towards: Reach, slice_rows: int) -> float:
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
