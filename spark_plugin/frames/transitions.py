"""Region transitions of DataFrames: crossings on the wire, and the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.time_columns import TimeScale
from coincide.engine.transitions.arguments import (
    DURATIONS,
    SIDE,
    EventColumns,
    TransitionArguments,
)
from coincide.model.borders.crossings import EVENTS
from coincide.model.transitions import TRANSITIONS
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.frames.columns import NOT_FINITE, check_key, check_microseconds, literal, text
from spark_plugin.frames.events import latest_time
from spark_plugin.frames.keyed_rows import (
    KeyedRows,
    exchanged,
    has_floats,
)
from spark_plugin.frames.output_columns import computed_time, result_time
from spark_plugin.frames.timestamps import in_range
from spark_plugin.tasks.transitions import (
    FAULTS,
    FIRST_FAULT,
    FIRST_NULL,
    HIGH,
    KIND,
    LOW,
    QUERY,
    STREAM,
)
from spark_plugin.tasks.wire import KEY_HASH

RESULT_WORDS = {"transition": TRANSITIONS}
"""Columns of the result that cross as numbers, and the words of these."""


@dataclass(frozen=True)
class CrossingFrame:
    """A DataFrame of events; everything but its rows is known and checked."""

    rows: KeyedRows
    columns: EventColumns

    @classmethod
    def of(cls, source: DataFrame, arguments: TransitionArguments) -> CrossingFrame:
        """The columns that arguments name."""
        names, ids = arguments.columns, arguments.ids
        rows = KeyedRows.of(source, SIDE, names, ids, arguments.clocks)
        check_key(SIDE, rows.fields[arguments.event])
        columns = EventColumns.of(rows.schema, arguments)
        check_microseconds(columns.times.scales[0])
        return cls(rows, columns)

    @property
    def result_kinds(self) -> list[T.DataType]:
        """Types of the result's columns, a transition as it crosses."""
        ids, times = (
            list(map(self.rows.kind, names))
            for names in (self.rows.keys, self.columns.arguments.clocks)
        )
        own, computed = list(map(result_time, times)), map(computed_time, times)
        return [*ids, T.LongType(), *own, *computed, *own, *[T.LongType()] * len(DURATIONS)]

    @property
    def id_kinds(self) -> tuple[T.DataType, T.DataType]:
        """Types of the query and of the stream; of a single stream that of its number."""
        query, *stream = map(self.rows.kind, self.rows.keys)
        return query, stream[0] if stream else T.LongType()

    def end(self, until: Any) -> int | None:
        """The end of the data, ticks; None if there are no events. Runs a job unless it is given."""
        if until is not None:
            return self.columns.instant("until", until)
        valid = self._rows().where(f"{KIND} < {literal(FIRST_FAULT)}")
        with spark_errors_as_ours():
            found = valid.agg(F.expr(f"max({HIGH})")).collect()[0][0]
        return None if found is None else int(found)

    def wire_rows(self) -> DataFrame:
        """Events on the wire, exchanged by query and stream."""
        # Last, of those of one kind, what is the longer: for an order that is always the same.
        order = [f"{LOW} + {HIGH}", KIND, HIGH]
        return exchanged(self._on_the_wire(self._rows()), [QUERY, STREAM], order)

    def stream_rows(self, observation: str, longest: int) -> DataFrame:
        """Events of a stream on the wire, with hashes of query and stream, counted under a name."""
        is_valid = f"{KIND} < {literal(FIRST_FAULT)} AND {HIGH} - {LOW} <= {literal(longest)}"
        totals = {
            "rows": "count(1)",
            "invalid": f"count_if(NOT ({is_valid}))",
            "latest": latest_time(f"CASE WHEN {is_valid} THEN {HIGH} END", self.columns.tick),
        }
        rows = self._rows().observe(
            observation, *(F.expr(text).alias(name) for name, text in totals.items())
        )
        given = ", ".join(map(self.rows.given, self.rows.keys))
        return self._on_the_wire(rows, f"xxhash64({given}) AS {KEY_HASH}")

    def _on_the_wire(self, rows: DataFrame, *more: str) -> DataFrame:
        """Rows of `_rows` on the wire."""
        is_refused = self.columns.arguments.options.invalid == "raise"
        ends = [f"coalesce({name}, 0L) AS {name}" for name in (LOW, HIGH)]
        return self.rows.on_the_wire(
            rows, [QUERY, STREAM], [*ends, KIND, *more],
            refused=f"{KIND} >= {literal(FIRST_FAULT)}" if is_refused else None,
            rounds=has_floats(self._scales),
        )  # fmt: skip

    def _rows(self) -> DataFrame:
        """The needed columns, and times in ticks, kinds and faults of events."""
        return self.rows.ticks(self._scales).selectExpr("*", f"{self._kind} AS {KIND}")

    @property
    def _scales(self) -> dict[str, TimeScale]:
        return dict(zip((LOW, HIGH), self.columns.times.scales, strict=True))

    @property
    def _kind(self) -> str:
        """What an event is, or what is wrong with it."""
        given = list(map(self.rows.given, self.rows.fields))
        null = [f"IF({name} IS NULL, {literal(1 << k)}, 0L)" for k, name in enumerate(given)]
        word = self.rows.given(self.columns.arguments.event)
        end, floats = literal(NOT_FINITE), has_floats(self._scales)
        tests = {
            "event": f"{word} NOT IN ({', '.join(map(text, EVENTS))})",
            "not_finite": f"{LOW} = {end} OR {HIGH} = {end}" if floats else "false",
            "range": f"NOT ({in_range(LOW)} AND {in_range(HIGH)})",
            "order": f"{LOW} > {HIGH}",
        }
        any_null = " OR ".join(f"{name} IS NULL" for name in given)
        cases = [f"WHEN {any_null} THEN {literal(FIRST_NULL)} + {' + '.join(null)}"]
        for code, reason in enumerate(FAULTS, FIRST_FAULT):
            cases.append(f"WHEN {tests[reason]} THEN {literal(code)}")
        for kind, known in enumerate(EVENTS):
            cases.append(f"WHEN {word} = {text(known)} THEN {literal(kind)}")
        return f"CASE {' '.join(cases)} END"
