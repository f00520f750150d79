"""Border crossings of DataFrames: queries collected, readings on the wire, and the plan."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.borders.arguments import QUERIES, READINGS, BorderArguments
from coincide.engine.borders.readings import (
    REASONS,
    Queries,
    ReadingColumns,
    query_columns,
    query_table,
    read_queries,
)
from coincide.engine.borders.reports import BorderSummary, Seen, why_none
from coincide.engine.reports.metrics import with_numbers
from coincide.model.borders.crossings import EVENTS
from coincide.model.errors import SchemaError
from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import (
    NOT_FINITE,
    arrow_schema,
    check_microseconds,
    field_of,
    literal,
    quoted,
    spark_type,
)
from spark_plugin.frames.events import latest_time
from spark_plugin.frames.keyed_rows import KeyedRows, OperatorPlan, exchanged
from spark_plugin.frames.output_columns import computed_time, result_time
from spark_plugin.frames.queries import LateBroadcast, ship
from spark_plugin.frames.timestamps import in_range
from spark_plugin.tasks.borders import (
    FIRST_CODE,
    STREAM,
    TIME,
    ShippedQueries,
    as_table,
    value_names,
)
from spark_plugin.tasks.counting import CountingTask
from spark_plugin.tasks.wire import KEY_HASH, Shipment, carried_type, on_the_wire

_BATCH_EVENTS = 1 << 16
"""Crossings of an output batch: small ones let the JVM read one while the worker fills the next."""
BorderPlan = OperatorPlan[BorderSummary]
NewTask = Callable[[ReadingColumns, ShippedQueries], CountingTask]
"""Makes the task of a stage: `CrossingTask`, or its like of other rows."""


def plan_of_crossings(
    rows: DataFrame,
    given: Any,
    columns: ReadingColumns,
    new_task: NewTask,
    kinds: tuple[T.DataType, T.DataType],
    seen: Callable[[], Seen] | None,
    *,
    observe: bool,
    way: str,
    why: str,
) -> BorderPlan:
    """The crossings that a task finds, whatever brings it its readings: of streams and times of types."""
    arguments = columns.arguments
    queries, ids, kind = collected_queries(given, arguments)
    columns = with_small_batches(columns)
    task = new_task(columns, shipped_queries(as_table(queries, ids), rows.sparkSession))
    made = list(zip(arguments.made, result_kinds(arguments, kind, *kinds), strict=True))
    told = partial(_summary, columns, queries, seen, (way, why))
    return OperatorPlan.of(
        rows, task, made, RESULT_WORDS, told,
        observe=observe, backend=arguments.options.backend, why=why,
    )  # fmt: skip


RESULT_WORDS = {"event": EVENTS}
"""Columns of the result that cross as numbers, and the words of these."""


def with_small_batches(columns: ReadingColumns) -> ReadingColumns:
    """The same with output batches that suit Spark."""
    arguments = columns.arguments
    most = min(arguments.options.batch_events, _BATCH_EVENTS)
    options = replace(arguments.options, batch_events=most)
    return replace(columns, arguments=replace(arguments, options=options))


def shipped_queries(table: pa.Table, spark: SparkSession) -> ShippedQueries:
    """A table of queries, sent to the workers."""
    return ShippedQueries(uuid.uuid4().hex, ship(table, spark, *_TOO_LARGE))


def queries_of_stream(table: pa.Table, spark: SparkSession) -> ShippedQueries:
    """The same for the processors of a stream."""
    sent = shipped_queries(table, spark)
    if context_of(spark) is None:  # it travels with the plan
        return sent
    return replace(sent, shipment=Shipment(LateBroadcast(lambda: sent.shipment.content)))


def result_kinds(
    arguments: BorderArguments, query: T.DataType, stream: T.DataType, time: T.DataType
) -> list[T.DataType]:
    """Types of the result's columns, an event as it crosses, for those of ids and of time."""
    own = result_time(time)
    times = [own, own, computed_time(time)][: arguments.made_times]
    return [query, *(stream for _ in arguments.streams), T.LongType(), *times]


def _summary(
    columns: ReadingColumns,
    queries: Queries,
    seen: Callable[[], Seen] | None,
    way: tuple[str, str],
    numbers: Mapping[str, int],
) -> BorderSummary:
    """What tasks have counted, and why there is no crossing: `seen` looks at all readings once more."""
    none = BorderSummary(tick=columns.tick, time_kind=columns.time_kinds[0], way=way[0], why=way[1])
    found = with_numbers(none, numbers)
    found = replace(found, queries=len(queries.ids), empty=queries.empty)
    if found.events or not found.readings or seen is None:
        return found
    return replace(found, why_none=why_none(seen(), queries, columns.arguments))


_TOO_LARGE = "the table of queries", "ask fewer queries at once, each time for all readings"


def collected_queries(
    given: Any, arguments: BorderArguments
) -> tuple[Queries, pa.Array, T.DataType]:
    """Queries, of a DataFrame by a job; their ids as they cross, and the type of these."""
    name = arguments.query
    if isinstance(given, DataFrame):
        table, kind = _collected(given, arguments), field_of(given, QUERIES, name).dataType
    else:
        table = query_table(given, arguments)
        kind = spark_type(name, carried_type(table.schema.field(name).type))
    queries = read_queries(table, arguments)
    return queries, _on_the_wire(name, queries.ids, kind), kind


def _collected(frame: DataFrame, arguments: BorderArguments) -> pa.Table:
    names = arguments.query_columns(frame.columns)
    fields = [field_of(frame, QUERIES, name) for name in names]
    frames.check_key(QUERIES, fields[0])
    # Before a job runs for them.
    query_columns(arrow_schema(T.StructType(fields)), arguments)
    with spark_errors_as_ours():
        return frame.selectExpr(*(quoted(field.name) for field in fields)).toArrow()


def _on_the_wire(name: str, ids: pa.Array, kind: T.DataType) -> pa.Array:
    """Ids as `columns.encode` has them."""
    try:
        return on_the_wire(name, ids.cast(carried_type(ids.type)), frames.wire_kind(kind))
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"{QUERIES}.{name} has values that Spark's types cannot hold (found {ids.type}:"
            f" {error}). Cast it to a string."
        ) from None


_EXACT = literal(2**53)


@dataclass(frozen=True)
class ReadingFrame:
    """A DataFrame of readings; everything but its rows is known and checked."""

    rows: KeyedRows
    columns: ReadingColumns

    @classmethod
    def of(cls, source: DataFrame, arguments: BorderArguments) -> ReadingFrame:
        """The columns that arguments name."""
        names, streams = arguments.columns, arguments.streams
        rows = KeyedRows.of(source, READINGS, names, streams, [arguments.time])
        for name in arguments.values:
            _check_number(rows.fields[name])
        columns = ReadingColumns.of(rows.schema, arguments)
        check_microseconds(columns.scale)
        return cls(rows, columns)

    @property
    def stream_kind(self) -> T.DataType:
        """The type of streams; of a single one that of its number."""
        streams = self.rows.keys
        return self.rows.kind(streams[0]) if streams else T.LongType()

    def wire_rows(self) -> DataFrame:
        """Readings on the wire, exchanged by stream."""
        return exchanged(self._on_the_wire(self._rows()), [STREAM], [TIME, *self._values])

    def stream_rows(self, observation: str) -> DataFrame:
        """Readings of a stream on the wire, with hashes of their streams, counted under a name."""
        rows = self._rows()
        latest = latest_time(f"CASE WHEN code IS NULL THEN {TIME} END", self.columns.tick)
        totals = {"rows": "count(1)", "invalid": "count(code)", "latest": latest}
        rows = rows.observe(observation, *(F.expr(t).alias(name) for name, t in totals.items()))
        given = [self.rows.given(name) for name in self.rows.keys]
        of_key = f"xxhash64({', '.join(given)})" if given else "0L"
        return self._on_the_wire(rows, f"{of_key} AS {KEY_HASH}")

    def _on_the_wire(self, rows: DataFrame, *more: str) -> DataFrame:
        """Rows of `_rows` on the wire."""
        refused = None
        if self.columns.arguments.options.invalid == "raise":
            refused = "code IS NOT NULL"
        elif self._far:
            refused = f"code >= {literal(len(REASONS))}"
        values = [
            f"coalesce(CAST({given} AS DOUBLE), double('NaN')) AS {name}"
            for name, given in self._values.items()
        ]
        time = f"coalesce({literal(FIRST_CODE)} + code, {TIME}) AS {TIME}"
        return self.rows.on_the_wire(
            rows, [STREAM], [time, *values, *more], refused=refused, rounds=self._has_floats
        )

    def seen(self) -> Seen:
        """What all valid readings tell, by a job."""
        streams = self.rows.keys
        stream = self.rows.given(streams[0]) if streams else "0L"
        names = list(self._values)
        floats = [f"CAST({given} AS DOUBLE) AS {name}" for name, given in self._values.items()]
        rows = self._rows().where("code IS NULL").selectExpr(f"{stream} AS {STREAM}", *floats)
        rows = rows.where(" AND ".join(f"{n} IS NOT NULL AND NOT isnan({n})" for n in names))
        ends = [f"{end}({n}) AS {end}_{n}" for end in ("min", "max") for n in names]
        of_each = rows.groupBy(STREAM).agg(F.expr("count(1) AS n"), *map(F.expr, ends))
        sums = ["sum(n)", "count(1)", "sum(int(n = 1))"]
        wanted = [*sums, *(f"{end}({end}_{n})" for end in ("min", "max") for n in names)]
        with spark_errors_as_ours():
            readings, streams, single, *found = of_each.agg(*map(F.expr, wanted)).collect()[0]
        low, high = np.split(np.array(found, np.float64), 2)
        return Seen(readings or 0, streams, single or 0, low, high)

    def _rows(self) -> DataFrame:
        """The needed columns, times in ticks, and a code of what is wrong with a reading."""
        return self.rows.ticks({TIME: self.columns.scale}).selectExpr("*", f"{self._code} AS code")

    @property
    def _values(self) -> dict[str, str]:
        """Columns of values by their names on the wire."""
        arguments = self.columns.arguments
        given = map(self.rows.given, arguments.values)
        return dict(zip(value_names(arguments.dimensions), given, strict=True))

    @property
    def _has_floats(self) -> bool:
        return self.columns.scale.column.family == "float"

    def _of_kinds(self, *kinds: type[T.DataType]) -> list[tuple[int, str]]:
        """Places and columns of values of some types."""
        names = enumerate(self.columns.arguments.values)
        own = self.rows
        return [(k, own.given(n)) for k, n in names if isinstance(own.kind(n), kinds)]

    @property
    def _far(self) -> dict[int, str]:
        """Codes and tests of integers that float64 has not."""
        return {
            len(REASONS) + k: f"NOT ({given} BETWEEN -{_EXACT} AND {_EXACT})"
            for k, given in self._of_kinds(T.LongType)
        }

    @property
    def _code(self) -> str:
        """Why a row is no reading; null if it is one."""
        floats = self._of_kinds(T.FloatType, T.DoubleType)
        infinite = [f"abs({given}) = double('Infinity')" for _, given in floats]
        needed = [*map(self.rows.given, self.rows.keys), TIME]
        tests = {
            "null": " OR ".join(f"{name} IS NULL" for name in needed),
            "not_finite": f"{TIME} = {literal(NOT_FINITE)}" if self._has_floats else "false",
            "range": f"NOT ({in_range(TIME)})",
            "infinite": " OR ".join(infinite) or "false",
        }
        codes = {**self._far, **{code: tests[reason] for code, reason in enumerate(REASONS)}}
        cases = " ".join(f"WHEN {test} THEN {literal(code)}" for code, test in codes.items())
        return f"CASE {cases} END"


def _check_number(field: T.StructField) -> None:
    kinds = (T.IntegralType, T.FloatType, T.DoubleType, T.NullType)
    if not isinstance(field.dataType, kinds):
        raise SchemaError(
            f"{READINGS}.{field.name} must be an integer or a float (found"
            f" {field.dataType.simpleString()}). Cast it to double."
        )
