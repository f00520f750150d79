"""Clock errors of DataFrames: the events of a key are exchanged to one task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import types as T

from coincide.engine.clocks.arguments import ClockArguments
from coincide.engine.clocks.limits import LimitCounts
from coincide.engine.clocks.rows import ErrorRows
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.engine.reports.metrics import with_numbers
from coincide.model.clocks.errors import STATUSES
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.columns import arrow_type, check_microseconds, wire_kind
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.keyed_rows import check_frame
from spark_plugin.frames.output_columns import (
    OutputColumn,
    check_distinct_names,
    computed_time,
    decoded,
    metrics_name,
    wire_schema,
)
from spark_plugin.frames.stage import Stage, counted_by_tasks
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.clocks import ClockTask
from spark_plugin.tasks.wire import wire_layout
from spark_plugin.ways.join_sides import event_frames


def plan_clocks(
    left: Any, right: Any, arguments: ClockArguments, report: JoinReport | None
) -> DataFrame:
    """The errors of clocks, not yet computed."""
    for side, frame in (("left", left), ("right", right)):
        check_frame(frame, side, "clock_error_tables", "and a clock needs all events of its key.")
    sides = event_frames((left, right), arguments)
    check_microseconds(sides[0].times.scales[0])
    check_workers(left.sparkSession)
    spec = arguments.spec([side.times for side in sides], 1, 1)
    layout = wire_layout(len(arguments.keys), [], [])
    clocks = layout.keys[: len(arguments.clock_keys)]
    rows = _exchanged(sides, arguments, clocks)
    count = _count(rows, clocks)
    limits = replace(spec.limits, chance=spec.limits.chance / max(1, count))
    made = _columns(sides[0], arguments)
    names = tuple(column.name for column in made)
    check_distinct_names(names)
    kinds = [sides[0].kind_of(name) for name, _ in arguments.clock_keys]
    keys = [
        pa.field(column.name, wire_kind(kind)) for column, kind in zip(made, kinds, strict=False)
    ]
    time = arrow_type(sides[0].kind_of(arguments.left_time))
    task = ClockTask(
        clocks, layout.keys[len(clocks) :], limits, ErrorRows.of(keys, time, spec.tick), names
    )
    known = JoinSummary(None, None, None, None, "exchange", spec.tick)
    is_observed = report is not None and not is_accelerated(left.sparkSession)
    observation = Observation() if is_observed else None
    if observation is not None:
        metrics = metrics_name(names)
        task, stage = replace(task, metrics=metrics), Stage(True, None, metrics, observation)
    else:
        stage = Stage(True, None, None, None)

    def summary() -> JoinSummary:
        assert observation is not None
        counted = counted_by_tasks(observation)
        if counted is None:
            return known
        counts = with_numbers(LimitCounts(), counted.numbers)
        more = counts.warnings(spec.limits, spec.tick, has_keys=bool(clocks))
        return replace(known, more=tuple(more))

    JoinReport.tell(known, report, None if observation is None else summary)
    return decoded(stage.run(rows, task, wire_schema(made)), made)


def _exchanged(
    sides: tuple[EventFrame, EventFrame], arguments: ClockArguments, clocks: tuple[str, ...]
) -> DataFrame:
    """Events of both sides on the wire, those of a key in one partition and together."""
    layout = wire_layout(len(arguments.keys), [], [])
    refuses = arguments.options.invalid == "raise"
    left, right = (wire_rows(side, layout, False, refuses) for side in sides)
    rows = left.unionByName(right)
    return rows.repartition(*clocks).sortWithinPartitions(*clocks) if clocks else rows.coalesce(1)


def _count(rows: DataFrame, clocks: tuple[str, ...]) -> int:
    """The number of keys."""
    if not clocks:
        return 1
    with spark_errors_as_ours():
        return int(rows.select(*clocks).distinct().count())


def _columns(left: EventFrame, arguments: ClockArguments) -> list[OutputColumn]:
    """The columns of the answer, as `ErrorRows` has them."""
    time = left.kind_of(arguments.left_time)
    keys = [(name, left.kind_of(name)) for name, _ in arguments.clock_keys]
    tick = left.times.scales[0].tick
    schema = ErrorRows.of([], arrow_type(time), tick).schema
    columns = [OutputColumn(name, kind) for name, kind in keys]
    for field in schema:
        if field.name == "status":
            columns.append(OutputColumn(field.name, T.LongType(), words=STATUSES))
        elif field.name in ("start", "end"):
            columns.append(OutputColumn(field.name, computed_time(time)))
        elif pa.types.is_duration(field.type):
            columns.append(OutputColumn(field.name, T.DayTimeIntervalType()))
        else:
            kind = T.LongType() if pa.types.is_integer(field.type) else T.DoubleType()
            columns.append(OutputColumn(field.name, kind))
    return columns
