"""From Arrow tables to sides: times to ticks, invalid rows found and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import DataError
from coincide.options import Invalid
from coincide.timestamps import are_valid_times
from coincide.units import TIME_LIMIT
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.schemas import column_of
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.ticks import Ticks, contiguous
from spark_plugin.worker.arrow.time_columns import (
    INVALID_REASONS,
    TimeScale,
    describe_invalid,
)

_EXAMPLE_WIDTH = 200


def read_side(
    table: pa.Table,
    scales: tuple[TimeScale, TimeScale],
    by: Sequence[str],
    payload: Sequence[str],
    invalid: Invalid,
    longest: int | None,
) -> tuple[Side, SideCounts]:
    """Arrays of one side, its invalid rows refused or left out.

    Parameters
    ----------
    table : pa.Table
    scales : (TimeScale, TimeScale)
        Of the min and the max column.
    by, payload : sequences of str
        Names of the key columns and of the columns to hand out.
    invalid : {"raise", "drop"}
    longest : int or None
        Declared longest length, ticks.

    Raises
    ------
    DataError
        If there are invalid rows and `invalid` is ``"raise"``.
    """
    side = scales[0].column.side
    lower, upper = (Ticks(column_of(table, side, scale.column.name), scale) for scale in scales)
    keys = [contiguous(column_of(table, side, name)) for name in by]
    columns = [contiguous(column_of(table, side, name)) for name in payload]
    if not any(key.null_count for key in keys) and _all_valid(lower, upper, longest):
        counts = SideCounts(table.num_rows, rounded=_rounded((lower, upper), None))
        return Side(lower.ticks, upper.ticks, None, keys, columns), counts
    null = lower.null | upper.null
    for key in keys:
        null |= pc.is_null(key).to_numpy(zero_copy_only=False)
    reasons = _invalid_rows(lower, upper, longest)
    if reasons and invalid == "raise":
        raise DataError(_describe(table, side, reasons, scales))
    wrong = np.logical_or.reduce([np.zeros(null.size, bool), *reasons.values()])
    # A null key does not excuse an invalid time: such a row counts once, as invalid.
    unmatchable = int((null & ~wrong).sum())
    counts = SideCounts(
        table.num_rows,
        unmatchable,
        {reason: int(mask.sum()) for reason, mask in reasons.items()},
        _rounded((lower, upper), ~(null | wrong)),
    )
    matchable = ~null if null.any() else None
    result = Side(lower.ticks, upper.ticks, matchable, keys, columns)
    if reasons:
        result = result.rows(np.flatnonzero(~wrong))
    return _harmless(result), counts


def _harmless(side: Side) -> Side:
    """Null times hold whatever the buffer held: put 0 in their place."""
    if side.matchable is None:
        return side
    min_time, max_time = (np.where(side.matchable, t, 0) for t in (side.min_time, side.max_time))
    return replace(side, min_time=min_time, max_time=max_time)


def _rounded(columns: Sequence[Ticks], valid: np.ndarray | None) -> float:
    """The largest change of a time in the valid rows, or in all."""
    changes = [column.rounding for column in columns if column.rounding is not None]
    return max(
        (float((each if valid is None else each[valid]).max(initial=0.0)) for each in changes),
        default=0.0,
    )


def _all_valid(lower: Ticks, upper: Ticks, longest: int | None) -> bool:
    """Whether every row is valid and no time is null: mostly so, and then no masks are needed."""
    return (
        lower.shows_all
        and upper.shows_all
        and are_valid_times(
            lower.ticks, upper.ticks, 2 * TIME_LIMIT if longest is None else longest
        )
    )


def _invalid_rows(lower: Ticks, upper: Ticks, longest: int | None) -> dict[str, np.ndarray]:
    """Masks of invalid rows by reason; each row under its first reason only."""
    null = lower.null | upper.null
    tests = {
        "not_finite": lambda: _either(lower.not_finite, upper.not_finite, null.size),
        "range": lambda: lower.out_of_range | upper.out_of_range,
        "order": lambda: lower.ticks > upper.ticks,
        "length": lambda: (
            np.zeros(null.size, bool) if longest is None else upper.ticks - lower.ticks > longest
        ),
    }
    assert list(tests) == list(INVALID_REASONS)
    found: dict[str, np.ndarray] = {}
    seen = null.copy()
    for reason, test in tests.items():
        mask = test() & ~seen
        if mask.any():
            found[reason] = mask
            seen |= mask
    return found


def _either(a: np.ndarray, b: np.ndarray, n: int) -> np.ndarray:
    mask = np.zeros(n, bool)
    for part in (a, b):
        if part.size:
            mask |= part
    return mask


def _describe(
    table: pa.Table, side: str, reasons: dict[str, np.ndarray], scales: tuple[TimeScale, TimeScale]
) -> str:
    messages = []
    for reason, mask in reasons.items():
        columns = table.slice(int(np.argmax(mask)), 1).columns
        row = {n: readable(c[0]) for n, c in zip(table.column_names, columns, strict=True)}
        messages.append(describe_invalid(side, reason, int(mask.sum()), scales, example_row(row)))
    return "; ".join(messages)


def readable(value: pa.Scalar) -> object:
    """What a scalar holds; the bare number of a time for which Python has no date."""
    try:
        return value.as_py()
    except (ValueError, OverflowError, KeyError):
        return getattr(value, "value", "...")


def example_row(row: dict[str, object]) -> str:
    """A row in words, on one line, cut to a readable width."""
    text = " ".join(", ".join(f"{name}={value}" for name, value in row.items()).splitlines())
    return text if len(text) <= _EXAMPLE_WIDTH else text[:_EXAMPLE_WIDTH] + " ..."
