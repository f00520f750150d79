"""How events of two DataFrames meet: an ordered table of rules; the first that gives a plan holds.

`plan_way` asks the rules; `spark_plugin.ways.limits` has their numbers. Rules ask a `Question`, which needs
no Spark, so that tests put one together from sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import DataFrame

from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.spec import AnySpec
from coincide.engine.join.timing import JoinSpec
from coincide.model.bands import midpoint_reach
from coincide.model.errors import ConditionError, argument
from coincide.model.options import CorrelateOptions, SideName
from coincide.model.remembered import remembered
from coincide.model.units import TIME_LIMIT
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.estimates import (
    Estimate,
    estimate_of_rows,
    estimated_bytes,
    is_surely_larger,
)
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.statistics import (
    NO_JOB,
    JobStatistics,
    SideStatistics,
    are_read_here,
    refuse_invalid,
)
from spark_plugin.tasks.broadcast import is_two_step
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.slice_plan import CellPlan, SlicePlan
from spark_plugin.tasks.wire import Shipment
from spark_plugin.ways.broadcast.both import BothPlan, both_join, dealt
from spark_plugin.ways.broadcast.collecting import collected_sides
from spark_plugin.ways.broadcast.join import BroadcastPlan, broadcast_join
from spark_plugin.ways.chosen_pairs import check_identifiable
from spark_plugin.ways.exchange.gap_slices import GapPlan, gap_join
from spark_plugin.ways.exchange.join import exchange_join
from spark_plugin.ways.exchange.packed_files import are_in_order
from spark_plugin.ways.join_sides import Sides
from spark_plugin.ways.limits import PlannerLimits
from spark_plugin.ways.planning_job import described_size, plan_after_job, refuse_invalid_of

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


class SideFacts(Protocol):
    """What is known of a side before anything is read."""

    @property
    def side(self) -> SideName:
        """Which side it is."""

    @property
    def times(self) -> TimestampColumns:
        """Its timestamps."""

    @property
    def by(self) -> list[str]:
        """Its keys."""

    @property
    def is_computed(self) -> bool:
        """Whether its rows are slow to compute."""

    @property
    def bytes(self) -> int | None:
        """Spark's estimate of all columns, files as large as on disk; None: it has none."""

    @property
    def needed(self) -> Estimate | None:
        """Spark's estimate of the needed columns; None: it may be one of other rows."""

    def is_surely_larger(self, size: int) -> bool:
        """Whether what it is read from has this many bytes, too."""


class SessionFacts(Protocol):
    """What is known of the session."""

    @property
    def tasks(self) -> int:
        """How many run at once."""

    @property
    def is_accelerated(self) -> bool:
        """Whether RAPIDS runs its plans, which fail where they are observed."""


class _FrameFacts:
    """`SideFacts` of a DataFrame: each is asked for once, and not before a rule needs it."""

    def __init__(self, frame: EventFrame) -> None:
        self.frame = frame
        self.side, self.times, self.by = frame.side, frame.times, frame.by
        self.is_surely_larger = lambda size: is_surely_larger(frame, size)

    @remembered
    def is_computed(self) -> bool:
        return self.frame.is_computed

    @remembered
    def bytes(self) -> int | None:
        return estimated_bytes(self.frame)

    @remembered
    def needed(self) -> Estimate | None:
        return estimate_of_rows(self.frame)


class _SparkFacts:
    """`SessionFacts` of a session."""

    def __init__(self, sides: Sides) -> None:
        self.spark = sides[0].spark

    @remembered
    def tasks(self) -> int:
        return parallelism(self.spark)

    @remembered
    def is_accelerated(self) -> bool:
        return is_accelerated(self.spark)


class Question:
    """What rules ask of a join before anything is read."""

    def __init__(
        self,
        sides: tuple[SideFacts, SideFacts],
        session: SessionFacts,
        spec: AnySpec,
        options: CorrelateOptions,
        limits: PlannerLimits,
    ) -> None:
        self.sides, self.session, self.limits = sides, session, limits
        self.spec, self.options = spec, options

    @remembered
    def is_auto(self) -> bool:
        """Whether rows decide, and no option."""
        return self.options.way == "auto" and self.options.slices is None

    @remembered
    def is_open(self) -> bool:
        """The same of a join in time, whose sides can be collected."""
        return self.is_auto and isinstance(self.spec, JoinSpec)

    @remembered
    def spares_rows(self) -> bool:
        """Whether Spark's estimates may decide: nothing is asked for that only a planning job can tell."""
        is_whole = self.spec.is_one_stream or self.spec.choice.is_of_groups
        needs_job = is_whole or self.options.invalid == "drop"
        return self.is_auto and not needs_job and not self.session.is_accelerated

    @remembered
    def spares_job(self) -> bool:
        """The same of a join in time."""
        return self.is_open and self.spares_rows

    @remembered
    def has_computed(self) -> bool:
        """Whether a side is slow to compute, and cells can be cut without a planning job."""
        return any(side.is_computed for side in self.sides) and self.reach is not None

    @remembered
    def reach(self) -> Reach | None:
        """How far pairs reach, if that is known without a planning job."""
        return reach_of_any((self.sides[0].times, self.sides[1].times), self.spec)

    def are_small(self, *, any_computed: bool = False) -> bool:
        """Whether Spark takes both sides, or those not computed, for so small that they are collected."""
        most = min(self.limits.both_bytes, self.options.broadcast_bytes, self.options.slice_bytes)
        sizes = [side.bytes for side in self.sides if not (any_computed and side.is_computed)]
        return all(size is not None for size in sizes) and sum(size or 0 for size in sizes) <= most

    @remembered
    def small(self) -> SideFacts | None:
        """The side that Spark takes for small and the other for far larger; None: neither."""
        left, right = (side.bytes for side in self.sides)
        if left is None or right is None:
            return None
        small, other = (self.sides[1], self.sides[0]) if right <= left else self.sides
        least = max(self.limits.far_larger * min(left, right), self.limits.least_large)
        if min(left, right) > min(self.limits.small_bytes, self.options.broadcast_bytes):
            return None
        if max(left, right) < least or not other.is_surely_larger(least):
            return None
        return None if self.shuffles_pairs(small) else small

    @remembered
    def computed_alone(self) -> SideFacts | None:
        """The one computed side, where it may be broadcast; None: none, both, or pairs are shuffled."""
        left, right = self.sides
        if left.is_computed == right.is_computed:
            return None
        small = left if left.is_computed else right
        return None if self.shuffles_pairs(small) else small

    def shuffles_pairs(self, small: SideFacts) -> bool:
        """Whether all pairs would be shuffled, though they may be many, or would have to be."""
        row = self.spec.row
        shuffles = is_two_step(small.side, self.spec) and (
            row.holds_all_pairs or not self.spec.adds_up
        )
        return shuffles and not self.spec.one_row_per_event

    @remembered
    def large_slices(self) -> int | None:
        """Slices of two sides that Spark takes for large; None: they are not, or they would be too many."""
        limits = self.limits
        sizes = [side.bytes for side in self.sides]
        if self.reach is None or any(s is None or s < limits.large_bytes for s in sizes):
            return None
        left, right = (side.needed for side in self.sides)
        if left is None or right is None or left.is_filtered != right.is_filtered:
            return None
        # What a filter leaves of a single side may be better broadcast.
        small, large = sorted((left.bytes, right.bytes))
        least = limits.large_filtered_bytes if left.is_filtered else limits.large_bytes
        if small < least or large >= limits.far_larger * small:
            return None
        tasks = self.session.tasks
        slices = slices_of(left + right, self.options, limits, tasks)
        most = limits.waves_of_filtered * tasks if left.is_filtered else limits.most_slices
        return slices if slices <= most else None

    def cells(self, slices: int | None) -> CellPlan:
        """An exchange by cells of time."""
        assert self.reach is not None
        assert slices is not None
        return CellPlan(slices, self.reach, needs_keys=bool(self.sides[0].by))


Planned = tuple[JobStatistics, AnyPlan]
"""What is known of the rows of both sides, and how events meet."""


@dataclass(frozen=True)
class Rule:
    """A line of the table: when it applies, and the plan then; None of rows that turn out otherwise."""

    name: str
    applies: Callable[[Question], object]
    plan: Callable[[Question, Sides], Planned | None]
    reason: str


RULES = (
    Rule(
        "both sides are broadcast as asked",
        lambda q: q.options.way == "broadcast-both",
        lambda q, sides: _both_as_asked(q, sides),
        "an option holds whatever the sizes",
    ),
    Rule(
        "a small side",
        lambda q: q.spares_job and q.small,
        lambda q, sides: collected_small(q, sides, q.small),
        "its copies cost less than a planning job of the other side",
    ),
    Rule(
        "not as small as estimated, computed",
        lambda q: q.spares_job and q.small and q.has_computed,
        lambda q, sides: _computed_cells(q),
        "a planning job would compute a side once more",
    ),
    Rule(
        "not as small as estimated",
        lambda q: q.spares_job and q.small,
        lambda q, sides: plan_after_job(sides, q.spec, q.options, q.limits),
        "the estimate was wrong, so rows are counted",
    ),
    Rule(
        "two large sides",
        lambda q: q.spares_rows and q.large_slices,
        lambda q, sides: _where_they_lie(q, sides) or (NO_JOB, q.cells(q.large_slices)),
        "cells need no planning job, which would read both sides once more",
    ),
    Rule(
        "small sides, of which one is computed",
        lambda q: q.spares_job and q.has_computed and q.are_small(any_computed=True),
        lambda q, sides: _collected_both(q, sides, any_computed=True),
        "what is slow to compute is computed once",
    ),
    Rule(
        "a computed side",
        lambda q: q.spares_job and q.has_computed and q.computed_alone
        and not q.are_small(any_computed=True),
        lambda q, sides: collected_small(q, sides, q.computed_alone),
        "collected once, it is broadcast if it is small",
    ),
    Rule(
        "computed sides",
        lambda q: q.spares_job and q.has_computed,
        lambda q, sides: _computed_cells(q),
        "a planning job would compute a side once more",
    ),
    Rule(
        "two small sides",
        lambda q: q.is_open and q.are_small(),
        lambda q, sides: _collected_both(q, sides),
        "the driver reads few rows faster than tasks exchange them",
    ),
    Rule(
        "connected groups",
        lambda q: q.spec.needs_groups,
        lambda q, sides: _by_gaps(q, sides),
        "a task must see each connected group of events",
    ),
    Rule(
        "a planning job",
        lambda q: True,
        lambda q, sides: plan_after_job(sides, q.spec, q.options, q.limits),
        "only rows can tell",
    ),
)  # fmt: skip
"""In this order; docs/planning.md has them in words."""


def rules_for(question: Question) -> Iterator[Rule]:
    """The rules that apply, in order."""
    return (rule for rule in RULES if rule.applies(question))


def check_told_apart(sides: Sides, spec: AnySpec) -> None:
    """Refuse one to one pairs of events that tasks cannot tell apart."""
    if spec.compares_tasks:
        check_identifiable(
            spec,
            [side.times for side in sides],
            [side.by for side in sides],
            [side.payload for side in sides],
        )


def check_whole(spec: AnySpec, options: CorrelateOptions) -> None:
    """Refuse to send left events everywhere where a task must see all right events."""
    if options.small_side == "left" and not spec.adds_up:
        raise ConditionError(
            f"the last event before a window is sought among all right events, but"
            f" {argument('way', options.way)} shows each task some of them. Use"
            f" {argument('way', 'broadcast-right')}, or {argument('way', 'exchange')}, or remove"
            f" {argument('including')}."
        )


def plan_way(
    sides: Sides, spec: AnySpec, options: CorrelateOptions, limits: PlannerLimits
) -> Planned:
    """What is known of the rows of both sides, and how events meet. Runs eagerly what has to run."""
    check_told_apart(sides, spec)
    check_whole(spec, options)
    facts = _FrameFacts(sides[0]), _FrameFacts(sides[1])
    question = Question(facts, _SparkFacts(sides), spec, options, limits)
    planned = (rule.plan(question, sides) for rule in rules_for(question))
    return next(each for each in planned if each is not None)


def _both_as_asked(question: Question, sides: Sides) -> Planned | None:
    """Both sides on every worker, whatever their sizes."""
    if isinstance(question.spec, JoinSpec):
        return _collected_both(question, sides)
    raise ConditionError(
        f"{argument('way', question.options.way)} works for correlate only. Remove it, or collect both"
        " sides with df.toArrow() and give them to causality_tables."
    )


def _collected_both(
    question: Question, sides: Sides, *, any_computed: bool = False
) -> Planned | None:
    """Both sides on every worker; None if they have too many rows or bytes."""
    spec, options, limits = question.spec, question.options, question.limits
    assert isinstance(spec, JoinSpec)
    most = None
    if options.way != "broadcast-both":
        most = (
            min(options.broadcast_bytes, options.slice_bytes),
            min(limits.both_rows, options.slice_rows),
        )
    known = [side.bytes or 0 for side in question.sides if most and not side.is_computed]
    are_many = sum(known) > limits.small_bytes
    collected = collected_sides(sides, spec, most, are_many=are_many)
    if collected is None:
        return None
    statistics = collected[0].statistics, collected[1].statistics
    if options.invalid == "raise":
        refuse_invalid_of(sides, statistics, spec)
    return statistics, dealt(sides, collected, spec, question.session.tasks)


def collected_small(question: Question, sides: Sides, small: SideFacts | None) -> Planned | None:
    """The small side on every worker; None if it is not as small as it seemed."""
    assert small is not None
    assert isinstance(question.spec, JoinSpec)
    options, limits = question.options, question.limits
    frame, other = sides if small.side == "left" else sides[::-1]
    most = (
        min(options.broadcast_bytes, options.slice_bytes),
        min(limits.small_rows, options.slice_rows),
    )
    collected = collected_sides([frame], question.spec, most)
    if collected is None:
        return None
    (found,) = collected
    statistics = found.statistics
    refuse_invalid([frame], [statistics])
    why = f"{described_size(statistics.own_bytes)}, no planning job for {other.called}"
    plan = BroadcastPlan(frame.side, why, found.events)
    return ((statistics, None) if frame.side == "left" else (None, statistics)), plan


def _where_they_lie(question: Question, sides: Sides) -> Planned | None:
    """An exchange by slices of time, which tasks read where they lie; None of files in no order."""
    assert question.large_slices is not None
    if not are_read_here(sides) or not are_in_order(sides, question.large_slices):
        return None
    exchange = replace(question.options, way="exchange")
    return plan_after_job(sides, question.spec, exchange, question.limits)


def _computed_cells(question: Question) -> Planned:
    """An exchange by cells of sides whose rows are unknown."""
    slices = question.limits.waves_of_computed * question.session.tasks
    return NO_JOB, question.cells(slices)


def _by_gaps(question: Question, sides: Sides) -> Planned:
    """An exchange that is cut at gaps in time."""
    spec, options = question.spec, question.options
    if options.way not in ("auto", "exchange"):
        called = spec.choice.called(is_one_stream=spec.is_one_stream)
        raise ConditionError(
            f"{called} must see each connected group of events in one task, so it uses an"
            f" exchange. Remove {argument('way', options.way)}."
        )
    return plan_gaps(sides, spec, options, question.limits)


def plan_gaps(
    sides: Sides,
    spec: AnySpec,
    options: CorrelateOptions,
    limits: PlannerLimits,
    known: tuple[SideStatistics, SideStatistics] | None = None,
) -> tuple[JobStatistics, GapPlan]:
    """What is known of both sides, and an exchange that is cut at gaps in time."""
    exchange = replace(options, way="exchange")
    statistics, plan = plan_after_job(sides, spec, exchange, limits, known)
    assert isinstance(plan, SlicePlan)
    return statistics, GapPlan(plan.count, plan.reach)


def reach_of_any(times: tuple[TimestampColumns, TimestampColumns], spec: AnySpec) -> Reach | None:
    """How far pairs reach whose lengths are not known; None if that has no bound."""
    left, right = map(lengths_of, times)
    if left is not None and right is not None:
        return Reach.of(spec.pairs, left, right, spec.largest_useful)
    apart = midpoint_reach(spec.widest, max(spec.largest_useful)) if spec.are_uniform else None
    any_length = 0, 2 * TIME_LIMIT
    return None if apart is None else Reach(*apart, any_length, any_length)


def lengths_of(times: TimestampColumns) -> tuple[int, int] | None:
    """The least and the greatest length of events that were not read yet; None if not stated."""
    is_exact = isinstance(times, IntervalColumns) and len(times.names) == 1
    return (0, 0) if is_exact else times.declared


def slices_of(size: Estimate, options: CorrelateOptions, limits: PlannerLimits, tasks: int) -> int:
    """Slices of as many rows and bytes as options let them have, and enough that each core has one."""
    return slices_for(limits.packed * size.rows, limits.packed * size.bytes, options, limits, tasks)


def slices_for(
    rows: int, stored: int, options: CorrelateOptions, limits: PlannerLimits, tasks: int
) -> int:
    """The same for rows and bytes that are known."""
    slices = max(
        1,
        -(-rows // options.slice_rows),
        -(-stored // options.slice_bytes),
        min(tasks, rows // limits.smallest_slice_rows),
    )
    if slices > tasks:  # whole waves of tasks, so that no core idles in the last one
        slices = -(-slices // tasks) * tasks
    return slices
