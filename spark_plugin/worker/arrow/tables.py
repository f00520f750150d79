"""From Arrow tables to sides: times to ticks, invalid rows found and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import DataError
from coincide.options import Invalid
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.schemas import column_of
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.ticks import contiguous
from spark_plugin.worker.arrow.time_columns import describe_invalid
from spark_plugin.worker.timestamps.columns import ReadTimes, TimestampColumns

_EXAMPLE_WIDTH = 200


def read_side(
    table: pa.Table,
    columns: TimestampColumns,
    by: Sequence[str],
    payload: Sequence[str],
    invalid: Invalid,
) -> tuple[Side, SideCounts]:
    """Arrays of one side, its invalid rows refused or left out.

    Parameters
    ----------
    table : pa.Table
    columns : TimestampColumns
    by, payload : sequences of str
        Names of the key columns and of the columns to hand out.
    invalid : {"raise", "drop"}

    Raises
    ------
    DataError
        If there are invalid rows and `invalid` is ``"raise"``.
    """
    side = columns.scales[0].column.side
    times = columns.read(table)
    keys = [contiguous(column_of(table, side, name)) for name in by]
    handed_out = [contiguous(column_of(table, side, name)) for name in payload]
    if not any(key.null_count for key in keys) and times.are_valid:
        counts = SideCounts(table.num_rows, rounded=times.rounded(None))
        events = Side(times.max_time, times.shapes, columns.model, None, keys, handed_out)
        return events, counts
    reasons = _invalid_rows(times)
    if reasons and invalid == "raise":
        raise DataError(_describe(table, columns, reasons))
    null = times.null.copy()
    for key in keys:
        null |= pc.is_null(key).to_numpy(zero_copy_only=False)
    wrong = np.logical_or.reduce([np.zeros(null.size, bool), *reasons.values()])
    # A null key does not excuse an invalid time: such a row counts once, as invalid.
    unmatchable = int((null & ~wrong).sum())
    counts = SideCounts(
        table.num_rows,
        unmatchable,
        {reason: int(mask.sum()) for reason, mask in reasons.items()},
        times.rounded(~(null | wrong)),
    )
    matchable = ~null if null.any() else None
    result = Side(times.max_time, times.shapes, columns.model, matchable, keys, handed_out)
    if reasons:
        result = result.rows(np.flatnonzero(~wrong))
    return _harmless(result), counts


def _harmless(side: Side) -> Side:
    """Null times hold whatever the buffer held: put 0 in their place."""
    if side.matchable is None:
        return side
    max_time, shapes = (np.where(side.matchable, t, 0) for t in (side.max_time, side.shapes))
    return replace(side, max_time=max_time, shapes=shapes)


def _invalid_rows(times: ReadTimes) -> dict[str, np.ndarray]:
    """Masks of invalid rows by reason; each row under its first reason only."""
    found: dict[str, np.ndarray] = {}
    seen = times.excused.copy()
    for reason, mask in times.faults():
        own = mask & ~seen
        if own.any():
            found[reason] = found[reason] | own if reason in found else own
            seen |= own
    return found


def _describe(table: pa.Table, columns: TimestampColumns, reasons: dict[str, np.ndarray]) -> str:
    messages = []
    for reason, mask in reasons.items():
        values = table.slice(int(np.argmax(mask)), 1).columns
        row = {n: readable(c[0]) for n, c in zip(table.column_names, values, strict=True)}
        row = {**{name: row[name] for name in columns.names}, **row}  # these first: it may be long
        messages.append(describe_invalid(columns, reason, int(mask.sum()), example_row(row)))
    return "; ".join(messages)


def readable(value: pa.Scalar) -> object:
    """What a scalar holds; the bare number of a time for which Python has no date."""
    try:
        return value.as_py()
    except (ValueError, OverflowError, KeyError):
        return getattr(value, "value", "...")


def example_row(row: dict[str, object]) -> str:
    """A row in words, on one line, cut to a readable width."""
    return example_text(", ".join(f"{name}={value}" for name, value in row.items()))


def example_text(words: str) -> str:
    """Words on one line, cut to a readable width."""
    text = " ".join(words.splitlines())
    return text if len(text) <= _EXAMPLE_WIDTH else text[:_EXAMPLE_WIDTH] + " ..."
