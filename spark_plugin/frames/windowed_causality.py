"""Windows over the keys of a DataFrame: tuples on the wire, and the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.causality.emptiness import warn_of_names
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.join.spec import check_output_names
from coincide.engine.reports.metrics import with_numbers
from coincide.engine.windowed_causality.arguments import EVENT, WindowArguments
from coincide.engine.windowed_causality.reports import WindowSummary
from coincide.engine.windowed_causality.window import WindowColumns, output_names
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.columns import (
    arrow_type,
    can_be_ordered,
    check_microseconds,
    encode,
    wire_type,
)
from spark_plugin.frames.events import latest_time
from spark_plugin.frames.keyed_rows import KeyedRows, OperatorPlan, check_frame, exchanged
from spark_plugin.frames.output_columns import check_distinct_names
from spark_plugin.frames.timestamps import in_range
from spark_plugin.tasks.windowed_causality import KeyedTuples, WindowTask
from spark_plugin.tasks.wire import KEY_HASH

ARRIVED = "arrived"
_HAPPENED = "happened"
"""Columns of times of arrival and of valid times, in ticks."""


def plan_windows(
    events: Any, arguments: WindowArguments, by: Sequence[str], *, observe: bool = False
) -> OperatorPlan[WindowSummary]:
    """Plan a window for each key. No job runs."""
    check_frame(
        events, f"{EVENT}s", "WindowedCausality",
        "and windows go on across micro-batches. Use windowed_causality_streams.",
    )  # fmt: skip
    given = TupleFrame.of(events, arguments, by)
    check_workers(events.sparkSession)
    told = partial(with_numbers, WindowSummary(tick=given.columns.tick))
    return OperatorPlan.of(
        given.wire_rows(), WindowTask(given.tuples), given.made, {}, told, observe=observe
    )


@dataclass(frozen=True)
class TupleFrame:
    """A DataFrame of tuples; everything but its rows is known and checked."""

    rows: KeyedRows
    columns: WindowColumns
    tuples: KeyedTuples
    payload: list[str]
    made: list[tuple[str, T.DataType]]

    @classmethod
    def of(cls, source: DataFrame, arguments: WindowArguments, by: Sequence[str]) -> TupleFrame:
        """The columns that arguments name."""
        warn_of_names(arguments.condition, [arguments.coordinates])
        read, payload = arguments.read_columns, arguments.payload
        names = list(dict.fromkeys([*by, *read, *payload]))
        rows = KeyedRows.of(source, EVENT, names, by, arguments.clocks)
        kinds = list(map(rows.kind, payload))
        encoded = [arrow_type(wire_type(kind)) for kind in kinds]
        # The output columns cross once more, encoded, under names that are longer than any other.
        longest = max(map(len, read))
        on_wire = [f"{'payload':_<{longest + 1}}{k}" for k in range(len(payload))]
        own = [(name, rows.schema.field(name).type) for name in read]
        schema = pa.schema([*own, *zip(on_wire, encoded, strict=True)])
        columns = WindowColumns(schema, replace(arguments, columns=tuple(on_wire)))
        times = columns.times
        assert times.arrival is not None  # needed on Spark
        for scale in (times.scales[0], times.arrival):
            check_microseconds(scale)
        arguments.terms(arguments.model(columns.tick), columns.tick)  # refused here, not by workers
        made = [*by, *output_names(arguments, columns.tick)]
        check_output_names(made)
        check_distinct_names(made)
        made_kinds = [*map(rows.kind, by), *kinds, *kinds, T.LongType(), T.DoubleType()]
        # Equal arrivals come in the order of all else, so that a task that runs again finds the same.
        named = {name: f"read{k}" for k, name in enumerate(read)}
        others = [f"out{k}" for k, kind in enumerate(kinds) if can_be_ordered(kind)]
        order = tuple(dict.fromkeys([named[str(arguments.arrival)], *named.values(), *others]))
        tuples = KeyedTuples(columns.arguments, len(by), tuple(schema.names), order)
        return cls(rows, columns, tuples, payload, list(zip(made, made_kinds, strict=False)))

    def wire_rows(self) -> DataFrame:
        """Tuples on the wire, exchanged by key."""
        rows = self._on_the_wire(self.rows.ticks({}))
        return exchanged(rows, rows.columns[: self.tuples.keys], self.tuples.order)

    def stream_rows(self, observation: str) -> DataFrame:
        """Tuples of a stream on the wire, with arrivals and hashes of keys, counted under a name."""
        # Tuples that match nothing stay behind, and invalid ones, unless a task is to refuse these.
        keys = list(map(self.rows.given, self.rows.keys))
        are_times = f"{ARRIVED} IS NOT NULL AND {_HAPPENED} IS NOT NULL"
        is_wrong = f"{are_times} AND ({' OR '.join(self._faults)})"
        is_right = " AND ".join([*(f"{key} IS NOT NULL" for key in keys), are_times])
        is_right += f" AND NOT ({is_wrong})"
        latest = latest_time(f"CASE WHEN {is_right} THEN {ARRIVED} END", self.columns.tick)
        totals = {"rows": "count(1)", "invalid": f"count_if({is_wrong})", "latest": latest}
        rows = self.rows.ticks(self._scales).observe(
            observation, *(F.expr(text).alias(name) for name, text in totals.items())
        )
        is_refused = self.columns.arguments.options.invalid == "raise"
        kept = rows.where(f"({is_right}) OR ({is_wrong})" if is_refused else is_right)
        return self._on_the_wire(kept, ARRIVED, f"xxhash64({', '.join(keys)}) AS {KEY_HASH}")

    def _on_the_wire(self, rows: DataFrame, *more: str) -> DataFrame:
        """Rows of `KeyedRows.ticks` on the wire."""
        given, kind = self.rows.given, self.rows.kind
        read = [f"{given(n)} AS read{k}" for k, n in enumerate(self.columns.arguments.read_columns)]
        keys, out = (
            [f"{encode(given(name), kind(name))} AS {own}{k}" for k, name in enumerate(names)]
            for own, names in (("key", self.rows.keys), ("out", self.payload))
        )
        return rows.selectExpr(*keys, *read, *out, *more)

    @property
    def _scales(self) -> dict[str, TimeScale]:
        times = self.columns.times
        assert times.arrival is not None
        return {ARRIVED: times.arrival, _HAPPENED: times.scales[0]}

    @property
    def _faults(self) -> list[str]:
        """What can be wrong with a row that has its times: null where that is not known."""
        arguments = self.columns.arguments
        limits = arguments.condition.space.limits(len(arguments.coordinates))
        places = (
            f"abs(nanvl(CAST({self.rows.given(each)} AS DOUBLE), CAST(NULL AS DOUBLE))) > {limit!r}D"
            for each, limit in zip(arguments.coordinates, limits, strict=True)
            if isinstance(each, str)
        )
        return [*(f"NOT ({in_range(name)})" for name in self._scales), *places]
