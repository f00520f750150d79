"""What is pushed, checked before anything of it is taken in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coincide.errors import DataError, SchemaError
from coincide.sides import LEFT, RIGHT, SIDES
from coincide.streams.checks import (
    ARRIVAL,
    FINE,
    OUT_OF_RANGE,
    REVERSED,
    TOO_LONG,
    TOO_SHORT,
    first_trouble,
)
from coincide.streams.options import SideLimits
from coincide.timestamps import IntervalEvents
from coincide.units import TIME_LIMIT

Events = IntervalEvents | tuple[npt.ArrayLike, npt.ArrayLike]

_NO_ARRIVAL = np.empty(0, np.int64)


class Batch(NamedTuple):
    """Checked events of one or both sides, in order of arrival.

    Parameters
    ----------
    sides : uint8 array, shape (n,)
    max_time, shapes : int64 arrays, shape (n,)
        Ticks; as the timestamps' model gives them.
    arrival : int64 array, shape (n,) or (0,)
        Arrival instants, ticks; none: each event comes as late as its side's largest max_time.
    """

    sides: np.ndarray
    max_time: np.ndarray
    shapes: np.ndarray
    arrival: np.ndarray


def one_sided_batch(
    side: int,
    events: Events,
    arrival: npt.ArrayLike | None,
    lengths: np.ndarray,
    clock: np.ndarray,
) -> Batch:
    """Events of one side as a batch.

    Parameters
    ----------
    side : int
        From `side_index`.
    events, arrival, lengths, clock
        As `mixed_batch`, which also says what is raised.
    """
    lows, highs = _both_ends(events)
    marks = np.full(lows.size, side, np.uint8)
    return _checked(marks, lows, highs, arrival, lengths, clock)


def mixed_batch(
    sides: npt.ArrayLike,
    events: Events,
    arrival: npt.ArrayLike | None,
    lengths: np.ndarray,
    clock: np.ndarray,
) -> Batch:
    """Events of both sides as a batch.

    Parameters
    ----------
    sides : array of int, shape (n,)
        0 for left, 1 for right.
    events : IntervalEvents or (min_time, max_time)
        Without groups.
    arrival : int64 array, shape (n,), or None
        Arrival instants, ticks.
    lengths : int64 array, shape (2, 2)
        From `declared_lengths`.
    clock : int64 array, shape (2,)
        Latest arrival instant of each side so far.

    Raises
    ------
    SchemaError
        If arrays are not one-dimensional arrays of integers, of equal size.
    DataError
        If an entry is null; if an event has min_time above max_time, a time beyond 2**61 ticks, or a
        length outside the declared limits; if arrival instants go back; if events have groups.
    """
    lows, highs = _both_ends(events)
    marks = _marks(sides)
    _check_size("sides", marks, lows)
    return _checked(marks, lows, highs, arrival, lengths, clock)


def _checked(
    marks: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    arrival: npt.ArrayLike | None,
    lengths: np.ndarray,
    clock: np.ndarray,
) -> Batch:
    instants = _NO_ARRIVAL if arrival is None else _ticks("arrival", arrival)
    if arrival is not None:
        _check_size("arrival", instants, lows)
    given = (marks, lows, highs, instants)
    trouble, at = first_trouble(*given, lengths, clock, TIME_LIMIT)
    if trouble != FINE:
        raise DataError(_complaint(trouble, int(at), given, lengths, clock))
    return Batch(marks, highs, highs - lows, instants)


def declared_lengths(limits: tuple[SideLimits, SideLimits]) -> np.ndarray:
    """Shortest and longest length, ticks, of the left and the right side."""
    return np.array([(side.shortest, side.longest) for side in limits], np.int64)


def _both_ends(events: Events) -> tuple[np.ndarray, np.ndarray]:
    low, high = _given_ends(events)
    lows, highs = _ticks("min_time", low), _ticks("max_time", high)
    _check_size("max_time", highs, lows)
    return lows, highs


def _given_ends(events: Events) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    if isinstance(events, IntervalEvents):
        if events.group is not None:
            raise DataError(
                "a stream correlator knows no groups; use one correlator for each key, and push"
                " events without group"
            )
        return events.min_time, events.max_time
    if isinstance(events, tuple) and len(events) == 2:
        return events
    raise SchemaError(
        "events must be IntervalEvents or a pair of arrays (min_time, max_time); found"
        f" {type(events).__name__}"
    )


def _ticks(name: str, values: npt.ArrayLike) -> np.ndarray:
    array = _array(name, values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        _check_range(name, array)
        raise SchemaError(
            f"{name} must be a one-dimensional array of integers (ticks); found {array.dtype} of"
            f" shape {array.shape}. Round times to int64 ticks first"
        )
    if array.dtype.kind == "u" and array.size:
        _check_range(name, array)
    return _plain(array, np.int64)


def _marks(sides: npt.ArrayLike) -> np.ndarray:
    array = _array("sides", sides)
    expected = "sides must be a one-dimensional array of 0 (left) and 1 (right)"
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
            f"{name} must be a one-dimensional array of integers; found a"
            f" {type(values).__name__} that is no array ({error}). Give one int for each event"
        ) from error
    if array.dtype.kind == "f":
        _refuse_null(name, np.isnan(array))
    elif array.dtype.kind == "O":
        nulls = [_is_null(value) for value in array.ravel().tolist()]
        _refuse_null(name, np.array(nulls, bool))
    return array


def _refuse_null(name: str, nulls: np.ndarray) -> None:
    at = np.flatnonzero(nulls)
    if at.size:
        raise DataError(
            f"{name}: nulls, masked entries and NaN are not allowed; found one at position"
            f" {int(at[0])}. Leave such events out"
        )


def _is_null(value: object) -> bool:
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


def _check_size(name: str, array: np.ndarray, lows: np.ndarray) -> None:
    if array.size != lows.size:
        raise SchemaError(
            f"{name} has {array.size} entries, but min_time has {lows.size}; give one for each event"
        )


def _complaint(
    trouble: int, at: int, given: tuple[np.ndarray, ...], lengths: np.ndarray, clock: np.ndarray
) -> str:
    marks, lows, highs, instants = given
    side = int(marks[at])
    name, low, high = SIDES[side], int(lows[at]), int(highs[at])
    where = f"{name}: event {at} of this push, [{low}, {high}],"
    if trouble == OUT_OF_RANGE:
        return f"{where} reaches 2^61 ticks; use a coarser unit"
    if trouble == REVERSED:
        return f"{where} has min_time above max_time; swap the two or leave the event out"
    if trouble == TOO_LONG:
        return (
            f"{where} is {high - low} ticks long, but {name}_longest is {lengths[side, 1]};"
            f" declare a larger {name}_longest or leave the event out"
        )
    if trouble == TOO_SHORT:
        return (
            f"{where} is {high - low} ticks long, but {name}_shortest is {lengths[side, 0]};"
            f" declare a smaller {name}_shortest or leave the event out"
        )
    arrival = int(instants[at])
    if trouble == ARRIVAL:
        return f"{where} arrives at {arrival}, beyond 2^61 ticks; use a coarser unit"
    earlier = instants[:at][marks[:at] == side]
    last = int(max(clock[side], earlier.max(initial=clock[side])))
    return (
        f"{where} arrives at {arrival}, before an earlier event or heartbeat of its side, at {last};"
        " push the events of a side in order of arrival"
    )
