"""From what tasks found of left events to the result: a `groupBy` and a join by the row of the event."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_plugin.dataframes.output_columns import OutputColumn, ResultColumns
from spark_plugin.ways.adding_up import RANK, added_up, exploded, kinds_of_order
from spark_plugin.worker.emission.spec import AnySpec

_JOINS = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


class Combination:
    """From what tasks found to the result.

    Parameters
    ----------
    spec : AnySpec
        Of the result.
    result : ResultColumns
    """

    def __init__(self, spec: AnySpec, result: ResultColumns) -> None:
        self._spec, self._result = spec, result
        own = len(result.layout.keys) + len(result.layout.left)
        self._own, self._others = result.columns[:own], result.columns[own:]
        # Which of the best a partner is, tasks do not know.
        self._told = self._others[:-1] if spec.k > 1 else self._others

    @property
    def found_schema(self) -> T.StructType:
        """What a `PartialTask` yields."""
        kinds = [T.LongType(), *(column.wire_kind for column in self._told)]
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
        names = [_name(i + 1) for i in range(len(self._others))]
        if self._spec.k > 1:
            names[-1] = RANK
        others = [
            self._if_none(F.col(name), c).alias(c.name)
            for name, c in zip(names, self._others, strict=True)
        ]
        return joined.select(*own, *others)

    def _added_up(self, found: DataFrame) -> DataFrame:
        """One row per left event that has partners; of pairs, one per pair."""
        spec, others = self._spec, [_name(i + 1) for i in range(len(self._told))]
        if spec.one_row_per_event:
            return found.select(_name(0)).distinct()
        if spec.emit == "pairs":
            return found
        by_event = found.groupBy(_name(0))
        columns = list(zip(others, self._told, strict=True))
        one = by_event.agg(*added_up(spec, self.found_schema.names[1:], columns))
        if spec.k > 1:
            return exploded(one, [_name(0)])
        return one.selectExpr(_name(0), "best.*") if spec.emit == "best" else one

    def _if_none(self, found: Column, column: OutputColumn) -> Column:
        """What an event without a partner has."""
        if self._spec.how != "left" or self._spec.emit not in ("counts", "lists"):
            return found
        nothing = F.lit(0) if self._spec.emit == "counts" else F.array()
        return F.coalesce(found, nothing.cast(column.wire_kind))


def _name(i: int) -> str:
    return f"found{i}"
