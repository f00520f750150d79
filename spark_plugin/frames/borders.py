"""Border crossings of DataFrames: queries collected, readings on the wire, and the plan."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.borders.arguments import QUERIES, READINGS, BorderArguments
from coincide.engine.borders.queries import Queries, query_columns, query_table, read_queries
from coincide.engine.borders.readings import REASONS, ReadingColumns
from coincide.engine.borders.reports import BorderSummary, Seen, why_none
from coincide.model.borders.crossings import EVENTS
from coincide.model.errors import ConditionError, SchemaError
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import (
    NOT_FINITE,
    arrow_schema,
    arrow_type,
    carried_type,
    check_microseconds,
    field_of,
    literal,
    quoted,
    spark_type,
)
from spark_plugin.frames.float_ticks import with_ticks
from spark_plugin.frames.output_columns import (
    check_told_apart,
    computed_time,
    handed_out,
    result_time,
)
from spark_plugin.frames.output_columns import result_wire_schema as wire_schema
from spark_plugin.frames.queries import ship
from spark_plugin.frames.stage import CountedStage
from spark_plugin.frames.statistics import example
from spark_plugin.frames.timestamps import in_range
from spark_plugin.tasks.borders import (
    FIRST_CODE,
    STREAM,
    TIME,
    CrossingTask,
    ShippedQueries,
    as_table,
    value_names,
)
from spark_plugin.tasks.counting import EXAMPLE, ROUNDED, CountingTask

_BATCH_EVENTS = 1 << 16
"""Crossings of an output batch: small ones let the JVM read one while the worker fills the next."""


@dataclass(frozen=True)
class BorderPlan:
    """A planned search."""

    dataframe: DataFrame
    stage: CountedStage
    known: BorderSummary
    queries: Queries
    readings: ReadingFrame | None = None
    why: str = ""

    def summary(self) -> BorderSummary:
        """What was found; waits for an action."""
        found = self.known.with_counts(self.stage.counts())
        if found.events or not found.readings or self.readings is None:
            return found
        arguments = self.readings.columns.arguments
        return replace(found, why_none=why_none(self.readings.seen(), self.queries, arguments))


def plan_crossings(
    readings: DataFrame, queries: Any, arguments: BorderArguments, *, observe: bool = False
) -> BorderPlan:
    """Plan a search for border crossings. The queries are collected at once."""
    if readings.isStreaming:
        raise ConditionError(
            f"{READINGS} is a streaming DataFrame, and a stream's crossings lie across micro-batches: give"
            " these to the push of one coincide.BorderMonitor, as by foreachBatch"
        )
    given = ReadingFrame.of(readings, arguments)
    check_told_apart(arguments.made)
    check_workers(readings.sparkSession)
    stage = CrossingStage.of(readings.sparkSession, queries, given.columns, observe)
    kinds = given.stream_kind, given.time_kind
    return replace(stage.plan(given.wire_rows(), CrossingTask, kinds), readings=given)


class NewTask(Protocol):
    """Makes the task of a stage: `CrossingTask`, or its like of other rows."""

    def __call__(
        self,
        columns: ReadingColumns,
        queries: ShippedQueries,
        names: tuple[str, ...],
        metrics: str | None,
        /,
    ) -> CountingTask:
        """A task, of the columns of readings, and as its parameters are called."""


@dataclass(frozen=True)
class CrossingStage:
    """The stage that finds crossings, whatever brings it its readings."""

    spark: SparkSession
    queries: CollectedQueries
    columns: ReadingColumns
    stage: CountedStage

    @classmethod
    def of(
        cls, spark: SparkSession, queries: Any, columns: ReadingColumns, observe: bool
    ) -> CrossingStage:
        """Collect the queries. Arguments as of `plan_crossings`."""
        arguments = columns.arguments
        options = arguments.options
        asked = CollectedQueries.of(queries, arguments)
        options = replace(options, batch_events=min(options.batch_events, _BATCH_EVENTS))
        columns = replace(columns, arguments=replace(arguments, options=options))
        return cls(spark, asked, columns, CountedStage.of(spark, options.backend, observe))

    def plan(
        self,
        rows: DataFrame,
        new_task: NewTask,
        kinds: tuple[T.DataType, T.DataType],
        why: str = "",
    ) -> BorderPlan:
        """The crossings that a task finds."""
        made = self.columns.arguments.made
        stream, time = kinds
        streams = [stream for _ in self.columns.arguments.streams]
        own = result_time(time)
        times = [own, own, computed_time(time)][: self.columns.arguments.made_times]
        types = [self.queries.kind, *streams, T.LongType(), *times]
        schema = wire_schema(types)
        shipped = self.queries.shipped(self.spark)
        task = new_task(self.columns, shipped, tuple(schema.names), self.stage.metrics)
        found = self.stage.run(rows, task, schema)
        queries = self.queries.queries
        known = BorderSummary(queries=len(queries.ids), empty=queries.empty, tick=self.columns.tick)
        result = handed_out(found, made, types, {"event": EVENTS})
        return BorderPlan(result, self.stage, known, queries, why=why)


_TOO_LARGE = "the table of queries", "ask fewer queries at once, each time of all readings"


@dataclass(frozen=True, eq=False)
class CollectedQueries:
    """Queries in this process."""

    queries: Queries
    ids: pa.Array
    kind: T.DataType

    @classmethod
    def of(cls, given: Any, arguments: BorderArguments) -> CollectedQueries:
        """Collect queries, of a DataFrame by a job."""
        if isinstance(given, DataFrame):
            table = _collected(given, arguments)
            kind = field_of(given, QUERIES, arguments.query).dataType
        else:
            table = query_table(given, arguments)
            kind = _spark_kind(table.schema.field(arguments.query))
        queries = read_queries(table, arguments)
        return cls(queries, _on_the_wire(arguments.query, queries.ids, kind), kind)

    def shipped(self, spark: SparkSession) -> ShippedQueries:
        """Send them to every worker."""
        table = as_table(self.queries, self.ids)
        return ShippedQueries(uuid.uuid4().hex, ship(table, spark, *_TOO_LARGE))


def _collected(frame: DataFrame, arguments: BorderArguments) -> pa.Table:
    names = arguments.query_columns(frame.columns)
    fields = [field_of(frame, QUERIES, name) for name in names]
    frames.check_key(QUERIES, fields[0])
    # Before a job runs for them.
    query_columns(arrow_schema(T.StructType(fields)), arguments)
    with spark_errors_as_ours():
        return frame.selectExpr(*(quoted(field.name) for field in fields)).toArrow()


def _spark_kind(field: pa.Field) -> T.DataType:
    kind = spark_type(carried_type(field.type))
    if kind is None:
        raise SchemaError(
            f"{QUERIES}.{field.name} is {field.type}, which Spark cannot take over; cast it to a string or"
            " an integer"
        )
    return kind


def _on_the_wire(name: str, ids: pa.Array, kind: T.DataType) -> pa.Array:
    """Ids as `columns.encode` has them."""
    try:
        carried = ids.cast(carried_type(ids.type))
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"{QUERIES}.{name} is {ids.type}, and Spark cannot take all of it over ({error}); cast it to a"
            " string"
        ) from None
    if not frames.crosses_as_int64(kind):
        return carried
    return (carried.cast(pa.int32()) if pa.types.is_date32(carried.type) else carried).cast(
        pa.int64()
    )


_EXACT = literal(2**53)


@dataclass(frozen=True)
class ReadingFrame:
    """A DataFrame of readings; everything but its rows is known and checked."""

    source: DataFrame
    columns: ReadingColumns
    stream_kind: T.DataType

    @classmethod
    def of(cls, source: DataFrame, arguments: BorderArguments) -> ReadingFrame:
        """The columns that arguments name."""
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
