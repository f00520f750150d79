"""From Arrow tables to sides: schema checks, times to ticks, invalid rows found and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import DataError, SchemaError
from coincide.options import Invalid
from coincide.timestamps import are_valid_times
from coincide.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, Tick
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.time_columns import (
    INVALID_REASONS,
    TimeColumn,
    TimeScale,
    describe_invalid,
)
from spark_plugin.worker.arrow.time_words import time_words
from spark_plugin.worker.arrow.wide_columns import decoded, one_array

_EXAMPLE_WIDTH = 200


@dataclass(frozen=True)
class SideCounts:
    """What the rows of one side were.

    Parameters
    ----------
    rows : int
        Rows in.
    unmatchable : int
        Rows with a null time or key: they match nothing.
    invalid : dict of str to int
        Rows left out, by reason (`spark_plugin.worker.arrow.time_columns.INVALID_REASONS`).
    rounded : float
        Largest change of a time by rounding it to ticks, in ticks; 0 where none is changed by more
        than its float is uncertain by.
    """

    rows: int = 0
    unmatchable: int = 0
    invalid: dict[str, int] = field(default_factory=dict)
    rounded: float = 0.0

    @property
    def dropped(self) -> int:
        """Rows left out in all."""
        return sum(self.invalid.values())

    def __add__(self, other: SideCounts) -> SideCounts:
        """Counts of the rows of both."""
        reasons = [r for r in INVALID_REASONS if r in self.invalid or r in other.invalid]
        return SideCounts(
            self.rows + other.rows,
            self.unmatchable + other.unmatchable,
            {r: self.invalid.get(r, 0) + other.invalid.get(r, 0) for r in reasons},
            max(self.rounded, other.rounded),
        )


def column_of(table: pa.Table, side: str, name: str) -> pa.ChunkedArray:
    """A column by name.

    Raises
    ------
    SchemaError
        If it is missing or stands twice.
    """
    check_name(side, name, table.column_names)
    return table.column(name)


def type_of(schema: pa.Schema, side: str, name: str) -> pa.DataType:
    """The plain type of a column.

    Raises
    ------
    SchemaError
        If it is missing or stands twice.
    """
    check_name(side, name, schema.names)
    return plain_type(schema.field(name).type)


def check_name(side: str, name: str, names: Sequence[str]) -> None:
    """Refuse a column that is missing or stands twice.

    Raises
    ------
    SchemaError
    """
    found = list(names).count(name)
    if found == 0:
        # Quoted, so that blanks show, and headers that were split at the wrong character.
        has = ", ".join(map(repr, names)) or "none"
        raise SchemaError(f"{side} has no column {name!r}; it has {has}")
    if found > 1:
        raise SchemaError(f"{side} has {found} columns called {name!r}; rename all but one")


def arrow_time_column(side: str, name: str, kind: pa.DataType) -> TimeColumn:
    """What a column of an Arrow type means as a time.

    Raises
    ------
    SchemaError
        If the type is no time.
    """
    if pa.types.is_timestamp(kind):
        family = "timestamp" if kind.tz is not None else "timestamp_ntz"
        return TimeColumn(side, name, family, NANOSECONDS_PER_UNIT[kind.unit])  # type: ignore[arg-type]
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return TimeColumn(side, name, "integer")
    if pa.types.is_floating(kind) and not pa.types.is_float16(kind):
        return TimeColumn(side, name, "float", is_single=pa.types.is_float32(kind))
    raise SchemaError(
        f"{side}.{name} is {kind}; a time column must be a timestamp, an integer or a float. Cast it"
        " where the data are written, or with pyarrow.compute (strptime for texts)"
    )


def check_keys(
    by: Sequence[str], left: Sequence[tuple[str, bool]], right: Sequence[tuple[str, bool]]
) -> None:
    """Refuse keys that cannot be compared exactly.

    Parameters
    ----------
    by : sequence of str
    left, right : sequences of (str, bool)
        Type of each key, in words, and whether it can be a key.

    Raises
    ------
    SchemaError
        If a key differs in type between the sides, or is a float or nested.
    """
    for name, (left_kind, left_able), (right_kind, right_able) in zip(by, left, right, strict=True):
        if left_kind != right_kind:
            raise SchemaError(
                f"the key {name!r} is {left_kind} on the left and {right_kind} on the right; cast one so"
                " that both are the same"
            )
        if not (left_able and right_able):
            raise SchemaError(
                f"the key {name!r} is {left_kind}, which cannot be compared exactly; cast it to a string"
                " or an integer"
            )


def can_be_key(kind: pa.DataType) -> bool:
    """Whether equality on an Arrow type is exact."""
    return not (pa.types.is_floating(kind) or pa.types.is_nested(kind) or pa.types.is_null(kind))


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
    lower, upper = (_Ticks(column_of(table, side, scale.column.name), scale) for scale in scales)
    keys = [_one_array(column_of(table, side, name)) for name in by]
    columns = [_one_array(column_of(table, side, name)) for name in payload]
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


def float_ticks(values: np.ndarray, scale: TimeScale) -> np.ndarray:
    """Floats in ticks, rounded. Ascending values give ascending ticks, so bounds stay bounds.

    Parameters
    ----------
    values : float64 array
    scale : TimeScale

    Returns
    -------
    float64 array, shape as theirs
        Whole numbers, which may be out of range; NaN and infinity stay what they are.
    """
    return np.rint(scaled_floats(values, scale.factor))


class _Ticks:
    """A time column as int64 ticks, with masks of what is null, not finite or out of range."""

    def __init__(self, column: pa.ChunkedArray, scale: TimeScale) -> None:
        self._column = column
        self._out_of_range: np.ndarray | None = None
        self.rounding: np.ndarray | None = None
        if scale.column.family == "float":
            self._from_floats(column, scale)
        else:
            self._from_integers(column, scale)

    def _from_floats(self, column: pa.ChunkedArray, scale: TimeScale) -> None:
        values = column.cast(pa.float64()).to_numpy()
        self.not_finite = ~np.isfinite(values) & ~self.null
        scaled = scaled_floats(np.where(np.isfinite(values), values, 0.0), scale.factor)
        ticks = np.rint(scaled)
        self._out_of_range = np.abs(ticks) >= TIME_LIMIT
        scaled, ticks = (np.where(self._out_of_range, 0.0, each) for each in (scaled, ticks))
        self.rounding = rounding(scaled, ticks, scale)
        self.ticks = ticks.astype(np.int64)

    def _from_integers(self, column: pa.ChunkedArray, scale: TimeScale) -> None:
        if scale.column.family == "integer":
            column = column.cast(pa.int64())
        array = _one_array(column)
        values = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
        ticks = values.view(pa.int64()).to_numpy()
        self.not_finite = np.zeros(0, bool)
        if scale.factor.denominator != 1:
            _check_whole(ticks, scale)
            ticks = ticks // scale.factor.denominator
        if scale.factor.numerator != 1:
            self._out_of_range = (ticks >= scale.limit) | (ticks <= -scale.limit)
            ticks = np.where(self._out_of_range, 0, ticks) * scale.factor.numerator
        self.ticks = ticks

    @property
    def null(self) -> np.ndarray:
        """Whether an entry is null: bool array, shape (n,)."""
        return pc.is_null(self._column).to_numpy().astype(bool)

    @property
    def out_of_range(self) -> np.ndarray:
        """Whether a time is too large: bool array, shape (n,)."""
        if self._out_of_range is None:
            return (self.ticks >= TIME_LIMIT) | (self.ticks <= -TIME_LIMIT)
        return self._out_of_range

    @property
    def shows_all(self) -> bool:
        """Whether the ticks alone tell what is wrong: no entry is null or had to be replaced."""
        replaced = self._out_of_range is not None and bool(self._out_of_range.any())
        return not (self._column.null_count or self.not_finite.any() or replaced)


def scaled_floats(values: np.ndarray, factor: Fraction) -> np.ndarray:
    """Floats in ticks, not yet rounded (half to even, by ``rint``): float64 array.

    One operation on floats that are exact, correctly rounded: Spark's SQL gives the same bits.
    """
    with np.errstate(over="ignore"):
        if factor.denominator == 1:
            return values * float(factor.numerator)
        return values / float(factor.denominator)


def rounding(scaled: np.ndarray, ticks: np.ndarray, scale: TimeScale) -> np.ndarray:
    """By how many ticks floats are changed, 0 where by no more than they are uncertain by."""
    change = np.abs(scaled - ticks)
    least = np.maximum(np.abs(scaled) * scale.epsilon, scale.noise)
    return np.where(change > least, change, 0.0)


def _rounded(columns: Sequence[_Ticks], valid: np.ndarray | None) -> float:
    """The largest change of a time in the valid rows, or in all."""
    changes = [column.rounding for column in columns if column.rounding is not None]
    return max(
        (float((each if valid is None else each[valid]).max(initial=0.0)) for each in changes),
        default=0.0,
    )


def _check_whole(values: np.ndarray, scale: TimeScale) -> None:
    """Timestamps finer than a tick would lose time."""
    finer = values[values % scale.factor.denominator != 0]
    if not finer.size:
        return
    column, example = scale.column, time_words(int(finer[0]), replace(scale, tick=Tick("ns")))
    far = int(((finer >= TIME_LIMIT) | (finer <= -TIME_LIMIT)).sum())
    raise DataError(
        f"{column.side}.{column.name} has timestamps finer than 1 us in {finer.size:,}"
        f" row{'s' if finer.size > 1 else ''}, for example {example}; round them, or count in nanoseconds,"
        " with options=CorrelateOptions(unit='ns')"
        + (f", where invalid='drop' leaves out {far:,} of them as out of range" if far else "")
    )


def _all_valid(lower: _Ticks, upper: _Ticks, longest: int | None) -> bool:
    """Whether every row is valid and no time is null: mostly so, and then no masks are needed."""
    return (
        lower.shows_all
        and upper.shows_all
        and are_valid_times(
            lower.ticks, upper.ticks, 2 * TIME_LIMIT if longest is None else longest
        )
    )


def _invalid_rows(lower: _Ticks, upper: _Ticks, longest: int | None) -> dict[str, np.ndarray]:
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


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Dictionaries and views are encodings, not types that results should depend on."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """One contiguous array, without its encoding; wide where 32-bit offsets would not do."""
    return one_array(decoded(column, plain_type(column.type)))
