"""Planned windows over the keys of a DataFrame: their pairs, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.engine.causality.arguments import names_of_coordinates
from coincide.engine.causality.emptiness import warn_of_names
from coincide.engine.join.spec import check_output_names
from coincide.engine.windowed_causality.arguments import EVENT, WindowArguments
from coincide.engine.windowed_causality.reading import WindowColumns
from coincide.engine.windowed_causality.reports import WindowSummary, summary_of
from coincide.engine.windowed_causality.window import output_names
from coincide.model.errors import ConditionError
from coincide.model.units import Tick
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import arrow_type, check_microseconds, field_of, quoted
from spark_plugin.frames.output_columns import check_told_apart, handed_out
from spark_plugin.frames.output_columns import result_wire_schema as wire_schema
from spark_plugin.frames.stage import CountedStage
from spark_plugin.tasks.windowed_causality import WindowTask


@dataclass(frozen=True)
class WindowPlan:
    """Planned windows."""

    dataframe: DataFrame
    stage: CountedStage
    tick: Tick

    def summary(self) -> WindowSummary:
        """What was found; waits for an action."""
        return summary_of(self.stage.counts(), self.tick)


def plan_windows(
    events: DataFrame, arguments: WindowArguments, by: Sequence[str], *, observe: bool = False
) -> WindowPlan:
    """Plan a window for each key. No job runs."""
    if events.isStreaming:
        raise ConditionError(
            f"{EVENT}s are a streaming DataFrame, and windows go on across micro-batches: give these to the"
            " push of one coincide.WindowedCausality a key, as by foreachBatch"
        )
    warn_of_names(arguments.condition, [arguments.coordinates])
    keys = [field_of(events, EVENT, name) for name in by]
    for field in keys:
        frames.check_key(EVENT, field)
    read = dict.fromkeys(_names_read(arguments))
    fields = {name: field_of(events, EVENT, name) for name in read}
    payload = [field_of(events, EVENT, name) for name in arguments.payload]
    for name in _clocks(arguments):
        frames.spark_time_column(EVENT, fields[name])
    check_workers(events.sparkSession)
    handed = _unlike(list(read), len(payload))
    on_wire = replace(arguments, columns=tuple(handed))
    kinds = [field.dataType for field in payload]
    schema = pa.schema(
        [(name, arrow_type(field.dataType)) for name, field in fields.items()]
        + [
            (name, arrow_type(frames.wire_type(kind)))
            for name, kind in zip(handed, kinds, strict=True)
        ]
    )
    columns = WindowColumns(schema, on_wire)
    times = columns.placed.times
    for scale in (times.scales[0], times.arrival):  # type: ignore[attr-defined]
        check_microseconds(scale)
    names = [*by, *output_names(arguments, columns.tick)]
    check_output_names(names)
    check_told_apart(names)

    out = [*(field.dataType for field in keys), *kinds, *kinds, T.LongType(), T.DoubleType()]
    wire = wire_schema(out[: len(names)])
    stage = CountedStage.of(events.sparkSession, "cpu", observe)
    task = WindowTask(on_wire, len(keys), tuple(schema.names), tuple(wire.names), stage.metrics)
    rows = _wire_rows(events, keys, fields, payload, arguments.arrival)
    result = handed_out(stage.run(rows, task, wire), names, out[: len(names)], {})
    return WindowPlan(result, stage, columns.tick)


def _clocks(arguments: WindowArguments) -> list[str]:
    return [name for name in (arguments.time, arguments.arrival) if name is not None]


def _names_read(arguments: WindowArguments) -> list[str]:
    places = names_of_coordinates(arguments.coordinates)
    return [arguments.time, *arguments.other_columns, *places]


def _unlike(names: Sequence[str], count: int) -> list[str]:
    """So many names that are none of these: longer than any."""
    longest = max(map(len, names))
    return [f"{'payload':_<{longest + 1}}{k}" for k in range(count)]


def _wire_rows(
    events: DataFrame,
    keys: Sequence[T.StructField],
    read: Mapping[str, T.StructField],
    payload: Sequence[T.StructField],
    arrival: str | None,
) -> DataFrame:
    """Keys, columns to read and columns to hand out, each key in one partition, in order of arrival.

    Of equal arrivals the order is that of all other columns, so that a task that runs again finds the
    same.
    """
    key = [f"{frames.encode(quoted(f.name), f.dataType)} AS key{k}" for k, f in enumerate(keys)]
    own = {name: f"read{k}" for k, name in enumerate(read)}
    out = [f"{frames.encode(quoted(f.name), f.dataType)} AS out{k}" for k, f in enumerate(payload)]
    taken = (f"{quoted(read[name].name)} AS {alias}" for name, alias in own.items())
    rows = events.selectExpr(*key, *taken, *out)
    names = [f"key{k}" for k in range(len(keys))]
    others = [f"out{k}" for k, f in enumerate(payload) if frames.can_be_ordered(f.dataType)]
    order = [*names, *([own[arrival]] if arrival else []), *own.values(), *others]
    return rows.repartition(*names).sortWithinPartitions(*dict.fromkeys(order))
