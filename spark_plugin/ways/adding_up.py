"""Parts of what is asked of a left event, found by several tasks, put together by a `groupBy`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.join.spec import AnySpec
from spark_plugin.frames.columns import can_be_ordered
from spark_plugin.frames.output_columns import OutputColumn

ORDER = ("distance", "max_time", "min_time")
"""What decides among partners of equal probability, before the columns handed out do."""
_MERIT = "floor({} * 1099511627776D + 0.5D)"
"""SQL of a probability to whole 2**-40: as `coincide.model.timestamps.histograms.HistogramRule.merit`."""

_BEST_OF_ALL = (
    "slice(array_sort(filter(collect_list(struct(struct({0}) AS place, struct({1}) AS found)),"
    " each -> each.found.{2} IS NOT NULL), (a, b) -> CASE WHEN a.place < b.place THEN -1"
    " WHEN a.place > b.place THEN 1 ELSE 0 END), 1, {3}) AS best"
)
RANK = "found_rank"
"""The column of the how-many-best a partner is."""


def added_up(
    spec: AnySpec, names: Sequence[str], others: Sequence[tuple[str, OutputColumn]]
) -> list[Column]:
    """The parts of one event as one."""
    if spec.emit == "counts":
        return [F.expr(f"sum({names[0]}) AS {names[0]}")]
    if spec.emit == "lists":
        return [F.expr(f"flatten(collect_list({name})) AS {name}") for name in names]
    probability, *order = names[-length_of_order(spec) - 1 :]
    preferred = [order.pop(0)] if _is_preferred(spec) else []
    if "distance" in spec.measures:  # of causes and effects; it is handed out
        order.insert(1, next(name for name, column in others if column.name == "distance"))
    least = order_of_best(
        others, probability, *order, preferred=preferred, are_uniform=spec.are_uniform
    )
    told = dict.fromkeys([*(name for name, _ in others), probability])
    if spec.k > 1:
        return [F.expr(_BEST_OF_ALL.format(", ".join(least), ", ".join(told), probability, spec.k))]
    return [F.expr(f"min_by(struct({', '.join(told)}), struct({', '.join(least)})) AS best")]


def kinds_of_order(spec: AnySpec) -> list[T.DataType]:
    """Types of what tasks tell of best partners besides the columns that are handed out."""
    probability = [] if "probability" in spec.measures else [T.DoubleType()]
    return [*probability, *([T.LongType()] * length_of_order(spec))]


def length_of_order(spec: AnySpec) -> int:
    """How many columns come after the probability that tell by what best partners were chosen."""
    return len(ORDER) + _is_preferred(spec)


def exploded(found: DataFrame, kept: Sequence[str]) -> DataFrame:
    """One row for each of the best partners, `RANK` last, from the arrays that `added_up` makes.

    An event without partners has a row of nulls.
    """
    rows = found.selectExpr(*kept, "posexplode_outer(best) AS (place, best)")
    return rows.selectExpr(*kept, "best.found.*", f"CAST(place + 1 AS BIGINT) AS {RANK}")


def _is_preferred(spec: AnySpec) -> bool:
    """Whether partners are ordered by something else before their probability."""
    return "preferred" in spec.with_merits().measures


def order_of_best(
    others: Sequence[tuple[str, OutputColumn]],
    probability: str,
    *order: str,
    preferred: Sequence[str] = (),
    are_uniform: bool = True,
) -> list[str]:
    """SQL of what the best partner is least in: as `coincide` and `tie_ranks` have it."""
    merit = probability if are_uniform else _MERIT.format(probability)
    return [f"{probability} IS NULL", *preferred, f"-{merit}", *order, *ordered_terms(others)]


def ordered_terms(columns: Sequence[tuple[str, OutputColumn]]) -> list[str]:
    """SQL of what columns are ordered by, nulls last; of those that have no order there is none."""
    terms = []
    for name, column in columns:
        if can_be_ordered(column.wire_kind):
            terms += [f"{name} IS NULL", _comparable(name, column.wire_kind)]
    return terms


def _comparable(name: str, kind: T.DataType) -> str:
    """SQL of what a column is ordered by: texts by their bytes, whatever their collation."""
    is_collated = isinstance(kind, T.StringType) and kind != T.StringType()
    return f"CAST({name} AS BINARY)" if is_collated else name
