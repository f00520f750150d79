"""A planned search for the region transitions of a DataFrame: its result, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from coincide.errors import ConditionError
from coincide.region_transitions.kinds import TRANSITIONS
from coincide.units import Tick
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.dataframes.output_columns import check_told_apart
from spark_plugin.dataframes.results import handed_out, wire_schema
from spark_plugin.dataframes.stage import CountedStage
from spark_plugin.dataframes.transitions.events import CrossingFrame
from spark_plugin.worker.transitions.arguments import SIDE, TransitionArguments
from spark_plugin.worker.transitions.reports import TransitionSummary
from spark_plugin.worker.transitions.task import TransitionTask


@dataclass(frozen=True)
class TransitionPlan:
    """A planned search.

    Parameters
    ----------
    dataframe : DataFrame
        The transitions and stays, not yet computed.
    stage : CountedStage
        That computes them.
    tick : Tick
    """

    dataframe: DataFrame
    stage: CountedStage
    tick: Tick

    def summary(self) -> TransitionSummary:
        """What was found; waits for an action.

        Raises
        ------
        ConditionError
            If nothing was counted.
        """
        return TransitionSummary.of_counts(self.stage.counts(), self.tick)


def plan_transitions(
    events: DataFrame, until: Any, arguments: TransitionArguments, *, observe: bool = False
) -> TransitionPlan:
    """Plan a search for region transitions. Without `until`, one aggregate runs at once.

    Parameters
    ----------
    events : DataFrame
    until : int, float, datetime, numpy.datetime64, pa.Scalar or None
    arguments : TransitionArguments
    observe : bool
        Whether workers count what they look at and find.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As `coincide.transitions`.
    """
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
