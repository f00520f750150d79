"""Border crossings of a stream of readings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.events.timestamps import IntervalModel
from spark_plugin.frames.borders import (
    RESULT_WORDS,
    ReadingFrame,
    collected_queries,
    queries_of_stream,
    result_kinds,
    with_small_batches,
)
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.output_columns import check_distinct_names
from spark_plugin.tasks.border_streams import CrossingMonitors
from spark_plugin.tasks.borders import STREAM, TIME, ReadingRows, as_table, value_names
from spark_plugin.tasks.counting import valid_rows
from spark_plugin.tasks.monitors import CheckedPackTask
from spark_plugin.tasks.wire import as_stream
from spark_plugin.ways.streaming.monitors import MonitorArguments
from spark_plugin.ways.streaming.settings import told

_STATIC = "border_crossings, which takes all readings at once"
_FREE = ("processing", "invalid", "backend", "batch_events", "threads")
"""Options that do not decide what is found."""


def crossings_of_stream(
    readings: DataFrame, queries: Any, arguments: BorderArguments, asked: MonitorArguments
) -> DataFrame:
    """The border crossings of a streaming DataFrame; the queries are collected at once."""
    asked.check(readings, "border_crossing_tables", _STATIC)
    given = ReadingFrame.of(readings, arguments)
    check_distinct_names(arguments.made)
    tick, spark = given.columns.tick, readings.sparkSession
    grid = asked.grid(spark, tick, beyond=0, has_keys=bool(arguments.streams))
    own, ids, kind = collected_queries(queries, arguments)
    # In an order of their own, as what is remembered has their numbers.
    table = as_table(own, ids).sort_by("query")
    given_kinds = {name: given.rows.kind(name).simpleString() for name in arguments.columns}
    decided = {**decided_by(arguments, given_kinds), "queries": _digest(table)}
    settings = asked.settings(grid, tick, decided)
    rows = given.stream_rows(f"{asked.name}_{asked.side}")
    columns = with_small_batches(given.columns)
    names = [STREAM, TIME, *value_names(arguments.dimensions)]
    task = CheckedPackTask(
        "left", arrow_schema(rows.select(*names).schema), IntervalModel(), grid, settings,
        check=partial(valid_rows, ReadingRows, columns), ends=(TIME, TIME),
    )  # fmt: skip
    kinds = result_kinds(arguments, kind, given.stream_kind, given.rows.kind(arguments.time))
    made = list(zip(arguments.made, kinds, strict=True))
    sent = queries_of_stream(table, spark)
    monitors = partial(CrossingMonitors, columns=columns, queries=sent)
    return asked.monitored(rows, task, monitors, made, RESULT_WORDS, tick)


def decided_by(arguments: BorderArguments, kinds: Mapping[str, str]) -> dict[str, Any]:
    """All that decides what is found, but for the queries, by names that no column's name can be."""
    roles = told(arguments, ("options", "query", "closed_column"))
    return {
        **told(arguments.options, _FREE),
        **{f"readings_{role}": value for role, value in roles.items()},
        **{f"{name}_kind": kind for name, kind in kinds.items()},
    }


def _digest(table: pa.Table) -> str:
    return hashlib.sha256(as_stream(table)).hexdigest()[:16]
