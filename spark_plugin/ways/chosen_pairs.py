"""The ways of joins whose pairs are one to one; every other join goes its way as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from coincide.engine.events.histograms import HistogramColumns
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.spec import AnySpec
from coincide.model.errors import ConditionError, argument
from coincide.model.sides import SIDES
from spark_plugin.frames import columns as frames
from spark_plugin.frames.output_columns import OutputColumn, ResultColumns
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.wire import Shipment, WireLayout
from spark_plugin.ways.join_sides import Job
from spark_plugin.ways.partial_results import order_of_best, ordered_terms


def check_identifiable(
    spec: AnySpec,
    times: Sequence[TimestampColumns],
    keys: Sequence[Sequence[str]],
    payload: Sequence[Sequence[str]],
) -> None:
    """Refuse one to one pairs of events that their times, keys and columns cannot tell apart."""
    assert spec.choice.one_to_one is not None
    said, needed = spec.choice.one_to_one.said, [telling_apart(columns) for columns in times]
    if spec.where is not None:
        tested = spec.where.where.left, spec.where.where.right
        for own, names, kinds in zip(needed, tested, spec.where.kinds, strict=True):
            _refuse_nested(said, names, kinds)
            own += names
    needed[1] += [each.column for each in spec.choice.columns]
    for called, own, *told in zip(spec.prefixes, needed, keys, payload, strict=True):
        known = {*told[0], *told[1]}
        lacking = [name for name in own if name not in known]
        if lacking:
            raise ConditionError(
                f"{said} on Spark identifies events by their"
                f" output columns. Add {lacking[0]!r} to {argument(f'{called}_columns')}."
            )


def telling_apart(columns: TimestampColumns) -> list[str]:
    """Columns that tell events of one time apart: of templates and of places."""
    templates = [columns.template] if isinstance(columns, HistogramColumns) else []
    return [*templates, *columns.coordinates.names]


def _refuse_nested(said: str, names: Sequence[str], kinds: Sequence[pa.DataType]) -> None:
    for name, kind in zip(names, kinds, strict=True):
        if pa.types.is_nested(kind):
            raise ConditionError(
                f"{said} on Spark cannot identify events by"
                f" {name!r}, which {argument('where')} reads (found {kind}). Make a plain column"
                " of what is compared."
            )


def matched_join(
    join: Callable[..., tuple[DataFrame, Shipment | None]], job: Job, plan: object
) -> tuple[DataFrame, Shipment | None]:
    """The one to one pairs of a join, whose tasks find the best of each event, and what it needs."""
    spec, result, stage = job.spec, job.result, job.stage
    local = spec.but(merits=True, how="inner")
    partial = ResultColumns(job.sides, local)
    found, shipment = join(replace(job, spec=local, result=partial), plan)
    if stage.observation is not None:
        found = with_null_row(found)
    layout = result.layout
    counts = Counts(len(layout.keys), len(layout.left), len(layout.right))
    pairs = chosen_pairs(found, partial.columns, counts, spec)
    if spec.how == "inner":
        return without_null_row(pairs).selectExpr(*output_names(result.columns)), shipment
    events = replace(job.sides[0], observation=None)  # whose rows the join has counted
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
    """The pairs that are chosen of a join, in wire types, with all columns that tasks yield."""
    # A task yields a pair if one is the best that the other has met there: so the best of all are here.
    keys, left, right = np.cumsum(counts).tolist()
    payload = columns[keys:left], columns[left:right]
    alike = [_alike(columns[:keys], own, side) for own, side in zip(payload, SIDES, strict=True)]
    orders = [_order(own, side, spec) for own, side in zip(payload, SIDES, strict=True)]
    # The right events first, so that what comes of twins needs no exchange of its own.
    ranked, word = found, spec.choice.one_to_one
    assert word is not None
    for name, events, order in zip(_RANKS, reversed(alike), orders, strict=False):
        place = _rank(events, order) if word.ranks else _count(events)
        ranked = ranked.selectExpr("*", f"{place} AS {name}")
    pairs = ranked.where(f"{_RANKS[0]} = 1 AND {_RANKS[1]} = 1")
    return pairs.selectExpr("*", _numbered(_RANKS[2], alike[0])).where(f"{_RANKS[2]} = 1")


def with_null_row(found: DataFrame) -> DataFrame:
    """What tasks yield, and a row of nulls, which is no pair of anybody."""
    # Adaptive execution takes what finds nothing out of the plan, and what was observed with it.
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in found.schema]
    return found.unionAll(found.sparkSession.range(1).select(*nulls))


def without_null_row(pairs: DataFrame) -> DataFrame:
    """What `chosen_pairs` makes of the rows of `with_null_row`, without that one."""
    # It asks for a rank, too, so that Spark does not move it below an exchange.
    return pairs.where(f"{_RANKS[2]} + CAST(max_of_left IS NULL AS INT) = 1")


def output_names(columns: Sequence[OutputColumn]) -> list[str]:
    """SQL of the columns of the result, of pairs from `chosen_pairs`."""
    return [frames.quoted(column.name) for column in columns]


def with_unmatched(
    rows: DataFrame,
    layout: WireLayout,
    pairs: DataFrame,
    columns: Sequence[OutputColumn],
    counts: Counts,
) -> DataFrame:
    """All left events, with their match or nulls; one of those alike in all has the pair."""
    own, others = columns[: counts.keys + counts.left], columns[counts.keys + counts.left :]
    names = [f"own{i}" for i in range(len(own))]
    wire = zip([*layout.keys, *layout.left], names, strict=True)
    events = rows.selectExpr("high", "low", *(f"{given} AS {name}" for given, name in wire))
    alike = ["high", "low", *ordered_terms(list(zip(names, own, strict=True)))]
    events = events.selectExpr("*", _numbered("twin", alike))
    theirs = _alike(own[: counts.keys], own[counts.keys :], SIDES[0])
    matches = [f"match{i}" for i in range(len(others))]
    matched = pairs.selectExpr(
        *(f"{term} AS term{i}" for i, term in enumerate(theirs)),
        *(f"{frames.quoted(c.name)} AS {n}" for c, n in zip(others, matches, strict=True)),
    )
    same = [f"({term}) <=> term{i}" for i, term in enumerate(alike)]
    joined = events.join(matched, F.expr(" AND ".join(["twin = 1", *same])), "left")
    named = zip([*names, *matches], output_names(columns), strict=True)
    return joined.selectExpr(*(f"{given} AS {name}" for given, name in named))


def _numbered(name: str, alike: Sequence[str]) -> str:
    """SQL of a row's number among those of its kind."""
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
    """SQL of the order among matches of a side."""
    placed = ["distance"] if "distance" in spec.measures else []
    preferred, then = ["preferred"], ["then"] if spec.choice.then else []
    if spec.prefers_by_gap:
        placed = [*then, *placed]
    else:
        preferred += then
    return order_of_best(
        [(frames.quoted(column.name), column) for column in payload],
        "probability", "from_middle", *placed, f"max_of_{side}", f"min_of_{side}",
        preferred=preferred, are_uniform=spec.are_uniform,
    )  # fmt: skip
