"""Columns of times as ticks, and the words for them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import decoded, one_array, plain_type
from coincide.engine.events.time_columns import TimeScale
from coincide.model.decimal_ticks import MOST_PLACES, decimal_ticks
from coincide.model.errors import DataError, argument, option, several
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, Tick

FAR = 2.0 * TIME_LIMIT
"""What has as many ticks is out of range, however it is rounded."""


class Ticks:
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
        if scale.column.is_decimal:
            self.not_finite = _stands_for_none(column)
        else:
            self.not_finite = ~np.isfinite(values) & ~self.null
        values = np.where(np.isfinite(values), values, 0.0)
        ticks = (
            _decimal_ticks(column, scale) if scale.column.is_decimal else float_ticks(values, scale)
        )
        self._out_of_range = np.abs(ticks) >= TIME_LIMIT
        if self._out_of_range.any():
            values, ticks = (np.where(self._out_of_range, 0, each) for each in (values, ticks))
        self.rounding = rounding(values, scale)
        self.ticks = ticks

    def _from_integers(self, column: pa.ChunkedArray, scale: TimeScale) -> None:
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        if column.type.bit_width < 64:
            column = column.cast(pa.int64())
        array = contiguous(column)
        values = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
        ticks = values.view(pa.int64()).to_numpy()
        if pa.types.is_uint64(array.type):
            ticks = np.where(ticks < 0, TIME_LIMIT, ticks)  # from 2^63 on
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


def float_ticks(values: np.ndarray, scale: TimeScale) -> np.ndarray:
    """Floats in ticks, each as the shortest decimal that reads as it, rounded half to even."""
    # Ascending values give ascending ticks, so bounds stay bounds.
    scaled = scaled_floats(values, scale.factor)
    if scale.factor.numerator == 1:  # a decimal is on the side of a half tick where its float is
        return np.clip(np.rint(scaled), -TIME_LIMIT, TIME_LIMIT).astype(np.int64)
    is_far = ~(np.abs(scaled) < FAR)
    if is_far.any():
        values = np.where(is_far, 0.0, values)
    ticks = decimal_ticks(values, scale.factor.numerator, is_single=scale.column.is_single)
    if is_far.any():
        ticks = np.where(is_far, np.copysign(TIME_LIMIT, scaled).astype(np.int64), ticks)
    return np.clip(ticks, -TIME_LIMIT, TIME_LIMIT)


_DIGITS = 38
_MOST_SCALE = 18


def not_finite_decimal(scale: int) -> Decimal:
    """What stands for NaN and infinity in decimals of a CSV, which hold neither: 38 nines, out of range."""
    return Decimal((0, (9,) * _DIGITS, -scale))


def _stands_for_none(column: pa.ChunkedArray) -> np.ndarray:
    """Whether a decimal is `not_finite_decimal`, which is no time in any unit: bool array, shape (n,)."""
    kind = contiguous(column).type
    if kind.precision < _DIGITS or kind.scale > _MOST_SCALE:
        return np.zeros(len(column), bool)
    none = pa.scalar(not_finite_decimal(kind.scale), pa.decimal128(_DIGITS, kind.scale))
    return pc.fill_null(pc.equal(column, none), False).to_numpy()


def _decimal_ticks(column: pa.ChunkedArray, scale: TimeScale) -> np.ndarray:
    """Decimals in ticks, rounded half to even; held within ±2^61, 0 for null: int64 array."""
    array, factor = contiguous(column), scale.factor
    array = array.cast(pa.decimal256(array.type.precision, array.type.scale))
    values = array.cast(pa.float64()).fill_null(0.0).to_numpy()
    scaled = scaled_floats(values, factor)
    is_far = (np.abs(scaled) >= FAR) | (np.abs(values) >= FAR)
    array = pc.if_else(pa.array(is_far), None, array).fill_null(0)
    size = pa.scalar(factor.numerator, pa.decimal256(len(str(factor.numerator)), 0))
    whole = pc.round(pc.multiply(array, size), 0, "half_to_even")
    ticks = whole.cast(pa.int64()).to_numpy()
    if factor.denominator > 1:
        ticks = _divided(array, factor.denominator)
    ends = np.copysign(TIME_LIMIT, scaled).astype(np.int64)
    return np.clip(np.where(is_far, ends, ticks), -TIME_LIMIT, TIME_LIMIT)


def _divided(array: pa.Array, ticks: int) -> np.ndarray:
    """Decimals by an even number, rounded half to even: int64 array."""
    whole = array.cast(pa.int64(), safe=False)
    has_more = pc.not_equal(array, whole.cast(pa.decimal256(19, 0))).to_numpy(False)
    number = whole.to_numpy()
    found, rest = np.sign(number) * (np.abs(number) // ticks), np.abs(number) % ticks
    is_up = (2 * rest > ticks) | ((2 * rest == ticks) & (has_more | (found % 2 != 0)))
    return found + np.sign(number) * is_up


def scaled_floats(values: np.ndarray, factor: Fraction) -> np.ndarray:
    """Floats in ticks as they are, neither read as decimals nor rounded: float64 array."""
    # One operation on floats that are exact, correctly rounded: Spark's SQL gives the same bits.
    with np.errstate(over="ignore"):
        if factor.denominator == 1:
            return values * float(factor.numerator)
        return values / float(factor.denominator)


def rounding(values: np.ndarray, scale: TimeScale) -> np.ndarray:
    """By how many ticks floats are changed, 0 where by no more than they are uncertain by."""
    # More than half a tick only where 32-bit floats are coarser than ticks.
    scaled = scaled_floats(values, scale.factor)
    change = np.abs(scaled - np.rint(scaled))
    least = np.maximum(np.abs(scaled) * scale.epsilon, scale.noise)
    found = np.where(change > least, change, 0.0)
    if not scale.column.is_single:
        return found
    coarse = scaled_floats(_single_steps(values), scale.factor) / 2.0
    return np.where(coarse > HALF, coarse, found)


HALF = 0.5
"""Rounding to ticks changes times by no more ticks."""
SINGLE_WHOLE, SINGLE_BITS, SINGLE_DIGITS = 2.0**24, 23, 6
"""What 32-bit floats have: up to where whole numbers are exact, bits of a fraction, digits always kept."""


def _single_steps(values: np.ndarray) -> np.ndarray:
    """From one 32-bit float to the next; 0 where a number of so few digits was hardly rounded to one."""
    size = np.abs(values)
    is_whole = (size <= SINGLE_WHOLE) & (values == np.rint(values))
    size = np.where(is_whole, 1.0, size)
    places = np.minimum(SINGLE_DIGITS - 1 - np.floor(np.log10(size)), float(MOST_PLACES))
    power = 10.0 ** np.abs(places)
    short = np.where(places >= 0, np.rint(values * power) / power, np.rint(values / power) * power)
    is_short = short.astype(np.float32) == values
    return np.where(is_whole | is_short, 0.0, np.spacing(size.astype(np.float32)).astype(float))


def _check_whole(values: np.ndarray, scale: TimeScale) -> None:
    """Timestamps finer than a tick would lose time."""
    finer = values[values % scale.factor.denominator != 0]
    if not finer.size:
        return
    column = scale.column
    own = {size: unit for unit, size in NANOSECONDS_PER_UNIT.items()}
    as_stored = replace(scale, factor=Fraction(1), tick=Tick(own[column.nanoseconds or 1]))
    example = time_words(int(finer[0]), as_stored)
    what = "durations" if column.family == "duration" else "timestamps"
    far = int(((finer >= TIME_LIMIT) | (finer <= -TIME_LIMIT)).sum())
    raise DataError(
        f"{column.side}.{column.name} has {what} finer than 1 us in"
        f" {several(finer.size, 'row')} (found {example}). Round them, or count in nanoseconds"
        f" with {option('unit', 'ns')}"
        + (
            f". {argument('invalid', 'drop')} then skips {far:,} of them, which are out of range"
            if far
            else ""
        )
        + "."
    )


def contiguous(column: pa.ChunkedArray) -> pa.Array:
    """One contiguous array, without its encoding; wide where 32-bit offsets would not do."""
    return one_array(decoded(column, plain_type(column.type)))


def time_words(ticks: int, scale: TimeScale) -> str:
    """A time of a column, such as ``2024-05-01 08:00:00Z`` or ``1,700,000,000 s``."""
    family, tick = scale.column.family, scale.tick
    if family.startswith("timestamp"):
        text = np.datetime_as_string(np.int64(ticks).view(f"datetime64[{tick.unit}]")).replace(
            "T", " "
        )
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text + "Z" * (family == "timestamp")
    value = Fraction(ticks) / scale.factor
    number = f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.15g}"
    if tick.nanoseconds is None:
        return number
    step = tick.nanoseconds * scale.factor
    return f"{number} {next(unit for unit, size in NANOSECONDS_PER_UNIT.items() if size == step)}"


def written_time(text: str) -> pa.Scalar | None:
    """The time that ISO 8601 writes, to the nanosecond; None for other texts."""
    kinds = [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
    for kind in kinds:
        with suppress(pa.ArrowInvalid):
            return pa.scalar(text).cast(kind)
    return None


def length_words(ticks: Fraction | float, tick: Tick, digits: int = 6) -> str:
    """A length, such as ``20 ms`` or, of bare ticks, ``20 ticks``."""
    if tick.nanoseconds is None:
        return f"{round(ticks):,} ticks"
    if ticks == 0:
        return f"0 {tick.unit}"
    size = Fraction(ticks) * tick.nanoseconds
    fitting = [unit for unit, step in NANOSECONDS_PER_UNIT.items() if step <= abs(size)]
    unit = fitting[-1] if fitting else next(iter(NANOSECONDS_PER_UNIT))
    return f"{number_words(float(size / NANOSECONDS_PER_UNIT[unit]), digits)} {unit}"


def number_words(number: float, digits: int) -> str:
    """A number, rounded to this many digits, without an exponent."""
    return f"{Decimal(f'{number:.{digits}g}'):f}"
