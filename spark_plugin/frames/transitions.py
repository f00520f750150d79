"""Region transitions of DataFrames: crossings on the wire, and the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.transitions.arguments import SIDE, EventColumns, TransitionArguments
from coincide.engine.transitions.reports import TransitionSummary
from coincide.model.borders.crossings import EVENTS
from coincide.model.errors import ConditionError
from coincide.model.transitions import TRANSITIONS
from coincide.model.units import Tick
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import (
    NOT_FINITE,
    arrow_type,
    check_microseconds,
    field_of,
    literal,
    quoted,
    text,
)
from spark_plugin.frames.float_ticks import with_ticks
from spark_plugin.frames.output_columns import (
    check_told_apart,
    computed_time,
    handed_out,
    result_time,
)
from spark_plugin.frames.output_columns import result_wire_schema as wire_schema
from spark_plugin.frames.stage import CountedStage
from spark_plugin.frames.statistics import example
from spark_plugin.frames.timestamps import in_range
from spark_plugin.tasks.counting import EXAMPLE, ROUNDED
from spark_plugin.tasks.transitions import (
    FAULTS,
    FIRST_FAULT,
    FIRST_NULL,
    HIGH,
    KIND,
    LOW,
    QUERY,
    STREAM,
    TransitionTask,
)


@dataclass(frozen=True)
class TransitionPlan:
    """A planned search."""

    dataframe: DataFrame
    stage: CountedStage
    tick: Tick

    def summary(self) -> TransitionSummary:
        """What was found; waits for an action."""
        return TransitionSummary.of_counts(self.stage.counts(), self.tick)


def plan_transitions(
    events: DataFrame, until: Any, arguments: TransitionArguments, *, observe: bool = False
) -> TransitionPlan:
    """Plan a search for region transitions. Without `until`, one aggregate runs at once."""
    if events.isStreaming:
        raise ConditionError(
            f"{SIDE} is a streaming DataFrame, and dwell times lie across micro-batches: give these to the"
            " push of one coincide.TransitionMonitor, as by foreachBatch"
        )
    given = CrossingFrame.of(events, arguments)
    names = arguments.result_columns
    check_told_apart(names)
    check_workers(events.sparkSession)
    stage = CountedStage.of(events.sparkSession, "cpu", observe)
    kinds = given.result_kinds
    schema = wire_schema(kinds)
    end, is_measured = given.end(until), until is None
    task = TransitionTask(given.columns, end, tuple(schema.names), stage.metrics, is_measured)
    found = stage.run(given.wire_rows(), task, schema)
    result = handed_out(found, names, kinds, {"transition": TRANSITIONS})
    return TransitionPlan(result, stage, given.columns.tick)


@dataclass(frozen=True)
class CrossingFrame:
    """A DataFrame of events; everything but its rows is known and checked."""

    source: DataFrame
    columns: EventColumns
    fields: dict[str, T.StructField]

    @classmethod
    def of(cls, source: DataFrame, arguments: TransitionArguments) -> CrossingFrame:
        """The columns that arguments name."""
        fields = {name: field_of(source, SIDE, name) for name in arguments.columns}
        for name in (*arguments.ids, arguments.event):
            frames.check_key(SIDE, fields[name])
        for name in arguments.clocks:
            frames.spark_time_column(SIDE, fields[name])
        schema = pa.schema([(name, arrow_type(f.dataType)) for name, f in fields.items()])
        columns = EventColumns.of(schema, arguments)
        check_microseconds(columns.times.scales[0])
        return cls(source, columns, fields)

    @property
    def result_kinds(self) -> list[T.DataType]:
        """Types of the result's columns, a transition as it crosses."""
        arguments = self.columns.arguments
        ids = [self.fields[name].dataType for name in arguments.ids]
        times = [self.fields[name].dataType for name in arguments.clocks]
        return [*ids, T.LongType(), *map(result_time, times), *map(computed_time, times)]

    def end(self, until: Any) -> int | None:
        """The end of the data, ticks; None if there are no events. Runs a job unless it is given."""
        if until is not None:
            return self.columns.instant("until", until)
        valid = self._rows().where(f"{KIND} < {literal(FIRST_FAULT)}")
        with spark_errors_as_ours():
            found = valid.agg(F.expr(f"max({HIGH})")).collect()[0][0]
        return None if found is None else int(found)

    def wire_rows(self) -> DataFrame:
        """Events on the wire, exchanged by query and stream.

        Those that are to be refused have none, so that they meet in one partition and come first.
        """
        rows = self._rows().selectExpr(*self._wire)
        # Last, of those of one kind, what is the longer: for an order that is always the same.
        order = [QUERY, STREAM, f"{LOW} + {HIGH}", KIND, HIGH]
        return rows.repartition(QUERY, STREAM).sortWithinPartitions(*map(F.expr, order))

    def _rows(self) -> DataFrame:
        """The needed columns, and times in ticks, kinds and faults of events."""
        names, scales = self.columns.arguments.columns, self.columns.times.scales
        given = [
            f"{quoted(name)} AS {alias}" for name, alias in zip(names, self._given, strict=True)
        ]
        changes = [f"({frames.rounding(scale)})" for scale in scales]
        rounded = [f"greatest({', '.join(changes)}) AS change"] if self._has_floats else []
        alias = dict(zip(names, self._given, strict=True))
        low, high = (scale.of(alias[scale.column.name]) for scale in scales)
        rows = with_ticks(self.source.selectExpr(*given, *rounded), {LOW: low, HIGH: high})
        return rows.selectExpr("*", f"{self._kind} AS {KIND}")

    @property
    def _given(self) -> list[str]:
        return [f"given{k}" for k in range(len(self.fields))]

    @property
    def _has_floats(self) -> bool:
        return any(scale.column.family == "float" for scale in self.columns.times.scales)

    @property
    def _kind(self) -> str:
        """What an event is, or what is wrong with it."""
        null = [
            f"IF({given} IS NULL, {literal(1 << k)}, 0L)" for k, given in enumerate(self._given)
        ]
        arguments = self.columns.arguments
        word = self._given[arguments.columns.index(arguments.event)]
        not_finite = literal(NOT_FINITE)
        tests = {
            "event": f"{word} NOT IN ({', '.join(map(text, EVENTS))})",
            "not_finite": f"{LOW} = {not_finite} OR {HIGH} = {not_finite}"
            if self._has_floats
            else "false",
            "range": f"NOT ({in_range(LOW)} AND {in_range(HIGH)})",
            "order": f"{LOW} > {HIGH}",
        }
        any_null = " OR ".join(f"{given} IS NULL" for given in self._given)
        cases = [f"WHEN {any_null} THEN {literal(FIRST_NULL)} + {' + '.join(null)}"]
        for code, reason in enumerate(FAULTS, FIRST_FAULT):
            cases.append(f"WHEN {tests[reason]} THEN {literal(code)}")
        for kind, known in enumerate(EVENTS):
            cases.append(f"WHEN {word} = {text(known)} THEN {literal(kind)}")
        return f"CASE {' '.join(cases)} END"

    @property
    def _wire(self) -> list[str]:
        arguments = self.columns.arguments
        given = dict(zip(arguments.columns, self._given, strict=True))
        refuses = arguments.options.invalid == "raise"
        refused = f"{KIND} >= {literal(FIRST_FAULT)}" if refuses else "false"
        encoded = [frames.encode(given[n], self.fields[n].dataType) for n in arguments.ids]
        both = [*encoded, "0L"][:2]  # of one stream a number
        ids = [
            f"CASE WHEN {refused} THEN NULL ELSE {found} END AS {wire}"
            for wire, found in zip((QUERY, STREAM), both, strict=True)
        ]
        words = example([(given[name], field) for name, field in self.fields.items()])
        return [
            *ids,
            *(f"coalesce({name}, 0L) AS {name}" for name in (LOW, HIGH)),
            KIND,
            *([f"change AS {ROUNDED}"] if self._has_floats else []),
            *([f"CASE WHEN {refused} THEN {words} END AS {EXAMPLE}"] if refuses else []),
        ]
