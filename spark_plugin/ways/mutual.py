"""From the best partners that tasks have seen to the pairs in which each is the other's best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame

from coincide.sides import SIDES
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.output_columns import OutputColumn
from spark_plugin.ways.adding_up import order_of_best, ordered_terms
from spark_plugin.worker.emission.spec import AnySpec

_RANKS = ("rank_of_left", "rank_of_right", "rank_of_twins")


def mutual_pairs(
    found: DataFrame, columns: Sequence[OutputColumn], counts: tuple[int, int, int], spec: AnySpec
) -> DataFrame:
    """The result of a join by mutual choice, in wire types.

    Whatever the way, a task that finds a pair yields it where one of the two is the best that the other
    has met in that task, so that the best of all are among what tasks yield. Events that are alike in
    their times, keys and columns are one here, as they are to the order.

    Parameters
    ----------
    found : DataFrame
        What tasks yield with `AnySpec.with_merits`.
    columns : sequence of OutputColumn
        Its columns.
    counts : (int, int, int)
        Keys, columns of the left and of the right event among them.
    spec : AnySpec
        Of the result.
    """
    keys, left, right = np.cumsum(counts).tolist()
    payload = columns[keys:left], columns[left:right]
    alike = [_alike(columns[:keys], own, side) for own, side in zip(payload, SIDES, strict=True)]
    orders = [_order(own, side, spec) for own, side in zip(payload, SIDES, strict=True)]
    handed_out = columns[: right + len(spec.measures)]
    names = [frames.quoted(column.name) for column in handed_out]
    # The right events first, so that what comes of twins needs no exchange of its own.
    ranked = found.selectExpr("*", _rank(_RANKS[0], alike[1], orders[0]))
    ranked = ranked.selectExpr("*", _rank(_RANKS[1], alike[0], orders[1]))
    pairs = ranked.where(f"{_RANKS[0]} = 1 AND {_RANKS[1]} = 1")
    one = f"row_number() OVER (PARTITION BY {', '.join(alike[0])} ORDER BY 1) AS {_RANKS[2]}"
    return pairs.selectExpr("*", one).where(f"{_RANKS[2]} = 1").selectExpr(*names)


def _rank(name: str, events: Sequence[str], order: Sequence[str]) -> str:
    """SQL of the place of a pair among those of an event; pairs of twins share one."""
    return f"rank() OVER (PARTITION BY {', '.join(events)} ORDER BY {', '.join(order)}) AS {name}"


def _alike(keys: Sequence[OutputColumn], payload: Sequence[OutputColumn], side: str) -> list[str]:
    """SQL of what tells events of a side apart."""
    own = [(frames.quoted(column.name), column) for column in (*keys, *payload)]
    return [f"max_of_{side}", f"min_of_{side}", *ordered_terms(own)]


def _order(payload: Sequence[OutputColumn], side: str, spec: AnySpec) -> list[str]:
    """SQL of the order among partners of a side."""
    return order_of_best(
        [(frames.quoted(column.name), column) for column in payload],
        "probability", "from_middle", f"max_of_{side}", f"min_of_{side}",
        preferred=["preferred"], has_histograms=spec.has_histograms,
    )  # fmt: skip
