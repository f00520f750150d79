"""The columns of a result on Spark: their names, their types, and how they cross from the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.engine.events.sides import like_width
from coincide.engine.join.aggregate_types import aggregate_fields, check_aggregates
from coincide.engine.join.spec import (
    AnySpec,
    check_output_names,
    swapped_sides,
    unmatched_right,
)
from coincide.model.aggregates import Aggregate
from coincide.model.errors import ConditionError
from coincide.model.sides import LEFT, RIGHT, SIDES
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import MidnightType
from spark_plugin.frames.events import EventFrame
from spark_plugin.tasks.wire import METRICS, WireLayout, wire_layout

Named = Sequence[tuple[str, T.DataType]]


@dataclass(frozen=True)
class OutputColumn:
    """A column of the result: its name and type, whether in arrays, and the words of numbers."""

    name: str
    kind: T.DataType
    in_lists: bool = False
    words: Sequence[str] = ()

    @property
    def wire_kind(self) -> T.DataType:
        """Its type on the wire."""
        kind = frames.wire_type(self.kind)
        return T.ArrayType(kind) if self.in_lists else kind

    @property
    def crosses_as_is(self) -> bool:
        """Whether the values are the same."""
        return not self.words and frames.wire_type(self.kind) == self.kind

    def decoded(self) -> str:
        """SQL that gives the column its own type."""
        name = frames.quoted(self.name)
        if self.crosses_as_is:
            return name
        if self.words:
            numbered = enumerate(map(frames.text, self.words))
            cases = " ".join(f"WHEN {frames.literal(i)} THEN {word}" for i, word in numbered)
            return f"CASE {name} {cases} END AS {name}"
        if self.in_lists:
            return f"transform({name}, value -> {frames.decode('value', self.kind)}) AS {name}"
        return f"{frames.decode(name, self.kind)} AS {name}"


def output_columns(spec: AnySpec, by: Named, left: Named, right: Named) -> list[OutputColumn]:
    """The columns of a result, as `output_schema` has them."""
    columns = [OutputColumn(name, kind) for name, kind in by]
    columns += [OutputColumn(f"{spec.prefixes[0]}_{name}", kind) for name, kind in left]
    if spec.one_row_per_event:
        return columns
    columns += [OutputColumn(name, T.LongType()) for name in spec.row.totals]
    if spec.row.is_aggregated:
        columns += _aggregated(spec.aggregates, dict(right))
    if not spec.outputs_matches:
        return columns
    in_lists = spec.row.in_lists
    columns += [OutputColumn(f"{spec.prefixes[1]}_{name}", kind, in_lists) for name, kind in right]
    columns += [
        OutputColumn(name, frames.spark_type(name, kind), in_lists)
        for name, kind in spec.measures.items()
    ]
    return columns


def _aggregated(
    aggregates: Sequence[Aggregate], kinds: Mapping[str, T.DataType]
) -> list[OutputColumn]:
    """The columns of aggregates of columns of these types."""
    arrow = {name: frames.arrow_or_null(kind) for name, kind in kinds.items()}
    found = []
    for each, field in zip(aggregates, aggregate_fields(aggregates, arrow), strict=True):
        given = kinds.get(each.column or "")
        if given is None or not each.gives_values:
            given = frames.spark_type(each.name, field.type)
        found.append(OutputColumn(each.name, given))
    return found


def wire_schema(columns: Sequence[OutputColumn]) -> T.StructType:
    """What the worker yields."""
    return T.StructType([T.StructField(column.name, column.wire_kind) for column in columns])


def metrics_name(names: Sequence[str]) -> str:
    """A name for a column of counters that no output column has."""
    name = METRICS
    while name in (other.lower() for other in names):
        name += "_"
    return name


def check_distinct_names(names: Sequence[str]) -> None:
    """Refuse output columns whose names Spark may not tell apart, as they differ in case alone."""
    lowered = [name.lower() for name in names]
    alike = [name for name in names if lowered.count(name.lower()) > 1]
    if alike:
        raise ConditionError(
            f"the output columns {' and '.join(alike)} differ only in case, and Spark cannot tell"
            " them apart. Rename the columns that they come from."
        )


def decoded(frame: DataFrame, columns: Sequence[OutputColumn]) -> DataFrame:
    """The worker's columns in their own types."""
    if all(column.crosses_as_is for column in columns):
        # Spared, since even a projection of nothing copies every row.
        return frame
    return frame.selectExpr(*(column.decoded() for column in columns))


def with_rights(pairs: DataFrame, rights: DataFrame, keys: int, measures: int) -> DataFrame:
    """Pairs, and right events without a match, which have nulls in all other columns."""
    own = [frames.quoted(name) for name in rights.columns]
    placed = unmatched_right(own, ["NULL"] * len(pairs.columns), keys, measures)
    # By place: of whole numbers Spark takes the wider type, which a null has not.
    named = zip(placed, pairs.columns, strict=True)
    return pairs.unionAll(
        rights.selectExpr(*(f"{value} AS {frames.quoted(n)}" for value, n in named))
    )


def put_back(
    found: DataFrame, keys: Named, left: Sequence[str], right: Sequence[str], spec: AnySpec
) -> DataFrame:
    """Rows of a join with its sides swapped, under the names and in the places that were asked for."""
    values, names = found.columns, [name for name, _ in keys]
    of_right = [f"{SIDES[RIGHT]}_{name}" for name in right]
    if spec.outputs_matches:
        values = swapped_sides(values, len(keys), len(right), len(left))
        names += [*(f"{SIDES[LEFT]}_{name}" for name in left), *of_right, *spec.measures]
    else:
        names += [*of_right, *values[len(keys) + len(right) :]]
    check_output_names(names)
    given = dict(zip(names, map(frames.quoted, values), strict=True))
    for (name, kind), field in zip(keys, found.schema.fields, strict=False):
        if field.dataType != kind:
            given[name] = f"CAST({given[name]} AS {kind.simpleString()})"
    return found.selectExpr(*(f"{value} AS {frames.quoted(n)}" for n, value in given.items()))


def like_key(left: T.DataType, right: T.DataType) -> T.DataType:
    """The type of a column that has keys of right events: that of both, of integers the wider one."""
    of_both = like_width(frames.arrow_type(left), frames.arrow_type(right))
    return right if left == right else frames.spark_type("by", of_both)


def layout_of(sides: tuple[EventFrame, EventFrame], spec: AnySpec) -> WireLayout:
    """How rows of two sides cross to the workers of their join."""
    left, right = sides
    own, others, tested, tested_too = (
        [frames.crosses_as_int64(side.kind_of(name)) for name in names]
        for side, names in (
            (left, left.payload), (right, right.payload),
            (left, left.tested), (right, right.tested),
        )
    )  # fmt: skip
    return wire_layout(
        len(left.by), own, others, coordinates=spec.coordinates, identity=spec.is_one_stream,
        tested=(tested, tested_too),
    )  # fmt: skip


class ResultColumns:
    """The output columns of a join of DataFrames: their names, types, and how they cross the wire."""

    def __init__(
        self, sides: tuple[EventFrame, EventFrame], spec: AnySpec, key_names: Sequence[str] = ()
    ) -> None:
        left, right = sides
        if spec.overlap_ends:
            frames.check_microseconds(left.times.scales[0])
        if spec.aggregates:
            fields = right.plain.schema.fields
            kinds = {each.name: frames.arrow_or_null(each.dataType) for each in fields}
            check_aggregates(spec.aggregates, right.called, kinds)
        keys, mine, theirs = (
            [(name, side.kind_of(name)) for name in names]
            for side, names in ((left, left.by), (left, left.payload), (right, right.payload))
        )
        keys = [(name, kind) for name, (_, kind) in zip(key_names or left.by, keys, strict=True)]
        self.layout = layout_of(sides, spec)
        self.right_kinds = [kind for _, kind in theirs]
        self.columns = output_columns(spec, keys, mine, theirs)
        self.names = tuple(column.name for column in self.columns)
        check_output_names(list(self.names))
        self.wire_schema = wire_schema(self.columns)


def result_time(given: T.DataType) -> T.DataType:
    """The type of a time in the output: as it came, but for numbers, which are ticks."""
    if isinstance(given, T.DateType):
        return MidnightType()
    own = (T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType)
    return given if isinstance(given, own) else T.LongType()


def computed_time(given: T.DataType) -> T.DataType:
    """As `result_time`, of times that no row has: timestamps for dates, as they are no midnights."""
    return T.TimestampNTZType() if isinstance(given, T.DateType) else result_time(given)
