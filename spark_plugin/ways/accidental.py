"""Accidental pairs of DataFrames: a job for each shift counts pairs with right times moved."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from coincide.engine.accidental.pairs import AccidentalArguments, AccidentalPairs
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.spec import AnySpec
from coincide.engine.reports.join_report import JoinSummary
from coincide.model.errors import ConditionError, argument
from coincide.model.options import CorrelateOptions
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.queries import queries_logged
from spark_plugin.frames.stage import Stage, gpu_profile
from spark_plugin.frames.statistics import SideStatistics
from spark_plugin.ways import causality, correlation, limits
from spark_plugin.ways.choosing import JOINS, check_told_apart, plan_gaps
from spark_plugin.ways.chosen_pairs import matched_join
from spark_plugin.ways.join_sides import (
    Job,
    Sides,
    check_payload,
    event_frames,
    with_filter,
    with_longest_matches,
)
from spark_plugin.ways.planning_job import declared_plan, measure_sides, plan_after_job

Statistics = tuple[SideStatistics, SideStatistics] | None


def count_accidental(
    left: DataFrame, right: DataFrame | None, asked: AccidentalArguments
) -> tuple[AccidentalPairs, JoinSummary]:
    """The pairs, and what the rows were, as far as a planning job has seen them."""
    if any(each is not None and each.isStreaming for each in (left, right)):
        raise ConditionError(
            "accidental pairs are counted at once, but a streaming side has no rows yet. Give static"
            " DataFrames of the same events."
        )
    join, sides = _prepared(left, right, asked.join)
    options = join.options
    if options.way == "files":
        raise ConditionError(
            "accidental pairs of DataFrames are counted by a broadcast or an exchange (found"
            f" {argument('way', 'files')}). Choose another way, or remove it."
        )
    spec = join.spec([side.times for side in sides], 1, correlation.BATCH_PAIRS)
    spec = with_filter(spec, sides, join.where)
    sides = with_longest_matches(sides, spec)
    check_payload(sides)
    tick = sides[0].times.scales[0].tick
    moves = asked.plan(spec, tick)
    check_told_apart(sides, spec)
    check_workers(sides[0].spark)
    statistics: Statistics = None
    with queries_logged():
        if declared_plan(sides, options) is None:
            statistics = measure_sides(sides, spec, options)
            moves.check_times(statistics[1].first, statistics[1].last)
        moves.warn_of_short(spec, _longest(sides, statistics))
        with spark_errors_as_ours():
            counts = [_pairs(sides, moved, options, statistics) for moved in moves.specs]
    own, others = (None, None) if statistics is None else (each.counts for each in statistics)
    return moves.counted(counts), JoinSummary(
        own, None if spec.is_one_stream else others, None, None, "", tick,
        sides=join.sides, matchless=join.matchless,
    )  # fmt: skip


def _prepared(
    left: DataFrame, right: DataFrame | None, join: PairArguments
) -> tuple[PairArguments, Sides]:
    if isinstance(join, CausalityArguments):
        return causality.prepared(left, right, join)
    assert isinstance(join, JoinArguments)
    join, sources = correlation.prepared(left, right, join)
    return join, event_frames(sources, join)


def _pairs(sides: Sides, spec: AnySpec, options: CorrelateOptions, statistics: Statistics) -> int:
    """How many pairs a join finds: of rows that are counts, or of matched pairs."""
    plan_pairs = plan_gaps if spec.needs_groups else plan_after_job
    _, plan = plan_pairs(sides, spec, options, limits.LIMITS, statistics)
    profile = gpu_profile(sides[0].spark, spec.backend)
    stage = Stage(options.invalid == "raise", profile, None, None)
    join, job = JOINS[type(plan)], Job(sides, spec, ResultColumns(sides, spec), options, stage)
    found, shipment = matched_join(join, job, plan) if spec.compares_tasks else join(job, plan)
    counted = F.count(F.lit(1)) if spec.choice.one_to_one is not None else F.sum("matches")
    try:
        row = found.agg(counted.alias("pairs")).first()
    finally:
        if shipment is not None:
            shipment.close()
    assert row is not None
    return row["pairs"] or 0


def _longest(sides: Sides, statistics: Statistics) -> tuple[int, int]:
    """The longest timestamp of each side, as it was seen or is known."""
    longest = []
    for i, side in enumerate(sides):
        found = side.longest
        if statistics is not None:
            found = side.times.model.longest(statistics[i].longest)
        assert found is not None
        longest.append(found)
    return longest[0], longest[1]
