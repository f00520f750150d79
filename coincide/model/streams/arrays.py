"""What is pushed, as plain arrays without nulls, and one pass of checks each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coincide.model.compiled import compiled
from coincide.model.errors import DataError, SchemaError, argument
from coincide.model.sides import LEFT, RIGHT
from coincide.model.units import TIME_LIMIT


class Column(NamedTuple):
    """An array that is asked for: what it is called, what it has to be, and what to do where it is not."""

    name: str
    kind: str = "integers (ticks)"
    hint: str = "Round times to int64 ticks first"


ARRIVALS = Column("arrival")


def integers(column: Column, values: npt.ArrayLike) -> np.ndarray:
    """An int64 array of one dimension."""
    array = _array(column.name, values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        _check_range(column.name, array)
        raise SchemaError(
            f"{column.name} must be a one-dimensional array of {column.kind}; found {array.dtype} of"
            f" shape {array.shape}. {column.hint}"
        )
    if array.dtype.kind == "u" and array.size:
        _check_range(column.name, array)
    return _plain(array, np.int64)


def marks_of(sides: npt.ArrayLike) -> np.ndarray:
    """The sides of a mixed push: uint8 array."""
    array = _array("sides", sides)
    expected = f"{argument('sides')} must be a one-dimensional array of 0 (left) and 1 (right)"
    if array.ndim != 1 or (array.dtype.kind not in "iub" and array.size):
        raise SchemaError(
            f"{expected}, one for each event; found {array.dtype} of shape {array.shape}"
        )
    wrong = np.flatnonzero((array != LEFT) & (array != RIGHT))
    if wrong.size:
        at = int(wrong[0])
        raise SchemaError(f"{expected}; found {array[at]} at position {at}")
    return _plain(array, np.uint8)


def _array(name: str, values: npt.ArrayLike) -> np.ndarray:
    """An array without nulls, of any type and shape."""
    if np.ma.is_masked(values):
        # np.asarray would drop the mask and take what lies beneath it for a value.
        _refuse_null(name, np.ma.getmaskarray(np.ma.asarray(values)))
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise SchemaError(
            f"{argument(name)} must be a one-dimensional array of integers; found a"
            f" {type(values).__name__} that is no array ({error}). Give one int for each event"
        ) from error
    if array.dtype.kind == "f":
        _refuse_null(name, np.isnan(array))
    elif array.dtype.kind == "O":
        nulls = [is_null(value) for value in array.ravel().tolist()]
        _refuse_null(name, np.array(nulls, bool))
    return array


def _refuse_null(name: str, nulls: np.ndarray) -> None:
    at = np.flatnonzero(nulls)
    if at.size:
        raise DataError(
            f"{name}: nulls, masked entries and NaN are not allowed; found one at position"
            f" {int(at[0])}. Leave such events out"
        )


def is_null(value: object) -> bool:
    """Whether a value of an object array is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except ValueError:  # an array
        return False
    except TypeError:  # pandas.NA is neither equal to itself nor different
        return True


def _check_range(name: str, array: np.ndarray) -> None:
    """Refuse times beyond the limit where they made NumPy choose another type than int64."""
    if array.dtype.kind in "uf":
        beyond = bool((np.abs(array) >= TIME_LIMIT).any())
    else:
        beyond = array.dtype.kind == "O" and any(
            isinstance(value, int) and abs(value) >= TIME_LIMIT for value in array.ravel().tolist()
        )
    if beyond:
        raise DataError(f"{name}: a time reaches 2^61 ticks; use a coarser unit")


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """One memory layout only: kernels are compiled anew for each, read-only arrays included."""
    return np.require(array, dtype, ("C", "A", "W"))


def check_size(name: str, array: np.ndarray, like: str, size: int) -> None:
    """Refuse an array that has not one entry for each event."""
    if array.size != size:
        raise SchemaError(
            f"{name} has {array.size} entries, but {like} has {size}; give one for each event"
        )


FINE, OUT_OF_RANGE, REVERSED, TOO_LONG, TOO_SHORT, UNKNOWN, ARRIVAL, BACKWARDS = range(8)
"""What can be wrong with an event: its time, ends, length, template, or arrival instant."""


@compiled
def first_interval_trouble(sides, lows, highs, lengths, limit):
    """The first interval that cannot be taken in."""
    for i in range(lows.size):
        low, high, side = lows[i], highs[i], sides[i]
        if low <= -limit or high >= limit or low >= limit or high <= -limit:
            return OUT_OF_RANGE, i
        if low > high:
            return REVERSED, i
        if high - low > lengths[side, 1]:
            return TOO_LONG, i
        if high - low < lengths[side, 0]:
            return TOO_SHORT, i
    return FINE, lows.size


@compiled
def first_template_trouble(sides, max_times, templates, counts, limit):
    """The first event of a template that cannot be taken in."""
    for i in range(max_times.size):
        if not 0 <= templates[i] < counts[sides[i]]:
            return UNKNOWN, i
        if not -limit < max_times[i] < limit:
            return OUT_OF_RANGE, i
    return FINE, max_times.size


@compiled
def first_arrival_trouble(sides, arrival, clock, limit):
    """The first event whose arrival instant cannot be."""
    left, right = clock[0], clock[1]
    for i in range(arrival.size):
        if not -limit < arrival[i] < limit:
            return ARRIVAL, i
        if arrival[i] < (left if sides[i] == LEFT else right):
            return BACKWARDS, i
        if sides[i] == LEFT:
            left = arrival[i]
        else:
            right = arrival[i]
    return FINE, arrival.size
