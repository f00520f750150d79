"""From what tasks found of left events to the result: a `groupBy` and a join by the row of the event."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_plugin.emission import JoinSpec
from spark_plugin.output_columns import OutputColumn, ResultColumns

_JOINS = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}
ORDER = ("distance", "max_time", "min_time")
"""What decides among partners of equal probability, before the columns handed out do."""
_UNORDERED = (T.ArrayType, T.StructType, T.MapType, T.VariantType, T.NullType)


class Combination:
    """From what tasks found to the result.

    Parameters
    ----------
    spec : JoinSpec
        Of the result.
    result : ResultColumns
    """

    def __init__(self, spec: JoinSpec, result: ResultColumns) -> None:
        self._spec, self._result = spec, result
        own = len(result.layout.keys) + len(result.layout.left)
        self._own, self._others = result.columns[:own], result.columns[own:]

    @property
    def found_schema(self) -> T.StructType:
        """What a `PartialTask` yields."""
        kinds = [T.LongType(), *(column.wire_kind for column in self._others)]
        if self._spec.one_row_per_event:
            kinds.append(T.LongType())
        if self._spec.emit == "best":
            kinds += kinds_of_order(self._spec)
        return T.StructType([T.StructField(_name(i), kind) for i, kind in enumerate(kinds)])

    def events(self, table: pa.Table, spark: SparkSession) -> DataFrame:
        """The left events: their rows, keys and columns to hand out, in wire types."""
        names = [*self._result.layout.keys, *self._result.layout.left]
        columns = [pa.array(np.arange(table.num_rows)), *map(table.column, names)]
        kinds = [T.LongType(), *(column.wire_kind for column in self._own)]
        fields = [T.StructField(f"own{i}", kind) for i, kind in enumerate(kinds)]
        named = pa.table(columns, names=[field.name for field in fields])
        return spark.createDataFrame(named, T.StructType(fields))

    def combined(self, events: DataFrame, found: DataFrame) -> DataFrame:
        """The result, in wire types."""
        added_up = self._added_up(found)
        # Spark takes what Python yields to be as small as its input. Of the events it is known.
        if self._spec.how == "inner":
            events = events.hint("broadcast")
        elif self._spec.emit in ("pairs", "lists") and not self._spec.one_row_per_event:
            added_up = added_up.hint("merge")
        how = _JOINS[self._spec.how]
        joined = events.join(added_up, F.expr(f"own0 = {_name(0)}"), how)
        own = [F.col(f"own{i + 1}").alias(c.name) for i, c in enumerate(self._own)]
        others = [
            self._if_none(F.col(_name(i + 1)), c).alias(c.name) for i, c in enumerate(self._others)
        ]
        return joined.select(*own, *others)

    def _added_up(self, found: DataFrame) -> DataFrame:
        """One row per left event that has partners; of pairs, one per pair."""
        spec, others = self._spec, [_name(i + 1) for i in range(len(self._others))]
        if spec.one_row_per_event:
            return found.select(_name(0)).distinct()
        if spec.emit == "pairs":
            return found
        by_event = found.groupBy(_name(0))
        if spec.emit == "counts":
            return by_event.agg(F.expr(f"sum({others[0]}) AS {others[0]}"))
        if spec.emit == "lists":
            lists = [F.expr(f"flatten(collect_list({name})) AS {name}") for name in others]
            return by_event.agg(*lists)
        best = F.expr(
            f"min_by(struct({', '.join(others)}), struct({', '.join(self._order)})) AS best"
        )
        return by_event.agg(best).selectExpr(_name(0), "best.*")

    @property
    def _order(self) -> list[str]:
        """SQL of what the best partner is least in."""
        names = self.found_schema.names[1:]
        others = [(_name(i + 1), column) for i, column in enumerate(self._others)]
        return order_of_best(others, *names[-len(ORDER) - 1 :])

    def _if_none(self, found: Column, column: OutputColumn) -> Column:
        """What an event without a partner has."""
        if self._spec.how != "left" or self._spec.emit not in ("counts", "lists"):
            return found
        nothing = F.lit(0) if self._spec.emit == "counts" else F.array()
        return F.coalesce(found, nothing.cast(column.wire_kind))


def kinds_of_order(spec: JoinSpec) -> list[T.DataType]:
    """Types of what tasks tell of best partners besides the columns that are handed out."""
    probability = [] if spec.probability else [T.DoubleType()]
    return [*probability, *([T.LongType()] * len(ORDER))]


def order_of_best(
    others: Sequence[tuple[str, OutputColumn]], probability: str, *order: str
) -> list[str]:
    """SQL of what the best partner is least in: as `event_model` and `tie_ranks` have it.

    Parameters
    ----------
    others : sequence of (str, OutputColumn)
        Name of each column handed out, probability included, and what it is.
    probability : str
        Name of the probability, which is null where there is no partner.
    *order : str
        Names of what `ORDER` says.
    """
    terms = [f"{probability} IS NULL", f"-{probability}", *order]
    for name, column in others:
        if not isinstance(column.wire_kind, _UNORDERED):
            terms += [f"{name} IS NULL", _comparable(name, column.wire_kind)]
    return terms


def _comparable(name: str, kind: T.DataType) -> str:
    """SQL of what a column is ordered by: texts by their bytes, whatever their collation."""
    is_collated = isinstance(kind, T.StringType) and kind != T.StringType()
    return f"CAST({name} AS BINARY)" if is_collated else name


def _name(i: int) -> str:
    return f"found{i}"
