"""The ways of joins whose pairs are one to one; every other join goes its way as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from coincide.engine.causality.arguments import PlacedColumns, names_of_coordinates
from coincide.engine.events.histograms import HistogramColumns
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.spec import AnySpec
from coincide.engine.join.timing import JoinSpec
from coincide.model.errors import ConditionError
from coincide.model.options import CorrelateOptions
from coincide.model.sides import SIDES
from spark_plugin.frames import columns as frames
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import OutputColumn, ResultColumns
from spark_plugin.frames.stage import Stage
from spark_plugin.frames.statistics import NO_LOOK, Looks
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.broadcast import BroadcastPlan
from spark_plugin.tasks.slices import CellPlan, SlicePlan
from spark_plugin.tasks.wire import Shipment, WireLayout
from spark_plugin.ways.adding_up import order_of_best, ordered_terms
from spark_plugin.ways.broadcast.join import computed_and_other, plan_unseen, small_and_large
from spark_plugin.ways.choosing import JOINS, declared_plan, plan_ways
from spark_plugin.ways.collect.collecting import may_be_collected
from spark_plugin.ways.collect.plan import CollectPlan, collect_join, plan_collected
from spark_plugin.ways.exchange.cell_planning import plan_cells, plan_computed_cells
from spark_plugin.ways.exchange.gap_slices import GapPlan, gap_join

AnyPlan = SlicePlan | CellPlan | GapPlan | BroadcastPlan | CollectPlan
Sides = tuple[EventFrame, EventFrame]


def plan_way(sides: Sides, spec: AnySpec, options: CorrelateOptions) -> tuple[Looks, AnyPlan]:
    """As `plan_ways`; large sides may need no look, small ones are collected, gaps cut assignments."""
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
    """Refuse a matching of events that their times, keys and columns cannot tell apart."""
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


_RANKS = ("rank_of_left", "rank_of_right", "rank_of_twins")


class Counts(NamedTuple):
    """How many columns of a result are keys, of the left and of the right event."""

    keys: int
    left: int
    right: int


def chosen_pairs(
    found: DataFrame, columns: Sequence[OutputColumn], counts: Counts, spec: AnySpec
) -> DataFrame:
    """The pairs that are chosen of a join, in wire types, with all columns that tasks yield.

    Whatever the way, a task that finds a pair yields it where one of the two is the best that the other
    has met in that task, so that the best of all are among what tasks yield; of unambiguous pairs, where
    it is one of the first two that the other has met, so that who has several has several here. Events
    that are alike in their times, keys and columns are one here, as they are to the order.
    """
    keys, left, right = np.cumsum(counts).tolist()
    payload = columns[keys:left], columns[left:right]
    alike = [_alike(columns[:keys], own, side) for own, side in zip(payload, SIDES, strict=True)]
    orders = [_order(own, side, spec) for own, side in zip(payload, SIDES, strict=True)]
    # The right events first, so that what comes of twins needs no exchange of its own.
    ranked = found
    for name, events, order in zip(_RANKS, reversed(alike), orders, strict=False):
        place = _rank(events, order) if spec.matching == "mutual" else _count(events)
        ranked = ranked.selectExpr("*", f"{place} AS {name}")
    pairs = ranked.where(f"{_RANKS[0]} = 1 AND {_RANKS[1]} = 1")
    return pairs.selectExpr("*", _numbered(_RANKS[2], alike[0])).where(f"{_RANKS[2]} = 1")


def with_nobody(found: DataFrame) -> DataFrame:
    """What tasks yield, and a row of nulls, which is no pair of anybody.

    Adaptive execution takes what finds nothing out of the plan, and what was observed with it.
    """
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in found.schema]
    return found.unionAll(found.sparkSession.range(1).select(*nulls))


def without_nobody(pairs: DataFrame) -> DataFrame:
    """What `chosen_pairs` makes of the rows of `with_nobody`, without that one."""
    # It asks for a rank, too, so that Spark does not move it below an exchange.
    return pairs.where(f"{_RANKS[2]} + CAST(max_of_left IS NULL AS INT) = 1")


def handed_out(columns: Sequence[OutputColumn]) -> list[str]:
    """SQL of the columns of the result, of pairs from `chosen_pairs`."""
    return [frames.quoted(column.name) for column in columns]


def with_unmatched(
    rows: DataFrame,
    layout: WireLayout,
    pairs: DataFrame,
    columns: Sequence[OutputColumn],
    counts: Counts,
) -> DataFrame:
    """All left events, with their partner or nulls.

    Of left events that are alike in all one is of the pair, whichever.
    """
    own, others = columns[: counts.keys + counts.left], columns[counts.keys + counts.left :]
    names = [f"own{i}" for i in range(len(own))]
    wire = zip([*layout.keys, *layout.left], names, strict=True)
    events = rows.selectExpr("high", "low", *(f"{given} AS {name}" for given, name in wire))
    alike = ["high", "low", *ordered_terms(list(zip(names, own, strict=True)))]
    events = events.selectExpr("*", _numbered("twin", alike))
    theirs = _alike(own[: counts.keys], own[counts.keys :], SIDES[0])
    partners = [f"partner{i}" for i in range(len(others))]
    matched = pairs.selectExpr(
        *(f"{term} AS term{i}" for i, term in enumerate(theirs)),
        *(f"{frames.quoted(c.name)} AS {n}" for c, n in zip(others, partners, strict=True)),
    )
    same = [f"({term}) <=> term{i}" for i, term in enumerate(alike)]
    joined = events.join(matched, F.expr(" AND ".join(["twin = 1", *same])), "left")
    named = zip([*names, *partners], handed_out(columns), strict=True)
    return joined.selectExpr(*(f"{given} AS {name}" for given, name in named))


def _numbered(name: str, alike: Sequence[str]) -> str:
    """SQL of the how-many-eth of its kind a row is."""
    return f"row_number() OVER (PARTITION BY {', '.join(alike)} ORDER BY 1) AS {name}"


def _rank(events: Sequence[str], order: Sequence[str]) -> str:
    """SQL of the place of a pair among those of an event; pairs of twins share one."""
    return f"rank() OVER (PARTITION BY {', '.join(events)} ORDER BY {', '.join(order)})"


def _count(events: Sequence[str]) -> str:
    """SQL of how many pairs an event has, with its twins."""
    return f"count(1) OVER (PARTITION BY {', '.join(events)})"


def _alike(keys: Sequence[OutputColumn], payload: Sequence[OutputColumn], side: str) -> list[str]:
    """SQL of what tells events of a side apart."""
    own = [(frames.quoted(column.name), column) for column in (*keys, *payload)]
    return [f"max_of_{side}", f"min_of_{side}", *ordered_terms(own)]


def _order(payload: Sequence[OutputColumn], side: str, spec: AnySpec) -> list[str]:
    """SQL of the order among partners of a side."""
    placed = ["distance"] if "distance" in spec.measures else []
    return order_of_best(
        [(frames.quoted(column.name), column) for column in payload],
        "probability", "from_middle", *placed, f"max_of_{side}", f"min_of_{side}",
        preferred=["preferred"], are_uniform=spec.are_uniform,
    )  # fmt: skip
