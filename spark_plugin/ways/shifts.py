"""Accidental pairs of two DataFrames, counted by time shifts: a Spark job each, at once."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as F

from coincide.engine.join.shifts import ShiftPlan, Shifts
from coincide.engine.join.spec import AnySpec
from coincide.engine.reports.reports import AccidentalPairs
from coincide.model.errors import ConditionError, argument
from coincide.model.options import CorrelateOptions
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.stage import Stage, gpu_profile
from spark_plugin.frames.statistics import SideStatistics
from spark_plugin.ways.choosing import JOINS, declared_plan, measure_sides, plan_after_job
from spark_plugin.ways.join_sides import Job, Sides

Statistics = tuple[SideStatistics, SideStatistics] | None


def plan_shifts(given: Shifts, sides: Sides, spec: AnySpec) -> ShiftPlan | None:
    """The joins that count accidental pairs; None without shifts."""
    if given is not None and any(side.source.isStreaming for side in sides):
        raise ConditionError(
            f"planning counts {argument('shifts')}, but a streaming side has no rows yet. Remove"
            f" {argument('shifts')}, or count those of a static DataFrame of the same events."
        )
    return ShiftPlan.of(given, spec, sides[0].times.scales[0].tick)


def accidental_pairs(
    shifts: ShiftPlan | None,
    sides: Sides,
    spec: AnySpec,
    options: CorrelateOptions,
    statistics: Statistics,
) -> AccidentalPairs | None:
    """The pairs by each shift; nothing but their number is computed."""
    if shifts is None:
        return None
    if statistics is None and declared_plan(sides, options) is None:
        statistics = measure_sides(sides, spec, options)
    shifts.warn_of_short(spec, _longest(sides, statistics))
    if statistics is not None:
        shifts.check_times(statistics[1].first, statistics[1].last)
    bare = replace(sides[0], payload=[]), replace(sides[1], payload=[])
    with spark_errors_as_ours():
        return shifts.counted([_pairs(bare, moved, options, statistics) for moved in shifts.specs])


def _pairs(sides: Sides, spec: AnySpec, options: CorrelateOptions, statistics: Statistics) -> int:
    """How many pairs a join finds whose rows are counts."""
    _, plan = plan_after_job(sides, spec, options, statistics)
    profile = gpu_profile(sides[0].spark, spec.backend)
    stage = Stage(options.invalid == "raise", profile, None, None)
    found, shipment = JOINS[type(plan)](
        Job(sides, spec, ResultColumns(sides, spec), options, stage), plan
    )
    try:
        row = found.agg(F.sum("matches").alias("pairs")).first()
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
