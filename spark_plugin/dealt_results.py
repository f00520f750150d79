"""From what dealt slices found of left events to the result: a `groupBy` of the event."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_plugin.adding_up import added_up, kinds_of_order
from spark_plugin.dealt_slices import dealt_spec
from spark_plugin.emission import JoinSpec
from spark_plugin.output_columns import ResultColumns
from spark_plugin.wire import HASHES

_EVENT = [*HASHES, "occurrence"]
"""What tells left events apart, of those that are alike in all the how-many-eth it is."""


class DealtResult:
    """The result of a join whose left events meet their partners in several slices.

    Parameters
    ----------
    spec : JoinSpec
        Of the result.
    result : ResultColumns
    """

    def __init__(self, spec: JoinSpec, result: ResultColumns) -> None:
        own = len(result.layout.keys) + len(result.layout.left)
        self._spec, self._own, self._others = spec, result.columns[:own], result.columns[own:]
        self.partial = dealt_spec(spec, bool(result.layout.right))

    @property
    def found_schema(self) -> T.StructType:
        """What a `DealtSliceTask` yields."""
        fields = [T.StructField(name, T.LongType()) for name in _EVENT]
        fields += [T.StructField(_own(i), column.wire_kind) for i, column in enumerate(self._own)]
        fields += [T.StructField(_other(i), kind) for i, kind in enumerate(self._found_kinds)]
        return T.StructType(fields)

    def combined(self, found: DataFrame) -> DataFrame:
        """The result, in wire types."""
        own = [_own(i) for i in range(len(self._own))]
        firsts = [F.first(name, ignorenulls=True).alias(name) for name in own]
        events = found.groupBy(*_EVENT).agg(*firsts, *self._added_up())
        if self.partial.emit == "best":
            events = events.selectExpr(*own, "best.*")
        kept = self._kept()
        if kept is not None:
            events = events.where(kept)
        others = [] if self._spec.one_row_per_event else self._others
        if self._spec.emit == "pairs" and not self._spec.one_row_per_event:
            events = self._exploded(events, own)
        names = [*own, *(_other(i) for i in range(len(others)))]
        columns = [*self._own, *others]
        return events.select(
            *(F.col(name).alias(c.name) for name, c in zip(names, columns, strict=True))
        )

    def _exploded(self, events: DataFrame, own: list[str]) -> DataFrame:
        """One row per pair, and one for each event without a partner."""
        if self.partial.emit == "counts":
            times = f"array_repeat(0, CAST(greatest({_other(0)}, 1L) AS INT))"
            return events.selectExpr(*own, f"explode({times})")
        names = [_other(i) for i in range(len(self._others))]
        pairs = events.selectExpr(*own, f"explode_outer(arrays_zip({', '.join(names)})) AS pair")
        return pairs.selectExpr(*own, *(f"pair.{name} AS {name}" for name in names))

    @property
    def _found_kinds(self) -> list[T.DataType]:
        if self.partial.emit == "counts":
            return [T.LongType()]
        if self.partial.emit == "best":
            return [*(c.wire_kind for c in self._others), *kinds_of_order(self._spec)]
        kinds = [c.wire_kind for c in self._others]
        return kinds if self._spec.emit == "lists" else [T.ArrayType(kind) for kind in kinds]

    def _added_up(self) -> list[Column]:
        names = [_other(i) for i in range(len(self._found_kinds))]
        return added_up(self.partial.emit, names, list(zip(names, self._others, strict=False)))

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
        return f"{_other(len(self._found_kinds) - 4)} IS NOT NULL"


def _own(i: int) -> str:
    return f"own{i}"


def _other(i: int) -> str:
    return f"found{i}"
