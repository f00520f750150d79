"""Region transitions of DataFrames: packed by stream where files are only read, else row by row."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from coincide.engine.files.planning import NotDirect
from coincide.engine.reports.metrics import with_numbers
from coincide.engine.transitions.arguments import SIDE, EventColumns, TransitionArguments
from coincide.engine.transitions.reports import TransitionSummary
from coincide.model.errors import CoincideError, marked
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.columns import wire_kind
from spark_plugin.frames.keyed_rows import OperatorPlan, check_frame
from spark_plugin.frames.output_columns import check_distinct_names
from spark_plugin.frames.plain_files import files_read
from spark_plugin.frames.transitions import RESULT_WORDS, CrossingFrame
from spark_plugin.tasks.packed_transitions import CrossingKeyRows, PackedTransitionTask
from spark_plugin.tasks.transitions import TransitionTask
from spark_plugin.ways.exchange.packed_keys import (
    ROWS_BY_SPARK,
    described,
    packs_of,
    plan_cells,
)

_log = logging.getLogger("coincide")
TransitionPlan = OperatorPlan[TransitionSummary]


def plan_transitions(
    events: Any,
    until: Any,
    arguments: TransitionArguments,
    *,
    observe: bool = False,
    way: str = "auto",
) -> TransitionPlan:
    """Plan a search for region transitions, by a way that is auto, files or exchange.

    Without `until`, a job finds the end of the data at once where rows come through Spark.
    """
    check_frame(
        events, SIDE, "transition_tables",
        "and dwell times can lie across micro-batches. Use transition_streams.",
    )  # fmt: skip
    given = CrossingFrame.of(events, arguments)
    check_distinct_names(given.columns.schema.names)
    check_workers(events.sparkSession)
    if way == "exchange":
        return _by_rows(until, given, observe=observe)
    try:
        return _packed(events, until, given, observe=observe)
    except NotDirect as closed:
        if way == "files":
            raise
        _log.debug("Spark reads the files of %s: %s", SIDE, closed)
        return _by_rows(until, given, observe=observe)


def _by_rows(until: Any, given: CrossingFrame, *, observe: bool) -> TransitionPlan:
    task = TransitionTask(given.columns, given.end(until), is_measured=until is None)
    return OperatorPlan.of(
        given.wire_rows(), task, _made(given), RESULT_WORDS,
        _told(given, "exchange", ROWS_BY_SPARK), observe=observe, why=ROWS_BY_SPARK,
    )  # fmt: skip


def _packed(
    events: DataFrame, until: Any, given: CrossingFrame, *, observe: bool
) -> TransitionPlan:
    """Transitions of events that are nothing but files; refused if Spark has to read them."""
    spark, arguments = events.sparkSession, given.columns.arguments
    if is_accelerated(spark):
        raise NotDirect(f"{SIDE} are read by the RAPIDS Accelerator.")
    try:
        files, footers = files_read(events, SIDE, arguments.columns, arguments.clocks)
        columns = EventColumns.of(files.schema, arguments)
    except CoincideError as closed:  # Spark reads them, some types as others
        raise NotDirect(marked(closed)) from None
    if columns.tick != given.columns.tick:
        raise NotDirect(f"{SIDE}: the files hold times of a finer unit than Spark reads.")
    end = None if until is None else given.end(until)
    query, stream = given.id_kinds
    rows = CrossingKeyRows(
        columns, (wire_kind(query), wire_kind(stream)), is_measured=until is None
    )
    cells = plan_cells(spark, files, footers, rows)
    why = described(cells, f"rows by {' and '.join(arguments.ids)}")
    return OperatorPlan.of(
        packs_of(spark, files, footers, rows, cells), PackedTransitionTask(rows, cells, end),
        _made(given), RESULT_WORDS, _told(given, "files", why), observe=observe, why=why,
    )  # fmt: skip


def _made(given: CrossingFrame) -> list[tuple[str, Any]]:
    return list(zip(given.columns.schema.names, given.result_kinds, strict=True))


def _told(given: CrossingFrame, way: str, why: str) -> Any:
    return partial(with_numbers, TransitionSummary(tick=given.columns.tick, way=way, why=why))
