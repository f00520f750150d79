"""The ways of joins whose pairs are one to one; every other join goes its way as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from coincide.errors import ConditionError
from coincide.options import CorrelateOptions
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.stage import Stage
from spark_plugin.dataframes.statistics import NO_LOOK, Looks
from spark_plugin.dataframes.wire_rows import wire_rows
from spark_plugin.ways.broadcast.plan import BroadcastPlan
from spark_plugin.ways.broadcast.unseen import computed_and_other, plan_unseen, small_and_large
from spark_plugin.ways.choice import JOINS, declared_plan, plan_ways
from spark_plugin.ways.collect.collecting import may_be_collected
from spark_plugin.ways.collect.join import collect_join
from spark_plugin.ways.collect.plan import CollectPlan
from spark_plugin.ways.collect.planning import plan_collected
from spark_plugin.ways.exchange.cell_planning import plan_cells, plan_computed_cells
from spark_plugin.ways.exchange.cells import CellPlan
from spark_plugin.ways.exchange.gap_slices import GapPlan, gap_join
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.ways.mutual import (
    Counts,
    chosen_pairs,
    handed_out,
    with_nobody,
    with_unmatched,
    without_nobody,
)
from spark_plugin.worker.causality.places import PlacedColumns, names_of_coordinates
from spark_plugin.worker.emission.spec import AnySpec, JoinSpec
from spark_plugin.worker.timestamps.columns import TimestampColumns
from spark_plugin.worker.timestamps.histograms import HistogramColumns
from spark_plugin.worker.wire.shipment import Shipment

AnyPlan = SlicePlan | CellPlan | GapPlan | BroadcastPlan | CollectPlan
Sides = tuple[EventFrame, EventFrame]


def plan_way(sides: Sides, spec: AnySpec, options: CorrelateOptions) -> tuple[Looks, AnyPlan]:
    """As `plan_ways`, but large sides may need no look, small ones are collected, and gaps cut assignments.

    Raises
    ------
    ConditionError, DataError
    """
    if spec.compares_tasks:
        check_told_apart(
            spec,
            [side.times for side in sides],
            [side.by for side in sides],
            [side.payload for side in sides],
        )
    if isinstance(spec, JoinSpec) and _may_do_without_a_look(sides, spec, options):
        planned = _without_a_look(sides, spec, options)
        if planned is not None:
            return planned
    collected = plan_collected(sides, spec, options)
    if collected is not None:
        return collected
    if spec.matching is None or spec.compares_tasks:
        return plan_ways(sides, spec, options)
    if options.way not in ("auto", "exchange"):
        of = "one stream" if spec.is_one_stream else "'optimal'"
        raise ConditionError(
            f"matching of {of} looks at all events together that hang together by their pairs, and these"
            f" meet by an exchange; leave out way={options.way!r}"
        )
    statistics, plan = plan_ways(sides, spec, replace(options, way="exchange"))
    assert isinstance(plan, SlicePlan)
    return statistics, GapPlan(plan.count, plan.reach)


def _without_a_look(
    sides: Sides, spec: JoinSpec, options: CorrelateOptions
) -> tuple[Looks, AnyPlan] | None:
    """A plan that spares the look at sides that are large, or uneven, or computed; None if none does."""
    computed = plan_computed_cells(sides, spec, options)
    uneven = small_and_large(sides, spec, options)
    if uneven is not None:
        unseen = plan_unseen(*uneven, spec, options)
        return unseen or ((NO_LOOK, computed) if computed else plan_ways(sides, spec, options))
    cells = plan_cells(sides, spec, options)
    if cells is not None:
        return NO_LOOK, cells
    if computed is None:
        return None
    return _few_rows(sides, spec, options) or (NO_LOOK, computed)


def _few_rows(
    sides: Sides, spec: JoinSpec, options: CorrelateOptions
) -> tuple[Looks, AnyPlan] | None:
    """A plan for sides of which some are computed, here and once; None if their rows are many."""
    if may_be_collected(sides, options, any_computed=True):
        return plan_collected(sides, spec, options, any_computed=True)
    one = computed_and_other(sides, spec)
    return None if one is None else plan_unseen(*one, spec, options)


def _may_do_without_a_look(sides: Sides, spec: JoinSpec, options: CorrelateOptions) -> bool:
    """Whether nothing is asked for that only a look can tell, or that needs none anyway."""
    # Dropped rows are counted by their reason, and an assignment is cut where nothing meets.
    if options.way != "auto" or options.slices is not None or options.invalid == "drop":
        return False
    if spec.is_one_stream or spec.matching == "optimal":
        return False
    return declared_plan(sides, spec, options) is None


def check_told_apart(
    spec: AnySpec,
    times: Sequence[TimestampColumns],
    keys: Sequence[Sequence[str]],
    payload: Sequence[Sequence[str]],
) -> None:
    """Refuse a matching of events that their times, keys and columns cannot tell apart.

    Parameters
    ----------
    spec : AnySpec
    times, keys, payload
        Of the left and of the right side.

    Raises
    ------
    ConditionError
    """
    if spec.case_fold:
        raise ConditionError(
            f"matching={spec.matching!r} on Spark knows events again by their keys as they are written, and"
            " case_fold makes several one: make a column of the keys in lower case, and join by it"
        )
    needed = [_telling_apart(columns) for columns in times]
    if spec.where is not None:
        tested = spec.where.where.left, spec.where.where.right
        for own, names, kinds in zip(needed, tested, spec.where.kinds, strict=True):
            _refuse_nested(spec, names, kinds)
            own += names
    if spec.partners.preferred is not None:
        needed[1].append(spec.partners.preferred.column)
    for called, own, *told in zip(spec.prefixes, needed, keys, payload, strict=True):
        known = {*told[0], *told[1]}
        lacking = [name for name in own if name not in known]
        if lacking:
            raise ConditionError(
                f"matching={spec.matching!r} on Spark knows events again by what is handed out, and"
                f" {lacking[0]!r} tells them apart besides: add it to {called}_columns"
            )


def _telling_apart(columns: TimestampColumns) -> list[str]:
    """Columns that tell events of one time apart: of templates, and of places."""
    if isinstance(columns, PlacedColumns):
        return [*_telling_apart(columns.times), *names_of_coordinates(columns.place)]
    return [columns.template] if isinstance(columns, HistogramColumns) else []


def _refuse_nested(spec: AnySpec, names: Sequence[str], kinds: Sequence[pa.DataType]) -> None:
    for name, kind in zip(names, kinds, strict=True):
        if pa.types.is_nested(kind):
            raise ConditionError(
                f"matching={spec.matching!r} on Spark cannot tell events apart by {name!r}, which is {kind}"
                " and looked at by where: make a plain column of what is compared"
            )


def found_by(
    sides: Sides,
    spec: AnySpec,
    result: ResultColumns,
    plan: AnyPlan,
    options: CorrelateOptions,
    stage: Stage,
) -> tuple[DataFrame, Shipment | None]:
    """The result in wire types, and what it needs."""
    if isinstance(plan, CollectPlan):
        return collect_join(sides[0].source.sparkSession, spec, result, plan, stage)
    if isinstance(plan, GapPlan):
        return gap_join(sides, spec, result, plan, stage), None
    join = JOINS[plan.way]
    if spec.matching is None:
        return join(sides, spec, result, plan, options, stage)
    local = spec.with_merits().but(how="inner")
    partial = ResultColumns(sides, local)
    found, shipment = join(sides, local, partial, plan, options, stage)
    if stage.observation is not None:
        found = with_nobody(found)
    layout = result.layout
    counts = Counts(len(layout.keys), len(layout.left), len(layout.right))
    pairs = chosen_pairs(found, partial.columns, counts, spec)
    if spec.how == "inner":
        return without_nobody(pairs).selectExpr(*handed_out(result.columns)), shipment
    events = replace(sides[0], observation=None)  # whose rows the join has counted
    rows = wire_rows(events, layout, True, stage.raise_invalid, place=("low", "high"))
    return with_unmatched(rows, layout, pairs, result.columns, counts), shipment
