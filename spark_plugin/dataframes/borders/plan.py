"""A planned search for the border crossings of a DataFrame: its result, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from coincide.borders.crossings import EVENTS
from coincide.errors import ConditionError
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.dataframes.borders.queries import CollectedQueries
from spark_plugin.dataframes.borders.readings import ReadingFrame
from spark_plugin.dataframes.output_columns import check_told_apart
from spark_plugin.dataframes.results import computed_time, handed_out, result_time, wire_schema
from spark_plugin.dataframes.stage import CountedStage
from spark_plugin.worker.borders.arguments import READINGS, BorderArguments
from spark_plugin.worker.borders.emptiness import why_none
from spark_plugin.worker.borders.queries import Queries
from spark_plugin.worker.borders.readings import ReadingColumns
from spark_plugin.worker.borders.reports import BorderSummary
from spark_plugin.worker.borders.shipped import ShippedQueries
from spark_plugin.worker.borders.task import CrossingTask
from spark_plugin.worker.wire.counting import CountingTask

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
    readings : ReadingFrame or None
        What is looked at once more where nothing was found, to say why.
    queries : Queries
    why : str
        How readings are found, where it is not by an exchange.
    """

    dataframe: DataFrame
    stage: CountedStage
    known: BorderSummary
    queries: Queries
    readings: ReadingFrame | None = None
    why: str = ""

    def summary(self) -> BorderSummary:
        """What was found; waits for an action.

        Raises
        ------
        ConditionError
            If nothing was counted.
        """
        found = self.known.with_counts(self.stage.counts())
        if found.events or not found.readings or self.readings is None:
            return found
        arguments = self.readings.columns.arguments
        return replace(found, why_none=why_none(self.readings.seen(), self.queries, arguments))


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
    if readings.isStreaming:
        raise ConditionError(
            f"{READINGS} is a streaming DataFrame, and a stream's crossings lie across micro-batches: give"
            " these to the push of one coincide.BorderMonitor, as by foreachBatch"
        )
    given = ReadingFrame.of(readings, arguments)
    check_told_apart(arguments.made)
    check_workers(readings.sparkSession)
    stage = CrossingStage.of(readings.sparkSession, queries, given.columns, observe)
    kinds = given.stream_kind, given.time_kind
    return replace(stage.plan(given.wire_rows(), CrossingTask, kinds), readings=given)


class NewTask(Protocol):
    """Makes the task of a stage: `CrossingTask`, or its like of other rows."""

    def __call__(
        self,
        columns: ReadingColumns,
        queries: ShippedQueries,
        names: tuple[str, ...],
        metrics: str | None,
        /,
    ) -> CountingTask:
        """A task, of the columns of readings, and as its parameters are called."""


@dataclass(frozen=True)
class CrossingStage:
    """The stage that finds crossings, whatever brings it its readings.

    Parameters
    ----------
    spark : SparkSession
    queries : CollectedQueries
    columns : ReadingColumns
    stage : CountedStage
    """

    spark: SparkSession
    queries: CollectedQueries
    columns: ReadingColumns
    stage: CountedStage

    @classmethod
    def of(
        cls, spark: SparkSession, queries: Any, columns: ReadingColumns, observe: bool
    ) -> CrossingStage:
        """Collect the queries. Arguments as of `plan_crossings`."""
        arguments = columns.arguments
        options = arguments.options
        asked = CollectedQueries.of(queries, arguments)
        options = replace(options, batch_events=min(options.batch_events, _BATCH_EVENTS))
        columns = replace(columns, arguments=replace(arguments, options=options))
        return cls(spark, asked, columns, CountedStage.of(spark, options.backend, observe))

    def plan(
        self,
        rows: DataFrame,
        new_task: NewTask,
        kinds: tuple[T.DataType, T.DataType],
        why: str = "",
    ) -> BorderPlan:
        """The crossings that a task finds.

        Parameters
        ----------
        rows : DataFrame
            What the task is fed with.
        new_task : callable
        kinds : (DataType, DataType)
            Of streams and of times, as readings have them.
        why : str
            How readings are found, where it is not by an exchange.
        """
        made = self.columns.arguments.made
        stream, time = kinds
        streams = [stream for _ in self.columns.arguments.streams]
        own = result_time(time)
        times = [own, own, computed_time(time)][: self.columns.arguments.made_times]
        types = [self.queries.kind, *streams, T.LongType(), *times]
        schema = wire_schema(types)
        shipped = self.queries.shipped(self.spark)
        task = new_task(self.columns, shipped, tuple(schema.names), self.stage.metrics)
        found = self.stage.run(rows, task, schema)
        queries = self.queries.queries
        known = BorderSummary(queries=len(queries.ids), empty=queries.empty, tick=self.columns.tick)
        result = handed_out(found, made, types, {"event": EVENTS})
        return BorderPlan(result, self.stage, known, queries, why=why)
