"""The columns of a result on Spark: their names, their types, and how they cross from the worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from spark_plugin import dataframes as frames
from spark_plugin.emission import JoinSpec

Named = Sequence[tuple[str, T.DataType]]


@dataclass(frozen=True)
class OutputColumn:
    """A column of the result: its name, its type, and whether in arrays."""

    name: str
    kind: T.DataType
    in_lists: bool = False

    @property
    def wire_kind(self) -> T.DataType:
        """Its type on the wire."""
        kind = frames.wire_type(self.kind)
        return T.ArrayType(kind) if self.in_lists else kind

    @property
    def crosses_as_is(self) -> bool:
        """Whether the two types are one."""
        return frames.wire_type(self.kind) == self.kind

    def decoded(self) -> str:
        """SQL that gives the column its own type."""
        name = frames.quoted(self.name)
        if self.crosses_as_is:
            return name
        if self.in_lists:
            return f"transform({name}, value -> {frames.decode('value', self.kind)}) AS {name}"
        return f"{frames.decode(name, self.kind)} AS {name}"


def output_columns(spec: JoinSpec, by: Named, left: Named, right: Named) -> list[OutputColumn]:
    """The columns of a result, as `spark_plugin.emission.output_schema` has them.

    Parameters
    ----------
    spec : JoinSpec
    by, left, right : sequences of (str, DataType)
        Key columns, and columns to hand out.
    """
    columns = [OutputColumn(name, kind) for name, kind in by]
    columns += [OutputColumn(f"left_{name}", kind) for name, kind in left]
    if spec.one_row_per_event:
        return columns
    if spec.emit == "counts":
        return [*columns, OutputColumn("matches", T.LongType())]
    in_lists = spec.emit == "lists"
    columns += [OutputColumn(f"right_{name}", kind, in_lists) for name, kind in right]
    if spec.probability:
        columns.append(OutputColumn("probability", T.DoubleType(), in_lists))
    return columns


def wire_schema(columns: Sequence[OutputColumn], metrics: str | None = None) -> T.StructType:
    """What the worker yields; `metrics` is the name of a column of counters to add.

    Raises
    ------
    SchemaError
        If Spark's Arrow cannot carry a type.
    """
    fields = [(column.name, column.wire_kind) for column in columns]
    if metrics is not None:
        fields.append((metrics, T.ArrayType(T.LongType())))
    return T.StructType([T.StructField(name, kind) for name, kind in fields])


def decoded(frame: DataFrame, columns: Sequence[OutputColumn]) -> DataFrame:
    """The worker's columns in their own types."""
    if all(column.crosses_as_is for column in columns):
        # Spared, since even a projection of nothing copies every row.
        return frame
    return frame.selectExpr(*(column.decoded() for column in columns))
