"""From what dealt slices found of left events to the result: a `groupBy` of the event, or a window."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.ways.adding_up import (
    RANK,
    added_up,
    exploded,
    kinds_of_order,
    length_of_order,
)
from spark_plugin.ways.exchange.worker.dealt_slices import dealt_spec
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.wire.columns import HASHES

_EVENT = [*HASHES, "occurrence"]
"""What tells left events apart, of those that are alike in all the how-many-eth it is."""


class DealtResult:
    """The result of a join whose left events meet their partners in several slices.

    Parameters
    ----------
    spec : AnySpec
        Of the result.
    result : ResultColumns
    """

    def __init__(self, spec: AnySpec, result: ResultColumns) -> None:
        own = len(result.layout.keys) + len(result.layout.left)
        self._spec, self._own, self._others = spec, result.columns[:own], result.columns[own:]
        # Which of the best a partner is, the parts do not know.
        self._told = self._others[:-1] if spec.k > 1 else self._others
        self.partial = dealt_spec(spec)

    @property
    def found_schema(self) -> T.StructType:
        """What a `DealtSliceTask` yields."""
        fields = [T.StructField(name, T.LongType()) for name in _EVENT]
        fields += [T.StructField(_own(i), column.wire_kind) for i, column in enumerate(self._own)]
        fields += [T.StructField(_other(i), kind) for i, kind in enumerate(self._found_kinds)]
        return T.StructType(fields)

    def combined(self, found: DataFrame) -> DataFrame:
        """The result, in wire types."""
        if self.partial.emit == "pairs":
            return self._named(_pairs(found), first=1)
        own = [_own(i) for i in range(len(self._own))]
        firsts = [F.first(name, ignorenulls=True).alias(name) for name in own]
        events = found.groupBy(*_EVENT).agg(*firsts, *self._added_up())
        if self._spec.k > 1:
            events = exploded(events, own)
        elif self.partial.emit == "best":
            events = events.selectExpr(*own, "best.*")
        kept = self._kept()
        if kept is not None:
            events = events.where(kept)
        return self._named(events, first=0)

    def _named(self, events: DataFrame, first: int) -> DataFrame:
        """The columns of the result; those of partners are the found ones from `first` on."""
        others = [] if self._spec.one_row_per_event else self._others
        own = [F.col(_own(i)).alias(column.name) for i, column in enumerate(self._own)]
        names = [_other(i) for i in range(first, first + len(others))]
        if self._spec.k > 1:
            names[-1] = RANK
        found = [F.col(n).alias(column.name) for n, column in zip(names, others, strict=True)]
        return events.select(*own, *found)

    @property
    def _found_kinds(self) -> list[T.DataType]:
        if self.partial.emit == "counts":
            return [T.LongType()]
        if self.partial.emit == "best":
            return [*(c.wire_kind for c in self._told), *kinds_of_order(self._spec)]
        kinds = [c.wire_kind for c in self._others]
        return [T.LongType(), *kinds] if self.partial.emit == "pairs" else kinds

    def _added_up(self) -> list[Column]:
        names = [_other(i) for i in range(len(self._found_kinds))]
        return added_up(self.partial, names, list(zip(names, self._told, strict=False)))

    def _kept(self) -> str | None:
        """SQL of which events are in the result; None: all."""
        first = _other(0)
        if self._spec.how == "anti":
            return f"{first} = 0"
        if self._spec.how == "left":
            return None
        if self.partial.emit == "counts":
            return f"{first} > 0"
        if self.partial.emit == "lists":
            return f"size({first}) > 0"
        probability = len(self._found_kinds) - 1 - length_of_order(self._spec)
        return f"{_other(probability)} IS NOT NULL"


def _pairs(found: DataFrame) -> DataFrame:
    """All pairs, and once each left event that no slice has found a partner of."""
    event = ", ".join(_EVENT)
    told = found.selectExpr("*", f"max({_other(0)}) OVER (PARTITION BY {event}) AS has_partner")
    return told.where(f"{_other(0)} IS NOT NULL OR has_partner IS NULL")


def _own(i: int) -> str:
    return f"own{i}"


def _other(i: int) -> str:
    return f"found{i}"
