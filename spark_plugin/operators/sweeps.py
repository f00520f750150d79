"""`merged` and its kin on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coincide.engine.join.coverage import coverage, gaps, labelled, merged
from coincide.engine.join.difference import covered, difference
from coincide.model.errors import ConditionError, argument, brief

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ONE = merged, labelled, coverage, gaps
_TWO = difference, covered
_KEEP_COLUMNS = labelled, difference, covered


def sweep(
    function: Callable[..., pa.Table],
    left: DataFrame,
    right: DataFrame | None = None,
    **arguments: Any,
) -> DataFrame:
    """Do with DataFrames what `merged` and its kin do with tables: ``sweep(merged, visits, by="room")``.

    The rows of a key are brought to one task, whose memory holds those of all its keys. Without keys one
    task has all rows.

    Parameters
    ----------
    function : callable
        `merged`, `labelled`, `coverage`, `gaps`, `difference` or `covered`.
    left : DataFrame
        The events; of `difference` and `covered` those of the left side.
    right : DataFrame, optional
        Those of the right side.
    **arguments
        As that function takes them: ``gap``, ``bounds``, ``zeros``, ``time``, ``left_time``,
        ``right_time``, ``by``, ``options``.

    Returns
    -------
    DataFrame
        The columns of the function, rows in no order. What is skipped or matches nothing is not counted.
        The numbers of `labelled` have gaps: those of a task begin at its own multiple of 2^33.

    Raises
    ------
    SchemaError, ConditionError
        As the function raises them, when it is called. Invalid rows fail the job that computes it.

    Warns
    -----
    DroppedRowsWarning
        With ``invalid="drop"``, that rows will be skipped.
    """
    from spark_plugin.frames.keyed_rows import check_frame
    from spark_plugin.ways.sweeps import plan_sweep

    if function not in (*_ONE, *_TWO):
        names = ", ".join(each.__name__ for each in (*_ONE, *_TWO))
        raise ConditionError(
            f"{argument('function')} must be one of {names} (found {brief(function)}). Give the function"
            " itself, without brackets."
        )
    is_two = function in _TWO
    if is_two == (right is None):
        found = "one DataFrame" if right is None else "two DataFrames"
        wanted = "two" if is_two else "one"
        raise ConditionError(
            f"{function.__name__} takes {wanted} (found {found}). Give as many to sweep."
        )
    called = ("left", "right") if is_two else ("events",)
    frames = [left] if right is None else [left, right]
    for frame, side in zip(frames, called, strict=True):
        check_frame(
            frame, side, function.__name__, "and a later row can change what is known of its key."
        )
    times = [f"{side}_time" for side in called] if is_two else ["time"]
    keeps = function in _KEEP_COLUMNS
    return plan_sweep(function, frames, called, times, arguments, keeps_columns=keeps)
