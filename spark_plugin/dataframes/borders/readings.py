"""Readings as Spark rows on the wire: each stream in one partition, in order of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.errors import SchemaError
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.arrow_types import arrow_type
from spark_plugin.dataframes.columns import NOT_FINITE, check_microseconds, literal, quoted
from spark_plugin.dataframes.examples import example
from spark_plugin.dataframes.float_ticks import with_ticks
from spark_plugin.dataframes.named_fields import field_of
from spark_plugin.dataframes.timestamps import in_range
from spark_plugin.worker.borders.arguments import READINGS, BorderArguments
from spark_plugin.worker.borders.emptiness import Seen
from spark_plugin.worker.borders.readings import REASONS, ReadingColumns
from spark_plugin.worker.borders.wire import (
    FIRST_CODE,
    STREAM,
    TIME,
    value_names,
)
from spark_plugin.worker.wire.faults import EXAMPLE, ROUNDED

_EXACT = literal(2**53)


@dataclass(frozen=True)
class ReadingFrame:
    """A DataFrame of readings; everything but its rows is known and checked.

    Parameters
    ----------
    source : DataFrame
    columns : ReadingColumns
        As of a table with the same columns.
    stream_kind : DataType
        Of the stream; bigint where there is one.
    """

    source: DataFrame
    columns: ReadingColumns
    stream_kind: T.DataType

    @classmethod
    def of(cls, source: DataFrame, arguments: BorderArguments) -> ReadingFrame:
        """The columns that arguments name.

        Raises
        ------
        SchemaError
            If a column is missing or of a type that cannot serve.
        ConditionError
            If times and units do not go together.
        """
        fields = [field_of(source, READINGS, name) for name in arguments.columns]
        *streams, time = fields[: -arguments.dimensions]
        values = fields[-arguments.dimensions :]
        for stream in streams:
            frames.check_key(READINGS, stream)
        frames.spark_time_column(READINGS, time)
        for field in values:
            _check_number(field)
        schema = pa.schema([(f.name, arrow_type(f.dataType)) for f in fields])
        columns = ReadingColumns.of(schema, arguments)
        check_microseconds(columns.scale)
        return cls(source, columns, streams[0].dataType if streams else T.LongType())

    @property
    def time_kind(self) -> T.DataType:
        """The type of the times of readings."""
        return field_of(self.source, READINGS, self.columns.arguments.time).dataType

    def wire_rows(self) -> DataFrame:
        """Readings on the wire, exchanged by stream.

        Those that are to be refused have no stream, so that they meet in one partition and come first.
        """
        rows = self.source.selectExpr(*self._given)
        rows = with_ticks(rows, {TIME: self.columns.scale.of("given_time")})
        rows = rows.selectExpr("*", f"{self._code} AS code")
        rows = rows.selectExpr(*self._wire)
        values = value_names(len(self._values))
        return rows.repartition(STREAM).sortWithinPartitions(STREAM, TIME, *values)

    def seen(self) -> Seen:
        """What all valid readings tell, by a job."""
        values, names = self._values, value_names(len(self._values))
        rows = self.source.selectExpr(*self._given, f"{frames.ticks(self.columns.scale)} AS {TIME}")
        rows = rows.selectExpr("*", f"{self._code} AS code").where("code IS NULL")
        floats = [f"CAST({v} AS DOUBLE) AS {n}" for v, n in zip(values, names, strict=True)]
        rows = rows.selectExpr("given_stream", *floats)
        rows = rows.where(" AND ".join(f"{n} IS NOT NULL AND NOT isnan({n})" for n in names))
        ends = [f"{end}({n}) AS {end}_{n}" for end in ("min", "max") for n in names]
        of_each = rows.groupBy("given_stream").agg(F.expr("count(1) AS n"), *map(F.expr, ends))
        sums = ["sum(n)", "count(1)", "sum(int(n = 1))"]
        wanted = [*sums, *(f"{end}({end}_{n})" for end in ("min", "max") for n in names)]
        with spark_errors_as_ours():
            readings, streams, single, *found = of_each.agg(*map(F.expr, wanted)).collect()[0]
        low, high = np.split(np.array(found, np.float64), 2)
        return Seen(readings or 0, streams, single or 0, low, high)

    @property
    def _given(self) -> list[str]:
        """The source's columns under names that cannot be those of others."""
        arguments, scale = self.columns.arguments, self.columns.scale
        rounded = [f"{frames.rounding(scale)} AS change"] if self._has_floats else []
        given = dict(zip(self._aliases, arguments.columns, strict=True))
        one = [] if arguments.streams else ["0L AS given_stream"]
        return [*(f"{quoted(name)} AS {alias}" for alias, name in given.items()), *one, *rounded]

    @property
    def _aliases(self) -> list[str]:
        streams = ["given_stream" for _ in self.columns.arguments.streams]
        return [*streams, "given_time", *self._values]

    @property
    def _values(self) -> list[str]:
        return [f"given{k}" for k in range(self.columns.arguments.dimensions)]

    @property
    def _has_floats(self) -> bool:
        return self.columns.scale.column.family == "float"

    def _kinds(self) -> list[T.DataType]:
        names = self.columns.arguments.values
        return [field_of(self.source, READINGS, name).dataType for name in names]

    @property
    def _far(self) -> dict[int, str]:
        """Codes and tests of integers that are none of float64."""
        return {
            len(REASONS) + k: f"NOT ({given} BETWEEN -{_EXACT} AND {_EXACT})"
            for k, (given, kind) in enumerate(zip(self._values, self._kinds(), strict=True))
            if isinstance(kind, T.LongType)
        }

    @property
    def _code(self) -> str:
        """Why a row is no reading; null if it is one."""
        infinite = [
            f"abs({given}) = double('Infinity')"
            for given, kind in zip(self._values, self._kinds(), strict=True)
            if isinstance(kind, (T.FloatType, T.DoubleType))
        ]
        codes = {reason: code for code, reason in enumerate(REASONS)}
        tests = {
            **self._far,
            codes["null"]: f"given_stream IS NULL OR {TIME} IS NULL",
            codes["not_finite"]: f"{TIME} = {literal(NOT_FINITE)}" if self._has_floats else "false",
            codes["range"]: f"NOT ({in_range(TIME)})",
            codes["infinite"]: " OR ".join(infinite) or "false",
        }
        cases = " ".join(f"WHEN {test} THEN {literal(code)}" for code, test in tests.items())
        return f"CASE {cases} END"

    @property
    def _wire(self) -> list[str]:
        arguments = self.columns.arguments
        refuses_all = arguments.options.invalid == "raise"
        refused = "code IS NOT NULL" if refuses_all else f"code >= {literal(len(REASONS))}"
        stream = frames.encode("given_stream", self.stream_kind)
        values = [
            f"coalesce(CAST({given} AS DOUBLE), double('NaN')) AS {name}"
            for given, name in zip(self._values, value_names(len(self._values)), strict=True)
        ]
        may_refuse = refuses_all or self._far
        fields = [field_of(self.source, READINGS, name) for name in arguments.columns]
        words = example(list(zip(self._aliases, fields, strict=True)))
        return [
            f"CASE WHEN {refused} THEN NULL ELSE {stream} END AS {STREAM}",
            f"coalesce({literal(FIRST_CODE)} + code, {TIME}) AS {TIME}",
            *values,
            *([f"change AS {ROUNDED}"] if self._has_floats else []),
            *([f"CASE WHEN {refused} THEN {words} END AS {EXAMPLE}"] if may_refuse else []),
        ]


def _check_number(field: T.StructField) -> None:
    kinds = (T.IntegralType, T.FloatType, T.DoubleType, T.NullType)
    if not isinstance(field.dataType, kinds):
        raise SchemaError(
            f"{READINGS}.{field.name} is {field.dataType.simpleString()}; it must be an integer or a float."
            " Cast it to double"
        )
