"""From the best partners that tasks have seen to the pairs in which each is the other's best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from coincide.sides import SIDES
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.output_columns import OutputColumn
from spark_plugin.ways.adding_up import order_of_best, ordered_terms
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.wire.columns import WireLayout

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

    Parameters
    ----------
    found : DataFrame
        What tasks yield with `AnySpec.with_merits`.
    columns : sequence of OutputColumn
        Its columns.
    counts : Counts
    spec : AnySpec
        Of the result.
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

    Parameters
    ----------
    rows : DataFrame
        Left events on the wire, with ``low`` and ``high``.
    layout : WireLayout
    pairs : DataFrame
        From `chosen_pairs`.
    columns : sequence of OutputColumn
        Of the result.
    counts : Counts
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
        preferred=["preferred"], has_histograms=spec.has_histograms,
    )  # fmt: skip
