"""Accidental pairs: of DataFrames, and of Arrow tables in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coincide.engine.accidental.pairs import AccidentalPairs, Shifts
from coincide.engine.accidental.tables import (
    AnyCondition,
    accidental_arguments,
    accidental_pair_tables,
)
from coincide.engine.join.pair_arguments import GivenWindow, check_second
from coincide.engine.reports.join_report import JoinReport
from coincide.model.condition import Confidence
from coincide.model.docstrings import documented

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@documented(accidental_pair_tables)
def accidental_pairs(
    left: DataFrame,
    right: DataFrame | None = None,
    condition: AnyCondition | None = None,
    *,
    shifts: Shifts,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    **arguments: Any,
) -> AccidentalPairs:
    """Count the pairs that chance alone makes, in two DataFrames, on Spark.

    The same as `coincide.accidental_pair_tables`, with the same arguments and the same answer. One small
    Spark job measures both sides, unless ``options`` say which side to broadcast and how long timestamps
    are. Then each shift is a job. None of them waits for an action.

    Parameters
    ----------
    left, right : DataFrame
        Events, or causes and effects; not streaming. Without `right` the stream `left` is moved against
        itself.
    condition, shifts, within, confidence
        As in `coincide.accidental_pair_tables`.
    **arguments
        As in `coincide.accidental_pair_tables`.

    Returns
    -------
    AccidentalPairs
        As in `coincide.accidental_pair_tables`.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As the join does.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, ShortShiftsWarning
        About rows that the first job has seen.
    """
    from spark_plugin.frames.keyed_rows import must_be_frame
    from spark_plugin.ways.accidental import count_accidental

    check_second(right)
    asked = accidental_arguments(
        condition, within, confidence, shifts, arguments, is_one_stream=right is None
    )
    for called, given in (("left", left), ("right", right)):
        if called == "left" or given is not None:
            must_be_frame(given, called, "accidental_pair_tables")
    found, rows = count_accidental(left, right, asked)
    JoinReport.tell(rows, None)
    return found
