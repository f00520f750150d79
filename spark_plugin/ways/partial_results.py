"""Parts of the answer for left events, found by several tasks, put together by a `groupBy`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.join.aggregate_parts import state_fields
from coincide.engine.join.spec import AnySpec
from coincide.model.aggregates import columns_of
from spark_plugin.frames.columns import can_be_ordered, spark_type, wire_kind
from spark_plugin.frames.output_columns import OutputColumn, ResultColumns
from spark_plugin.tasks.joins import partial_spec
from spark_plugin.tasks.states import StatesTask

ORDER = ("distance", "max_time", "min_time")
"""What decides among matches of equal probability, before the output columns do."""
_MERIT = "floor({} * 1099511627776D + 0.5D)"
"""SQL of a probability to whole 2**-40: as `coincide.model.timestamps.histograms.HistogramRule.merit`."""

_BEST_OF_ALL = (
    "slice(array_sort(filter(collect_list(struct(struct({0}) AS place, struct({1}) AS found)),"
    " each -> each.found.{2} IS NOT NULL), (a, b) -> CASE WHEN a.place < b.place THEN -1"
    " WHEN a.place > b.place THEN 1 ELSE 0 END), 1, {3}) AS best"
)
_WITH_TIES = (
    "transform(array(array_sort(filter(collect_list(struct(struct({0}) AS place, struct({4}) AS tie,"
    " struct({1}) AS found)), each -> each.found.{2} IS NOT NULL), (a, b) ->"
    " CASE WHEN a.place < b.place THEN -1 WHEN a.place > b.place THEN 1 ELSE 0 END)),"
    " all -> filter(all, (each, i) -> i < {3} OR each.tie = all[{3} - 1].tie))[0] AS best"
)
"""The same with all that are as good as the last of them."""
_RANK = "found_rank"
"""The column of the how-many-best a match is."""
_JOINS = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


class PartialResult:
    """From what tasks found of left events, which a column of int64 tells apart, to the result."""

    def __init__(self, spec: AnySpec, result: ResultColumns, event: str) -> None:
        count = len(result.layout.keys) + len(result.layout.left)
        self._spec, self._event = spec, event
        self._columns, self._others = result.columns[:count], result.columns[count:]
        self._own = [f"own{i}" for i in range(count)]
        # Which of the best a match is, tasks do not know.
        self._known = self._others[:-1] if spec.k > 1 else self._others
        self.spec = partial_spec(spec)
        self._right_kinds = [wire_kind(kind) for kind in result.right_kinds]
        self._kinds = self._found_kinds()
        self._found = [f"found{i}" for i in range(len(self._kinds))]

    def _found_kinds(self) -> list[T.DataType]:
        kinds: list[T.DataType] = [column.wire_kind for column in self._known]
        if self.spec.row.totals:
            return [T.LongType() for _ in self.spec.row.totals]
        if self.spec.are_states:
            columns = columns_of(self.spec.aggregates)
            fields = state_fields(
                self.spec.aggregates, dict(zip(columns, self._right_kinds, strict=True))
            )
            return [spark_type(field.name, field.type) for field in fields]
        if self.spec.row.is_best:
            return [*kinds, *kinds_of_order(self._spec)]
        return kinds

    @property
    def found_schema(self) -> T.StructType:
        """What tasks yield: which left event it is, and what was found of it."""
        return self._schema(zip(self._found, self._kinds, strict=True))

    @property
    def events_schema(self) -> T.StructType:
        """The schema of left events: which each is, its keys and columns."""
        kinds = [column.wire_kind for column in self._columns]
        return self._schema(zip(self._own, kinds, strict=True))

    def _schema(self, fields: Iterable[tuple[str, T.DataType]]) -> T.StructType:
        named = [(self._event, T.LongType()), *fields]
        return T.StructType([T.StructField(name, kind) for name, kind in named])

    def combined(self, found: DataFrame, events: DataFrame) -> DataFrame:
        """The result in wire types, of all left events."""
        if self.spec.are_states:
            found = self._together(found)
        elif not self.spec.row.is_a_pair:
            parts = list(zip(self._found, self._known, strict=False))
            found = found.groupBy(self._event).agg(*added_up(self.spec, self._found, parts))
            if self._spec.choice.may_be_many:
                found = exploded(found, [self._event], self._spec)
            elif self.spec.row.is_best:
                found = found.selectExpr(self._event, "best.*")
        return self._named(self._joined(found, events))

    def _together(self, states: DataFrame) -> DataFrame:
        """Aggregates of left events, from states of these."""
        kinds = [column.wire_kind for column in self._known]
        schema = self._schema((f"found{i}", kind) for i, kind in enumerate(kinds))
        task = StatesTask(self.spec, tuple(self._right_kinds), tuple(schema.names))
        sorted_states = states.repartition(F.col(self._event)).sortWithinPartitions(self._event)
        return sorted_states.mapInArrow(task, schema)

    def _joined(self, found: DataFrame, events: DataFrame) -> DataFrame:
        """What was found of each of the left events."""
        # Spark takes what Python yields to be as small as its input. The events' size is known.
        if self._spec.how == "inner":
            events = events.hint("broadcast")
        elif self.spec.row.holds_all_pairs:
            found = found.hint("merge")
        return events.join(found, [self._event], _JOINS[self._spec.how])

    def _named(self, rows: DataFrame) -> DataFrame:
        own = zip(self._own, self._columns, strict=True)
        if self._spec.one_row_per_event:
            return rows.select(*(F.col(name).alias(column.name) for name, column in own))
        names = [f"found{i}" for i in range(len(self._known))]
        names += [_RANK] if self._spec.k > 1 else []
        others = zip(names, self._others, strict=True)
        return rows.select(
            *(F.col(name).alias(column.name) for name, column in own),
            *(self._if_none(F.col(name), column).alias(column.name) for name, column in others),
        )

    def _if_none(self, found: Column, column: OutputColumn) -> Column:
        """The value for an event without a match, which tasks leave out."""
        if self._spec.how != "left":
            return found
        row = self._spec.row
        is_count = (column.name, "count") in {(e.name, e.function) for e in self._spec.aggregates}
        if not (row.totals or row.in_lists or is_count):
            return found
        nothing = F.array() if row.in_lists else F.lit(0)
        return F.coalesce(found, nothing.cast(column.wire_kind))


def added_up(
    spec: AnySpec, names: Sequence[str], others: Sequence[tuple[str, OutputColumn]]
) -> list[Column]:
    """The parts of one event as one."""
    if spec.row.totals:
        return [F.expr(f"sum({name}) AS {name}") for name in names]
    if spec.row.in_lists:
        return [F.expr(f"flatten(collect_list({name})) AS {name}") for name in names]
    probability, *order = names[-length_of_order(spec) - 1 :]
    preferred = [order.pop(0)] if _is_preferred(spec) else []
    second = [order.pop(0)] if spec.choice.then else []
    if "distance" in spec.measures:  # causes and effects have it in the output
        order.insert(1, next(name for name, column in others if column.name == "distance"))
    if preferred:
        preferred += second
    else:
        at = int(spec.prefers_by_gap)
        order[at:at] = second
    least = order_of_best(
        others, probability, *order, preferred=preferred, are_uniform=spec.are_uniform
    )
    told = dict.fromkeys([*(name for name, _ in others), probability])
    if spec.choice.may_be_many:
        all_ties = spec.choice.ties == "all"
        tie = ", ".join(preferred or _ties_of(spec, probability, order))
        text = (_WITH_TIES if all_ties else _BEST_OF_ALL).format(
            ", ".join(least), ", ".join(told), probability, spec.k, tie
        )
        return [F.expr(text)]
    return [F.expr(f"min_by(struct({', '.join(told)}), struct({', '.join(least)})) AS best")]


def kinds_of_order(spec: AnySpec) -> list[T.DataType]:
    """Types of what tasks tell of best matches next to the output columns."""
    probability = [] if "probability" in spec.measures else [T.DoubleType()]
    return [*probability, *([T.LongType()] * length_of_order(spec))]


def length_of_order(spec: AnySpec) -> int:
    """How many columns come after the probability that tell by what best matches were chosen."""
    return len(ORDER) + _is_preferred(spec) + (spec.choice.then is not None)


def exploded(found: DataFrame, kept: Sequence[str], spec: AnySpec) -> DataFrame:
    """One row for each of the best matches, `_RANK` last; of an event without matches one of nulls."""
    rank = "place + 1"
    if spec.choice.ties == "all":
        first = "array_position(transform(best, each -> each.tie), best[place].tie)"
        found = found.selectExpr(
            *kept, "transform(best, (each, place) -> struct(each.found AS found,"
            f" {first} AS first)) AS best",
        )  # fmt: skip
        rank = "best.first"
    rows = found.selectExpr(*kept, "posexplode_outer(best) AS (place, best)")
    return rows.selectExpr(*kept, "best.found.*", f"CAST({rank} AS BIGINT) AS {_RANK}")


def _ties_of(spec: AnySpec, probability: str, order: Sequence[str]) -> list[str]:
    """SQL of what matches are equal in that are ties: as `PairOrder.leading` has it."""
    merit = probability if spec.are_uniform else _MERIT.format(probability)
    return [merit, *order[: int(spec.prefers_by_gap) + (spec.choice.then is not None)]]


def _is_preferred(spec: AnySpec) -> bool:
    """Whether matches are ordered by something else before their probability."""
    return "preferred" in spec.but(merits=True).measures


def order_of_best(
    others: Sequence[tuple[str, OutputColumn]],
    probability: str,
    *order: str,
    preferred: Sequence[str] = (),
    are_uniform: bool = True,
) -> list[str]:
    """SQL of what the best match is least in: as `coincide` and `tie_ranks` have it."""
    merit = probability if are_uniform else _MERIT.format(probability)
    return [f"{probability} IS NULL", *preferred, f"-{merit}", *order, *ordered_terms(others)]


def ordered_terms(columns: Sequence[tuple[str, OutputColumn]]) -> list[str]:
    """SQL of what columns are ordered by, nulls last; columns that have no order give no SQL."""
    terms = []
    for name, column in columns:
        if can_be_ordered(column.wire_kind):
            terms += [f"{name} IS NULL", _comparable(name, column.wire_kind)]
    return terms


def _comparable(name: str, kind: T.DataType) -> str:
    """SQL of what a column is ordered by: texts by their bytes, whatever their collation."""
    is_collated = isinstance(kind, T.StringType) and kind != T.StringType()
    return f"CAST({name} AS BINARY)" if is_collated else name
