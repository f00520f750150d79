"""A planned search for the border crossings of a DataFrame: its result, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.borders.crossings import EVENTS
from coincide.errors import ConditionError
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.dataframes.borders.queries import CollectedQueries
from spark_plugin.dataframes.borders.readings import ReadingFrame
from spark_plugin.dataframes.output_columns import check_told_apart
from spark_plugin.dataframes.results import handed_out, wire_schema
from spark_plugin.dataframes.stage import CountedStage
from spark_plugin.worker.borders.arguments import READINGS, BorderArguments
from spark_plugin.worker.borders.reports import BorderSummary
from spark_plugin.worker.borders.task import CrossingTask

_BATCH_EVENTS = 1 << 16
"""Crossings of an output batch: small ones let the JVM read one while the worker fills the next."""


@dataclass(frozen=True)
class BorderPlan:
    """A planned search.

    Parameters
    ----------
    dataframe : DataFrame
        The crossings, not yet computed.
    stage : CountedStage
        That computes them.
    known : BorderSummary
        What is known by now.
    """

    dataframe: DataFrame
    stage: CountedStage
    known: BorderSummary

    def summary(self) -> BorderSummary:
        """What was found; waits for an action.

        Raises
        ------
        ConditionError
            If nothing was counted.
        """
        return self.known.with_counts(self.stage.counts())


def plan_crossings(
    readings: DataFrame, queries: Any, arguments: BorderArguments, *, observe: bool = False
) -> BorderPlan:
    """Plan a search for border crossings. The queries are collected at once.

    Parameters
    ----------
    readings : DataFrame
    queries : DataFrame, or whatever offers Arrow's C stream
    arguments : BorderArguments
    observe : bool
        Whether workers count what they look at and find.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As `coincide.border_crossings`.
    """
    options = arguments.options
    if readings.isStreaming:
        raise ConditionError(
            f"{READINGS} is a streaming DataFrame, and a stream's crossings lie across micro-batches: give"
            " these to the push of one coincide.BorderMonitor, as by foreachBatch"
        )
    given = ReadingFrame.of(readings, arguments)
    check_told_apart(arguments.made)
    check_workers(readings.sparkSession)
    asked = CollectedQueries.of(queries, arguments)
    options = replace(options, batch_events=min(options.batch_events, _BATCH_EVENTS))
    columns = replace(given.columns, arguments=replace(arguments, options=options))
    stage = CountedStage.of(readings.sparkSession, options.backend, observe)
    kinds = _kinds(given, asked, arguments)
    schema = wire_schema(kinds)
    task = CrossingTask(
        columns, asked.shipped(readings.sparkSession), tuple(schema.names), stage.metrics
    )
    found = stage.run(given.wire_rows(), task, schema)
    result = handed_out(found, arguments.made, kinds, {"event": EVENTS})
    known = BorderSummary(
        queries=len(asked.queries.ids), empty=asked.queries.empty, tick=columns.tick
    )
    return BorderPlan(result, stage, known)


def _kinds(
    given: ReadingFrame, asked: CollectedQueries, arguments: BorderArguments
) -> list[T.DataType]:
    """Types of the result's columns, events as they cross."""
    times = [given.result_time] * (len(arguments.made) - 3)
    return [asked.kind, given.stream.dataType, T.LongType(), *times]
