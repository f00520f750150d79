"""Planned windows over the keys of a DataFrame: their pairs, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from coincide.engine.causality.emptiness import warn_of_names
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
    field_of,
    quoted,
    wire_type,
)
from spark_plugin.frames.keyed_rows import KeyedRows, OperatorPlan, check_frame, exchanged
from spark_plugin.frames.output_columns import check_distinct_names
from spark_plugin.tasks.windowed_causality import WindowTask


def plan_windows(
    events: Any, arguments: WindowArguments, by: Sequence[str], *, observe: bool = False
) -> OperatorPlan[WindowSummary]:
    """Plan a window for each key. No job runs."""
    check_frame(
        events, f"{EVENT}s", "WindowedCausality",
        "and windows go on across micro-batches. Push these to one coincide.WindowedCausality a"
        " key, for example in foreachBatch.",
    )  # fmt: skip
    warn_of_names(arguments.condition, [arguments.coordinates])
    keys = KeyedRows.of(events, EVENT, by, by, [])
    given = KeyedRows.of(events, EVENT, arguments.read_columns, [], arguments.clocks)
    payload = [field_of(events, EVENT, name) for name in arguments.payload]
    check_workers(events.sparkSession)

    # The output columns cross once more, encoded, under names that are longer than any other.
    longest = max(map(len, given.fields))
    payload_names = [f"{'payload':_<{longest + 1}}{k}" for k in range(len(payload))]
    on_wire = replace(arguments, columns=tuple(payload_names))
    kinds = [field.dataType for field in payload]
    encoded = [arrow_type(wire_type(kind)) for kind in kinds]
    schema = pa.schema([*given.schema, *zip(payload_names, encoded, strict=True)])
    columns = WindowColumns(schema, on_wire)
    times = columns.placed.times
    for scale in (times.scales[0], times.arrival):  # type: ignore[attr-defined]
        check_microseconds(scale)
    names = [*by, *output_names(arguments, columns.tick)]
    check_output_names(names)
    check_distinct_names(names)

    on_keys = {
        f"key{k}": encode(quoted(name), keys.kind(name)) for k, name in enumerate(keys.fields)
    }
    own = {name: f"read{k}" for k, name in enumerate(given.fields)}
    out = [f"{encode(quoted(f.name), f.dataType)} AS out{k}" for k, f in enumerate(payload)]
    # Of equal arrivals the order is that of all else, so that a task that runs again finds the same.
    others = [f"out{k}" for k, kind in enumerate(kinds) if can_be_ordered(kind)]
    order = dict.fromkeys([own[str(arguments.arrival)], *own.values(), *others])
    taken = [f"{quoted(name)} AS {alias}" for name, alias in own.items()]
    named = (f"{value} AS {name}" for name, value in on_keys.items())
    rows = exchanged(events.selectExpr(*named, *taken, *out), on_keys, list(order))
    made = [*map(keys.kind, by), *kinds, *kinds, T.LongType(), T.DoubleType()]
    task = WindowTask(on_wire, len(keys.fields), tuple(schema.names))
    return OperatorPlan.of(
        rows, task, list(zip(names, made, strict=False)), {},
        partial(with_numbers, WindowSummary(tick=columns.tick)), observe=observe,
    )  # fmt: skip
