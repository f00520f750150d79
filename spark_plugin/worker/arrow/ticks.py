"""Times of Arrow columns as ticks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import DataError
from coincide.plurals import several
from coincide.units import TIME_LIMIT, Tick
from spark_plugin.worker.arrow.schemas import plain_type
from spark_plugin.worker.arrow.time_columns import (
    TimeScale,
)
from spark_plugin.worker.arrow.time_words import time_words
from spark_plugin.worker.arrow.wide_columns import decoded, one_array


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
        array = contiguous(column)
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


def _check_whole(values: np.ndarray, scale: TimeScale) -> None:
    """Timestamps finer than a tick would lose time."""
    finer = values[values % scale.factor.denominator != 0]
    if not finer.size:
        return
    column, example = scale.column, time_words(int(finer[0]), replace(scale, tick=Tick("ns")))
    far = int(((finer >= TIME_LIMIT) | (finer <= -TIME_LIMIT)).sum())
    raise DataError(
        f"{column.side}.{column.name} has timestamps finer than 1 us in"
        f" {several(finer.size, 'row')}, for example {example}; round them, or count in nanoseconds,"
        " with options=CorrelateOptions(unit='ns')"
        + (f", where invalid='drop' leaves out {far:,} of them as out of range" if far else "")
    )


def contiguous(column: pa.ChunkedArray) -> pa.Array:
    """One contiguous array, without its encoding; wide where 32-bit offsets would not do."""
    return one_array(decoded(column, plain_type(column.type)))
