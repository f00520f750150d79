"""Sweeps of spans on Spark: the rows of a key go to one task, which calls the function of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.keys import key_pairs
from coincide.engine.events.spans import Spans
from coincide.engine.events.timestamp_names import timestamp_names
from coincide.engine.join.coverage import UNION
from coincide.engine.reports.warnings import warn
from coincide.model.errors import DroppedRowsWarning
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.columns import (
    arrow_type,
    encode,
    field_of,
    literal,
    quoted,
    spark_type,
    wire_kind,
    wire_type,
)
from spark_plugin.frames.output_columns import (
    OutputColumn,
    check_distinct_names,
    decoded,
    wire_schema,
)
from spark_plugin.frames.stage import Stage
from spark_plugin.tasks.sweeps import PARTITION, SIDE, SweepTask

_HASH = "key_hash"


def plan_sweep(
    function: Callable[..., pa.Table],
    frames: Sequence[DataFrame],
    called: Sequence[str],
    times: Sequence[str],
    arguments: dict[str, Any],
    *,
    keeps_columns: bool,
) -> DataFrame:
    """What a function of tables makes of DataFrames, not yet computed; `times` are arguments of it."""
    pairs = key_pairs(arguments.get("by", ()))
    by = [[name for name, _ in pairs], [name for _, name in pairs]]
    whole = [
        pa.schema([(field.name, arrow_type(field.dataType)) for field in frame.schema.fields])
        for frame in frames
    ]
    # From tables without rows it refuses what is wrong, and shows the columns of the answer.
    shown = function(*(schema.empty_table() for schema in whole), **arguments).schema
    needed = []
    for i, (schema, time) in enumerate(zip(whole, times, strict=True)):
        names = timestamp_names(time, arguments.get(time, Spans("start", "end"))).columns
        is_all = keeps_columns and i == 0
        needed.append(schema.names if is_all else list(dict.fromkeys([*names, *by[i]])))
    fields = [
        [field_of(frame, side, name) for name in names]
        for frame, side, names in zip(frames, called, needed, strict=True)
    ]
    check_workers(frames[0].sparkSession)
    options = arguments.get("options")
    if options is not None and options.invalid == "drop":
        warn(
            "this DataFrame skips invalid rows when it is computed, and does not count them. To learn"
            f" how many, collect the rows and call {function.__name__} itself.",
            DroppedRowsWarning,
        )
    wires = tuple(tuple(f"{'lr'[i]}{k}" for k in range(len(own))) for i, own in enumerate(fields))
    rows = _exchanged(frames, fields, wires, by, called)
    made = [OutputColumn(field.name, spark_type(field.name, field.type)) for field in shown]
    check_distinct_names([column.name for column in made])
    task = SweepTask(
        function,
        arguments,
        tuple(
            pa.schema([(field.name, arrow_type(field.dataType)) for field in own]) for own in fields
        ),
        wires,
        tuple(column.name for column in made),
        tuple(wire_kind(column.kind) for column in made),
        UNION[0] if UNION[0] in shown.names and keeps_columns and len(frames) == 1 else None,
    )
    return decoded(Stage(True, None, None, None).run(rows, task, wire_schema(made)), made)


def _exchanged(
    frames: Sequence[DataFrame],
    fields: Sequence[Sequence[T.StructField]],
    wires: Sequence[Sequence[str]],
    by: Sequence[Sequence[str]],
    called: Sequence[str],
) -> DataFrame:
    """Rows of all sides on the wire, those of a key in one partition."""
    sent = []
    for side, (frame, own) in enumerate(zip(frames, fields, strict=True)):
        columns = [
            f"{literal(side)} AS {SIDE}",
            f"{_hash(frame, called[side], by[side])} AS {_HASH}",
        ]
        for i, (names, kinds) in enumerate(zip(wires, fields, strict=True)):
            columns += [
                f"{encode(quoted(field.name), field.dataType) if i == side else _nothing(kind)} AS {name}"
                for name, kind, field in zip(names, kinds, own if i == side else kinds, strict=True)
            ]
        sent.append(frame.selectExpr(*columns))
    rows = sent[0] if len(sent) == 1 else sent[0].unionAll(sent[1])
    placed = rows.repartition(F.col(_HASH)) if by[0] else rows.coalesce(1)
    # In one order of keys on each retry.
    in_order = placed.sortWithinPartitions(_HASH).drop(_HASH)
    return in_order.selectExpr("*", f"CAST(spark_partition_id() AS BIGINT) AS {PARTITION}")


def _nothing(field: T.StructField) -> str:
    """SQL of a null in the place of a column of the other side."""
    return f"CAST(NULL AS {wire_type(field.dataType).simpleString()})"


def _hash(frame: DataFrame, called: str, names: Sequence[str]) -> str:
    """SQL of what is equal where keys are, whatever they are called and however wide."""
    if not names:
        return "0L"
    values = []
    for name in names:
        kind, value = field_of(frame, called, name).dataType, quoted(name)
        values.append(f"CAST({value} AS BIGINT)" if isinstance(kind, T.IntegralType) else value)
    return f"xxhash64({', '.join(values)})"
